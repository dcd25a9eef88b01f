"""The elementary joint types: one class each, with coordinates, joint transform, motion subspace and retraction.

A joint connects body B to its parent P. At `q = 0` the body frame coincides with the joint frame J, fixed in the
parent. `X_JB(q)` is the joint transform: a rotation about the point `anchor` (given in B), a translation along
the axis or, for a free joint, any pose. The motion subspace `S` of every elementary type is constant in B, so no joint
has a velocity-product term.

Compound joints (universal, planar, and the several joints of an MJCF body) are chains of elementary joints with
massless bodies between them; `compound_joints.py` and the MJCF reader expand them.
"""

import abc
from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

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

Coordinates = Float[AnyArray, " n"]
"""Coordinates of one joint."""
Velocities = Float[AnyArray, " m"]
"""Velocities, or a tangent-space displacement, of one joint."""


class ElementaryJoint(abc.ABC):
    """An elementary joint type. Methods without `numpy` in their name are traced; the others run without JAX."""

    coordinates: ClassVar[Mapping[str, str]] = {}
    """Unit of each coordinate by its name within the joint; a single coordinate has an empty name, an entry of a
    quaternion an empty unit. A quaternion comes last, w first."""
    dofs: ClassVar[Mapping[str, str]] = {}
    """Unit of each velocity by its name within the joint, rotations first; none, one, three or six of them."""
    rotations: ClassVar[int] = 0
    """Number of axes about which B rotates: 0, 1 (`axis`) or 3 (those of B)."""
    translations: ClassVar[int] = 0
    """Number of axes along which B translates: 0, 1 (`axis`) or 3 (those of B)."""
    turns_about_anchor: ClassVar[bool] = True
    """Whether rotations are about `anchor`, not about the origin of B."""
    has_rotating_velocity: ClassVar[bool] = False
    """Whether the linear part of `qd` is expressed in the rotating body frame."""
    has_spring: ClassVar[bool] = True
    """Whether the joint has a rest position."""

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return len(self.dofs)

    @property
    def has_axis(self) -> bool:
        """Whether the motion depends on `axis`."""
        return 1 in (self.rotations, self.translations)

    @property
    def is_single_axis(self) -> bool:
        """Whether the joint has one axis and one degree of freedom."""
        return self.has_axis and self.nv == 1

    @property
    def is_euclidean(self) -> bool:
        """Whether `q + delta` is the configuration reached by `delta`; otherwise `q` ends in a quaternion."""
        return self.nq == self.nv

    @property
    def translational_dofs(self) -> tuple[bool, ...]:
        """Whether each degree of freedom is a translation."""
        return tuple(unit == "m/s" for unit in self.dofs.values())

    def zero_coordinates(self) -> np.ndarray:
        """Coordinates at which the body frame coincides with the joint frame."""
        q = np.zeros(self.nq)
        if not self.is_euclidean:
            q[-4] = 1.0
        return q

    @abc.abstractmethod
    def transform(self, axis: Vec3, anchor: Vec3, q: Coordinates) -> Pose:
        """Joint transform X_JB: pose of the body in the joint frame."""

    @abc.abstractmethod
    def numpy_transform(self, axis: np.ndarray, anchor: np.ndarray, q: np.ndarray) -> Pose:
        """Joint transform X_JB in NumPy, for what is computed before anything is compiled."""

    @abc.abstractmethod
    def motion_subspace(self, axis: Vec3, anchor: Vec3) -> Float[AnyArray, "n 6"]:
        """Motion subspace S in the body frame, one row per degree of freedom."""

    def numpy_subspace_columns(self, R: np.ndarray, axis: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """Motion subspace in NumPy, one column per degree of freedom, in any frame F and about its origin.

        Args:
            R: orientation R_FB of the body.
            axis: the joint axis in F.
            centre: the point about which the body turns in F [m].
        """
        columns = [np.zeros((6, 0))]
        if self.rotations:
            axes = axis[:, None] if self.rotations == 1 else R
            columns.append(np.concatenate([axes, np.cross(centre, axes, axisa=0, axisb=0, axisc=0)]))
        if self.translations:
            axes = axis[:, None] if self.translations == 1 else R
            columns.append(np.concatenate([np.zeros(axes.shape), axes]))
        return np.concatenate(columns, axis=1)

    def retract(self, q: Coordinates, delta: Velocities) -> Coordinates:
        """Coordinates reached from `q` by the tangent-space displacement `delta`, expressed in B at `q`."""
        return q + delta

    def difference(self, q: Coordinates, q_to: Coordinates) -> Velocities:
        """Tangent-space displacement from `q` to `q_to`; the inverse of `retract`."""
        return q_to - q

    def rate(self, q: Coordinates, qd: Velocities) -> Coordinates:
        """Time derivative of the coordinates."""
        del q
        return qd

    def normalize(self, q: Coordinates) -> Coordinates:
        """Coordinates with their quaternion normalized to unit length."""
        return q

    def classical_acceleration_term(self, qd: Velocities) -> Velocities:
        """Difference between the classical and the spatial acceleration of a free body: ω × v; zero for other joints.

        `qd` of a free joint is expressed in the rotating body frame. Integrating its components directly would
        increase the speed of a spinning body by the fraction (ω dt)²/2 in every step; adding ω × v to `qdd` and
        rotating the result into the new body frame (`reexpress_velocity`) conserves linear momentum exactly if the
        body's origin is its centre of mass.
        """
        return np.zeros(qd.shape)

    def reexpress_velocity(self, qd: Velocities, dt: AnyArray) -> Velocities:
        """`qd` with its linear part expressed in the body frame at the end of the step."""
        del dt
        return qd


class FixedJoint(ElementaryJoint):
    """No motion."""

    def transform(self, axis, anchor, q):
        return Pose(np.eye(3), np.zeros(3))

    numpy_transform = transform

    def motion_subspace(self, axis, anchor):
        return np.zeros((0, 6))


class RevoluteJoint(ElementaryJoint):
    """Rotation about the axis through the anchor."""

    coordinates: ClassVar = {"": "rad"}
    dofs: ClassVar = {"": "rad/s"}
    rotations = 1

    def transform(self, axis, anchor, q):
        R = matrix_from_axis_angle(axis, q[0])
        return Pose(R, anchor - R @ anchor)

    def numpy_transform(self, axis, anchor, q):
        from scipy.spatial.transform import Rotation  # slow to import

        R = Rotation.from_rotvec(q[0] * axis).as_matrix()
        return Pose(R, anchor - R @ anchor)

    def motion_subspace(self, axis, anchor):
        # the body origin moves on a circle about the anchor
        return jnp.concatenate([axis, cross(anchor, axis)])[None]


class PrismaticJoint(ElementaryJoint):
    """Translation along the axis."""

    coordinates: ClassVar = {"": "m"}
    dofs: ClassVar = {"": "m/s"}
    translations = 1

    def transform(self, axis, anchor, q):
        return Pose(np.eye(3), q[0] * axis)

    numpy_transform = transform

    def motion_subspace(self, axis, anchor):
        return jnp.concatenate([np.zeros(3), axis])[None]


class SphericalJoint(ElementaryJoint):
    """Rotation about the anchor."""

    coordinates: ClassVar = dict.fromkeys(("qw", "qx", "qy", "qz"), "")
    dofs: ClassVar = dict.fromkeys(("wx", "wy", "wz"), "rad/s")
    rotations = 3

    def transform(self, axis, anchor, q):
        R = matrix_from_quaternion(q)
        return Pose(R, anchor - R @ anchor)

    def numpy_transform(self, axis, anchor, q):
        R = _numpy_matrix_from_quaternion(q)
        return Pose(R, anchor - R @ anchor)

    def motion_subspace(self, axis, anchor):
        return jnp.stack([jnp.concatenate([e, cross(anchor, e)]) for e in np.eye(3)])

    def retract(self, q, delta):
        return quaternion_product(q, quaternion_exp(delta))

    def difference(self, q, q_to):
        return quaternion_log(quaternion_product(quaternion_conjugate(q), q_to))

    def rate(self, q, qd):
        return quaternion_rate(q, qd)

    def normalize(self, q):
        return normalize_quaternion(q)


class FreeJoint(ElementaryJoint):
    """Any pose; must be attached to the world."""

    coordinates: ClassVar = {**dict.fromkeys(("x", "y", "z"), "m"), **SphericalJoint.coordinates}
    dofs: ClassVar = {**SphericalJoint.dofs, **dict.fromkeys(("vx", "vy", "vz"), "m/s")}
    rotations = translations = 3
    turns_about_anchor = False
    has_rotating_velocity = True
    has_spring = False

    def transform(self, axis, anchor, q):
        return Pose(matrix_from_quaternion(q[3:]), q[:3])

    def numpy_transform(self, axis, anchor, q):
        return Pose(_numpy_matrix_from_quaternion(q[3:]), q[:3])

    def motion_subspace(self, axis, anchor):
        return np.eye(6)

    def retract(self, q, delta):
        p = q[:3] + matrix_from_quaternion(q[3:]) @ delta[3:]
        return jnp.concatenate([p, quaternion_product(q[3:], quaternion_exp(delta[:3]))])

    def difference(self, q, q_to):
        rotation = quaternion_log(quaternion_product(quaternion_conjugate(q[3:]), q_to[3:]))
        return jnp.concatenate([rotation, (q_to[:3] - q[:3]) @ matrix_from_quaternion(q[3:])])

    def rate(self, q, qd):
        return jnp.concatenate([matrix_from_quaternion(q[3:]) @ qd[3:], quaternion_rate(q[3:], qd[:3])])

    def normalize(self, q):
        return jnp.concatenate([q[:3], normalize_quaternion(q[3:])])

    def classical_acceleration_term(self, qd):
        return jnp.concatenate([np.zeros(3), cross(qd[:3], qd[3:])])

    def reexpress_velocity(self, qd, dt):
        return jnp.concatenate([qd[:3], qd[3:] @ matrix_from_rotation_vector(dt * qd[:3])])


def _numpy_matrix_from_quaternion(quat: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation  # slow to import

    return Rotation.from_quat(np.roll(quat, -1)).as_matrix()


class ElementaryJointType(StrEnum):
    """Elementary joint types of the tree, by name."""

    FIXED = "fixed"
    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"
    SPHERICAL = "spherical"
    FREE = "free"

    @property
    def joint(self) -> ElementaryJoint:
        """Coordinates and motion of the type."""
        return _JOINTS[self]

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.joint.nq

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return self.joint.nv


_JOINTS = {
    ElementaryJointType.FIXED: FixedJoint(),
    ElementaryJointType.REVOLUTE: RevoluteJoint(),
    ElementaryJointType.PRISMATIC: PrismaticJoint(),
    ElementaryJointType.SPHERICAL: SphericalJoint(),
    ElementaryJointType.FREE: FreeJoint(),
}
