"""Rotations and world velocities of a free body, in NumPy."""

import numpy as np
from scipy.spatial.transform import Rotation


def rotations(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices of quaternions (w first)."""
    return Rotation.from_quat(np.roll(quaternions, -1, axis=1)).as_matrix()


def world_velocities(trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Angular velocity of a free body and velocity of its origin, in world axes."""
    R = rotations(trajectory.q[:, 3:7])
    return np.einsum("tij,tj->ti", R, trajectory.qd[:, :3]), np.einsum("tij,tj->ti", R, trajectory.qd[:, 3:6])
