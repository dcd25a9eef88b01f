"""How far fitted simulations are from runs, in the units of the channels.

Scored both ways: with the start of each window fitted on the window itself, which is what a model can explain, and as a
prediction, with the start fitted on what came just before and nothing else. Numbers that every run has its own of are
found on the run itself: on all of it, or for predictions on its first part, which is then not scored.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.core.blas import one_blas_thread
from hybridsim.core.errors import HybridsimError
from hybridsim.data.recording import Recording
from hybridsim.identify.initial_state_fit import fit_initial_states, growing_horizons
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.windows import span

Array = np.ndarray
CALIBRATION = 0.25
"""Part of a run on which its own numbers are found before the rest is predicted."""
ROUNDING = 1e-9
"""Share of the time before a prediction by which samples may come late and still belong to it."""


@dataclass(frozen=True, eq=False)
class Score:
    """Errors of windows."""

    channels: tuple[str, ...]
    rms: Float[Array, "W m"]
    """Root mean square error of every window and channel, in the channel's unit; NaN for windows without samples."""
    diverged: int
    """Windows whose simulation broke down; they have no rows, but count as infinitely far off."""

    @property
    def of_windows(self) -> Float[Array, " W"]:
        """Root mean square over the channels of each window; makes sense where all have one unit."""
        return np.sqrt(np.nanmean(np.square(self.rms), axis=1))

    @property
    def median(self) -> float:
        """Of the windows."""
        return float(np.median(self._all))

    @property
    def mean(self) -> float:
        """Of the windows."""
        return float(np.mean(self._all))

    @property
    def worst(self) -> float:
        """Of the windows."""
        return float(np.max(self._all))

    @property
    def _all(self) -> Float[Array, " n"]:
        return np.concatenate([self.of_windows, np.full(self.diverged, np.inf)])

    @property
    def by_channel(self) -> dict[str, float]:
        """Root mean square over all windows."""
        return dict(zip(self.channels, np.sqrt(np.nanmean(np.square(self.rms), axis=0)).tolist(), strict=True))


class WindowScores(NamedTuple):
    """Windows of runs, simulated with several θ side by side."""

    objective: Objective
    """Of the samples that count."""
    point: Point
    samples: Float[Array, "P W M"]
    """Simulated readings at the times of the measurements."""
    ok: Bool[Array, "P W"]
    """Which windows did not diverge."""

    @property
    def scores(self) -> tuple[Score, ...]:
        """One for each θ."""
        return tuple(_score(self, k) for k in range(len(self.samples)))

    @property
    def errors(self) -> Float[Array, "P W"]:
        """Root mean square residual of each window, in standard deviations of the noise; NaN where it diverged."""
        w = self.objective.windows
        counted = np.maximum((w.weight > 0.0).sum(axis=1), 1)
        total = np.square(w.weight * (self.samples - w.value)).sum(axis=2)
        return np.where(self.ok, np.sqrt(total / counted), np.nan)


@one_blas_thread()
def score_windows(
    problem: FitProblem,
    thetas: Float[Array, "*P n"],
    runs: Sequence[Recording],
    window: float | None,
    *,
    burn_in: float = 0.0,
) -> WindowScores:
    """Windows with starts, and numbers of runs, fitted on these windows themselves; all else as it is.

    Args:
        problem: what was fitted.
        thetas: numbers that are common to all runs, of one fit or several.
        runs: to be scored.
        window: length of the windows, beside what is run in [s]; whole runs if there is none.
        burn_in: see `Stage`.
    """
    objective = _whole_windows(problem, runs, window, burn_in)
    return _judged(objective, calibrate(objective, objective.point(thetas)))


