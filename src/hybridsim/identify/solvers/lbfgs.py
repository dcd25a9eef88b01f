"""Limited-memory BFGS with bounds, for many problems side by side.

A quasi-Newton direction comes from the last few changes of the gradient (Nocedal 1980), among the unknowns that no
bound holds back (Bertsekas 1982); it ends at the bounds that it would cross. Along it a search looks for a point that
is lower by a share of what the slope promises and where the slope has become flatter (Wolfe 1969). A step of the solver
is one evaluation of the objective and its gradient by a reverse sweep, at the next point of that search: its price
hardly grows with the number of parameters, which is what networks need.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.solvers.solver import Solver, SolverState, Termination, apply_step_limit
from hybridsim.identify.solvers.unknowns import Unknowns

Array = np.ndarray
LEAST_GAIN = 1e-4
"""Share of the gain promised by the slope that a point must have to be taken."""
FLATTER = 0.9
"""Share of the slope that may be left there."""
MOST_TRIALS = 20
"""Points that are tried along one direction."""
FIRST_CHANGE = 0.1
"""Largest change of an unknown in a trial for whose length nothing is known."""


class LineSearch(NamedTuple):
    """Where a search along a direction is."""

    gradient: Float[Array, "P N"]
    """At the point where it began, by units."""
    direction: Float[Array, "P N"]
    """By units."""
    slope: Float[Array, " P"]
    """Of the objective along it."""
    longest: Float[Array, " P"]
    """How far along it the bounds let go."""
    trial: Float[Array, " P"]
    """How far along it the next point is."""
    low: Float[Array, " P"]
    high: Float[Array, " P"]
    """Between which the point that is looked for lies."""
    low_cost: Float[Array, " P"]
    low_slope: Float[Array, " P"]
    trials: Int[Array, " P"]


class CurvaturePairs(NamedTuple):
    """The last changes, oldest first, with zeros in front while there are few."""

    change: Float[Array, "P m N"]
    of_gradient: Float[Array, "P m N"]


@dataclass(frozen=True)
class LBFGS(Solver):
    """Quasi-Newton steps from gradients alone."""

    max_steps: int = 500
    """Evaluations of the gradient."""
    memory: int = 10
    """Changes of the gradient that are remembered."""
    cost_tolerance: float = 1e-10
    """Relative gain of two searches in a row below which the fit is done."""
    step_tolerance: float = 1e-10
    """Relative change of all unknowns below which it is done."""
    gradient_tolerance: float = 1e-9
    """Slope by the standard error of any unknown, relative to the residuals, below which it is done."""
    name = "lbfgs"

    def init(self, objective: Objective, point: Point) -> SolverState:
        layout, unknowns = objective.layout, Unknowns(objective)
        point = point._replace(theta=np.clip(point.theta, layout.lower, layout.upper))
        cost, gradient = _slopes(objective, unknowns, point)
        P, N = gradient.shape
        usable = np.isfinite(cost) & np.isfinite(gradient).all(axis=1)
        memory = CurvaturePairs(*(np.zeros((P, self.memory, N)) for _ in range(2)))
        search = _begun(unknowns, point, cost, np.where(usable[:, None], gradient, 0.0), memory)
        flat = self._is_flat(unknowns, point, cost, search.gradient)
        verdict = np.where(usable, np.where(flat, Termination.FLAT, Termination.RUNNING), Termination.DIVERGED)
        return SolverState(point, cost, verdict, np.asarray(0), (search, memory, np.zeros(P, dtype=int)))

    def step(self, objective: Objective, state: SolverState) -> SolverState:
        which = np.flatnonzero(state.verdict == Termination.RUNNING)
        if not len(which):
            return state
        unknowns = Unknowns(objective)
        search, memory, idle = (
            LineSearch(*(x[which] for x in state.own[0])),
            CurvaturePairs(*(x[which] for x in state.own[1])),
            state.own[2][which],
        )
        point, cost = state.point.chosen(which), state.cost[which]

        change = search.trial[:, None] * search.direction
        trial = unknowns.moved(point, change * unknowns.standard_errors)
        new_cost, gradient = _slopes(objective, unknowns, trial)
        usable = np.isfinite(new_cost) & np.isfinite(gradient).all(axis=1)
        gradient = np.where(usable[:, None], gradient, 0.0)
        slope = np.einsum("pi,pi->p", gradient, search.direction)
        lower = usable & (new_cost <= cost + LEAST_GAIN * search.trial * search.slope) & (new_cost < cost)
        settled = (slope >= FLATTER * search.slope) | np.isfinite(search.high) | (search.trial >= search.longest)
        taken = lower & (settled | (search.trials + 1 >= MOST_TRIALS))
        failed = ~lower & (search.trials + 1 >= MOST_TRIALS)

        # verdicts on where the search came to; only a direction made of remembered changes tells how far the minimum is
        gain, remembers = np.where(taken, cost - new_cost, 0.0), memory.change.any(axis=(1, 2))
        idle = np.where(taken, np.where(gain <= self.cost_tolerance * cost, idle + 1, 0), idle)
        tiny = remembers & (_relative_size(unknowns, point, search.direction) <= self.step_tolerance)
        hopeless = failed & remembers & (-0.5 * search.slope <= self.cost_tolerance * cost)
        verdict = np.where((taken & (idle >= 2)) | hopeless, Termination.SMALL_GAIN, Termination.RUNNING)
        verdict = np.where((taken | failed) & tiny, Termination.SMALL_STEP, verdict)
        # a memory of other slopes may have led astray; without one, there is nothing else to try
        verdict = np.where((verdict == Termination.RUNNING) & failed & ~remembers, Termination.STUCK, verdict)

        # what is next: another point along the same direction, or another direction
        begun = taken | failed
        memory = _remembered(memory, change, gradient - search.gradient, taken, failed & remembers)
        point = Point(*(np.where(_like(taken, x), y, x) for x, y in zip(point, trial, strict=True)))
        cost = np.where(taken, new_cost, cost)
        here = np.where(taken[:, None], gradient, search.gradient)
        fresh = _begun(unknowns, point, cost, here, memory)
        further = _further(search, new_cost, slope, lower, usable)
        search = LineSearch(*(np.where(_like(begun, x), x, y) for x, y in zip(fresh, further, strict=True)))
        flat = taken & self._is_flat(unknowns, point, cost, search.gradient)
        verdict = np.where(flat, Termination.FLAT, verdict)

        steps = state.steps + 1
        verdicts = _written(state.verdict, which, verdict)
        own = (
            LineSearch(*(_written(old, which, new) for old, new in zip(state.own[0], search, strict=True))),
            CurvaturePairs(*(_written(old, which, new) for old, new in zip(state.own[1], memory, strict=True))),
            _written(state.own[2], which, idle),
        )
        points = Point(*(_written(old, which, new) for old, new in zip(state.point, point, strict=True)))
        costs = _written(state.cost, which, cost)
        return SolverState(points, costs, apply_step_limit(self.max_steps, steps, verdicts), steps, own)

    def resumed(self, objective: Objective, state: SolverState) -> SolverState:
        del objective
        search, memory, idle = state.own
        return state._replace(own=(LineSearch(*search), CurvaturePairs(*memory), idle))

    def _is_flat(self, unknowns: Unknowns, point: Point, cost: Array, gradient: Array) -> Bool[Array, " P"]:
        free = np.where(_held(unknowns, point, gradient), 0.0, np.abs(gradient))
        return free.max(axis=1, initial=0.0) <= self.gradient_tolerance * np.sqrt(2.0 * np.abs(cost))


def _slopes(objective: Objective, unknowns: Unknowns, point: Point) -> tuple[Float[Array, " P"], Float[Array, "P N"]]:
    """The objective, and its gradient by units."""
    found = objective.gradient(point)
    return found.cost, unknowns.joined(found.theta, found.start) * unknowns.standard_errors


def _held(unknowns: Unknowns, point: Point, gradient: Float[Array, "P N"]) -> Bool[Array, "P N"]:
    """Unknowns at a bound with the way down beyond it."""
    least, most = unknowns.room(point)
    return ((least >= 0.0) & (gradient > 0.0)) | ((most <= 0.0) & (gradient < 0.0)) | (least >= most)


def _begun(
    unknowns: Unknowns, point: Point, cost: Array, gradient: Float[Array, "P N"], memory: CurvaturePairs
) -> LineSearch:
    """A search along the quasi-Newton direction, or straight down where that does not lead down."""
    held = _held(unknowns, point, gradient)
    least, most = (x / unknowns.standard_errors for x in unknowns.room(point))
    free = np.where(held, 0.0, gradient)
    straight = np.clip(-free, least, most)
    direction = np.clip(-_two_loops(free, memory, ~held), least, most)
    slope = np.einsum("pi,pi->p", gradient, direction)
    size = np.linalg.norm(gradient, axis=1) * np.linalg.norm(direction, axis=1)
    wrong = ~(slope < -1e-12 * size)
    direction = np.where(wrong[:, None], straight, direction)
    slope = np.where(wrong, np.einsum("pi,pi->p", gradient, straight), slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(direction > 0.0, most, least) / direction
    longest = np.where(direction == 0.0, np.inf, reach).min(axis=1, initial=np.inf)
    # without any memory, nothing tells how long a step should be
    small = FIRST_CHANGE / np.maximum((np.abs(direction) * unknowns.standard_errors).max(axis=1, initial=0.0), 1e-300)
    blind = wrong | ~memory.change.any(axis=(1, 2))
    first = np.where(blind, np.minimum(1.0, small), 1.0)
    zero = np.zeros_like(slope)
    return LineSearch(
        gradient,
        direction,
        slope,
        longest,
        np.minimum(first, longest),
        zero,
        zero + np.inf,
        cost,
        slope,
        zero.astype(int),
    )


def _two_loops(gradient: Float[Array, "P N"], memory: CurvaturePairs, free: Bool[Array, "P N"]) -> Float[Array, "P N"]:
    """What the remembered changes make of the gradient: about the inverse of the Hessian times it."""
    s, y = (np.where(free[:, None], x, 0.0) for x in memory)
    product = np.einsum("pmi,pmi->pm", s, y)
    square = np.einsum("pmi,pmi->pm", y, y)
    counts = product > np.finfo(float).eps * square
    inverse = np.where(counts, 1.0 / np.where(counts, product, 1.0), 0.0)
    result, alphas = gradient, []
    for k in reversed(range(s.shape[1])):
        alpha = inverse[:, k] * np.einsum("pi,pi->p", s[:, k], result)
        alphas.append(alpha)
        result = result - alpha[:, None] * y[:, k]
    newest = np.where(counts.any(axis=1), s.shape[1] - 1 - counts[:, ::-1].argmax(axis=1), 0)[:, None]
    scale = np.where(counts, product / np.where(counts, square, 1.0), 1.0)
    result = np.take_along_axis(scale, newest, axis=1) * result
    for k in range(s.shape[1]):
        beta = inverse[:, k] * np.einsum("pi,pi->p", y[:, k], result)
        result = result + (alphas[-1 - k] - beta)[:, None] * s[:, k]
    return result


def _remembered(
    memory: CurvaturePairs, change: Array, of_gradient: Array, taken: Array, forget: Array
) -> CurvaturePairs:
    """The memory with one more change where one was made along which the objective bends up."""
    product, square = np.einsum("pi,pi->p", change, of_gradient), np.einsum("pi,pi->p", of_gradient, of_gradient)
    bends_up = taken & (product > np.finfo(float).eps * square)

    def updated(old: Array, new: Array) -> Array:
        longer = np.concatenate([old[:, 1:], new[:, None]], axis=1)
        kept = np.where(bends_up[:, None, None], longer, old)
        return np.where(forget[:, None, None], 0.0, kept)

    return CurvaturePairs(updated(memory.change, change), updated(memory.of_gradient, of_gradient))


def _further(search: LineSearch, new_cost: Array, slope: Array, lower: Array, usable: Array) -> LineSearch:
    """The same search with the next point to try: farther where it still goes down, otherwise nearer."""
    trial = search.trial
    low, high = np.where(lower, trial, search.low), np.where(lower, search.high, trial)
    low_cost, low_slope = np.where(lower, new_cost, search.low_cost), np.where(lower, slope, search.low_slope)
    with np.errstate(all="ignore"):
        # farther: to where the slope would vanish if it went on changing as it did
        aim = search.low + (trial - search.low) * search.low_slope / (search.low_slope - slope)
        aim = np.where(np.isfinite(aim) & (aim > 0.0), aim, np.inf)
        farther = np.clip(aim, 2.0 * trial, 10.0 * trial)
        # nearer: to the lowest point of the parabola through what is known
        width = high - low
        dip = low - 0.5 * low_slope * width**2 / (new_cost - low_cost - low_slope * width)
        dip = np.where(usable & np.isfinite(dip), dip, low + 0.1 * width)
        nearer = np.clip(dip, low + 0.1 * width, low + 0.5 * width)
    following = np.where(lower, np.minimum(farther, search.longest), nearer)
    return search._replace(
        trial=following, low=low, high=high, low_cost=low_cost, low_slope=low_slope, trials=search.trials + 1
    )


def _relative_size(unknowns: Unknowns, point: Point, change: Float[Array, "P N"]) -> Float[Array, " P"]:
    """Largest change of an entry of θ, by its size or one, and of a start."""
    theta, start = unknowns.split(np.abs(change * unknowns.standard_errors))
    of_theta = (theta / np.maximum(np.abs(point.theta), 1.0)).max(axis=1, initial=0.0)
    return np.maximum(of_theta, start.max(axis=(1, 2), initial=0.0))


def _like(chosen: Bool[Array, " P"], values: Array) -> Array:
    return chosen.reshape(-1, *(1,) * (values.ndim - 1))


def _written(old: Array, which: Array, new: Array) -> Array:
    result = old.copy()
    result[which] = new
    return result
