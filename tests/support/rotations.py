"""Rotations and velocities of a free body's motion, in NumPy."""

import numpy as np
from scipy.spatial.transform import Rotation


def rotations(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices of quaternions (w first)."""
    return Rotation.from_quat(np.roll(quaternions, -1, axis=1)).as_matrix()


def world_velocities(motion) -> tuple[np.ndarray, np.ndarray]:
    """Angular velocity and velocity of the origin of a free body, in world axes, from its coordinates' velocities."""
    R = rotations(motion.q[:, 3:7])
    return np.einsum("tij,tj->ti", R, motion.qd[:, :3]), np.einsum("tij,tj->ti", R, motion.qd[:, 3:6])
