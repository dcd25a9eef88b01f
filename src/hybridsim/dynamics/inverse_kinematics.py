"""Inverse kinematics of named frames by damped least squares."""

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
from hybridsim.spatial.rotation import rotation_vector_from_matrix

RANK_TOLERANCE = 1e-10
"""Relative singular value below which a direction counts as null space; the solution's derivative is zero in it."""
LIMIT_MARGIN = 1e-9
"""Distance from a limit [rad or m] within which a joint counts as at the limit."""


class Target(NamedTuple):
    """Target position and orientation of a body or named frame; None means unconstrained."""

    frame: str
    position: Vec3 | None = None
    """Target position in the world [m]."""
    rotation: Mat3 | None = None
    """Target orientation R_WF."""


class IKSolution(NamedTuple):
    """Result of `inverse_kinematics`."""

    q: Float[Array, " nq"]
    """Coordinates."""
    error: Scalar
    """Norm of the remaining error [m and rad]."""
    iterations: AnyArray
    status: StatusCode
    """`Status.OK`, or `Status.MAX_ITERATIONS` if the error exceeds the tolerance."""


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
    """Coordinates near `q_initial` that minimize the error of all targets.

    Each iteration solves (Jᵀ J + λ² I) δ = Jᵀ e. If the error decreases, the step is accepted and λ halved; otherwise
    the step is rejected and λ multiplied by four, so that the error never increases.

    The solution is differentiable, in forward and reverse mode, with respect to targets and model, by implicit
    differentiation of the optimality condition, not of the iterations. For a redundant mechanism the
    derivative is the minimum-norm solution; the derivative with respect to `q_initial` is zero.

    Args:
        model: the mechanism.
        targets: frames with target positions and orientations.
        q_initial: initial guess.
        damping: initial λ, in units of the Jacobian [m/rad, or 1 for orientations].
        tolerance: norm of the error at which the iteration terminates [m and rad].
        max_iterations: maximum number of iterations.
        respect_limits: keep single-axis joints within their position limits.
    """
    require_float64()
    _check_targets(model, targets)
    poses = [(target.position, target.rotation) for target in targets]

    def with_poses(poses):
        return [Target(target.frame, *pose) for target, pose in zip(targets, poses, strict=True)]

    @jax.custom_jvp
    def solve(model, poses, q_initial):
        return _damped_least_squares(
            model, with_poses(poses), q_initial, damping, tolerance, max_iterations, respect_limits
        )

    @solve.defjvp
    def solve_jvp(primals, tangents):
        (model, poses, _), (*tangents, _) = primals, tangents
        solution = solve(*primals)
        is_reached = solution.error <= tolerance

        def residual(model, poses, delta):
            return _optimality(model, with_poses(poses), solution.q, delta, is_reached, respect_limits)

        def error(model, poses, delta):
            return safe_norm(_errors(model, with_poses(poses), retract(model, solution.q, delta))[0])

        # the optimality residual c is zero for all parameters p, so 0 = ∂c/∂p dp + ∂c/∂delta delta
        zero = jnp.zeros(model.nv)
        _, c_tangent = jax.jvp(lambda model, poses: residual(model, poses, zero), (model, poses), tuple(tangents))
        jacobian = jax.jacfwd(residual, argnums=2)(model, poses, zero)
        delta = -jnp.linalg.pinv(jacobian, rtol=RANK_TOLERANCE) @ c_tangent
        _, q_tangent = jax.jvp(lambda delta: retract(model, solution.q, delta), (zero,), (delta,))
        _, error_tangent = jax.jvp(error, (model, poses, zero), (*tangents, delta))
        no_tangent = np.zeros((), jax.dtypes.float0)
        return solution, IKSolution(q_tangent, error_tangent, no_tangent, no_tangent)

    return solve(model, poses, require_q(model, q_initial))


def _damped_least_squares(
    model: Model,
    targets: list[Target],
    q_initial: Q,
    damping: float,
    tolerance: float,
    max_iterations: int,
    respect_limits: bool,
) -> IKSolution:
    def iterate(state):
        q, error, lam, k = state
        e, J = _errors(model, targets, q)
        if respect_limits:
            # a joint at an active limit cannot move
            J = jnp.where(_active_limits(model, q, J.T @ e) != 0, 0.0, J)
        step = jnp.linalg.solve(J.T @ J + lam**2 * jnp.eye(model.nv), J.T @ e)
        trial = retract(model, q, step)
        trial = _clip_to_limits(model, trial) if respect_limits else trial
        trial_error = safe_norm(_errors(model, targets, trial)[0])
        accept = trial_error < error
        lam = jnp.clip(jnp.where(accept, 0.5 * lam, 4.0 * lam), 1e-9, 1e3)
        return jnp.where(accept, trial, q), jnp.where(accept, trial_error, error), lam, k + 1

    def is_unfinished(state):
        _, error, lam, k = state
        return (error > tolerance) & (k < max_iterations) & (lam < 1e3)

    q_initial = jnp.asarray(q_initial)
    error = safe_norm(_errors(model, targets, q_initial)[0])
    q, error, _, k = jax.lax.while_loop(is_unfinished, iterate, (q_initial, error, jnp.asarray(damping), 0))
    status = jnp.where(error <= tolerance, Status.OK.value, Status.MAX_ITERATIONS.value)
    return IKSolution(q, error, k, status)


