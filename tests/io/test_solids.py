"""Mass properties of shapes, and shapes without a volume."""

import numpy as np
import pytest

from hybridsim.io.solids import MeshError, solid_inertial, volume
from hybridsim.model.geometry import Shape
from hybridsim.model.specs import GeomSpec


@pytest.mark.parametrize("shape", ["plane", "points", "heightfield", "polygon", "ellipse"])
def test_shapes_without_a_volume_are_named(shape):
    geom = GeomSpec("g", "b", Shape(shape), np.ones(3))
    assert volume(geom) == 0.0
    with pytest.raises(MeshError, match=f"no volume can be computed for shapes of type {shape}"):
        solid_inertial(geom, 1000.0)
