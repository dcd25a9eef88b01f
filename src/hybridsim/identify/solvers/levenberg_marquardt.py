"""Levenberg–Marquardt with bounds, for many independent instances.

Each step solves the damped normal equations of θ and the initial states of windows. The damping of an unknown is scaled
by the largest diagonal entry so far (Marquardt 1963, Moré 1978) and follows the ratio of actual to predicted decrease
(Nielsen 1999). Entries of θ that a step would move across a bound are fixed at the bound.

The quadratic subproblem of a step, with bounds and penalties, has an iteration limit of its own. A step for which it
ended there is accepted or rejected like any other, but is no evidence of convergence: a fit that ends with such a step
terminates with `INACCURATE_STEP`.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.core.specification import Count, Nonnegative, Positive, specification
from hybridsim.identify.normal_equations import NormalEquations, bounded_step, diagonals
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.penalty import Penalty, solve_penalized_qp
from hybridsim.identify.solvers.box_qp import solve_box_qp
from hybridsim.identify.solvers.solver import Solver, SolverState, Termination, apply_step_limit

Array = np.ndarray
MIN_GAIN_RATIO = 1e-4
"""Minimum ratio of actual to predicted decrease of an accepted step."""
MAX_GAIN_RATIO = 4.0
"""Gain ratio from which on a small decrease does not count as convergence: the model underestimates the decrease."""
MAX_DAMPING = 1e12
"""Damping above which the solver is stuck: steps are negligible and still rejected."""
MIN_DAMPING = 1e-14
"""Lower limit of the damping."""


class Damping(NamedTuple):
    """Damping of the next step."""

    factor: Float[Array, " P"]
    growth: Float[Array, " P"]
    """Factor by which the damping grows after the next rejected step."""
    theta_scale: Float[Array, "P N"]
    state_scale: Float[Array, "P W s"]
    """Largest diagonal entries of the normal equations so far."""


class Proposal(NamedTuple):
    """Proposed step of all running instances."""

    trial: Point
    predicted_decrease: Float[Array, " P"]
    size: Float[Array, " P"]
    """Largest entry of the step, in θ relative to max(|θ|, 1)."""
    has_converged: Bool[Array, " P"]
    """Whether the quadratic subproblem was solved to its tolerance."""


@specification
class LevenbergMarquardt(Solver):
    """Levenberg–Marquardt: damped Gauss–Newton steps, the first choice unless there are many weights."""

    max_steps: Count = 100
    """Maximum number of steps."""
    cost_tolerance: Nonnegative = 1e-10
    """Relative decrease of the cost below which it terminates."""
    step_tolerance: Nonnegative = 1e-10
    """Relative change of the unknowns below which it terminates."""
    gradient_tolerance: Nonnegative = 1e-12
    """Largest cosine between the residuals and a column of the Jacobian at which it terminates."""
    initial_damping: Positive = 1e-3
    """Damping of the first step."""
    name = "lm"
    supports_kinks = True
    fixes_common = False
    """Whether the common parameters are fixed, so that only initial states and per-run parameters are estimated."""

    def init(self, objective: Objective, point: Point) -> SolverState:
        point = self._clip(objective, point)
        cost, equations = objective.normal_equations(point)
        P = len(cost)
        theta_scale, state_scale = diagonals(equations)
        damping = Damping(np.full(P, self.initial_damping), np.full(P, 2.0), theta_scale.copy(), state_scale.copy())
        termination = np.where(np.isfinite(cost), Termination.RUNNING, Termination.DIVERGED)
        termination = np.where(
            (termination == Termination.RUNNING) & self._is_stationary(objective, point, cost, equations),
            Termination.STATIONARY,
            termination,
        )
        return SolverState(point, cost, termination, np.asarray(0), (damping, equations))

    def step(self, objective: Objective, state: SolverState) -> SolverState:
        running = np.flatnonzero(state.termination == Termination.RUNNING)
        if not len(running):
            return state
        damping, equations = (_select(part, running) for part in state.internal)
        point, cost = state.point.select(running), state.cost[running]

        proposal = self._propose(objective, point, damping, equations)
        trial_cost = objective.cost(proposal.trial)
        with np.errstate(over="ignore"):
            gain_ratio = (cost - trial_cost) / np.maximum(proposal.predicted_decrease, np.finfo(float).tiny)
        accepted = (trial_cost < cost) & (gain_ratio > MIN_GAIN_RATIO) & np.isfinite(trial_cost)
        termination = self._judge(proposal, damping, cost - trial_cost, cost, gain_ratio, accepted)
        damping = _update_damping(damping, gain_ratio, accepted)
        is_stuck = (termination == Termination.RUNNING) & (damping.factor > MAX_DAMPING)
        termination = np.where(is_stuck, Termination.STUCK, termination)

        point, cost = _replace(point, proposal.trial, accepted), np.where(accepted, trial_cost, cost)
        linearized = np.flatnonzero(accepted & (termination == Termination.RUNNING))
        if len(linearized):
            damping, equations, is_stationary = self._linearize(objective, point, linearized, damping, equations)
            termination[linearized] = np.where(is_stationary, Termination.STATIONARY, termination[linearized])

        steps, terminations = state.steps + 1, _with_rows(state.termination, running, termination)
        return SolverState(
            Point(*(_with_rows(old, running, new) for old, new in zip(state.point, point, strict=True))),
            _with_rows(state.cost, running, cost),
            apply_step_limit(self.max_steps, steps, terminations),
            steps,
            tuple(_put(old, running, new) for old, new in zip(state.internal, (damping, equations), strict=True)),
        )

    def _propose(self, objective: Objective, point: Point, damping: Damping, equations: NormalEquations) -> Proposal:
        """Solve the damped normal equations within the bounds."""
        factor, penalty = damping.factor, objective.prior_terms.penalty
        step = bounded_step(
            equations,
            factor[:, None] * damping.theta_scale,
            factor[:, None, None] * damping.state_scale,
            *self._step_bounds(objective, point),
            _qp_solver(penalty, point.theta),
        )
        predicted = step.predicted_decrease + penalty(point.theta) - penalty(point.theta + step.theta)
        # rounding must not move θ across a bound
        trial = self._clip(objective, objective.retract(point, step.theta, step.initial_states))
        return Proposal(trial, predicted, _relative_size(point, trial, step.initial_states), step.has_converged)

    def _judge(
        self, proposal: Proposal, damping: Damping, decrease: Array, cost: Array, gain_ratio: Array, accepted: Array
    ) -> Int[Array, " P"]:
        """Which instances end with this step, and why."""
        is_small_decrease = accepted & (decrease <= self.cost_tolerance * cost) & (gain_ratio < MAX_GAIN_RATIO)
        is_small_decrease |= ~accepted & (proposal.predicted_decrease <= self.cost_tolerance * cost)
        # convergence tests do not apply to strongly damped steps, which are small in any case
        is_weakly_damped = damping.factor <= 1.0
        termination = np.select(
            [is_weakly_damped & is_small_decrease, is_weakly_damped & (proposal.size <= self.step_tolerance)],
            [Termination.SMALL_DECREASE, Termination.SMALL_STEP],
            Termination.RUNNING,
        )
        is_inaccurate = (termination != Termination.RUNNING) & ~proposal.has_converged
        return np.where(is_inaccurate, Termination.INACCURATE_STEP, termination)

    def _linearize(
        self, objective: Objective, point: Point, index: Array, damping: Damping, equations: NormalEquations
    ) -> tuple[Damping, NormalEquations, Bool[Array, " k"]]:
        """Update damping scales and normal equations of some instances; returns also which of them are stationary."""
        selected = point.select(index)
        cost, new = objective.normal_equations(selected)
        theta_scale, state_scale = diagonals(new)
        damping.theta_scale[index] = np.maximum(damping.theta_scale[index], theta_scale)
        damping.state_scale[index] = np.maximum(damping.state_scale[index], state_scale)
        return damping, _put(equations, index, new), self._is_stationary(objective, selected, cost, new)

    def restore(self, objective: Objective, state: SolverState) -> SolverState:
        equations = objective.normal_equations(state.point)[1]
        return state._replace(internal=(Damping(*state.internal), equations))

    def compact(self, state: SolverState) -> SolverState:
        # normal equations can be recomputed bit-identically
        return state._replace(internal=state.internal[0])

    def _clip(self, objective: Objective, point: Point) -> Point:
        """Clip θ to its bounds, except for fixed entries."""
        clipped = np.clip(point.theta, objective.layout.lower, objective.layout.upper)
        return point._replace(theta=np.where(self._is_fixed(objective), point.theta, clipped))

    def _is_fixed(self, objective: Objective) -> Bool[Array, " N"]:
        return objective.layout.is_common & self.fixes_common

    def _step_bounds(self, objective: Objective, point: Point) -> tuple[Float[Array, "P N"], Float[Array, "P N"]]:
        """Lower and upper bounds of the step of θ."""
        layout, fixed = objective.layout, self._is_fixed(objective)
        lower, upper = layout.lower - point.theta, layout.upper - point.theta
        return np.where(fixed, 0.0, lower), np.where(fixed, 0.0, upper)

    def _is_stationary(self, objective: Objective, point: Point, cost: Array, equations: NormalEquations) -> Array:
        """Whether the residuals are orthogonal to all columns of the Jacobian, except where bounds are active."""
        if objective.prior_terms.penalty.is_active:
            return np.zeros(len(cost), dtype=bool)  # the gradient of the residuals is balanced by the penalty's
        lower, upper = self._step_bounds(objective, point)
        size = np.sqrt(2.0 * np.maximum(cost, np.finfo(float).tiny))
        theta_diagonal, state_diagonal = diagonals(equations)
        blocked = ((lower >= 0.0) & (equations.a > 0.0)) | ((upper <= 0.0) & (equations.a < 0.0)) | (lower >= upper)
        tiny = np.finfo(float).tiny
        theta_cosine = np.abs(np.where(blocked, 0.0, equations.a)) / (np.sqrt(theta_diagonal + tiny) * size[:, None])
        state_cosine = np.abs(equations.d) / (np.sqrt(state_diagonal + tiny) * size[:, None, None])
        largest = np.maximum(theta_cosine.max(axis=1, initial=0.0), state_cosine.max(axis=(1, 2), initial=0.0))
        return np.asarray(largest <= self.gradient_tolerance)


def _qp_solver(penalty: Penalty, theta: Array) -> Callable:
    """Solver of the box-constrained QP, with the penalty if one is active."""
    return partial(solve_penalized_qp, theta=theta, penalty=penalty) if penalty.is_active else solve_box_qp


def _update_damping(damping: Damping, gain_ratio: Array, accepted: Array) -> Damping:
    """Decrease the damping after accepted steps, depending on the gain ratio, and increase it after rejected ones."""
    decreased = damping.factor * np.maximum(1.0 / 3.0, 1.0 - (2.0 * np.clip(gain_ratio, 0.0, 1.0) - 1.0) ** 3)
    factor = np.where(accepted, np.maximum(decreased, MIN_DAMPING), damping.factor * damping.growth)
    return damping._replace(factor=factor, growth=np.where(accepted, 2.0, 2.0 * damping.growth))


def _relative_size(point: Point, trial: Point, initial_states: Array) -> Array:
    """Largest entry of a step, in θ relative to max(|θ|, 1)."""
    theta = np.abs(trial.theta - point.theta) / np.maximum(np.abs(point.theta), 1.0)
    return np.maximum(theta.max(axis=1, initial=0.0), np.abs(initial_states).max(axis=(1, 2), initial=0.0))


def _select(group, index: Array):
    return type(group)(*(None if x is None else x[index] for x in group))


def _put(group, index: Array, new):
    pairs = zip(group, new, strict=True)
    return type(group)(*(None if old is None else _with_rows(old, index, x) for old, x in pairs))


def _with_rows(old: Array, index: Array, new: Array) -> Array:
    result = old.copy()
    result[index] = new
    return result


def _replace(point: Point, trial: Point, mask: Array) -> Point:
    return Point(*(np.where(mask.reshape(-1, *(1,) * (x.ndim - 1)), y, x) for x, y in zip(point, trial, strict=True)))


class CalibrationSolver(LevenbergMarquardt):
    """Levenberg–Marquardt for initial states and per-run parameters, with the common parameters fixed; for scores."""

    fixes_common = True
