"""Shapes of a compiled MuJoCo model: their extents, and what their surfaces are like."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.io.mjcf.read_poses import matrix_of
from hybridsim.io.mjcf.read_surface import recovery_time, softness
from hybridsim.model.geometry import DEFAULT_RECOVERY_TIME, Shape
from hybridsim.spatial.transform import Pose

_SHAPES = (
    Shape.PLANE,
    Shape.HEIGHTFIELD,
    Shape.SPHERE,
    Shape.CAPSULE,
    Shape.ELLIPSOID,
    Shape.CYLINDER,
    Shape.BOX,
    Shape.MESH,
)
"""Shapes in the order of MuJoCo's `mjtGeom`; signed distance fields have none."""

FRICTIONLESS, SLIDING = 1, 3
"""Values of `condim`: dimensions of contact forces without friction, and with sliding friction."""


@dataclass(frozen=True)
class Extent:
    """Where a shape is and how far it reaches, in the terms of `GeomSpec`."""

    shape: Shape
    size: np.ndarray
    placement: Pose
    mesh_file: str = ""
    data: np.ndarray | None = None


def extent_of(m: Any, g: int, mesh_path: Callable[[int], Path | None]) -> Extent | None:
    """Extent of a compiled shape; None for one that cannot collide here.

    Args:
        m: the `MjModel`.
        g: number of the shape.
        mesh_path: file of the mesh with this number, if it has one.
    """
    kind, part = int(m.geom_type[g]), int(m.geom_dataid[g])
    shape = _SHAPES[kind] if kind < len(_SHAPES) else None
    placement = Pose(matrix_of(m.geom_quat[g]), m.geom_pos[g].copy())
    if shape is Shape.MESH:
        path = mesh_path(part)
        if path is None:
            return None
        # MuJoCo moves vertices to the mesh's principal frame; go back to the file's own
        X_mesh = Pose(matrix_of(m.mesh_quat[part]), m.mesh_pos[part].copy())
        return Extent(shape, m.mesh_scale[part].copy(), placement @ X_mesh.inverse(), str(path))
    if shape is Shape.HEIGHTFIELD:
        heights = _heights(m, part)
        size = np.array([*m.hfield_size[part, :2], 0.0])
        return Extent(shape, size, placement, data=heights) if min(heights.shape) > 1 else None
    return None if shape is None else Extent(shape, m.geom_size[g].copy(), placement)


def sliding_friction(condim: int, friction: Sequence[float]) -> float:
    """Coulomb's μ of a shape or pair: the first number of `friction`, and none with a `condim` of 1.

    Where two shapes touch, MuJoCo takes the larger `condim` and the larger friction, each by itself, and we the larger
    μ. The two differ for a slippery shape with a large `friction` on one with a `condim` of 3 and a smaller one: MuJoCo
    then uses the number of the slippery shape, which it has no use for otherwise, and we use that of the other. Where
    priorities differ, both take all from the one shape, and agree.
    """
    return 0.0 if condim == FRICTIONLESS else float(friction[0])


def surface_of(m: Any, g: int) -> dict[str, Any]:
    """Fields of `GeomSpec` that say what a compiled shape's surface is like."""
    time = recovery_time(m.geom_solref[g])
    return {
        "friction": sliding_friction(m.geom_condim[g], m.geom_friction[g]),
        "recovery_time": DEFAULT_RECOVERY_TIME if time is None else time,
        "softness": softness(m.geom_solimp[g]),
        "priority": int(m.geom_priority[g]),
    }


def solref_doubt(m: Any, g: int) -> str:
    """What of a shape's `solref` is not followed; empty if all of it is."""
    if recovery_time(m.geom_solref[g]) is None:
        return f"means nothing, and {DEFAULT_RECOVERY_TIME:g} s is used"
    first, damping_ratio = m.geom_solref[g]
    if first > 0.0 and damping_ratio != 1.0:
        return "has a damping ratio, which is not used: contacts bounce by their restitution only"
    return ""


def _heights(m: Any, field: int) -> np.ndarray:
    """Heights [m] with rows along x; MuJoCo keeps shares of the greatest one, with rows along y."""
    rows, columns, start = int(m.hfield_nrow[field]), int(m.hfield_ncol[field]), int(m.hfield_adr[field])
    shares = m.hfield_data[start : start + rows * columns].reshape(rows, columns).astype(float)
    return shares.T * float(m.hfield_size[field, 2])
