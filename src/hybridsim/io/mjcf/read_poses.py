"""Poses from MJCF quaternions and joint coordinates, in plain NumPy."""

from collections.abc import Sequence

import numpy as np

from hybridsim.model.specs import JointSpec, identity_pose
from hybridsim.spatial.transform import Pose


def one_dof_joint_transform(joint: JointSpec, q: float) -> Pose:
    """Joint transform X_JB of a hinge or slide joint at the coordinate `q` [rad or m]."""
    if q == 0.0:
        return identity_pose()
    return joint.kind.elementary_type.joint.numpy_transform(joint.axis, joint.anchor, np.array([q]))


def rotation_matrix(quat: Sequence[float] | np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion, w first."""
    w, x, y, z = np.asarray(quat, dtype=float) / np.linalg.norm(quat)
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )
