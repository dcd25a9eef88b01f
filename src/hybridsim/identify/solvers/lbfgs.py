"""Limited-memory BFGS with bounds, for many independent instances.

A quasi-Newton direction follows from the latest gradient differences (Nocedal 1980) among the unknowns that are not at
an active bound (Bertsekas 1982); it is truncated at the bounds. A line search along it ensures sufficient decrease
(Armijo 1966) and, while it extrapolates, also the curvature condition (Wolfe 1969). A step of the solver is one
evaluation of the objective and its gradient by a reverse sweep, at the next trial of the line search: its cost hardly
grows with the number of parameters, which suits networks.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.core.specification import Count, Nonnegative, specification
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.solvers.solver import Solver, SolverState, Termination, apply_step_limit
from hybridsim.identify.solvers.unknowns import Unknowns

Array = np.ndarray
ARMIJO = 1e-4
"""Constant of the sufficient-decrease condition."""
CURVATURE = 0.9
"""Constant of the curvature condition."""
MAX_TRIALS = 20
"""Maximum number of trials along one direction."""
FIRST_STEP = 0.1
"""Largest step in any unknown in a trial without curvature information."""


class LineSearch(NamedTuple):
    """State of a line search."""

    gradient: Float[Array, "P U"]
    """Scaled gradient at its base point."""
    direction: Float[Array, "P U"]
    """Scaled direction."""
    slope: Float[Array, " P"]
    """Directional derivative at the base point."""
    max_step_length: Float[Array, " P"]
    """Step length at the first bound."""
    trial: Float[Array, " P"]
    """Step length of the next trial."""
    low: Float[Array, " P"]
    high: Float[Array, " P"]
    """Bracket of the step length."""
    low_cost: Float[Array, " P"]
    low_slope: Float[Array, " P"]
    trials: Int[Array, " P"]


class CurvaturePairs(NamedTuple):
    """Latest steps and gradient differences, oldest first, padded with zeros in front."""

    step: Float[Array, "P k U"]
    gradient_difference: Float[Array, "P k U"]


@specification
class LBFGS(Solver):
    """L-BFGS: quasi-Newton steps from gradients only, within bounds."""

    max_steps: Count = 500
    """Maximum number of gradient evaluations."""
    memory: Count = 10
    """Number of stored gradient differences."""
    cost_tolerance: Nonnegative = 1e-10
    """Relative decrease of the cost in each of two consecutive line searches below which it terminates."""
    step_tolerance: Nonnegative = 1e-10
    """Relative change of the unknowns below which it terminates."""
    gradient_tolerance: Nonnegative = 1e-9
    """Largest derivative with respect to an unknown, times the standard error of that unknown and relative to the norm
    of the residuals, at which it terminates."""
    name = "lbfgs"

    def init(self, objective: Objective, point: Point) -> SolverState:
        layout, unknowns = objective.layout, Unknowns(objective)
        point = point._replace(theta=np.clip(point.theta, layout.lower, layout.upper))
        cost, gradient = _scaled_gradient(objective, unknowns, point)
        P, U = gradient.shape
        usable = np.isfinite(cost) & np.isfinite(gradient).all(axis=1)
        memory = CurvaturePairs(*(np.zeros((P, self.memory, U)) for _ in range(2)))
        search = _line_search(unknowns, point, cost, np.where(usable[:, None], gradient, 0.0), memory)
        stationary = self._is_stationary(unknowns, point, cost, search.gradient)
        termination = np.where(stationary, Termination.STATIONARY, Termination.RUNNING)
        termination = np.where(usable, termination, Termination.DIVERGED)
        return SolverState(point, cost, termination, np.asarray(0), (search, memory, np.zeros(P, dtype=int)))

    def step(self, objective: Objective, state: SolverState) -> SolverState:
        running = np.flatnonzero(state.termination == Termination.RUNNING)
        if not len(running):
            return state
        unknowns = Unknowns(objective)
        search, memory, stalled_searches = (
            LineSearch(*(x[running] for x in state.internal[0])),
            CurvaturePairs(*(x[running] for x in state.internal[1])),
            state.internal[2][running],
        )
        point, cost = state.point.select(running), state.cost[running]

        step = search.trial[:, None] * search.direction
        trial = unknowns.retract(point, step * unknowns.standard_errors)
        new_cost, gradient = _scaled_gradient(objective, unknowns, trial)
        usable = np.isfinite(new_cost) & np.isfinite(gradient).all(axis=1)
        gradient = np.where(usable[:, None], gradient, 0.0)
        slope = np.einsum("pi,pi->p", gradient, search.direction)
        decreased = usable & (new_cost <= cost + ARMIJO * search.trial * search.slope) & (new_cost < cost)
        no_extension = (
            (slope >= CURVATURE * search.slope) | np.isfinite(search.high) | (search.trial >= search.max_step_length)
        )
        accepted = decreased & (no_extension | (search.trials + 1 >= MAX_TRIALS))
        failed = ~decreased & (search.trials + 1 >= MAX_TRIALS)

        # convergence tests on the direction need curvature pairs: without them its length is arbitrary
        decrease, has_pairs = np.where(accepted, cost - new_cost, 0.0), memory.step.any(axis=(1, 2))
        stalled = np.where(decrease <= self.cost_tolerance * cost, stalled_searches + 1, 0)
        stalled_searches = np.where(accepted, stalled, stalled_searches)
        tiny = has_pairs & (_relative_size(unknowns, point, search.direction) <= self.step_tolerance)
        negligible = failed & has_pairs & (-0.5 * search.slope <= self.cost_tolerance * cost)
        small_decrease = (accepted & (stalled_searches >= 2)) | negligible
        termination = np.where(small_decrease, Termination.SMALL_DECREASE, Termination.RUNNING)
        termination = np.where((accepted | failed) & tiny, Termination.SMALL_STEP, termination)
        # after a failure with curvature pairs, restart along the gradient; without them, terminate
        stuck = (termination == Termination.RUNNING) & failed & ~has_pairs
        termination = np.where(stuck, Termination.STUCK, termination)

        # continue the line search, or begin another one
        finished = accepted | failed
        memory = _append(memory, step, gradient - search.gradient, accepted, failed & has_pairs)
        point = Point(*(np.where(_expand(accepted, x), y, x) for x, y in zip(point, trial, strict=True)))
        cost = np.where(accepted, new_cost, cost)
        base_gradient = np.where(accepted[:, None], gradient, search.gradient)
        new_search = _line_search(unknowns, point, cost, base_gradient, memory)
        continued = _next_trial(search, new_cost, slope, decreased, usable)
        search = LineSearch(*(np.where(_expand(finished, x), x, y) for x, y in zip(new_search, continued, strict=True)))
        stationary = accepted & self._is_stationary(unknowns, point, cost, search.gradient)
        termination = np.where(stationary, Termination.STATIONARY, termination)

        steps = state.steps + 1
        terminations = _with_rows(state.termination, running, termination)
        internal = (
            LineSearch(*(_with_rows(old, running, new) for old, new in zip(state.internal[0], search, strict=True))),
            CurvaturePairs(
                *(_with_rows(old, running, new) for old, new in zip(state.internal[1], memory, strict=True))
            ),
            _with_rows(state.internal[2], running, stalled_searches),
        )
        points = Point(*(_with_rows(old, running, new) for old, new in zip(state.point, point, strict=True)))
        costs = _with_rows(state.cost, running, cost)
        return SolverState(points, costs, apply_step_limit(self.max_steps, steps, terminations), steps, internal)

    def restore(self, objective: Objective, state: SolverState) -> SolverState:
        del objective
        search, memory, stalled_searches = state.internal
        return state._replace(internal=(LineSearch(*search), CurvaturePairs(*memory), stalled_searches))

    def _is_stationary(self, unknowns: Unknowns, point: Point, cost: Array, gradient: Array) -> Bool[Array, " P"]:
        free = np.where(_is_at_active_bound(unknowns, point, gradient), 0.0, np.abs(gradient))
        return free.max(axis=1, initial=0.0) <= self.gradient_tolerance * np.sqrt(2.0 * np.abs(cost))


def _scaled_gradient(
    objective: Objective, unknowns: Unknowns, point: Point
) -> tuple[Float[Array, " P"], Float[Array, "P U"]]:
    """Value of the objective, and its gradient with respect to unknowns in units of their standard errors."""
    result = objective.gradient(point)
    return result.cost, unknowns.concatenate(result.theta, result.initial_states) * unknowns.standard_errors


def _is_at_active_bound(unknowns: Unknowns, point: Point, gradient: Float[Array, "P U"]) -> Bool[Array, "P U"]:
    """Which unknowns are at a bound with the descent direction across it."""
    lower, upper = unknowns.step_bounds(point)
    return ((lower >= 0.0) & (gradient > 0.0)) | ((upper <= 0.0) & (gradient < 0.0)) | (lower >= upper)


def _line_search(
    unknowns: Unknowns, point: Point, cost: Array, gradient: Float[Array, "P U"], memory: CurvaturePairs
) -> LineSearch:
    """New line search along the quasi-Newton direction; if this does not descend, along the negative gradient."""
    active = _is_at_active_bound(unknowns, point, gradient)
    lower, upper = (x / unknowns.standard_errors for x in unknowns.step_bounds(point))
    free = np.where(active, 0.0, gradient)
    steepest = np.clip(-free, lower, upper)
    direction = np.clip(-_two_loop_recursion(free, memory, ~active), lower, upper)
    slope = np.einsum("pi,pi->p", gradient, direction)
    size = np.linalg.norm(gradient, axis=1) * np.linalg.norm(direction, axis=1)
    not_descent = ~(slope < -1e-12 * size)
    direction = np.where(not_descent[:, None], steepest, direction)
    slope = np.where(not_descent, np.einsum("pi,pi->p", gradient, steepest), slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound_step = np.where(direction > 0.0, upper, lower) / direction
    max_step_length = np.where(direction == 0.0, np.inf, bound_step).min(axis=1, initial=np.inf)
    # the gradient has no natural step length
    small = FIRST_STEP / np.maximum((np.abs(direction) * unknowns.standard_errors).max(axis=1, initial=0.0), 1e-300)
    no_curvature = not_descent | ~memory.step.any(axis=(1, 2))
    first = np.where(no_curvature, np.minimum(1.0, small), 1.0)
    zero = np.zeros_like(slope)
    return LineSearch(
        gradient,
        direction,
        slope,
        max_step_length,
        np.minimum(first, max_step_length),
        zero,
        zero + np.inf,
        cost,
        slope,
        zero.astype(int),
    )


def _two_loop_recursion(
    gradient: Float[Array, "P U"], memory: CurvaturePairs, free: Bool[Array, "P U"]
) -> Float[Array, "P U"]:
    """Approximate inverse Hessian times the gradient, in the free unknowns."""
    s, y = (np.where(free[:, None], x, 0.0) for x in memory)
    product = np.einsum("pmi,pmi->pm", s, y)
    square = np.einsum("pmi,pmi->pm", y, y)
    is_convex = product > np.finfo(float).eps * square
    inverse = np.where(is_convex, 1.0 / np.where(is_convex, product, 1.0), 0.0)
    result, alphas = gradient, []
    for k in reversed(range(s.shape[1])):
        alpha = inverse[:, k] * np.einsum("pi,pi->p", s[:, k], result)
        alphas.append(alpha)
        result = result - alpha[:, None] * y[:, k]
    newest = np.where(is_convex.any(axis=1), s.shape[1] - 1 - is_convex[:, ::-1].argmax(axis=1), 0)[:, None]
    scale = np.where(is_convex, product / np.where(is_convex, square, 1.0), 1.0)
    result = np.take_along_axis(scale, newest, axis=1) * result
    for k in range(s.shape[1]):
        beta = inverse[:, k] * np.einsum("pi,pi->p", y[:, k], result)
        result = result + (alphas[-1 - k] - beta)[:, None] * s[:, k]
    return result


def _append(
    memory: CurvaturePairs, step: Array, gradient_difference: Array, accepted: Array, reset: Array
) -> CurvaturePairs:
    """Append a curvature pair where a step was accepted and the curvature along it is positive."""
    product = np.einsum("pi,pi->p", step, gradient_difference)
    square = np.einsum("pi,pi->p", gradient_difference, gradient_difference)
    is_convex = accepted & (product > np.finfo(float).eps * square)

    def shift(old: Array, new: Array) -> Array:
        longer = np.concatenate([old[:, 1:], new[:, None]], axis=1)
        result = np.where(is_convex[:, None, None], longer, old)
        return np.where(reset[:, None, None], 0.0, result)

    return CurvaturePairs(shift(memory.step, step), shift(memory.gradient_difference, gradient_difference))


def _next_trial(search: LineSearch, new_cost: Array, slope: Array, decreased: Array, usable: Array) -> LineSearch:
    """The search with its next trial: by extrapolation while the objective decreases, else inside the bracket."""
    trial = search.trial
    low, high = np.where(decreased, trial, search.low), np.where(decreased, search.high, trial)
    low_cost, low_slope = np.where(decreased, new_cost, search.low_cost), np.where(decreased, slope, search.low_slope)
    with np.errstate(all="ignore"):
        # extrapolation: zero of the linearly extrapolated slope
        secant = search.low + (trial - search.low) * search.low_slope / (search.low_slope - slope)
        secant = np.where(np.isfinite(secant) & (secant > 0.0), secant, np.inf)
        longer = np.clip(secant, 2.0 * trial, 10.0 * trial)
        # interpolation: minimum of the parabola through both costs with the slope at `low`
        width = high - low
        minimum = low - 0.5 * low_slope * width**2 / (new_cost - low_cost - low_slope * width)
        minimum = np.where(usable & np.isfinite(minimum), minimum, low + 0.1 * width)
        shorter = np.clip(minimum, low + 0.1 * width, low + 0.5 * width)
    next_trial = np.where(decreased, np.minimum(longer, search.max_step_length), shorter)
    return search._replace(
        trial=next_trial, low=low, high=high, low_cost=low_cost, low_slope=low_slope, trials=search.trials + 1
    )


def _relative_size(unknowns: Unknowns, point: Point, direction: Float[Array, "P U"]) -> Float[Array, " P"]:
    """Largest entry of a step, in θ relative to max(|θ|, 1)."""
    theta, initial_states = unknowns.split(np.abs(direction * unknowns.standard_errors))
    theta_size = (theta / np.maximum(np.abs(point.theta), 1.0)).max(axis=1, initial=0.0)
    return np.maximum(theta_size, initial_states.max(axis=(1, 2), initial=0.0))


def _expand(mask: Bool[Array, " P"], values: Array) -> Array:
    """Mask reshaped to broadcast against the values."""
    return mask.reshape(-1, *(1,) * (values.ndim - 1))


def _with_rows(old: Array, index: Array, new: Array) -> Array:
    result = old.copy()
    result[index] = new
    return result
