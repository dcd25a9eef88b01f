"""Joint limits and dry joint friction as rows of the contact problem."""

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
    """Degrees of freedom of the tree that have limits or dry friction."""

    limited: tuple[int, ...] = eqx.field(static=True, default=())
    frictional: tuple[int, ...] = eqx.field(static=True, default=())

    @property
    def count(self) -> int:
        """Number of rows: one for the nearer limit of each limited degree of freedom, one for each with friction."""
        return len(self.limited) + len(self.frictional)


class JointConstraintRows(eqx.Module):
    """Joint constraint rows at one state."""

    J: Float[AnyArray, "nj nv"]
    target_velocity: Float[AnyArray, " nj"]
    """Target velocity [rad/s or m/s]: closes the gap to a limit within the step, or recovers from a violation; zero for
    friction."""
    lower: Float[AnyArray, " nj"]
    upper: Float[AnyArray, " nj"]
    """Bounds of the impulses [N·m·s or N·s]."""


def joint_constraints(model: Model) -> JointConstraints:
    """Joint constraints of a model; those of all degrees of freedom if its limits or friction are traced."""
    joint = model.joint

    def nonzero_dofs(*values) -> tuple[int, ...]:
        if any(isinstance(v, Tracer) for v in values):
            return tuple(range(model.topology.tree_nv))
        return tuple(np.flatnonzero(np.any([np.asarray(v) for v in values], axis=0)).tolist())

    traced = any(isinstance(v, Tracer) for v in (joint.lower, joint.upper))
    limits = (joint.lower, joint.upper) if traced else (np.isfinite(joint.lower), np.isfinite(joint.upper))
    return JointConstraints(nonzero_dofs(*limits), nonzero_dofs(joint.friction, joint.stribeck_friction))


def joint_constraint_rows(model: Model, constraints: JointConstraints, q: Q, qd: Qd, dt: Scalar) -> JointConstraintRows:
    """Joint constraint rows at one state."""
    joint, tree_qd = model.joint, expand_v(model, qd)
    limited, frictional = np.array(constraints.limited, dtype=int), np.array(constraints.frictional, dtype=int)
    position = scalar_positions(model, expand_q(model, q))[limited]
    lower_gap, upper_gap = position - joint.lower[limited], joint.upper[limited] - position
    is_lower = lower_gap <= upper_gap
    gap, side = jnp.where(is_lower, lower_gap, upper_gap), jnp.where(is_lower, 1.0, -1.0)
    time = jnp.where(gap > 0.0, dt, jnp.maximum(DEFAULT_RECOVERY_TIME, dt))
    G = coupling_matrix(model) if model.topology.has_mimic_joints else np.eye(model.nv)
    max_impulse = dt * friction_limit(model, tree_qd)[frictional]
    return JointConstraintRows(
        J=jnp.concatenate([side[:, None] * G[limited], G[frictional]]),
        target_velocity=jnp.concatenate([-gap / time, np.zeros(len(frictional))]),
        lower=jnp.concatenate([np.zeros(len(limited)), -max_impulse]),
        upper=jnp.concatenate([np.full(len(limited), np.inf), max_impulse]),
    )
