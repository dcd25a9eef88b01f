"""Inverse dynamics by the recursive Newton–Euler algorithm, fixed or floating base.

Accelerations are classical accelerations of the body origins minus gravity, as measured by an accelerometer, not
the spatial accelerations of Featherstone (2008, table 5.1), which differ by ω × v. Linear velocities then enter only
where the motion of a joint itself has a linear part: prismatic and free joints, and joints with an anchor. This saves a
third of the arithmetic and avoids cancellation at high base velocities.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import cross
from hybridsim.core.types import AnyArray, ArrayLike, MotionVector, Tau, Vec3
from hybridsim.dynamics.inertias import armature_bias, bias_wrenches, body_inertias
from hybridsim.dynamics.kinematics import Kinematics, kinematics
from hybridsim.dynamics.tree import traverse_leaves_to_root, traverse_root_to_leaves
from hybridsim.model.coordinates import expand_v, reduce_tau, require_v
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia


def inverse_dynamics(
    model: Model, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, F_ext: Float[AnyArray, "nb 6"] | None = None
) -> Tau:
    """Joint torques or forces for accelerations `qdd` [N·m or N].

    For a free joint the result is the wrench on the base. Passive torques of the model (springs, damping, dry friction,
    limit stops) are not included; the armature is.

    Args:
        model: the mechanism.
        q: coordinates.
        qd: velocities.
        qdd: accelerations.
        F_ext: wrench on each body at its origin, in the body frame [N·m, N].
    """
    kin = kinematics(model, q, qd)
    inertia = body_inertias(model)
    bias = bias_wrenches(inertia, kin)
    tree_qdd = expand_v(model, require_v(model, "qdd", qdd))
    tau = tree_torques(model, kin, inertia, bias if F_ext is None else bias - F_ext, tree_qdd)
    return reduce_tau(model, tau)


def bias_torques(model: Model, q: ArrayLike, qd: ArrayLike) -> Tau:
    """Bias torques C(q, qd) qd + g(q): inverse dynamics at zero acceleration [N·m or N]."""
    return inverse_dynamics(model, q, qd, np.zeros(model.nv))


def gravity_torques(model: Model, q: ArrayLike) -> Tau:
    """Gravity torques g(q), which balance gravity at rest [N·m or N]."""
    return bias_torques(model, q, np.zeros(model.nv))


def tree_torques(
    model: Model,
    kin: Kinematics,
    inertia: RigidInertia,
    bias: Float[AnyArray, "nb 6"],
    qdd: Float[AnyArray, " tree_nv"],
) -> Float[AnyArray, " tree_nv"]:
    """Inverse dynamics of the tree: torques of all joints from accelerations of all joints."""
    A = body_accelerations(model, kin, qdd)
    F = jax.vmap(lambda I, A, bias: I * A + bias)(inertia, A, bias)
    return _joint_torques(model, kin, F) + model.joint.armature * qdd + armature_bias(model, kin)


def tree_bias_torques(
    model: Model, kin: Kinematics, inertia: RigidInertia, bias: Float[AnyArray, "nb 6"]
) -> Float[AnyArray, " tree_nv"]:
    """Bias torques of all joints of the tree: inverse dynamics at zero acceleration."""
    A = _accelerations(model, kin, gravity=True, velocity=True, qdd=None)
    F = jax.vmap(lambda I, A, bias: I * A + bias)(inertia, A, bias)
    return _joint_torques(model, kin, F) + armature_bias(model, kin)


def tree_inertia_torques(
    model: Model, kin: Kinematics, inertia: RigidInertia, qdd: Float[AnyArray, " tree_nv"]
) -> Float[AnyArray, " tree_nv"]:
    """Inertia torques M qdd of all joints of the tree."""
    A = _accelerations(model, kin, gravity=False, velocity=False, qdd=qdd)
    return _joint_torques(model, kin, jax.vmap(lambda I, A: I * A)(inertia, A)) + model.joint.armature * qdd


def body_accelerations(model: Model, kin: Kinematics, qdd: Float[AnyArray, " tree_nv"]) -> Float[AnyArray, "nb 6"]:
    """Angular accelerations, and accelerations of the origins minus gravity, in body frames [rad/s², m/s²]."""
    return _accelerations(model, kin, gravity=True, velocity=True, qdd=qdd)


def _accelerations(
    model: Model, kin: Kinematics, *, gravity: bool, velocity: bool, qdd: Float[AnyArray, " tree_nv"] | None
) -> Float[AnyArray, "nb 6"]:
    """Body accelerations; the terms of gravity, velocities and joint accelerations are optional."""

    def accelerate(parent, body, dofs):
        (A_P, omega_P), (X_PB, V_WB_B, V_PB_B), (S, qdd) = parent, body, dofs
        omega = V_WB_B[:3]
        if velocity:
            A_P = A_P + _linear_motion(cross(omega_P, cross(omega_P, X_PB.p)))
        A = X_PB.inv_motion(A_P)
        if velocity:
            omega_J, v_J = V_PB_B[:3], V_PB_B[3:]
            A = A + jnp.concatenate([cross(omega, omega_J), cross(2.0 * omega - omega_J, v_J)])
        return (A if qdd is None else A + qdd @ S, omega), None

    # gravity is modelled as an upward acceleration of the world
    world = (_linear_motion(-jnp.asarray(model.gravity)) if gravity else np.zeros(6), np.zeros(3))
    rows = (kin.X_PB, kin.V_WB_B, kin.V_PB_B)
    return traverse_root_to_leaves(model.topology, accelerate, world, rows, (kin.S, qdd))[0][0]


def _linear_motion(a: Vec3) -> MotionVector:
    return jnp.concatenate([np.zeros(3), a])


def _joint_torques(model: Model, kin: Kinematics, F: Float[AnyArray, "nb 6"]) -> Float[AnyArray, " tree_nv"]:
    """Total wrench on the subtree of each joint, projected onto the joint's motion subspace."""

    def propagate(total, X_PB, S):
        return X_PB.force(total), None, S @ total

    return traverse_leaves_to_root(model.topology, propagate, F, kin.X_PB, kin.S)[1]
