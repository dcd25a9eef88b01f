"""Lᵀ D L factorization of the mass matrix (Featherstone 2008, section 6.5).

The factorization proceeds from the last joint to the first and so preserves branch-induced sparsity: a force at a foot
involves only the joints of its leg and the base. Native code skips the zeros, so that the cost of one row is half the
square of the number of joints on its path to the root.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Qd, Tau
from hybridsim.dynamics.crba import tree_mass_matrix
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.model.coordinates import coupling_matrix
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia


class MassFactors(eqx.Module):
    """Factors of the mass matrix, M = Lᵀ D L."""

    L: Float[AnyArray, "nv nv"]
    """Strictly lower triangle of the unit lower-triangular factor."""
    D_inv: Float[AnyArray, " nv"]
    """1/D."""

    def half_solve(self, torque: Tau) -> tuple[Float[AnyArray, " nv"], Float[AnyArray, " nv"]]:
        """Vectors u = L⁻ᵀ τ and D⁻¹ u; for two torques, τ₁ᵀ M⁻¹ τ₂ = u₁ᵀ D⁻¹ u₂."""
        u = solve_triangular(self.L, torque, lower=True, trans=1, unit_diagonal=True)
        return u, self.D_inv * u

    def finish_solve(self, half: Float[AnyArray, " nv"]) -> Qd:
        """L⁻¹ times D⁻¹ u from `half_solve`: M⁻¹ times the torque."""
        return solve_triangular(self.L, half, lower=True, unit_diagonal=True)

    def apply_mass_inverse(self, torque: Tau) -> Qd:
        """M⁻¹ times a torque."""
        return self.finish_solve(self.half_solve(torque)[1])


def mass_factors(model: Model, kin: Kinematics, inertia: RigidInertia) -> MassFactors:
    """Factors of the mass matrix in independent coordinates."""
    M = tree_mass_matrix(model, kin, inertia)
    if model.topology.has_mimic_joints:
        G = coupling_matrix(model)
        M = G.T @ M @ G
    return ltdl(M)


def ltdl(M: Float[AnyArray, "nv nv"]) -> MassFactors:
    """Lᵀ D L factors of a symmetric matrix, of which only the lower triangle is read."""
    n = M.shape[0]
    L, inverse = [], []
    for i in reversed(range(n)):
        inverse.insert(0, 1.0 / M[i, i])
        row = M[i, :i] * inverse[0]
        L.insert(0, jnp.concatenate([row, np.zeros(n - i)]))
        M = M[:i, :i] - jnp.where(np.tri(i, dtype=bool), row[:, None] * M[i, None, :i], 0.0)
    return MassFactors(jnp.stack(L), jnp.stack(inverse))
