"""The joint types: joint transform, motion subspace and coordinates of each.

A joint connects body B to its parent P. At `q = 0` the body frame coincides with the joint frame J, fixed in the
parent. `X_JB(q)` is the joint transform: a rotation about the point `anchor` (given in B), a translation along
the axis or, for a free joint, any pose. The motion subspace `S` of every elementary type is constant in B, so no joint
has a velocity-product term.

Compound joints (universal, planar, and the several joints of an MJCF body) are chains of elementary joints with
massless bodies between them; `assemble` and the MJCF reader expand them.
"""

from dataclasses import dataclass
from enum import StrEnum

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import cross
from hybridsim.core.types import AnyArray, Vec3
from hybridsim.spatial.rotation import (
    matrix_from_axis_angle,
    matrix_from_quaternion,
    matrix_from_rotation_vector,
    normalize_quaternion,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_product,
    quaternion_rate,
)
from hybridsim.spatial.transform import Pose


class ElementaryJointType(StrEnum):
    """Elementary joint types of the tree."""

    FIXED = "fixed"
    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"
    SPHERICAL = "spherical"
    FREE = "free"

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return _JOINT_COORDINATES[self].nq

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return _JOINT_COORDINATES[self].nv

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates within the joint; empty for a single one."""
        return _JOINT_COORDINATES[self].coordinates

    @property
    def dof_names(self) -> tuple[str, ...]:
        """Names of the degrees of freedom within the joint; empty for a single one."""
        return _JOINT_COORDINATES[self].dofs


@dataclass(frozen=True)
class _JointCoordinates:
    coordinates: tuple[str, ...]
    dofs: tuple[str, ...]

    @property
    def nq(self) -> int:
        return len(self.coordinates)

    @property
    def nv(self) -> int:
        return len(self.dofs)


_JOINT_COORDINATES = {
    ElementaryJointType.FIXED: _JointCoordinates((), ()),
    ElementaryJointType.REVOLUTE: _JointCoordinates(("",), ("",)),
    ElementaryJointType.PRISMATIC: _JointCoordinates(("",), ("",)),
    ElementaryJointType.SPHERICAL: _JointCoordinates(("qw", "qx", "qy", "qz"), ("wx", "wy", "wz")),
    ElementaryJointType.FREE: _JointCoordinates(
        ("x", "y", "z", "qw", "qx", "qy", "qz"), ("wx", "wy", "wz", "vx", "vy", "vz")
    ),
}


def joint_transform(kind: ElementaryJointType, axis: Vec3, anchor: Vec3, q: Float[AnyArray, " n"]) -> Pose:
    """Joint transform X_JB: pose of the body in the joint frame."""
    match kind:
        case ElementaryJointType.FIXED:
            return Pose(np.eye(3), np.zeros(3))
        case ElementaryJointType.PRISMATIC:
            return Pose(np.eye(3), q[0] * axis)
        case ElementaryJointType.REVOLUTE:
            R = matrix_from_axis_angle(axis, q[0])
            return Pose(R, anchor - R @ anchor)
        case ElementaryJointType.SPHERICAL:
            R = matrix_from_quaternion(q)
            return Pose(R, anchor - R @ anchor)
        case ElementaryJointType.FREE:
            return Pose(matrix_from_quaternion(q[3:]), q[:3])


def motion_subspace(kind: ElementaryJointType, axis: Vec3, anchor: Vec3) -> Float[AnyArray, "n 6"]:
    """Motion subspace S in the body frame, one row per degree of freedom."""
    match kind:
        case ElementaryJointType.FIXED:
            return np.zeros((0, 6))
        case ElementaryJointType.PRISMATIC:
            return jnp.concatenate([np.zeros(3), axis])[None]
        case ElementaryJointType.REVOLUTE:
            # the body origin moves on a circle about the anchor
            return jnp.concatenate([axis, cross(anchor, axis)])[None]
        case ElementaryJointType.SPHERICAL:
            return jnp.stack([jnp.concatenate([e, cross(anchor, e)]) for e in np.eye(3)])
        case ElementaryJointType.FREE:
            return np.eye(6)


def retract(kind: ElementaryJointType, q: Float[AnyArray, " n"], delta: Float[AnyArray, " m"]) -> Float[AnyArray, " n"]:
    """Coordinates reached from `q` by the tangent-space displacement `delta`, expressed in B at `q`."""
    match kind:
        case ElementaryJointType.SPHERICAL:
            return quaternion_product(q, quaternion_exp(delta))
        case ElementaryJointType.FREE:
            p = q[:3] + matrix_from_quaternion(q[3:]) @ delta[3:]
            return jnp.concatenate([p, quaternion_product(q[3:], quaternion_exp(delta[:3]))])
        case _:
            return q + delta


def difference(
    kind: ElementaryJointType, q: Float[AnyArray, " n"], q_to: Float[AnyArray, " n"]
) -> Float[AnyArray, " m"]:
    """Tangent-space displacement from `q` to `q_to`; the inverse of `retract`."""
    match kind:
        case ElementaryJointType.SPHERICAL:
            return quaternion_log(quaternion_product(quaternion_conjugate(q), q_to))
        case ElementaryJointType.FREE:
            rotation = quaternion_log(quaternion_product(quaternion_conjugate(q[3:]), q_to[3:]))
            return jnp.concatenate([rotation, (q_to[:3] - q[:3]) @ matrix_from_quaternion(q[3:])])
        case _:
            return q_to - q


def rate(kind: ElementaryJointType, q: Float[AnyArray, " n"], qd: Float[AnyArray, " m"]) -> Float[AnyArray, " n"]:
    """Time derivative of the coordinates."""
    match kind:
        case ElementaryJointType.SPHERICAL:
            return quaternion_rate(q, qd)
        case ElementaryJointType.FREE:
            return jnp.concatenate([matrix_from_quaternion(q[3:]) @ qd[3:], quaternion_rate(q[3:], qd[:3])])
        case _:
            return qd


def normalize(kind: ElementaryJointType, q: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
    """Coordinates with their quaternion normalized to unit length."""
    match kind:
        case ElementaryJointType.SPHERICAL:
            return normalize_quaternion(q)
        case ElementaryJointType.FREE:
            return jnp.concatenate([q[:3], normalize_quaternion(q[3:])])
        case _:
            return q


def classical_acceleration_term(kind: ElementaryJointType, qd: Float[AnyArray, " m"]) -> Float[AnyArray, " m"]:
    """Difference between the classical and the spatial acceleration of a free body: ω × v; zero for other joints.

    `qd` of a free joint is expressed in the rotating body frame. Integrating its components directly would
    increase the speed of a spinning body by the fraction (ω dt)²/2 in every step; adding ω × v to `qdd` and rotating
    the result into the new body frame (`reexpress_velocity`) conserves linear momentum exactly if the body's origin is
    its centre of mass.
    """
    if kind is ElementaryJointType.FREE:
        return jnp.concatenate([np.zeros(3), cross(qd[:3], qd[3:])])
    return np.zeros(qd.shape)


def reexpress_velocity(kind: ElementaryJointType, qd: Float[AnyArray, " m"], dt: AnyArray) -> Float[AnyArray, " m"]:
    """`qd` with its linear part expressed in the body frame at the end of the step."""
    if kind is ElementaryJointType.FREE:
        return jnp.concatenate([qd[:3], qd[3:] @ matrix_from_rotation_vector(dt * qd[:3])])
    return qd