def _optimality(
    model: Model, targets: list[Target], q: Q, delta: Qd, is_reached: AnyArray, respect_limits: bool
) -> Float[Array, " nv"]:
    """Optimality residual: the negative gradient Jᵀ e, or for a joint at an active limit the distance from it."""
    q_delta = retract(model, q, delta)
    e, J = _errors(model, targets, q_delta)
    _, J_q = _errors(model, targets, q)
    # if the targets are reached, e is zero up to rounding and the derivative of J would only add noise to Jᵀ J
    descent = jnp.where(is_reached, jax.lax.stop_gradient(J_q), J).T @ e
    if not respect_limits:
        return descent
    dofs = _independent_dofs(model)
    side = jax.lax.stop_gradient(jnp.where(is_reached, 0, _active_limits(model, q, descent)))
    limit = jnp.where(side < 0, jnp.asarray(model.joint.lower)[dofs], jnp.asarray(model.joint.upper)[dofs])
    position = scalar_positions(model, expand_q(model, q_delta))[dofs]
    return jnp.where(side == 0, descent, limit - position)


def _errors(model: Model, targets: list[Target], q: Q) -> tuple[Array, Array]:
    """Errors of all targets [m and rad], and the Jacobian of the frames."""
    kin = kinematics(model, q, np.zeros(model.nv))
    errors, jacobians = zip(*(_target_rows(model, kin, target) for target in targets), strict=True)
    return jnp.concatenate(errors), jnp.concatenate(jacobians)


def _target_rows(model: Model, kin: Kinematics, target: Target) -> tuple[Array, Array]:
    topology = model.topology
    if target.frame in topology.frame_names:
        frame = topology.frame_names.index(target.frame)
        body = topology.frame_bodies[frame]
        R_BF = jnp.asarray(model.frame_placement.R)[frame]
        p_BF = jnp.asarray(model.frame_placement.p)[frame]
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
        errors.append(R_WF @ rotation_vector_from_matrix(R_WF.T @ jnp.asarray(target.rotation)))
        rows.append(J[:3])
    return jnp.concatenate(errors), jnp.concatenate(rows)


def _clip_to_limits(model: Model, q: Q) -> Q:
    """Clip the position of each independent single-axis joint to its limits."""
    position = scalar_positions(model, expand_q(model, q))
    correction = jnp.clip(position, model.joint.lower, model.joint.upper) - position
    return retract(model, q, correction[_independent_dofs(model)])


def _active_limits(model: Model, q: Q, direction: Qd) -> Int[Array, " nv"]:
    """-1 for a joint at its lower limit, 1 at its upper limit, if `direction` leads out of its range; 0 otherwise."""
    dofs = _independent_dofs(model)
    position = scalar_positions(model, expand_q(model, q))[dofs]
    at_lower = (direction < 0.0) & (position <= jnp.asarray(model.joint.lower)[dofs] + LIMIT_MARGIN)
    at_upper = (direction > 0.0) & (position >= jnp.asarray(model.joint.upper)[dofs] - LIMIT_MARGIN)
    return at_upper.astype(int) - at_lower.astype(int)


def _independent_dofs(model: Model) -> np.ndarray:
    """Degrees of freedom of the tree that do not belong to mimic joints."""
    topology = model.topology
    dofs = [
        d
        for (i, j), master in zip(topology.tree_v_slices, topology.masters, strict=True)
        if master < 0
        for d in range(i, j)
    ]
    return np.asarray(dofs, dtype=int)


def _check_targets(model: Model, targets: list[Target]) -> None:
    if not targets:
        raise ValueError("inverse_kinematics needs at least one target")
    for target in targets:
        if target.position is None and target.rotation is None:
            raise ValueError(f"target for {target.frame!r} has neither position nor rotation")
        names = (*model.topology.frame_names, *model.topology.body_names)
        if target.frame not in names:
            raise KeyError(f"no body or frame named {target.frame!r}; the model has {', '.join(names)}")
        frame_bodies = dict(zip(model.topology.frame_names, model.topology.frame_bodies, strict=True))
        if frame_bodies.get(target.frame) == WORLD:
            raise ValueError(f"frame {target.frame!r} is fixed to the world and cannot be moved")
