"""Inverse kinematics: joint coordinates that bring named frames to targets, by damped least squares."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from hybridsim.core.numerics import safe_norm
from hybridsim.core.result import Status
from hybridsim.core.types import AnyArray, Mat3, Q, Qd, Scalar, StatusCode, Vec3, require_float64
from hybridsim.dynamics.jacobian import frame_jacobian
from hybridsim.dynamics.kinematics import Kinematics, kinematics
from hybridsim.model.coordinates import expand_q, require_q, retract, scalar_positions
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD
from hybridsim.spatial.rotation import matrix_log

RANK_TOLERANCE = 1e-10
"""Directions in which the slope changes less than this, relative to the others, are free: derivatives leave them be."""
LIMIT_MARGIN = 1e-9
"""How near to a limit [rad or m] a joint counts as being at it."""


class Target(NamedTuple):
    """Where a body or named frame should be; leave out what does not matter."""

    frame: str
    position: Vec3 | None = None
    """Wanted position in the world [m]."""
    rotation: Mat3 | None = None
    """Wanted orientation R_WF."""


class IKSolution(NamedTuple):
    """Result of `inverse_kinematics`."""

    q: Float[Array, " nq"]
    """Coordinates found."""
    error: Scalar
    """Norm of what is left [m and rad together]."""
    iterations: AnyArray
    status: StatusCode
    """`Status.OK`, or `Status.MAX_ITERATIONS` if the target was not reached."""


def inverse_kinematics(
    model: Model,
    targets: list[Target],
    q_initial: Q,
    *,
    damping: float = 1e-3,
    tolerance: float = 1e-8,
    max_iterations: int = 200,
    respect_limits: bool = True,
) -> IKSolution:
    """Coordinates near `q_initial` for which every target is met as well as possible.

    Each iteration solves (Jᵀ J + λ² 1) δ = Jᵀ e, halves λ when the error fell and grows it fourfold (staying put)
    when it did not, so that the error never increases.

    The solution has derivatives, forward and reverse, with respect to the targets and the model: they come from the
    condition that holds at the solution, not from the iterations. Where a mechanism has more joints than the targets
    need, it follows a target by the smallest motion; `q_initial` then has no derivative.

    Args:
        model: the mechanism.
        targets: frames and where they should be.
        q_initial: initial guess.
        damping: first λ, in units of the Jacobian [m or rad].
        tolerance: error [m, rad] at which to stop.
        max_iterations: when to give up.
        respect_limits: keep single-axis joints within their position limits.
    """
    require_float64()
    _check_targets(model, targets)
    wanted = [(target.position, target.rotation) for target in targets]

    def named(wanted):
        return [Target(target.frame, *given) for target, given in zip(targets, wanted, strict=True)]

    @jax.custom_jvp
    def solve(model, wanted, q_start):
        return _damped_least_squares(model, named(wanted), q_start, damping, tolerance, max_iterations, respect_limits)

    @solve.defjvp
    def derivative(primals, tangents):
        (model, wanted, _), (*tangents, _) = primals, tangents
        solution = solve(*primals)
        reached = solution.error <= tolerance

        def condition(model, wanted, delta):
            return _optimality(model, named(wanted), solution.q, delta, reached, respect_limits)

        def error(model, wanted, delta):
            return safe_norm(_errors(model, named(wanted), retract(model, solution.q, delta))[0])

        # the condition holds whatever the numbers are, so 0 = ∂c/∂numbers d(numbers) + ∂c/∂delta delta
        still = jnp.zeros(model.nv)
        _, drift = jax.jvp(lambda model, wanted: condition(model, wanted, still), (model, wanted), tuple(tangents))
        slope = jax.jacfwd(condition, argnums=2)(model, wanted, still)
        delta = -jnp.linalg.pinv(slope, rtol=RANK_TOLERANCE) @ drift
        _, q_tangent = jax.jvp(lambda delta: retract(model, solution.q, delta), (still,), (delta,))
        _, error_tangent = jax.jvp(error, (model, wanted, still), (*tangents, delta))
        none = np.zeros((), jax.dtypes.float0)
        return solution, IKSolution(q_tangent, error_tangent, none, none)

    return solve(model, wanted, require_q(model, q_initial))


def _damped_least_squares(
    model: Model,
    targets: list[Target],
    q_start: Q,
    damping: float,
    tolerance: float,
    max_iterations: int,
    respect_limits: bool,
) -> IKSolution:
    def proceed(state):
        q, size, lam, k = state
        e, J = _errors(model, targets, q)
        if respect_limits:
            # the others must not count on what a joint at its limit cannot do
            J = jnp.where(_at_limits(model, q, J.T @ e) != 0, 0.0, J)
        step = jnp.linalg.solve(J.T @ J + lam**2 * jnp.eye(model.nv), J.T @ e)
        trial = retract(model, q, step)
        trial = _within_limits(model, trial) if respect_limits else trial
        trial_size = safe_norm(_errors(model, targets, trial)[0])
        better = trial_size < size
        lam = jnp.clip(jnp.where(better, 0.5 * lam, 4.0 * lam), 1e-9, 1e3)
        return jnp.where(better, trial, q), jnp.where(better, trial_size, size), lam, k + 1

    def unfinished(state):
        _, size, lam, k = state
        return (size > tolerance) & (k < max_iterations) & (lam < 1e3)

    q_start = jnp.asarray(q_start)
    size = safe_norm(_errors(model, targets, q_start)[0])
    q, size, _, k = jax.lax.while_loop(unfinished, proceed, (q_start, size, jnp.asarray(damping), 0))
    status = jnp.where(size <= tolerance, Status.OK.value, Status.MAX_ITERATIONS.value)
    return IKSolution(q, size, k, status)


def _optimality(
    model: Model, targets: list[Target], q: Q, delta: Qd, reached: AnyArray, respect_limits: bool
) -> Float[Array, " nv"]:
    """What is zero at a solution: the slope Jᵀ e, or for a joint pushed against its limit the distance from it."""
    moved = retract(model, q, delta)
    e, J = _errors(model, targets, moved)
    _, J_here = _errors(model, targets, q)
    # where the targets are met e is zero but for rounding, and the derivative of J would only add noise to Jᵀ J
    slope = jnp.where(reached, jax.lax.stop_gradient(J_here), J).T @ e
    if not respect_limits:
        return slope
    own = _own_dofs(model)
    side = jax.lax.stop_gradient(jnp.where(reached, 0, _at_limits(model, q, slope)))
    limit = jnp.where(side < 0, jnp.asarray(model.joint.lower)[own], jnp.asarray(model.joint.upper)[own])
    position = scalar_positions(model, expand_q(model, moved))[own]
    return jnp.where(side == 0, slope, limit - position)


def _errors(model: Model, targets: list[Target], q: Q) -> tuple[Array, Array]:
    """What is missing to the targets [m and rad], and the Jacobian of the frames."""
    kin = kinematics(model, q, np.zeros(model.nv))
    errors, jacobians = zip(*(_target_rows(model, kin, target) for target in targets), strict=True)
    return jnp.concatenate(errors), jnp.concatenate(jacobians)


def _target_rows(model: Model, kin: Kinematics, target: Target) -> tuple[Array, Array]:
    topology = model.topology
    if target.frame in topology.frame_names:
        place = topology.frame_names.index(target.frame)
        body = topology.frame_bodies[place]
        R_BF = jnp.asarray(model.frame_placement.R)[place]
        p_BF = jnp.asarray(model.frame_placement.p)[place]
    else:
        body, R_BF, p_BF = topology.body_index(target.frame), jnp.eye(3), jnp.zeros(3)
    X_WB = jax.tree.map(lambda x: x[body], kin.X_WB)
    J = frame_jacobian(model, kin, body, p_BF)
    errors, rows = [], []
    if target.position is not None:
        errors.append(jnp.asarray(target.position) - X_WB.point(p_BF))
        rows.append(J[3:])
    if target.rotation is not None:
        R_WF = X_WB.R @ R_BF
        errors.append(R_WF @ matrix_log(R_WF.T @ jnp.asarray(target.rotation)))
        rows.append(J[:3])
    return jnp.concatenate(errors), jnp.concatenate(rows)


def _within_limits(model: Model, q: Q) -> Q:
    """Coordinates with each independent single-axis joint moved back to its nearest limit."""
    position = scalar_positions(model, expand_q(model, q))
    beyond = jnp.clip(position, model.joint.lower, model.joint.upper) - position
    return retract(model, q, beyond[_own_dofs(model)])


def _at_limits(model: Model, q: Q, direction: Qd) -> Int[Array, " nv"]:
    """-1 for a joint at its lower limit, 1 at its upper one, if `direction` leads out of its range; 0 for others."""
    own = _own_dofs(model)
    position = scalar_positions(model, expand_q(model, q))[own]
    at_lower = (direction < 0.0) & (position <= jnp.asarray(model.joint.lower)[own] + LIMIT_MARGIN)
    at_upper = (direction > 0.0) & (position >= jnp.asarray(model.joint.upper)[own] - LIMIT_MARGIN)
    return at_upper.astype(int) - at_lower.astype(int)


def _own_dofs(model: Model) -> np.ndarray:
    """Degrees of freedom of the tree that are not those of mimic joints."""
    topology = model.topology
    own = [
        d
        for (i, j), master in zip(topology.tree_v_slices, topology.mimics, strict=True)
        if master < 0
        for d in range(i, j)
    ]
    return np.asarray(own, dtype=int)


def _check_targets(model: Model, targets: list[Target]) -> None:
    if not targets:
        raise ValueError("inverse_kinematics needs at least one target")
    for target in targets:
        if target.position is None and target.rotation is None:
            raise ValueError(f"target for {target.frame!r} asks for neither position nor rotation")
        names = (*model.topology.frame_names, *model.topology.body_names)
        if target.frame not in names:
            raise KeyError(f"no body or frame named {target.frame!r}; the model has {', '.join(names)}")
        fixed = dict(zip(model.topology.frame_names, model.topology.frame_bodies, strict=True))
        if fixed.get(target.frame) == WORLD:
            raise ValueError(f"frame {target.frame!r} is fixed to the world and cannot be moved")
