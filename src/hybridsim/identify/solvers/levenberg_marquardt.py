"""Levenberg–Marquardt with bounds, for many problems side by side.

Each step solves the damped normal equations of θ and the windows' starts; the damping of an unknown is relative to how
strongly it is seen (Marquardt 1963, with the largest diagonal so far as in Moré 1978) and follows the ratio of what a
step gained to what was promised (Nielsen 1999). Entries of θ that a step would take over a bound are held there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.identify.normal_equations import NormalEquations, bounded_step, diagonals
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.penalty import Penalty, penalised_minimum
from hybridsim.identify.solvers.box_qp import box_minimum
from hybridsim.identify.solvers.solver import Solver, SolverState, Termination, apply_step_limit

Array = np.ndarray
LEAST_GAIN = 1e-4
"""Share of the promised gain that a step must have to be taken."""
MOST_DAMPING = 1e12
"""From here on a step is so short that it gains nothing if none has gained anything so far."""
LEAST_DAMPING = 1e-14


class Damping(NamedTuple):
    """How careful the next step is."""

    factor: Float[Array, " P"]
    growth: Float[Array, " P"]
    """What the factor is multiplied by after the next failure."""
    of_theta: Float[Array, "P n"]
    of_start: Float[Array, "P W s"]
    """Largest diagonals of the normal equations so far."""


@dataclass(frozen=True)
class LevenbergMarquardt(Solver):
    """Least squares by damped Gauss–Newton steps."""

    max_steps: int = 100
    cost_tolerance: float = 1e-10
    """Relative gain of a step below which the fit is done."""
    step_tolerance: float = 1e-10
    """Relative change of all unknowns below which it is done."""
    gradient_tolerance: float = 1e-12
    """Cosine between residuals and any column of the Jacobian below which it is done."""
    initial_damping: float = 1e-3
    hold_common: bool = False
    """Leave alone what is common to all runs, and find only the starts of windows and the numbers of each run?"""
    name = "lm"

    def init(self, objective: Objective, point: Point) -> SolverState:
        point = self._within(objective, point)
        cost, equations = objective.normal_equations(point)
        P = len(cost)
        of_theta, of_start = diagonals(equations)
        damping = Damping(np.full(P, self.initial_damping), np.full(P, 2.0), of_theta.copy(), of_start.copy())
        verdict = np.where(np.isfinite(cost), Termination.RUNNING, Termination.DIVERGED)
        verdict = np.where(
            (verdict == Termination.RUNNING) & self._is_flat(objective, point, cost, equations),
            Termination.FLAT,
            verdict,
        )
        return SolverState(point, cost, verdict, np.asarray(0), (damping, equations))

    def step(self, objective: Objective, state: SolverState) -> SolverState:
        which = np.flatnonzero(state.verdict == Termination.RUNNING)
        if not len(which):
            return state
        damping, equations = state.own
        point, cost = state.point.chosen(which), state.cost[which]
        careful, here = _chosen(damping, which), _chosen(equations, which)
        least, most = self._room(objective, point)
        factor = careful.factor
        found = bounded_step(
            here,
            factor[:, None] * careful.of_theta,
            factor[:, None, None] * careful.of_start,
            least,
            most,
            _with_penalty(objective.penalty, point.theta),
        )
        promised = found.promised + objective.penalty(point.theta) - objective.penalty(point.theta + found.theta)
        # rounding must not take θ over a bound
        trial = self._within(objective, objective.retract(point, found.theta, found.start))
        new_cost = objective.cost(trial)
        with np.errstate(over="ignore"):
            gain = (cost - new_cost) / np.maximum(promised, np.finfo(float).tiny)
        taken = (new_cost < cost) & (gain > LEAST_GAIN) & np.isfinite(new_cost)

        # verdicts on the step; one that is small only because it is strongly damped says nothing
        size, telling = _relative_size(point, trial, found.start), factor <= 1.0
        small_gain = taken & (cost - new_cost <= self.cost_tolerance * cost) & (gain < 4.0)
        small_gain |= ~taken & (promised <= self.cost_tolerance * cost)
        verdict = np.where(telling & small_gain, Termination.SMALL_GAIN, Termination.RUNNING)
        verdict = np.where((verdict == 0) & telling & (size <= self.step_tolerance), Termination.SMALL_STEP, verdict)
        careful = _adapted(careful, gain, taken)
        verdict = np.where((verdict == 0) & (careful.factor > MOST_DAMPING), Termination.STUCK, verdict)

        # where the step was taken, look around again
        point, cost = _replaced(point, trial, taken), np.where(taken, new_cost, cost)
        if (on := np.flatnonzero(taken & (verdict == 0))).size:
            cost_on, fresh = objective.normal_equations(point.chosen(on))
            here = _put(here, on, fresh)
            of_theta, of_start = diagonals(fresh)
            careful.of_theta[on] = np.maximum(careful.of_theta[on], of_theta)
            careful.of_start[on] = np.maximum(careful.of_start[on], of_start)
            flat = self._is_flat(objective, point.chosen(on), cost_on, fresh)
            verdict[on] = np.where(flat, Termination.FLAT, verdict[on])
        steps = state.steps + 1
        verdicts = state.verdict.copy()
        verdicts[which] = verdict
        own = (_put(damping, which, careful), _put(equations, which, here))
        costs = state.cost.copy()
        costs[which] = cost
        points = Point(*(_written(old, which, new) for old, new in zip(state.point, point, strict=True)))
        return SolverState(points, costs, apply_step_limit(self.max_steps, steps, verdicts), steps, own)

    def resumed(self, objective: Objective, state: SolverState) -> SolverState:
        return state._replace(own=(Damping(*state.own), objective.normal_equations(state.point)[1]))

    def kept(self, state: SolverState) -> SolverState:
        # normal equations can be computed again, to the same bits
        return state._replace(own=state.own[0])

    def _within(self, objective: Objective, point: Point) -> Point:
        """The point with θ within its bounds, but for what is to be left as it is."""
        within = np.clip(point.theta, objective.layout.lower, objective.layout.upper)
        return point._replace(theta=np.where(self._is_held(objective), point.theta, within))

    def _is_held(self, objective: Objective) -> Bool[Array, " N"]:
        return objective.layout.is_common & self.hold_common

    def _room(self, objective: Objective, point: Point) -> tuple[Float[Array, "P N"], Float[Array, "P N"]]:
        """Least and largest step of θ."""
        layout, held = objective.layout, self._is_held(objective)
        least, most = layout.lower - point.theta, layout.upper - point.theta
        return np.where(held, 0.0, least), np.where(held, 0.0, most)

    def _is_flat(self, objective: Objective, point: Point, cost: Array, equations: NormalEquations) -> Array:
        """Is no column of the Jacobian along the residuals, but for those that bounds hold back?"""
        if objective.penalty.is_there:
            return np.zeros(len(cost), dtype=bool)  # slopes of residuals are balanced by the penalty's
        least, most = self._room(objective, point)
        size = np.sqrt(2.0 * np.maximum(cost, np.finfo(float).tiny))
        of_theta, of_start = diagonals(equations)
        blocked = ((least >= 0.0) & (equations.a > 0.0)) | ((most <= 0.0) & (equations.a < 0.0)) | (least >= most)
        tiny = np.finfo(float).tiny
        cosine = np.abs(np.where(blocked, 0.0, equations.a)) / (np.sqrt(of_theta + tiny) * size[:, None])
        start = np.abs(equations.d) / (np.sqrt(of_start + tiny) * size[:, None, None])
        worst = np.maximum(cosine.max(axis=1, initial=0.0), start.max(axis=(1, 2), initial=0.0))
        return np.asarray(worst <= self.gradient_tolerance)


def _with_penalty(penalty: Penalty, theta: Array) -> Callable:
    """What finds the smallest value of a quadratic function: with a penalty, if there is any."""
    return partial(penalised_minimum, theta=theta, penalty=penalty) if penalty.is_there else box_minimum


def _adapted(damping: Damping, gain: Array, taken: Array) -> Damping:
    """Less damping after a step that kept its promise, more after one that did not."""
    eased = damping.factor * np.maximum(1.0 / 3.0, 1.0 - (2.0 * np.clip(gain, 0.0, 1.0) - 1.0) ** 3)
    factor = np.where(taken, np.maximum(eased, LEAST_DAMPING), damping.factor * damping.growth)
    return damping._replace(factor=factor, growth=np.where(taken, 2.0, 2.0 * damping.growth))


def _relative_size(point: Point, trial: Point, start: Array) -> Array:
    """Largest change of an entry of θ, by its size or one, and of a start."""
    change = np.abs(trial.theta - point.theta) / np.maximum(np.abs(point.theta), 1.0)
    return np.maximum(change.max(axis=1, initial=0.0), np.abs(start).max(axis=(1, 2), initial=0.0))


def _chosen(group, which: Array):
    return type(group)(*(None if x is None else x[which] for x in group))


def _put(group, which: Array, new):
    pairs = zip(group, new, strict=True)
    return type(group)(*(None if old is None else _written(old, which, x) for old, x in pairs))


def _written(old: Array, which: Array, new: Array) -> Array:
    result = old.copy()
    result[which] = new
    return result


def _replaced(point: Point, trial: Point, taken: Array) -> Point:
    return Point(*(np.where(taken.reshape(-1, *(1,) * (x.ndim - 1)), y, x) for x, y in zip(point, trial, strict=True)))
