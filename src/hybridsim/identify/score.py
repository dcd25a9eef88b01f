"""How far a fitted simulation is from runs, in the units of the channels.

Scored both ways: with the start of each window fitted on the window itself, which is what a model can explain, and as a
prediction, with the start fitted on what came just before and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hybridsim.data.recording import Recording
from hybridsim.identify.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import Problem, Stage

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Score:
    """Errors of windows."""

    channels: tuple[str, ...]
    rms: Float[Array, "W m"]
    """Root mean square error of every window and channel, in the channel's unit; NaN for windows without samples."""
    diverged: int
    """Windows whose simulation broke down; they are not in the numbers."""

    @property
    def of_windows(self) -> Float[Array, " W"]:
        """Root mean square over the channels of each window; makes sense where all have one unit."""
        return np.sqrt(np.nanmean(np.square(self.rms), axis=1))

    @property
    def median(self) -> float:
        """Of the windows."""
        return float(np.median(self.of_windows))

    @property
    def mean(self) -> float:
        """Of the windows."""
        return float(np.mean(self.of_windows))

    @property
    def worst(self) -> float:
        """Of the windows."""
        return float(np.max(self.of_windows))

    @property
    def by_channel(self) -> dict[str, float]:
        """Root mean square over all windows."""
        return dict(zip(self.channels, np.sqrt(np.nanmean(np.square(self.rms), axis=0)).tolist(), strict=True))


def explained(problem: Problem, theta: Array, runs: Sequence[Recording], window: float | None) -> Score:
    """Errors with the start of each window fitted on the window itself, everything else as it is."""
    objective, _ = problem.objective(Stage(window=window), runs)
    return score_at(objective, fitted_starts(objective, objective.point(theta)))


def predicted(problem: Problem, theta: Array, runs: Sequence[Recording], *, before: float, after: float) -> Score:
    """Errors of the time `after` [s] a window's beginning, its start fitted on the time `before` [s] it."""
    whole, _ = problem.objective(Stage(window=before + after, stride=before + after), runs)
    late = whole.windows.position * whole.windows.dt > before * (1.0 + 1e-9)
    early_samples = ~late & (whole.windows.weight > 0.0)
    has_both = np.asarray(late.any(axis=1) & early_samples.any(axis=1))
    early = whole.reweighted(np.where(late, 0.0, whole.windows.weight))
    point = fitted_starts(early, early.point(theta))
    return score_at(whole.reweighted(np.where(late, whole.windows.weight, 0.0)), point, has_both)


def fitted_starts(objective: Objective, point: Point, most_steps: int = 30) -> Point:
    """A point whose starts fit their windows best, with θ as it is; windows that diverge stay as they are."""
    _, ok = objective.samples(point)
    which = np.flatnonzero(ok.all(axis=0))
    if not which.size:
        return point
    guess = (objective.guess[0][which], objective.guess[1][which])
    usable = Objective(objective.simulated, objective.windows.chosen(which), guess, objective.terms)
    solver = LevenbergMarquardt(hold_theta=True, most_steps=most_steps)
    state = solver.init(usable, Point(point.theta, point.q[:, which], point.qd[:, which]))
    while not solver.is_done(state):
        state = solver.step(usable, state)
    q, qd = point.q.copy(), point.qd.copy()
    q[:, which], qd[:, which] = state.point.q, state.point.qd
    return Point(point.theta, q, qd)


def score_at(objective: Objective, point: Point, which: Array | None = None) -> Score:
    """Errors of the samples that count, of the first problem."""
    samples, ok = objective.samples(point)
    w, names = objective.windows, objective.simulated.setup.sensors.names
    used = ok[0] if which is None else ok[0] & which
    off = np.square(samples[0] - w.value)
    rms = np.full((w.count, len(names)), np.nan)
    for channel in range(len(names)):
        own = (w.channel == channel) & (w.weight > 0.0)
        count = own.sum(axis=1)
        total = np.where(own, off, 0.0).sum(axis=1)
        rms[:, channel] = np.sqrt(np.where(count > 0, total / np.maximum(count, 1), np.nan))
    return Score(names, rms[used], int((~ok[0]).sum()))
