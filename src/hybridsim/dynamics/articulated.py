"""Articulated-body inertias: the factorization of the mass matrix used by the articulated-body algorithm.

One pass from the leaves to the root computes them; each product of M⁻¹ with a torque then takes one backward and one
forward pass (Featherstone 2008, chapter 7).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import solve_symmetric_3
from hybridsim.core.types import AnyArray, Qdd
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.dynamics.tree import traverse_leaves_to_root, traverse_root_to_leaves
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import ArticulatedInertia, RigidInertia, articulated_inertia


class ArticulatedFactors(eqx.Module):
    """Factors of the mass matrix from the recursion, reusable for any number of torques."""

    IA: ArticulatedInertia
    """Articulated-body inertia of each body; of a body on a free joint, including the armature."""
    U: Float[AnyArray, "tree_nv 6"]
    """S IA: wrench on the body per unit joint acceleration, one row per degree of freedom."""
    K: Float[AnyArray, "tree_nv 6"]
    """D⁻¹ U with D = S IA Sᵀ plus the armature."""
    D_factors: Float[AnyArray, "tree_nv 3"]
    """1/D for a joint with one degree of freedom, rows of D for one with three."""


def articulated_factors(model: Model, kin: Kinematics, inertia: RigidInertia) -> ArticulatedFactors:
    """Articulated-body inertias IA, from the leaves to the root."""

    def propagate(IA, X_PB, dofs):
        S, armature = dofs
        n = S.shape[0]
        if n == 6:
            # the parent of a free joint is the world: nothing to propagate
            IA = ArticulatedInertia(IA.I + jnp.diag(armature[:3]), IA.H, IA.M + jnp.diag(armature[3:]))
            return IA, IA, (np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((6, 3)))
        U = jax.vmap(lambda s: IA * s)(S)
        D = U @ S.T + jnp.diag(armature)
        if n == 1:
            inverse = 1.0 / D
            K, D_factors = inverse * U, jnp.concatenate([inverse, np.zeros((1, 2))], axis=1)
            # along the joint axis only the armature resists
            projected = IA.subtract_outer(U, K).with_axis_wrench(S[0], armature * inverse[0] * U[0])
            return projected.transform(X_PB), IA, (U, K, D_factors)
        else:
            K = solve_symmetric_3(D, U) if n == 3 else U
            D_factors = D.reshape(n, 3)
        return IA.subtract_outer(U, K).transform(X_PB), IA, (U, K, D_factors)

    body_inertia = jax.vmap(articulated_inertia)(inertia)
    dofs = (kin.S, jnp.asarray(model.joint.armature))
    IA, (U, K, D_factors) = traverse_leaves_to_root(model.topology, propagate, body_inertia, kin.X_PB, dofs)
    return ArticulatedFactors(IA, U, K, D_factors)


def apply_mass_inverse(
    model: Model, kin: Kinematics, factors: ArticulatedFactors, torque: Float[AnyArray, " tree_nv"]
) -> Qdd:
    """M⁻¹ times a torque."""
    return forward_pass(model, kin, factors, backward_pass(model, kin, factors, torque))


def backward_pass(
    model: Model, kin: Kinematics, factors: ArticulatedFactors, torque: Float[AnyArray, " tree_nv"]
) -> Float[AnyArray, " tree_nv"]:
    """D⁻¹ u, from the leaves to the root, where u = τ − S pA is the joint torque minus the projected bias force."""

    def propagate(pA, body, dofs):
        (X_PB, IA), (S, torque, U, D_factors) = body, dofs
        u, n = torque - S @ pA, S.shape[0]
        if n == 6:
            return pA, None, IA.solve(u)
        k = D_factors[:, 0] * u if n == 1 else solve_symmetric_3(D_factors, u) if n == 3 else u
        return X_PB.force(pA + k @ U), None, k

    forces = np.zeros((model.nb, 6))
    dofs = (kin.S, torque, factors.U, factors.D_factors)
    return traverse_leaves_to_root(model.topology, propagate, forces, (kin.X_PB, factors.IA), dofs)[1]


def forward_pass(model: Model, kin: Kinematics, factors: ArticulatedFactors, k: Float[AnyArray, " tree_nv"]) -> Qdd:
    """Joint accelerations k − K a, from the root to the leaves, where a is the acceleration of the parent."""

    def accelerate(a_parent, X_PB, dofs):
        S, K, k = dofs
        a = X_PB.inv_motion(a_parent)
        qdd = k - K @ a
        return a + qdd @ S, qdd

    return traverse_root_to_leaves(model.topology, accelerate, np.zeros(6), kin.X_PB, (kin.S, factors.K, k))[1]
