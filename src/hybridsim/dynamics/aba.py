"""Forward dynamics by the articulated-body algorithm (Featherstone 2008, table 7.1), in body frames.

The first of its three passes is `kinematics`. The other two are below: articulated inertias IA and bias forces pA
from the leaves to the root, accelerations from the root to the leaves.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import symmetric_solve_3
from hybridsim.core.types import AnyArray, Numbers, Qdd, Tau
from hybridsim.dynamics.crba import tree_mass_matrix
from hybridsim.dynamics.inertias import armature_bias, bias_forces, body_inertias
from hybridsim.dynamics.kinematics import Kinematics, kinematics
from hybridsim.dynamics.rnea import tree_torques
from hybridsim.dynamics.tree import leaves_to_root, root_to_leaves
from hybridsim.model.coordinates import checked_v, coupling
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import ArticulatedInertia, RigidInertia, articulated
from hybridsim.spatial.motion import cross_motion


def forward_dynamics(
    model: Model, q: Numbers, qd: Numbers, tau: Numbers, F_ext: Float[AnyArray, "nb 6"] | None = None
) -> Qdd:
    """Joint accelerations [rad/s² or m/s²].

    Args:
        model: the mechanism.
        q: coordinates.
        qd: velocities.
        tau: joint torques or forces; springs, dampers and limits of the model are not included here.
        F_ext: wrench on each body at its origin, in the body frame [N·m, N].
    """
    kin, tau = kinematics(model, q, qd), checked_v(model, "tau", tau)
    inertia = body_inertias(model)
    bias = bias_forces(inertia, kin)
    return articulated_body(model, kin, inertia, bias if F_ext is None else bias - F_ext, tau)


def articulated_body(
    model: Model, kin: Kinematics, inertia: RigidInertia, bias: Float[AnyArray, "nb 6"], tau: Tau
) -> Qdd:
    """Joint accelerations from body inertias, bias forces (external wrenches subtracted) and joint torques."""
    if model.topology.is_coupled:
        return _coupled(model, kin, inertia, bias, tau)
    c = jax.vmap(cross_motion)(kin.V_WB_B, kin.V_PB_B)
    # accelerating the world upwards stands for gravity
    a_world = jnp.concatenate([np.zeros(3), -jnp.asarray(model.gravity)])

    # leaves to root: IA, pA
    def gather(total, body, dofs):
        (IA, pA), (X_PB, c), (S, tau, armature) = total, body, dofs
        if S.shape[0] == 6:
            # a free body hangs on the world: nothing to pass up; its armature does not feel gravity
            k = _free_solve(IA, armature, tau - pA + armature * X_PB.inv_motion(a_world))
            return (IA, pA), None, (np.eye(6), k)
        U = jax.vmap(lambda s: IA * s)(S)
        K, k = _joint_solve(U @ S.T, armature, U, tau - S @ pA)
        Ia = IA.without(U, K)
        pa = pA + Ia * c + k @ U
        return (Ia.seen_from(X_PB), X_PB.force(pa)), None, (K, k)

    own = (jax.vmap(articulated)(inertia), bias)
    dofs = (kin.S, tau - armature_bias(model, kin), jnp.asarray(model.joint.armature))
    _, (K, k) = leaves_to_root(model.topology, gather, own, (kin.X_PB, c), dofs)

    # root to leaves: a, qdd
    def accelerate(a_parent, body, dofs):
        (X_PB, c), (S, K, k) = body, dofs
        a = X_PB.inv_motion(a_parent) + c
        qdd = k - K @ a
        return a + qdd @ S, qdd

    _, qdd = root_to_leaves(model.topology, accelerate, a_world, (kin.X_PB, c), (kin.S, K, k))
    return qdd


def _joint_solve(D, armature, U, u):
    """K = D⁻¹ U and k = D⁻¹ u for a joint with zero, one or three degrees of freedom."""
    n = D.shape[0]
    if n == 0:
        return U, u
    if n == 1:
        d = 1.0 / (D[0, 0] + armature[0])
        return d * U, d * u
    Kk = symmetric_solve_3(D + jnp.diag(armature), jnp.concatenate([U, u[:, None]], axis=1))
    return Kk[:, :6], Kk[:, 6]


def _free_solve(IA: ArticulatedInertia, armature, u):
    with_armature = ArticulatedInertia(IA.I + jnp.diag(armature[:3]), IA.H, IA.M + jnp.diag(armature[3:]))
    return with_armature.solve(u)


def _coupled(model: Model, kin: Kinematics, inertia: RigidInertia, bias, tau: Tau) -> Qdd:
    """Mimic joints share coordinates, which the recursion cannot express: solve with the mass matrix instead."""
    G = coupling(model)
    M = tree_mass_matrix(model, kin, inertia)
    at_rest = np.zeros(model.topology.mv)
    return jnp.linalg.solve(G.T @ M @ G, tau - G.T @ tree_torques(model, kin, inertia, bias, at_rest))
