"""Spatial inertias in structured form: rigid-body (mass, first moment, 3×3) and articulated-body (3×3 blocks).

Dense 6×6 products are avoided, which saves most of the arithmetic and lets constant zeros fold.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import cross, solve_symmetric_3
from hybridsim.core.types import AnyArray, Mat3, MotionVector, Scalar, Vec3, Wrench
from hybridsim.spatial.rotation import skew
from hybridsim.spatial.transform import Pose

SYMMETRIC_ORDER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Indices of the six independent entries of a symmetric 3×3 matrix: xx, yy, zz, xy, xz, yz."""


def symmetric_matrix(entries: Float[AnyArray, "6"]) -> Mat3:
    """Symmetric 3×3 matrix from its entries xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = (entries[i] for i in range(6))
    return jnp.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz]).reshape(3, 3)


class RigidInertia(eqx.Module):
    """Spatial inertia of a rigid body about its frame's origin, in its frame."""

    mass: Float[AnyArray, "*stack"]
    """Mass [kg]."""
    h: Float[AnyArray, "*stack 3"]
    """First moment: mass times centre of mass [kg·m]."""
    I: Float[AnyArray, "*stack 3 3"]
    """Rotational inertia about the frame's origin [kg·m²]."""

    def __mul__(self, V: MotionVector) -> Wrench:
        """Spatial momentum for a velocity V, or the wrench for an acceleration V."""
        angular = self.I @ V[:3] + cross(self.h, V[3:])
        linear = self.mass * V[3:] - cross(self.h, V[:3])
        return jnp.concatenate([angular, linear])

    def bias_wrench(self, omega: Vec3) -> Wrench:
        """Bias wrench at zero acceleration of the body's origin: [ω × I ω; ω × (ω × h)]."""
        return jnp.concatenate([cross(omega, self.I @ omega), cross(omega, cross(omega, self.h))])

    def __add__(self, other: "RigidInertia") -> "RigidInertia":
        """Inertia of two bodies welded together, both expressed in the same frame."""
        return RigidInertia(self.mass + other.mass, self.h + other.h, self.I + other.I)

    def transform(self, X_AB: Pose) -> "RigidInertia":
        """Transform the inertia from B to A."""
        Rh = X_AB.R @ self.h
        h_A = Rh + self.mass * X_AB.p
        # parallel-axis theorem from a point other than the centre of mass
        cross_terms = skew(X_AB.p) @ skew(Rh)
        I_A = X_AB.R @ self.I @ X_AB.R.T - cross_terms - cross_terms.T - self.mass * _skew_squared(X_AB.p)
        return RigidInertia(self.mass, h_A, I_A)


def rigid_inertia(mass: Scalar, com: Vec3, inertia_com: Float[AnyArray, "6"]) -> RigidInertia:
    """Spatial inertia about the frame's origin from mass, centre of mass and inertia about the centre of mass."""
    return RigidInertia(mass, mass * com, symmetric_matrix(inertia_com) - mass * _skew_squared(com))


def _skew_squared(a: Vec3) -> Mat3:
    """skew(a)² = a aᵀ - |a|² 1."""
    return jnp.outer(a, a) - jnp.sum(a * a) * np.eye(3)


class ArticulatedInertia(eqx.Module):
    """Articulated-body inertia [[I, H], [Hᵀ, M]], a symmetric 6×6 matrix."""

    I: Float[AnyArray, "*stack 3 3"]
    """Angular block [kg·m²]."""
    H: Float[AnyArray, "*stack 3 3"]
    """Coupling of linear motion to torque [kg·m]."""
    M: Float[AnyArray, "*stack 3 3"]
    """Linear block [kg]."""

    def __mul__(self, A: MotionVector) -> Wrench:
        """Wrench for an acceleration A."""
        angular = self.I @ A[:3] + self.H @ A[3:]
        linear = A[:3] @ self.H + self.M @ A[3:]
        return jnp.concatenate([angular, linear])

    def __add__(self, other: "ArticulatedInertia") -> "ArticulatedInertia":
        """Sum of two inertias expressed in the same frame."""
        return ArticulatedInertia(self.I + other.I, self.H + other.H, self.M + other.M)

    def subtract_outer(self, U: Float[AnyArray, "n 6"], V: Float[AnyArray, "n 6"]) -> "ArticulatedInertia":
        """Subtract Σ U_k V_kᵀ, which must be symmetric as a whole."""
        I, H, M = self.I, self.H, self.M
        for u, v in zip(U, V, strict=True):
            I, H, M = (
                I - jnp.outer(u[:3], v[:3]),
                H - jnp.outer(u[:3], v[3:]),
                M - jnp.outer(u[3:], v[3:]),
            )
        return ArticulatedInertia(_mirror_upper(I), H, _mirror_upper(M))

    def with_axis_wrench(self, s: MotionVector, F: Wrench) -> "ArticulatedInertia":
        """Copy whose row and column along `s` are the known wrench `F` for a unit acceleration along `s`.

        The copy is equal to the original if `s` is not a coordinate axis. Otherwise values change by rounding error
        only, but native code skips the entries of the row and column where the wrench is zero.
        """
        magnitude = jnp.abs(s)
        is_axis, entries = (magnitude == 1.0) & (jnp.sum(magnitude) == 1.0), jnp.sum(s) * F
        ang, lin = np.s_[:3], np.s_[3:]

        def overwrite(block: Mat3, rows: slice, columns: slice) -> Mat3:
            block = jnp.where(is_axis[None, columns], entries[rows, None], block)
            return jnp.where(is_axis[rows, None], entries[None, columns], block)

        return ArticulatedInertia(overwrite(self.I, ang, ang), overwrite(self.H, ang, lin), overwrite(self.M, lin, lin))

    def transform(self, X_AB: Pose) -> "ArticulatedInertia":
        """Transform the inertia from B to A."""
        R, p = X_AB.R, skew(X_AB.p)
        I, H, M = R @ self.I @ R.T, R @ self.H @ R.T, R @ self.M @ R.T
        H_A = H + p @ M
        pHt = p @ H.T
        return ArticulatedInertia(_mirror_upper(I + pHt - H_A @ p), H_A, _mirror_upper(M))

    def solve(self, F: Wrench) -> MotionVector:
        """Acceleration due to a wrench F, by the Schur complement of the linear block."""
        M_inv_Ht_and_f = solve_symmetric_3(self.M, jnp.concatenate([self.H.T, F[3:, None]], axis=1))
        M_inv_Ht, M_inv_f = M_inv_Ht_and_f[:, :3], M_inv_Ht_and_f[:, 3]
        angular = solve_symmetric_3(self.I - self.H @ M_inv_Ht, F[:3] - self.H @ M_inv_f)
        return jnp.concatenate([angular, M_inv_f - M_inv_Ht @ angular])


def _mirror_upper(A: Mat3) -> Mat3:
    """Symmetric matrix from its upper triangle, so that native code never computes the lower one."""
    return jnp.where(np.triu(np.full((3, 3), True)), A, A.T)


def articulated_inertia(inertia: RigidInertia) -> ArticulatedInertia:
    """Articulated-body inertia of a single rigid body."""
    return ArticulatedInertia(inertia.I, skew(inertia.h), inertia.mass * np.eye(3))
