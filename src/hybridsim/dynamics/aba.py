"""Forward dynamics by the articulated-body algorithm (Featherstone 2008, table 7.1), in body frames.

The first of its passes is `kinematics`. Then inverse dynamics at zero acceleration gives the torque that gravity and
velocities call for, and the algorithm's other two passes solve M qdd = τ − rest: articulated inertias IA and forces pA
from the leaves to the root, accelerations from the root to the leaves.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import symmetric_solve_3
from hybridsim.core.types import AnyArray, Numbers, Qdd, Tau
from hybridsim.dynamics.crba import tree_mass_matrix
from hybridsim.dynamics.inertias import bias_forces, body_inertias
from hybridsim.dynamics.kinematics import Kinematics, kinematics
from hybridsim.dynamics.rnea import tree_bias_torques, tree_inertia_torques, tree_torques
from hybridsim.dynamics.tree import leaves_to_root, root_to_leaves
from hybridsim.model.coordinates import checked_v, coupling
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import ArticulatedInertia, RigidInertia, articulated


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
    """Joint accelerations from body inertias, bias forces (external wrenches subtracted) and joint torques.

    Derivatives do not go through the recursion. They follow from τ = inverse dynamics of qdd: the change of qdd is M⁻¹
    times the change of τ minus that of inverse dynamics at fixed qdd, which is far cheaper and needs no more than the
    recursion's own factors.
    """
    if model.topology.is_coupled:
        return _coupled(model, kin, inertia, bias, tau)
    return _accelerations(model, kin, inertia, bias, tau)[0]


@eqx.filter_custom_jvp
def _accelerations(model: Model, kin: Kinematics, inertia: RigidInertia, bias, tau: Tau) -> tuple[Qdd, "_Factors"]:
    """M⁻¹ (τ − rest), and the factors of M, whose derivatives nobody needs.

    Without the rule below derivatives would go through the recursion, and be right: JAX before 0.11 drops rules when
    it splits the body of a scan, which second derivatives of rollouts then meet.
    """
    factors = _factors(model, kin, inertia)
    return _solve(model, kin, factors, tau - tree_bias_torques(model, kin, inertia, bias)), factors


@_accelerations.def_jvp
def _change_of_accelerations(primals, tangents):
    model, kin, inertia, *_ = primals
    qdd, factors = _accelerations(*primals)
    _, change = eqx.filter_jvp(
        lambda model, kin, inertia, bias, tau: tau - tree_torques(model, kin, inertia, bias, qdd), primals, tangents
    )
    d_qdd = jax.lax.custom_linear_solve(
        lambda qdd: tree_inertia_torques(model, kin, inertia, qdd),
        change,
        lambda _, torque: _solve(model, kin, factors, torque),
        symmetric=True,
    )
    return (qdd, factors), (d_qdd, jax.tree.map(jnp.zeros_like, factors))


class _Factors(eqx.Module):
    """What the recursion from the leaves to the root finds; it solves for as many torques as one likes."""

    IA: ArticulatedInertia
    """Inertia of each body with all that hangs on it; for a free body with its armature."""
    U: Float[AnyArray, "mv 6"]
    """IA S: the force on the body that unit acceleration of its joint calls for."""
    K: Float[AnyArray, "mv 6"]
    """D⁻¹ U with D = Sᵀ IA S plus the armature."""
    D: Float[AnyArray, "mv 3"]
    """1/D of a joint with one degree of freedom, rows of D for one with three."""


def _factors(model: Model, kin: Kinematics, inertia: RigidInertia) -> _Factors:
    """From the leaves to the root: articulated inertias IA."""

    def gather(IA, X_PB, dofs):
        S, armature = dofs
        n = S.shape[0]
        if n == 6:
            # a free body hangs on the world: nothing to pass up
            IA = ArticulatedInertia(IA.I + jnp.diag(armature[:3]), IA.H, IA.M + jnp.diag(armature[3:]))
            return IA, IA, (np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((6, 3)))
        U = jax.vmap(lambda s: IA * s)(S)
        D = U @ S.T + jnp.diag(armature)
        if n == 1:
            inverse = 1.0 / D
            K, D = inverse * U, jnp.concatenate([inverse, np.zeros((1, 2))], axis=1)
            # along its joint the body resists by the armature alone
            rest = IA.without(U, K).along(S[0], armature * inverse[0] * U[0])
            return rest.seen_from(X_PB), IA, (U, K, D)
        else:
            K = symmetric_solve_3(D, U) if n == 3 else U
            D = D.reshape(n, 3)
        return IA.without(U, K).seen_from(X_PB), IA, (U, K, D)

    own = jax.vmap(articulated)(inertia)
    dofs = (kin.S, jnp.asarray(model.joint.armature))
    IA, (U, K, D) = leaves_to_root(model.topology, gather, own, kin.X_PB, dofs)
    return _Factors(IA, U, K, D)


def _solve(model: Model, kin: Kinematics, factors: _Factors, torque: Float[AnyArray, " mv"]) -> Qdd:
    """M⁻¹ times a torque: forces pA from the leaves to the root, accelerations from the root to the leaves."""

    def gather(pA, body, dofs):
        (X_PB, IA), (S, torque, U, D) = body, dofs
        u, n = torque - S @ pA, S.shape[0]
        if n == 6:
            return pA, None, IA.solve(u)
        k = D[:, 0] * u if n == 1 else symmetric_solve_3(D, u) if n == 3 else u
        return X_PB.force(pA + k @ U), None, k

    forces = np.zeros((model.nb, 6))
    dofs = (kin.S, torque, factors.U, factors.D)
    _, k = leaves_to_root(model.topology, gather, forces, (kin.X_PB, factors.IA), dofs)

    def accelerate(a_parent, X_PB, dofs):
        S, K, k = dofs
        a = X_PB.inv_motion(a_parent)
        qdd = k - K @ a
        return a + qdd @ S, qdd

    return root_to_leaves(model.topology, accelerate, np.zeros(6), kin.X_PB, (kin.S, factors.K, k))[1]


def _coupled(model: Model, kin: Kinematics, inertia: RigidInertia, bias, tau: Tau) -> Qdd:
    """Mimic joints share coordinates, which the recursion cannot express: solve with the mass matrix instead."""
    G = coupling(model)
    M = tree_mass_matrix(model, kin, inertia)
    torque = tau - G.T @ tree_bias_torques(model, kin, inertia, bias)
    return jax.scipy.linalg.solve(G.T @ M @ G, torque, assume_a="pos")
