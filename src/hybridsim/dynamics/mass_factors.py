"""The mass matrix as Lᵀ D L, found from the last joint to the first (Featherstone 2008, section 6.5).

In this order what is zero in the mass matrix, because two joints lie on different branches, is zero in L: a force at a
foot concerns the joints of its leg and the base alone. Native code leaves zeros out, so that the work for one row is
half the square of the number of joints between it and the root.
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
    """M = Lᵀ D L of a mechanism in one configuration."""

    L: Float[AnyArray, "nv nv"]
    """Below its diagonal; the ones on it are left out."""
    D_inv: Float[AnyArray, " nv"]
    """1/D."""

    def half_solve(self, torque: Tau) -> tuple[Float[AnyArray, " nv"], Float[AnyArray, " nv"]]:
        """What of a torque is left for each joint, u, and what that accelerates, D⁻¹ u.

        For two torques, u of the one times D⁻¹ u of the other is the one times M⁻¹ times the other.
        """
        u = solve_triangular(self.L, torque, lower=True, trans=1, unit_diagonal=True)
        return u, self.D_inv * u

    def finish_solve(self, half: Float[AnyArray, " nv"]) -> Qd:
        """M⁻¹ times a torque, from its second half."""
        return solve_triangular(self.L, half, lower=True, unit_diagonal=True)

    def apply_mass_inverse(self, torque: Tau) -> Qd:
        """M⁻¹ times a torque."""
        return self.finish_solve(self.half_solve(torque)[1])


def mass_factors(model: Model, kin: Kinematics, inertia: RigidInertia) -> MassFactors:
    """Factors of the mass matrix, mimic joints counted with those they follow."""
    M = tree_mass_matrix(model, kin, inertia)
    if model.topology.has_mimic_joints:
        G = coupling_matrix(model)
        M = G.T @ M @ G
    return ltdl(M)


def ltdl(M: Float[AnyArray, "nv nv"]) -> MassFactors:
    """Factors of a matrix of which the lower half counts."""
    n = M.shape[0]
    L, inverse = [], []
    for i in reversed(range(n)):
        inverse.insert(0, 1.0 / M[i, i])
        row = M[i, :i] * inverse[0]
        L.insert(0, jnp.concatenate([row, np.zeros(n - i)]))
        M = M[:i, :i] - jnp.where(np.tri(i, dtype=bool), row[:, None] * M[i, None, :i], 0.0)
    return MassFactors(jnp.stack(L), jnp.stack(inverse))
