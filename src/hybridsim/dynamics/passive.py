"""Passive joint forces: springs, viscous and dry friction, limit stops.

All forces are regularized for differentiation: dry friction is a tanh of width `friction_width`, a limit stop a
one-sided spring and damper that never pulls.
"""

import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.core.numerics import LIMIT_RAMP, clamp, excess, smooth_sign
from hybridsim.core.types import AnyArray, Q, Qd, Tau
from hybridsim.model.coordinates import expand_q, expand_v, reduce_tau, scalar_positions
from hybridsim.model.model import Model


def passive_torques(model: Model, q: Q, qd: Qd, *, smooth: bool = False) -> Tau:
    """Sum of all passive joint torques or forces [N·m or N].

    Args:
        model: the mechanism.
        q: coordinates.
        qd: velocities.
        smooth: whether to omit dry friction and limit stops, which impulse contact handles as joint constraints.
    """
    tree_q, tree_qd = expand_q(model, q), expand_v(model, qd)
    springs = -model.joint.stiffness * spring_deflection(model, tree_q)
    damping = -model.joint.damping * tree_qd
    if smooth:
        return reduce_tau(model, springs + damping)
    return reduce_tau(model, springs + damping + dry_friction(model, tree_qd) + limit_stops(model, tree_q, tree_qd))


def spring_deflection(model: Model, q: Float[AnyArray, " tree_nq"]) -> Float[AnyArray, " tree_nv"]:
    """Deflection of each joint spring from its rest position [rad or m]; zero for joints without springs."""
    topology = model.topology
    if topology.tree_nq == topology.tree_nv:
        return q - model.joint.rest
    parts = []
    for kind, (q0, q1) in zip(topology.joint_types, topology.tree_q_slices, strict=True):
        if kind.joint.has_spring:
            parts.append(kind.joint.difference(jnp.asarray(model.joint.rest)[q0:q1], q[q0:q1]))
        else:
            parts.append(jnp.zeros(kind.nv))
    return jnp.concatenate(parts)


def dry_friction(model: Model, qd: Float[AnyArray, " tree_nv"]) -> Float[AnyArray, " tree_nv"]:
    """Regularized Coulomb friction with Stribeck effect [N·m or N].

    −(F_c + F_b exp(−(v/v_s)²)) tanh(v/w), with F_c `friction`, F_b `stribeck_friction`, v_s `stribeck_velocity`,
    w `friction_width`.
    """
    return -friction_limit(model, qd) * smooth_sign(qd, model.joint.friction_width)


def friction_limit(model: Model, qd: Float[AnyArray, " tree_nv"]) -> Float[AnyArray, " tree_nv"]:
    """Magnitude of dry friction at a velocity, before regularization [N·m or N]."""
    joint = model.joint
    return joint.friction + joint.stribeck_friction * jnp.exp(-((qd / joint.stribeck_velocity) ** 2))


def limit_stops(
    model: Model, q: Float[AnyArray, " tree_nq"], qd: Float[AnyArray, " tree_nv"]
) -> Float[AnyArray, " tree_nv"]:
    """Forces of the position limits [N·m or N]: a one-sided spring and damper beyond the limit, never pulling.

    The damping ramps up over `LIMIT_RAMP`, because a force discontinuity at the limit would give wrong gradients at any
    time step.
    """
    joint = model.joint
    position = scalar_positions(model, q)
    above, below = excess(position, joint.upper), excess(-position, -joint.lower)
    push_down = joint.limit_stiffness * above + joint.limit_damping * qd * clamp(above / LIMIT_RAMP, 0.0, 1.0)
    push_up = joint.limit_stiffness * below - joint.limit_damping * qd * clamp(below / LIMIT_RAMP, 0.0, 1.0)
    return excess(push_up, 0.0) - excess(push_down, 0.0)
