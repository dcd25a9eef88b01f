"""Single bodies and joints out of a model's arrays, as plain NumPy descriptions."""

import numpy as np

from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.model import Model
from hybridsim.spatial.transform import Pose

ORTHONORMAL = 1e-9
"""How far R·Rᵀ of an orientation may be from one."""


def row(array, index: int | slice) -> np.ndarray:
    """One row, or several, of an array of NumPy or JAX."""
    return np.asarray(np.asarray(array, dtype=float)[index])


def number(array, index: int) -> float:
    """One entry of a vector."""
    return float(row(array, index))


def inertial_of(model: Model, body: int) -> Inertial:
    """Mass properties of a body."""
    bodies = model.body
    return Inertial(number(bodies.mass, body), row(bodies.com, body), inertia_matrix(row(bodies.inertia, body)))


def pose_of(poses: Pose, index: int) -> Pose:
    """One of several poses."""
    return Pose(row(poses.R, index), row(poses.p, index))


def is_rotation(R) -> bool:
    """Whether a 3×3 matrix is a rotation."""
    R = np.asarray(R)
    return bool(np.allclose(R @ R.T, np.eye(3), rtol=0.0, atol=ORTHONORMAL) and np.linalg.det(R) > 0.0)