@one_blas_thread()
def score_predictions(
    problem: FitProblem,
    thetas: Float[Array, "*P n"],
    runs: Sequence[Recording],
    *,
    before: float,
    after: float,
    burn_in: float = 0.0,
) -> WindowScores:
    """The time `after` [s] a window's beginning, its start fitted on the time `before` [s] it.

    Args:
        problem: what was fitted.
        thetas: numbers that are common to all runs, of one fit or several.
        runs: to be predicted.
        before: time on which starts are fitted.
        after: time that is predicted.
        burn_in: see `Stage`; it comes before both.

    Raises:
        HybridsimError: no run is long enough.
    """
    whole = _whole_windows(problem, runs, before + after, burn_in)
    before += burn_in
    late = whole.windows.position * whole.windows.dt > before * (1.0 + ROUNDING)
    used = whole.windows.weight > 0.0
    has_both = np.asarray((late & used).any(axis=1) & (~late & used).any(axis=1))
    first = _is_first_part(problem, whole, runs) if whole.layout.has_own else np.zeros(len(has_both), dtype=bool)
    which = np.flatnonzero(has_both & ~first)
    if not len(which):
        raise HybridsimError(f"no run is long enough to predict {after:g} s of it from {before:g} s before")
    theta = whole.layout.lengthened(np.atleast_2d(thetas))
    if whole.layout.has_own:
        known = whole.chosen(np.flatnonzero(first))
        theta = calibrate(known, known.point_of_runs(theta)).theta
    objective, late = whole.chosen(which), late[which]
    weight = objective.windows.weight
    # estimates of velocities know of samples to come
    reach = np.array([max(run.series[name].lookahead for run in runs) for name in problem.measured.noise])
    told = objective.windows.position * objective.windows.dt + reach[objective.windows.channel] > before * (
        1 + ROUNDING
    )
    early = objective.reweighted(np.where(told, 0.0, weight)).until(math.ceil(before / objective.windows.dt - ROUNDING))
    point = fit_initial_states(early, early.point_of_runs(theta))
    return _judged(objective.reweighted(np.where(late, weight, 0.0)), point)


def calibrate(objective: Objective, point: Point, *, max_steps: int = 30, growing: bool = True) -> Point:
    """The point with starts, and numbers of runs, that fit best; what is common to all runs stays as it is.

    Args:
        objective: of windows of these runs.
        point: to begin with.
        max_steps: of the solvers.
        growing: fit the beginnings of the windows first?
    """
    if not objective.layout.has_own:
        return fit_initial_states(objective, point, max_steps=max_steps, growing=growing)
    solver = LevenbergMarquardt(hold_common=True, max_steps=max_steps)
    # over a long window, numbers of a run that are a little off lead as far astray as starts do
    for part in growing_horizons(objective) if growing else (objective,):
        point = fit_initial_states(part, point, max_steps=max_steps, growing=False)
        state = solver.init(part, point)
        while not solver.is_done(state):
            state = solver.step(part, state)
        point = state.point
    return point


def _whole_windows(problem: FitProblem, runs: Sequence[Recording], window: float | None, burn_in: float) -> Objective:
    """Windows of runs, without what is left over at their ends; all of them if runs are shorter than a window."""
    length = None if window is None else window + burn_in
    objective, _ = problem.objective(Stage(window=length, burn_in=burn_in), runs)
    whole = np.flatnonzero(objective.windows.is_whole)
    return objective.chosen(whole) if window is not None and len(whole) else objective


def _is_first_part(problem: FitProblem, objective: Objective, runs: Sequence[Recording]) -> Bool[Array, " W"]:
    """Which windows tell about the numbers of their run."""
    ends = np.array([span(run, problem.measured) for run in runs])
    limit = ends[:, 0] + CALIBRATION * (ends[:, 1] - ends[:, 0])
    w = objective.windows
    return (w.start < limit[w.run]) | (w.start <= ends[w.run, 0])


def _judged(objective: Objective, point: Point) -> WindowScores:
    return WindowScores(objective, point, *objective.samples(point))


def _score(judged: WindowScores, problem: int) -> Score:
    """Errors of the samples that count."""
    w, names = judged.objective.windows, judged.objective.simulated.setup.sensors.names
    used = judged.ok[problem]
    off = np.square(judged.samples[problem] - w.value)
    rms = np.full((w.count, len(names)), np.nan)
    for channel in range(len(names)):
        own = (w.channel == channel) & (w.weight > 0.0)
        count = own.sum(axis=1)
        total = np.where(own, off, 0.0).sum(axis=1)
        rms[:, channel] = np.sqrt(np.where(count > 0, total / np.maximum(count, 1), np.nan))
    return Score(names, rms[used], int((~used).sum()))
