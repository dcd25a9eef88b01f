"""Forward dynamics by the articulated-body algorithm (Featherstone 2008, table 7.1), in body frames.

    pass 1    X_PB, V         from the root to the leaves     `kinematics`
    pass 2    IA, U, D        from the leaves to the root     `articulated_inertias`
              pA, u           from the leaves to the root     `articulated_bias_forces`
    pass 3    a, qdd          from the root to the leaves     `joint_accelerations`

It differs from the table in four ways. Gravity, velocity-product and external forces enter through the bias torque C,
which is inverse dynamics at zero acceleration (`rnea.py`); passes 2 and 3 solve M qdd = τ − C, where c = 0 and the bias
forces pA of the bodies begin at zero. Pass 2 is divided: IA, U and D depend only on the configuration, so that
derivatives reuse them for any number of torques. The armature is added to D, and what it does to IA is added as well. A
free joint has S = 1: its acceleration is the solution of IA a = −pA, without U and D. With mimic joints, the reduced
mass matrix is solved instead.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import solve_symmetric_3
from hybridsim.core.types import AnyArray, ArrayLike, Qdd, Tau
from hybridsim.dynamics.crba import tree_mass_matrix
from hybridsim.dynamics.inertias import bias_wrenches, body_inertias
from hybridsim.dynamics.kinematics import Kinematics, kinematics
from hybridsim.dynamics.rnea import tree_bias_torques, tree_inertia_torques, tree_torques
from hybridsim.dynamics.tree import traverse_leaves_to_root, traverse_root_to_leaves
from hybridsim.model.coordinates import coupling_matrix, require_v
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import ArticulatedInertia, RigidInertia, articulated_inertia


class ArticulatedFactors(eqx.Module):
    """Factors of the mass matrix from the recursion, reusable for any number of torques."""

    IA: ArticulatedInertia
    """Articulated-body inertia of each body; of a body on a free joint, including the armature."""
    U: Float[AnyArray, "tree_nv 6"]
    """S IA: wrench on the body per unit joint acceleration, one row per degree of freedom; zero for a free joint."""
    D_inv_U: Float[AnyArray, "tree_nv 6"]
    """D⁻¹ U with D = S IA Sᵀ plus the armature; zero for a free joint."""
    D_factors: Float[AnyArray, "tree_nv 3"]
    """1/D for a joint with one degree of freedom, rows of D for one with three; unused for a free joint."""


def forward_dynamics(
    model: Model, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, F_ext: Float[AnyArray, "nb 6"] | None = None
) -> Qdd:
    """Joint accelerations [rad/s² or m/s²].

    Args:
        model: the mechanism.
        q: coordinates.
        qd: velocities.
        tau: joint torques or forces; passive ones of the model (springs, damping, dry friction, limit stops) are not
            added.
        F_ext: wrench on each body at its origin, in the body frame [N·m, N].
    """
    kin, tau = kinematics(model, q, qd), require_v(model, "tau", tau)
    inertia = body_inertias(model)
    bias = bias_wrenches(inertia, kin)
    return articulated_body_algorithm(model, kin, inertia, bias if F_ext is None else bias - F_ext, tau)


def articulated_body_algorithm(
    model: Model, kin: Kinematics, inertia: RigidInertia, bias: Float[AnyArray, "nb 6"], tau: Tau
) -> Qdd:
    """Joint accelerations from body inertias, bias wrenches minus external wrenches, and joint torques.

    The recursion is not differentiated. Derivatives follow from the implicit function theorem for τ = ID(qdd): the
    tangent of qdd is M⁻¹ times the tangent of τ − ID at fixed qdd, which is far cheaper and reuses the factors of M
    from the recursion.
    """
    if model.topology.has_mimic_joints:
        return _coupled_accelerations(model, kin, inertia, bias, tau)
    return _accelerations(model, kin, inertia, bias, tau)[0]


def articulated_inertias(model: Model, kin: Kinematics, inertia: RigidInertia) -> ArticulatedFactors:
    """Pass 2 of the algorithm, first part: IA, U and D."""

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
            D_inv = 1.0 / D
            D_inv_U, D_factors = D_inv * U, jnp.concatenate([D_inv, np.zeros((1, 2))], axis=1)
            # along the joint axis only the armature resists
            Ia = IA.subtract_outer(U, D_inv_U).with_axis_wrench(S[0], armature * D_inv[0] * U[0])
        else:
            D_inv_U, D_factors = solve_symmetric_3(D, U) if n == 3 else U, D.reshape(n, 3)
            Ia = IA.subtract_outer(U, D_inv_U)
        return Ia.transform(X_PB), IA, (U, D_inv_U, D_factors)

    I = jax.vmap(articulated_inertia)(inertia)
    dofs = (kin.S, jnp.asarray(model.joint.armature))
    IA, (U, D_inv_U, D_factors) = traverse_leaves_to_root(model.topology, propagate, I, kin.X_PB, dofs)
    return ArticulatedFactors(IA, U, D_inv_U, D_factors)


def articulated_bias_forces(
    model: Model, kin: Kinematics, factors: ArticulatedFactors, torque: Float[AnyArray, " tree_nv"]
) -> Float[AnyArray, " tree_nv"]:
    """Pass 2 of the algorithm, second part: pA and u = τ − S pA; returns D⁻¹ u."""

    def propagate(pA, body, dofs):
        (X_PB, IA), (S, torque, U, D_factors) = body, dofs
        u, n = torque - S @ pA, S.shape[0]
        if n == 6:
            return pA, None, IA.solve(u)
        D_inv_u = D_factors[:, 0] * u if n == 1 else solve_symmetric_3(D_factors, u) if n == 3 else u
        pa = pA + D_inv_u @ U
        return X_PB.force(pa), None, D_inv_u

    pA = np.zeros((model.nb, 6))
    dofs = (kin.S, torque, factors.U, factors.D_factors)
    return traverse_leaves_to_root(model.topology, propagate, pA, (kin.X_PB, factors.IA), dofs)[1]


def joint_accelerations(
    model: Model, kin: Kinematics, factors: ArticulatedFactors, D_inv_u: Float[AnyArray, " tree_nv"]
) -> Qdd:
    """Pass 3 of the algorithm: qdd = D⁻¹ (u − Uᵀ a)."""

    def propagate(a_P, X_PB, dofs):
        S, D_inv_U, D_inv_u = dofs
        a = X_PB.inv_motion(a_P)
        qdd = D_inv_u - D_inv_U @ a
        return a + qdd @ S, qdd

    dofs = (kin.S, factors.D_inv_U, D_inv_u)
    return traverse_root_to_leaves(model.topology, propagate, np.zeros(6), kin.X_PB, dofs)[1]


def apply_mass_inverse(
    model: Model, kin: Kinematics, factors: ArticulatedFactors, torque: Float[AnyArray, " tree_nv"]
) -> Qdd:
    """M⁻¹ times a torque."""
    return joint_accelerations(model, kin, factors, articulated_bias_forces(model, kin, factors, torque))


@eqx.filter_custom_jvp
def _accelerations(
    model: Model, kin: Kinematics, inertia: RigidInertia, bias, tau: Tau
) -> tuple[Qdd, ArticulatedFactors]:
    """M⁻¹ (τ − C), and the factors of M, whose tangents are defined as zero.

    Without the JVP rule below, the recursion would be differentiated, which is correct but slower. This happens in
    second derivatives of rollouts, because JAX before 0.11 loses custom rules in partial evaluation of a scan.
    """
    factors = articulated_inertias(model, kin, inertia)
    C = tree_bias_torques(model, kin, inertia, bias)
    D_inv_u = articulated_bias_forces(model, kin, factors, tau - C)
    return joint_accelerations(model, kin, factors, D_inv_u), factors


@_accelerations.def_jvp
def _accelerations_jvp(primals, tangents):
    model, kin, inertia, *_ = primals
    qdd, factors = _accelerations(*primals)
    _, d_torque = eqx.filter_jvp(
        lambda model, kin, inertia, bias, tau: tau - tree_torques(model, kin, inertia, bias, qdd), primals, tangents
    )
    if d_torque is None:  # no parameter that the accelerations depend on has a tangent
        return (qdd, factors), jax.tree.map(jnp.zeros_like, (qdd, factors))
    d_qdd = jax.lax.custom_linear_solve(
        lambda qdd: tree_inertia_torques(model, kin, inertia, qdd),
        d_torque,
        lambda _, torque: apply_mass_inverse(model, kin, factors, torque),
        symmetric=True,
    )
    return (qdd, factors), (d_qdd, jax.tree.map(jnp.zeros_like, factors))


def _coupled_accelerations(model: Model, kin: Kinematics, inertia: RigidInertia, bias, tau: Tau) -> Qdd:
    """Accelerations with mimic joints, from the mass matrix: the recursion cannot express shared coordinates."""
    G = coupling_matrix(model)
    M = tree_mass_matrix(model, kin, inertia)
    torque = tau - G.T @ tree_bias_torques(model, kin, inertia, bias)
    return jax.scipy.linalg.solve(G.T @ M @ G, torque, assume_a="pos")
