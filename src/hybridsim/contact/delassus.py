"""What impulses do to velocities: A = J M⁻¹ Jᵀ and M⁻¹ Jᵀ x, without the mass matrix.

A force on a row J of a tree is halved by the articulated-body recursion into u, what is left of it for each joint, and
D⁻¹ u; two rows' entry of A is u of the one times D⁻¹ u of the other. Only the joints between a contact and the root
have a part in that, which native code finds by leaving zeros out.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Qd, Tau
from hybridsim.dynamics.articulated import Factors, accelerations, articulated_factors, joint_forces
from hybridsim.dynamics.crba import tree_mass_matrix
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.model.coordinates import coupling
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia


class Response(eqx.Module):
    """M⁻¹ of a mechanism in one configuration."""

    @abc.abstractmethod
    def halves(self, torque: Tau) -> tuple[Float[AnyArray, " m"], Float[AnyArray, " m"]]:
        """Two vectors of a torque: for two torques, the first of one times the second of the other is their M⁻¹."""

    @abc.abstractmethod
    def finished(self, half: Float[AnyArray, " m"]) -> Qd:
        """M⁻¹ times a torque, from its second half."""

    def divided(self, torque: Tau) -> Qd:
        """M⁻¹ times a torque."""
        return self.finished(self.halves(torque)[1])


class TreeResponse(Response):
    """By articulated inertias."""

    model: Model
    kin: Kinematics
    factors: Factors

    def halves(self, torque):
        return joint_forces(self.model, self.kin, self.factors, torque)

    def finished(self, half):
        return accelerations(self.model, self.kin, self.factors, half)


class MatrixResponse(Response):
    """By the mass matrix, for mechanisms whose joints follow each other."""

    L: Float[AnyArray, "nv nv"]
    """Cholesky factor."""

    def halves(self, torque):
        half = solve_triangular(self.L, torque, lower=True)
        return half, half

    def finished(self, half):
        return solve_triangular(self.L, half, lower=True, trans=1)


def response(model: Model, kin: Kinematics, inertia: RigidInertia) -> Response:
    """M⁻¹ of a mechanism."""
    if not model.topology.is_coupled:
        return TreeResponse(model, kin, articulated_factors(model, kin, inertia))
    G = coupling(model)
    return MatrixResponse(jnp.linalg.cholesky(G.T @ tree_mass_matrix(model, kin, inertia) @ G))


def delassus(u: Float[AnyArray, "n m"], k: Float[AnyArray, "n m"]) -> Float[AnyArray, "n n"]:
    """J M⁻¹ Jᵀ, the velocities of rows after unit impulses along each of them, from the halves of the rows."""
    upper = np.triu(np.ones((u.shape[0], u.shape[0]), dtype=bool))
    A = u @ k.T
    return jnp.where(upper, A, A.T)  # native code never computes the lower half
