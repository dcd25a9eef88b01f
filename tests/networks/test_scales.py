"""Scales of networks must be positive and finite."""

import numpy as np
import pytest

from hybridsim.core.errors import TapError
from hybridsim.networks.friction import ConeFriction, JointFriction
from hybridsim.networks.internal_force import InternalForce
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Conservative, Dissipative, PortHamiltonian

INVALID = {
    "input_scale": lambda: MLP(2, 1, input_scale=(1.0, 0.0)),
    "output_scale": lambda: MLP(2, 1, output_scale=np.inf),
    "damping_scale": lambda: Dissipative(1, 1, damping_scale=-1.0),
    "potential_scale": lambda: Conservative(1, potential_scale=0.0),
    "inertia_scale": lambda: Lagrangian(1, inertia_scale=-2.0),
    "width": lambda: JointFriction(width=0.0),
    "friction_scale": lambda: JointFriction(friction_scale=-1.0),
    "friction": lambda: ConeFriction(friction=-0.5),
    "speed_scale": lambda: ConeFriction(speed_scale=np.nan),
    "distance_scale": lambda: InternalForce(distance_scale=0.0),
}


@pytest.mark.parametrize("name", INVALID)
def test_scales_that_are_not_positive_are_refused(name):
    with pytest.raises(TapError, match=f"^{name} must be positive and finite"):
        INVALID[name]()


def test_a_damping_scale_of_zero_disables_damping():
    assert InternalForce(damping_scale=0.0).damping_scale == 0.0
    with pytest.raises(TapError, match=r"^damping_scale must be nonnegative and finite"):
        InternalForce(damping_scale=-0.1)
    with pytest.raises(TapError, match="damping_scale"):
        PortHamiltonian(2, damping_scale=-1.0)
