"""Errors of fitted models on recordings, in the units of the channels.

`score_windows` fits the initial state of each window to the window itself, which measures what a model can reconstruct.
`score_predictions` fits it to the preceding samples only. Per-run parameters are fitted to the scored run: to all of
it, or, for predictions, to its first part, which is then not scored.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.core.blas import limit_blas_to_one_thread
from hybridsim.core.errors import HybridsimError
from hybridsim.data.run import Run
from hybridsim.identify.initial_state_fit import (
    NEGLIGIBLE_COST,
    FittedPoint,
    fit_initial_states,
    growing_horizons,
)
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.solvers.levenberg_marquardt import CalibrationSolver
from hybridsim.identify.solvers.solver import Termination
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import time_span

Array = np.ndarray
CALIBRATION_FRACTION = 0.25
"""Fraction of a run on which per-run parameters are fitted before predictions are scored on the rest."""
ROUNDING = 1e-9
"""Relative tolerance of sample times at the beginning of a prediction."""


@dataclass(frozen=True, eq=False)
class Score:
    """Errors of windows."""

    channels: tuple[str, ...]
    rms: Float[Array, "W m"]
    """Root mean square error of every window and channel, in the channel's unit; NaN for windows without samples."""
    diverged_count: int
    """Number of windows whose simulation diverged; they have no rows in `rms`, and their errors count as infinite."""
    unconverged_count: int
    """Number of other windows whose initial state, or the per-run parameters of whose run, were not fitted to
    convergence; their errors may be larger than those of the best fit."""

    @property
    def window_rms(self) -> Float[Array, " W"]:
        """Root mean square over the channels of each window; meaningful if all have the same unit."""
        return np.sqrt(np.nanmean(np.square(self.rms), axis=1))

    @property
    def median(self) -> float:
        """Median over windows."""
        return float(np.median(self._errors))

    @property
    def mean(self) -> float:
        """Mean over windows."""
        return float(np.mean(self._errors))

    @property
    def worst(self) -> float:
        """Maximum over windows."""
        return float(np.max(self._errors))

    @property
    def _errors(self) -> Float[Array, " n"]:
        return np.concatenate([self.window_rms, np.full(self.diverged_count, np.inf)])

    @property
    def channel_rms(self) -> dict[str, float]:
        """Root mean square of each channel over all windows that did not diverge."""
        return dict(zip(self.channels, np.sqrt(np.nanmean(np.square(self.rms), axis=0)).tolist(), strict=True))


class WindowScores(NamedTuple):
    """Windows of runs, simulated with several θ."""

    objective: Objective
    """Objective with weights of the scored samples only."""
    point: Point
    sampled_readings: Float[Array, "P W M"]
    """Simulated readings at the times of the measurements."""
    ok: Bool[Array, "P W"]
    """Which windows did not diverge."""
    has_converged: Bool[Array, "P W"]
    """Which windows have initial states and per-run parameters that were fitted to convergence."""

    @property
    def scores(self) -> tuple[Score, ...]:
        """Score of each θ."""
        return tuple(_score(self, k) for k in range(len(self.sampled_readings)))

    @property
    def residual_rms(self) -> Float[Array, "P W"]:
        """Root mean square residual of each window, in standard deviations of the noise; NaN where it diverged."""
        w = self.objective.windows
        count = np.maximum((w.weight > 0.0).sum(axis=1), 1)
        total = np.square(w.weight * (self.sampled_readings - w.value)).sum(axis=2)
        return np.where(self.ok, np.sqrt(total / count), np.nan)


@limit_blas_to_one_thread()
def score_windows(
    problem: FitProblem,
    thetas: Float[Array, "*P n"],
    runs: Sequence[Run],
    window: float | None,
    *,
    burn_in: float = 0.0,
) -> WindowScores:
    """Score windows with initial states and per-run parameters fitted on the windows themselves.

    Args:
        problem: fitted problem.
        thetas: θ with the common parameters, of one fit or several.
        runs: runs to score.
        window: window length without burn-in [s]; None for whole runs.
        burn_in: see `Stage`.
    """
    objective = _complete_windows(problem, runs, window, burn_in)
    return _simulate(objective, calibrate(objective, objective.point(thetas)))


