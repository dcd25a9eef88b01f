"""What impulses do to velocities: A = J M⁻¹ Jᵀ and M⁻¹ Jᵀ x, without the mass matrix.

A force on a row J of a tree is halved by the articulated-body recursion into u, what is left of it for each joint, and
D⁻¹ u; two rows' entry of A is u of the one times D⁻¹ u of the other. Only the joints between a contact and the root
have a part in that, which native code finds by leaving zeros out.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Qd, Tau
from hybridsim.dynamics.articulated import Factors, accelerations, articulated_factors, divided, joint_forces
from hybridsim.dynamics.crba import tree_mass_matrix
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.dynamics.rnea import tree_inertia_torques
from hybridsim.model.coordinates import coupling, expand_v, reduce_tau
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia


class Response(eqx.Module):
    """M⁻¹ of a mechanism in one configuration."""

    @abc.abstractmethod
    def halves(self, torque: Tau) -> tuple[Float[AnyArray, " m"], Float[AnyArray, " m"]]:
        """Two vectors of a torque: for two torques, the first of one times the second of the other is their M⁻¹."""

    @abc.abstractmethod
    def divided(self, torque: Tau) -> Qd:
        """M⁻¹ times a torque."""

    @abc.abstractmethod
    def combined(self, J: Float[AnyArray, "n nv"], x: Float[AnyArray, " n"]) -> Qd:
        """M⁻¹ Jᵀ x, with the halves that `delassus` needs as well."""

    def delassus(self, J: Float[AnyArray, "n nv"]) -> Float[AnyArray, "n n"]:
        """J M⁻¹ Jᵀ: the velocities of rows after unit impulses along each of them."""
        u, k = jax.vmap(self.halves)(J)
        upper = np.triu(np.ones((J.shape[0], J.shape[0]), dtype=bool))
        A = u @ k.T
        return jnp.where(upper, A, A.T)  # native code never computes the lower half


class TreeResponse(Response):
    """By articulated inertias."""

    model: Model
    kin: Kinematics
    factors: Factors

    def halves(self, torque):
        return joint_forces(self.model, self.kin, self.factors, torque)

    def divided(self, torque):
        return divided(self.model, self.kin, self.factors, torque)

    def combined(self, J, x):
        return accelerations(self.model, self.kin, self.factors, x @ jax.vmap(self.halves)(J)[1])


class MatrixResponse(Response):
    """By the mass matrix, for mechanisms whose joints follow each other."""

    L: Float[AnyArray, "nv nv"]
    """Cholesky factor."""

    def halves(self, torque):
        half = solve_triangular(self.L, torque, lower=True)
        return half, half

    def divided(self, torque):
        return solve_triangular(self.L, solve_triangular(self.L, torque, lower=True), lower=True, trans=1)

    def combined(self, J, x):
        return self.divided(x @ J)


def response(model: Model, kin: Kinematics, inertia: RigidInertia) -> Response:
    """M⁻¹ of a mechanism."""
    if not model.topology.is_coupled:
        return TreeResponse(model, kin, articulated_factors(model, kin, inertia))
    G = coupling(model)
    return MatrixResponse(jnp.linalg.cholesky(G.T @ tree_mass_matrix(model, kin, inertia) @ G))


def momentum(model: Model, kin: Kinematics, inertia: RigidInertia, v: Qd) -> Tau:
    """M v: the impulse on each degree of freedom that changes velocities by `v`."""
    return reduce_tau(model, tree_inertia_torques(model, kin, inertia, expand_v(model, v)))
