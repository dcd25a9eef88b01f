"""Joint limits and dry friction of joints as rows of the contact problem."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Q, Qd, Scalar
from hybridsim.dynamics.passive import friction_limit
from hybridsim.model.coordinates import coupling_matrix, expand_q, expand_v, scalar_positions
from hybridsim.model.geometry import DEFAULT_RECOVERY_TIME
from hybridsim.model.model import Model


class JointConstraints(eqx.Module):
    """Which degrees of freedom of the tree have limits and which dry friction."""

    limited: tuple[int, ...] = eqx.field(static=True, default=())
    frictional: tuple[int, ...] = eqx.field(static=True, default=())

    @property
    def count(self) -> int:
        """Rows: one for the nearer limit of each limited one, one for each with friction."""
        return len(self.limited) + len(self.frictional)


class JointConstraintRows(eqx.Module):
    """Joint rows in one state."""

    J: Float[AnyArray, "nj nv"]
    target_velocity: Float[AnyArray, " nj"]
    """Velocity aimed at [rad/s or m/s]: no faster into a limit than it is away, or out of it; none for friction."""
    lower: Float[AnyArray, " nj"]
    upper: Float[AnyArray, " nj"]
    """Bounds of the impulses [N·m·s or N·s]."""


def joint_constraints(model: Model) -> JointConstraints:
    """The rows that a model needs; where its numbers are not known, those that it might need."""
    joint = model.joint

    def found(*values) -> tuple[int, ...]:
        if any(isinstance(v, Tracer) for v in values):
            return tuple(range(model.topology.mv))
        return tuple(np.flatnonzero(np.any([np.asarray(v) for v in values], axis=0)).tolist())

    traced = any(isinstance(v, Tracer) for v in (joint.lower, joint.upper))
    limits = (joint.lower, joint.upper) if traced else (np.isfinite(joint.lower), np.isfinite(joint.upper))
    return JointConstraints(found(*limits), found(joint.friction, joint.breakaway))


def joint_constraint_rows(model: Model, rows: JointConstraints, q: Q, qd: Qd, dt: Scalar) -> JointConstraintRows:
    """The rows in one state."""
    joint, tree_qd = model.joint, expand_v(model, qd)
    limited, rubbing = np.array(rows.limited, dtype=int), np.array(rows.frictional, dtype=int)
    position = scalar_positions(model, expand_q(model, q))[limited]
    below, above = position - joint.lower[limited], joint.upper[limited] - position
    is_low = below <= above
    gap, side = jnp.where(is_low, below, above), jnp.where(is_low, 1.0, -1.0)
    time = jnp.where(gap > 0.0, dt, jnp.maximum(DEFAULT_RECOVERY_TIME, dt))
    G = coupling_matrix(model) if model.topology.has_mimic_joints else np.eye(model.nv)
    most = dt * friction_limit(model, tree_qd)[rubbing]
    return JointConstraintRows(
        J=jnp.concatenate([side[:, None] * G[limited], G[rubbing]]),
        target_velocity=jnp.concatenate([-gap / time, np.zeros(len(rubbing))]),
        lower=jnp.concatenate([np.zeros(len(limited)), -most]),
        upper=jnp.concatenate([np.full(len(limited), np.inf), most]),
    )