@limit_blas_to_one_thread()
def score_predictions(
    problem: FitProblem,
    thetas: Float[Array, "*P n"],
    runs: Sequence[Run],
    *,
    initialization_time: float,
    horizon: float,
    burn_in: float = 0.0,
) -> WindowScores:
    """Score predictions over `horizon`, with initial states fitted to the preceding `initialization_time`.

    Args:
        problem: fitted problem.
        thetas: θ with the common parameters, of one fit or several.
        runs: runs to predict.
        initialization_time: time before a prediction to which its initial state is fitted [s].
        horizon: length of a prediction [s].
        burn_in: see `Stage`; it precedes both.

    Raises:
        HybridsimError: no run is long enough.
    """
    whole = _complete_windows(problem, runs, initialization_time + horizon, burn_in)
    prediction_start = initialization_time + burn_in
    is_predicted = whole.windows.time_in_steps * whole.windows.dt > prediction_start * (1.0 + ROUNDING)
    used = whole.windows.weight > 0.0
    has_both = np.asarray((is_predicted & used).any(axis=1) & (~is_predicted & used).any(axis=1))
    is_calibration = np.zeros(len(has_both), dtype=bool)
    if whole.layout.has_per_run_parameters:
        is_calibration = _is_calibration_window(problem, whole, runs)
    index = np.flatnonzero(has_both & ~is_calibration)
    if not len(index):
        after = f" after a burn-in of {burn_in:g} s" if burn_in else ""
        per_run = whole.layout.has_per_run_parameters
        raise HybridsimError(
            f"no run is long enough to predict {horizon:g} s from the preceding {initialization_time:g} s{after}"
            + (", beyond its first quarter, to which the parameters of the run are fitted" if per_run else "")
        )
    theta = whole.layout.stack(np.atleast_2d(thetas))
    is_calibrated = np.ones((len(theta), 1), dtype=bool)
    if whole.layout.has_per_run_parameters:
        calibration = whole.select(np.flatnonzero(is_calibration))
        calibrated = calibrate(calibration, calibration.stacked_point(theta))
        theta, is_calibrated = calibrated.point.theta, calibrated.has_converged.all(axis=1, keepdims=True)
    objective, is_predicted = whole.select(index), is_predicted[index]
    weight = objective.windows.weight
    # numerically differentiated channels depend on later samples
    lookahead = np.array([max(run.series[name].lookahead for run in runs) for name in problem.channel_roles.noise])
    latest = objective.windows.time_in_steps * objective.windows.dt + lookahead[objective.windows.channel]
    depends_on_predicted = latest > prediction_start * (1 + ROUNDING)
    steps = math.ceil(prediction_start / objective.windows.dt - ROUNDING)
    early = objective.with_weight(np.where(depends_on_predicted, 0.0, weight)).truncate(steps)
    fitted = fit_initial_states(early, early.stacked_point(theta))
    fitted = fitted._replace(has_converged=fitted.has_converged & is_calibrated)
    return _simulate(objective.with_weight(np.where(is_predicted, weight, 0.0)), fitted)


def calibrate(objective: Objective, point: Point, *, max_steps: int = 30, growing: bool = True) -> FittedPoint:
    """Fit initial states and per-run parameters, with the common parameters fixed.

    Args:
        objective: objective with windows of the runs.
        point: initial values.
        max_steps: maximum number of solver steps per horizon.
        growing: fit truncated windows first, with growing horizons.
    """
    if not objective.layout.has_per_run_parameters:
        return fit_initial_states(objective, point, max_steps=max_steps, growing=growing)
    solver = CalibrationSolver(max_steps=max_steps)
    has_converged = np.ones(point.q.shape[:2], dtype=bool)
    # long trajectories are as sensitive to per-run parameters as to initial states
    for horizon in growing_horizons(objective) if growing else (objective,):
        point = fit_initial_states(horizon, point, max_steps=max_steps, growing=False).point
        state = solver.init(horizon, point)
        while not solver.is_done(state):
            state = solver.step(horizon, state)
        point = state.point
        converged = np.array([Termination(int(termination)).has_converged for termination in state.termination])
        has_converged = np.broadcast_to((converged | (state.cost <= NEGLIGIBLE_COST))[:, None], point.q.shape[:2])
    return FittedPoint(point, has_converged)


def _complete_windows(problem: FitProblem, runs: Sequence[Run], window: float | None, burn_in: float) -> Objective:
    """Complete windows of runs, without the remainders at their ends; all windows if none is complete."""
    length = None if window is None else window + burn_in
    objective, _ = problem.objective(Stage(window=length, burn_in=burn_in), runs)
    complete = np.flatnonzero(objective.windows.is_complete)
    return objective.select(complete) if window is not None and len(complete) else objective


def _is_calibration_window(problem: FitProblem, objective: Objective, runs: Sequence[Run]) -> Bool[Array, " W"]:
    """Which windows are used to fit per-run parameters."""
    ends = np.array([time_span(run, problem.channel_roles) for run in runs])
    limit = ends[:, 0] + CALIBRATION_FRACTION * (ends[:, 1] - ends[:, 0])
    w = objective.windows
    return (w.start < limit[w.recording]) | (w.start <= ends[w.recording, 0])


def _simulate(objective: Objective, fitted: FittedPoint) -> WindowScores:
    return WindowScores(objective, fitted.point, *objective.sampled_readings(fitted.point), fitted.has_converged)


def _score(scores: WindowScores, instance: int) -> Score:
    """Errors of the scored samples of one instance."""
    w, names = scores.objective.windows, scores.objective.simulator.setup.sensors.names
    ok = scores.ok[instance]
    squares = np.square(scores.sampled_readings[instance] - w.value)
    rms = np.full((w.count, len(names)), np.nan)
    for channel in range(len(names)):
        selected = (w.channel == channel) & (w.weight > 0.0)
        count = selected.sum(axis=1)
        total = np.where(selected, squares, 0.0).sum(axis=1)
        rms[:, channel] = np.sqrt(np.where(count > 0, total / np.maximum(count, 1), np.nan))
    return Score(names, rms[ok], int((~ok).sum()), int((ok & ~scores.has_converged[instance]).sum()))
