"""Forward dynamics by the articulated-body algorithm (Featherstone 2008, table 7.1), in body frames.

The first of its passes is `kinematics`. Then inverse dynamics at zero acceleration gives the torque that gravity and
velocities call for, and the algorithm's other two passes solve M qdd = τ − rest: articulated inertias IA and forces pA
from the leaves to the root, accelerations from the root to the leaves.
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
        tau: joint torques or forces; springs, dampers and limits of the model are not included here.
        F_ext: wrench on each body at its origin, in the body frame [N·m, N].
    """
    kin, tau = kinematics(model, q, qd), require_v(model, "tau", tau)
    inertia = body_inertias(model)
    bias = bias_wrenches(inertia, kin)
    return articulated_body_algorithm(model, kin, inertia, bias if F_ext is None else bias - F_ext, tau)


def articulated_body_algorithm(
    model: Model, kin: Kinematics, inertia: RigidInertia, bias: Float[AnyArray, "nb 6"], tau: Tau
) -> Qdd:
    """Joint accelerations from body inertias, bias forces (external wrenches subtracted) and joint torques.

    Derivatives do not go through the recursion. They follow from τ = inverse dynamics of qdd: the change of qdd is M⁻¹
    times the change of τ minus that of inverse dynamics at fixed qdd, which is far cheaper and needs no more than the
    recursion's own factors.
    """
    if model.topology.has_mimic_joints:
        return _coupled(model, kin, inertia, bias, tau)
    return _accelerations(model, kin, inertia, bias, tau)[0]


@eqx.filter_custom_jvp
def _accelerations(
    model: Model, kin: Kinematics, inertia: RigidInertia, bias, tau: Tau
) -> tuple[Qdd, ArticulatedFactors]:
    """M⁻¹ (τ − rest), and the factors of M, whose derivatives nobody needs.

    Without the rule below derivatives would go through the recursion, and be right: JAX before 0.11 drops rules when
    it splits the body of a scan, which second derivatives of rollouts then meet.
    """
    factors = articulated_factors(model, kin, inertia)
    return apply_mass_inverse(model, kin, factors, tau - tree_bias_torques(model, kin, inertia, bias)), factors


@_accelerations.def_jvp
def _change_of_accelerations(primals, tangents):
    model, kin, inertia, *_ = primals
    qdd, factors = _accelerations(*primals)
    _, change = eqx.filter_jvp(
        lambda model, kin, inertia, bias, tau: tau - tree_torques(model, kin, inertia, bias, qdd), primals, tangents
    )
    if change is None:  # what changes is a number of the model that accelerations do not depend on
        return (qdd, factors), jax.tree.map(jnp.zeros_like, (qdd, factors))
    d_qdd = jax.lax.custom_linear_solve(
        lambda qdd: tree_inertia_torques(model, kin, inertia, qdd),
        change,
        lambda _, torque: apply_mass_inverse(model, kin, factors, torque),
        symmetric=True,
    )
    return (qdd, factors), (d_qdd, jax.tree.map(jnp.zeros_like, factors))


def _coupled(model: Model, kin: Kinematics, inertia: RigidInertia, bias, tau: Tau) -> Qdd:
    """Mimic joints share coordinates, which the recursion cannot express: solve with the mass matrix instead."""
    G = coupling_matrix(model)
    M = tree_mass_matrix(model, kin, inertia)
    torque = tau - G.T @ tree_bias_torques(model, kin, inertia, bias)
    return jax.scipy.linalg.solve(G.T @ M @ G, torque, assume_a="pos")
