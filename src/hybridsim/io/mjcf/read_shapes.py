"""Geometry and surface parameters of the geoms of a compiled MuJoCo model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.io.mjcf.read_poses import rotation_matrix
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
"""Shapes in the order of MuJoCo's `mjtGeom`; signed distance fields have no counterpart."""

FRICTIONLESS, SLIDING = 1, 3
"""Values of `condim`: dimension of the contact force without friction and with sliding friction."""


@dataclass(frozen=True)
class ConvertedGeom:
    """Shape, size and placement, as defined by `GeomSpec`."""

    shape: Shape
    size: np.ndarray
    placement: Pose
    mesh_file: str = ""
    data: np.ndarray | None = None


def shape_of(m: Any, g: int, mesh_path: Callable[[int], Path | None]) -> ConvertedGeom | None:
    """Shape, size and placement of a compiled geom; None if hybridsim does not support it.

    Args:
        m: the `MjModel`.
        g: id of the geom.
        mesh_path: maps the id of a mesh to the path of its file, or to None if it has none.
    """
    kind, data_id = int(m.geom_type[g]), int(m.geom_dataid[g])
    shape = _SHAPES[kind] if kind < len(_SHAPES) else None
    placement = Pose(rotation_matrix(m.geom_quat[g]), m.geom_pos[g].copy())
    if shape is Shape.MESH:
        path = mesh_path(data_id)
        if path is None:
            return None
        # MuJoCo transforms vertices to the principal frame of the mesh; return to the frame of the file
        X_mesh = Pose(rotation_matrix(m.mesh_quat[data_id]), m.mesh_pos[data_id].copy())
        return ConvertedGeom(shape, m.mesh_scale[data_id].copy(), placement @ X_mesh.inverse(), str(path))
    if shape is Shape.HEIGHTFIELD:
        heights = _heights(m, data_id)
        size = np.array([*m.hfield_size[data_id, :2], 0.0])
        return ConvertedGeom(shape, size, placement, data=heights) if min(heights.shape) > 1 else None
    return None if shape is None else ConvertedGeom(shape, m.geom_size[g].copy(), placement)


def sliding_friction(condim: int, friction: Sequence[float]) -> float:
    """Coulomb friction coefficient of a geom or pair: the first value of `friction`, or 0 for a `condim` of 1.

    In a contact, MuJoCo takes the maximum of `condim` and of `friction` separately; hybridsim takes the maximum of μ.
    The results differ if a geom with `condim` 1 has a larger `friction` than one with `condim` 3: MuJoCo then uses the
    friction of the frictionless geom, and hybridsim that of the other. If priorities differ, both use the parameters of
    the geom with the higher priority.
    """
    return 0.0 if condim == FRICTIONLESS else float(friction[0])


def surface_of(m: Any, g: int) -> dict[str, Any]:
    """Surface parameters of a compiled geom as fields of `GeomSpec`."""
    time = recovery_time(m.geom_solref[g])
    return {
        "friction": sliding_friction(m.geom_condim[g], m.geom_friction[g]),
        "recovery_time": DEFAULT_RECOVERY_TIME if time is None else time,
        "softness": softness(m.geom_solimp[g]),
        "priority": int(m.geom_priority[g]),
    }


def solref_warning(m: Any, g: int) -> str:
    """Unsupported part of a geom's `solref`; empty if it is fully supported."""
    if recovery_time(m.geom_solref[g]) is None:
        return f"is invalid; {DEFAULT_RECOVERY_TIME:g} s is used"
    first, damping_ratio = m.geom_solref[g]
    if first > 0.0 and damping_ratio != 1.0:
        return "has a damping ratio other than 1, which is ignored; only the restitution determines the rebound"
    return ""


def _heights(m: Any, field: int) -> np.ndarray:
    """Heights [m] with rows along x; MuJoCo stores heights as fractions of the maximum, with rows along y."""
    rows, columns, start = int(m.hfield_nrow[field]), int(m.hfield_ncol[field]), int(m.hfield_adr[field])
    relative = m.hfield_data[start : start + rows * columns].reshape(rows, columns).astype(float)
    return relative.T * float(m.hfield_size[field, 2])
