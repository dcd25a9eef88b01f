"""Pose `X_AB` of a frame B in a frame A, and its action on points, motion vectors and force vectors.

Adjacent letters cancel: `X_AC = X_AB @ X_BC`. Every method without a prefix maps from B to A; its counterpart
with the prefix `inv_` maps from A to B without forming the inverse pose.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.core.numerics import cross
from hybridsim.core.types import AnyArray, MotionVector, Vec3, Wrench
from hybridsim.spatial.rotation import matrix_from_rotation_vector, rotation_vector_from_matrix


class Pose(eqx.Module):
    """Rotation and translation of B in A. A stack of poses carries leading axes on both fields."""

    R: Float[AnyArray, "*stack 3 3"]
    """R_AB: columns are B's axes in A."""
    p: Float[AnyArray, "*stack 3"]
    """p_AB: position of B's origin from A's origin, in A [m]."""

    def __matmul__(self, other: "Pose") -> "Pose":
        """X_AC from X_AB and X_BC."""
        return Pose(self.R @ other.R, self.p + self.R @ other.p)

    def inverse(self) -> "Pose":
        """X_BA."""
        return Pose(self.R.T, -(self.R.T @ self.p))

    def point(self, p_B: Vec3) -> Vec3:
        """Coordinates in A of a point given in B."""
        return self.p + self.R @ p_B

    def inv_point(self, p_A: Vec3) -> Vec3:
        """Coordinates in B of a point given in A."""
        return self.R.T @ (p_A - self.p)

    def motion(self, V_B: MotionVector) -> MotionVector:
        """Transform a motion vector from B to A."""
        angular = self.R @ V_B[:3]
        linear = self.R @ V_B[3:] + cross(self.p, angular)
        return jnp.concatenate([angular, linear])

    def inv_motion(self, V_A: MotionVector) -> MotionVector:
        """Transform a motion vector from A to B."""
        angular = V_A[:3] @ self.R
        linear = (V_A[3:] - cross(self.p, V_A[:3])) @ self.R
        return jnp.concatenate([angular, linear])

    def force(self, F_B: Wrench) -> Wrench:
        """Transform a force vector from B to A."""
        force = self.R @ F_B[3:]
        torque = self.R @ F_B[:3] + cross(self.p, force)
        return jnp.concatenate([torque, force])

    def displace(self, offset: Float[AnyArray, "6"]) -> "Pose":
        """Pose displaced by a translation [m] in A, then a rotation vector [rad] in B.

        The order is that of `coordinates`; in a tangent-space delta the rotation comes first.
        """
        return Pose(self.R @ matrix_from_rotation_vector(offset[3:]), self.p + offset[:3])

    def coordinates(self) -> Float[AnyArray, "6"]:
        """Position [m], then rotation vector [rad] of R_AB."""
        return jnp.concatenate([self.p, rotation_vector_from_matrix(self.R)])
