"""Forward dynamics by the articulated-body algorithm (Featherstone 2008, table 7.1), in body frames.

The first pass is `kinematics`. Inverse dynamics at zero acceleration then gives the bias torque C, and the remaining
two passes solve M qdd = τ − C: articulated inertias IA and bias forces pA from the leaves to the root, accelerations
from the root to the leaves.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.core.types import AnyArray, ArrayLike, Qdd, Tau
from hybridsim.dynamics.articulated import ArticulatedFactors, apply_mass_inverse, articulated_factors
from hybridsim.dynamics.crba import tree_mass_matrix
from hybridsim.dynamics.inertias import bias_wrenches, body_inertias
from hybridsim.dynamics.kinematics import Kinematics, kinematics
from hybridsim.dynamics.rnea import tree_bias_torques, tree_inertia_torques, tree_torques
from hybridsim.model.coordinates import coupling_matrix, require_v
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia


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


@eqx.filter_custom_jvp
def _accelerations(
    model: Model, kin: Kinematics, inertia: RigidInertia, bias, tau: Tau
) -> tuple[Qdd, ArticulatedFactors]:
    """M⁻¹ (τ − C), and the factors of M, whose tangents are defined as zero.

    Without the JVP rule below, the recursion would be differentiated, which is correct but slower. This happens in
    second derivatives of rollouts, because JAX before 0.11 loses custom rules in partial evaluation of a scan.
    """
    factors = articulated_factors(model, kin, inertia)
    return apply_mass_inverse(model, kin, factors, tau - tree_bias_torques(model, kin, inertia, bias)), factors


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
