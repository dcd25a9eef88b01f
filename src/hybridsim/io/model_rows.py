"""Rows of a model's arrays as NumPy values: mass properties, poses, vectors and scalars."""

import numpy as np

from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.model import Model
from hybridsim.spatial.transform import Pose

ORTHONORMALITY_TOLERANCE = 1e-9
"""Tolerance on R·Rᵀ − 1 of a rotation matrix."""


def row(array, index: int | slice) -> np.ndarray:
    """One or several rows of a NumPy or JAX array."""
    return np.asarray(np.asarray(array, dtype=float)[index])


def entry(array, index: int) -> float:
    """One entry of a vector."""
    return float(row(array, index))


def inertial_of(model: Model, body: int) -> Inertial:
    """Mass properties of a body."""
    bodies = model.body
    return Inertial(entry(bodies.mass, body), row(bodies.com, body), inertia_matrix(row(bodies.inertia, body)))


def pose_of(poses: Pose, index: int) -> Pose:
    """Pose at an index of stacked poses."""
    return Pose(row(poses.R, index), row(poses.p, index))


def is_rotation(R) -> bool:
    """Whether a 3×3 matrix is a rotation matrix."""
    R = np.asarray(R)
    return bool(np.allclose(R @ R.T, np.eye(3), rtol=0.0, atol=ORTHONORMALITY_TOLERANCE) and np.linalg.det(R) > 0.0)
