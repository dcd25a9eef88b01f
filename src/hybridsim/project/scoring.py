"""Before and after: how far the model is from runs with the numbers that it had and with those that were found.

Both are simulated side by side, scored as in `identify.score`: what a model can explain, with the start of each window
fitted on the window itself, and what it predicts, with the start fitted on what came just before.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.core.errors import HybridsimError, ParameterError
from hybridsim.data.recording import Recording
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import Problem, Stage
from hybridsim.identify.score import Score, fitted_starts, score_at
from hybridsim.identify.windows import span

Array = np.ndarray
BEFORE_PREDICTION = 0.1
"""Time before a prediction on which its start is fitted [s], if that holds enough samples."""
LEAST_SAMPLES = 10
"""Samples of every channel that the start of a prediction is fitted on, at least."""
HORIZONS = (0.25, 1.0)
"""How far predictions go [s]."""
SHORTEST, USUAL = 0.25, 1.0
"""Windows of a fit that are shorter than this [s] are too short to judge it by; these are taken instead."""
ROUNDING = 1e-9
"""Share of the time before a prediction by which samples may come late and still belong to it."""
EXPLAINED, PREDICTED = "explained", "predicted"
TRAINING, HELD_OUT = "training", "held-out"
"""Words for kinds of scores and of runs."""


class Comparison(NamedTuple):
    """Scores before and after a fit."""

    runs: str
    """`training` or `held-out`, or whatever runs they are."""
    kind: str
    """`explained` or `predicted`."""
    seconds: float
    """Length of the windows, or how far the predictions go [s]."""
    before: Score
    after: Score


class Compared(NamedTuple):
    """Windows, simulated before and after a fit."""

    objective: Objective
    samples: Float[Array, "2 W M"]
    """Simulated readings at the times of the measurements."""
    ok: Bool[Array, "2 W"]
    """Which windows did not diverge."""
    scores: tuple[Score, Score]

    @property
    def errors(self) -> Float[Array, "2 W"]:
        """Root mean square residual of each window, in standard deviations of the noise; NaN where it diverged."""
        w = self.objective.windows
        counted = np.maximum((w.weight > 0.0).sum(axis=1), 1)
        total = np.square(w.weight * (self.samples - w.value)).sum(axis=2)
        return np.where(self.ok, np.sqrt(total / counted), np.nan)


def theta_before(problem: Problem) -> Float[Array, " n"]:
    """The numbers that the model has, as θ; where no θ gives them, those that the fit starts from."""
    try:
        return problem.space.theta_of(problem.setup)
    except ParameterError:
        return np.asarray(problem.space.start)


def judging_window(stage: Stage) -> float | None:
    """Length of the windows by which a fit is judged that ended with a stage [s]; whole runs if there is none.

    A start that is fitted on a few samples explains them whatever the model does.
    """
    return stage.window if stage.window is None or stage.window >= SHORTEST else USUAL


def compared(
    problem: Problem, thetas: Float[Array, "2 n"], runs: Sequence[Recording], window: float | None
) -> Compared:
    """Windows of runs, simulated for two θ, each with the start of a window fitted on it."""
    objective, _ = problem.objective(Stage(window=window), runs)
    point = fitted_starts(objective, objective.point(thetas))
    return _simulated(objective, point)


def foreseen(
    problem: Problem, thetas: Float[Array, "2 n"], runs: Sequence[Recording], *, before: float, after: float
) -> Compared | None:
    """Predictions of the time `after` [s] from starts fitted on the time `before` [s] it, for two θ.

    Returns:
        Windows in which only what was predicted counts; none if no window has samples before and after.
    """
    whole, _ = problem.objective(Stage(window=before + after), runs)
    late = whole.windows.position * whole.windows.dt > before * (1.0 + ROUNDING)
    used = whole.windows.weight > 0.0
    which = np.flatnonzero((late & used).any(axis=1) & (~late & used).any(axis=1))
    if not len(which):
        return None
    guess = (whole.guess[0][which], whole.guess[1][which])
    objective = Objective(whole.simulated, whole.windows.chosen(which), guess, whole.terms)
    late, weight = late[which], objective.windows.weight
    early = objective.reweighted(np.where(late, 0.0, weight))
    point = fitted_starts(early, early.point(thetas))
    return _simulated(objective.reweighted(np.where(late, weight, 0.0)), point)


def comparison(compared: Compared, runs: str, kind: str, seconds: float | None = None) -> Comparison:
    """Scores of windows, by default told with the length of the windows."""
    w = compared.objective.windows
    return Comparison(runs, kind, w.steps * w.dt if seconds is None else seconds, *compared.scores)


def predictions(
    problem: Problem, thetas: Float[Array, "2 n"], runs: Sequence[Recording], name: str
) -> list[Comparison]:
    """What the model predicts of runs, as far ahead as they are long enough for."""
    before = time_before_prediction(problem, runs)
    longest = max(end - begin for begin, end in (span(run, problem.measured) for run in runs))
    found = []
    for after in HORIZONS:
        if before + after > longest:
            continue
        try:
            windows = foreseen(problem, thetas, runs, before=before, after=after)
        except HybridsimError:
            continue  # sensors may be so late that such a window has no samples; a fit is not lost for that
        if windows is not None:
            found.append(comparison(windows, name, PREDICTED, after))
    return found


def time_before_prediction(problem: Problem, runs: Sequence[Recording]) -> float:
    """Time on which the start of a prediction is fitted [s]: a moment, or longer where samples are rare."""
    slowest = max(run.series[name].median_step for run in runs for name in problem.measured.noise)
    return max(BEFORE_PREDICTION, LEAST_SAMPLES * slowest)


def _simulated(objective: Objective, point: Point) -> Compared:
    samples, ok = objective.samples(point)
    before, after = (score_at(objective, point.chosen([k])) for k in range(2))
    return Compared(objective, samples, ok, (before, after))


def in_noise(score: Score, noise: Mapping[str, float]) -> Float[Array, " W"]:
    """Root mean square error of every window over its channels, in standard deviations of the noise."""
    square = np.square(score.rms / np.array([noise[name] for name in score.channels]))
    counted = np.isfinite(square).sum(axis=1)
    return np.sqrt(np.nansum(square, axis=1)[counted > 0] / counted[counted > 0])


def by_channel(score: Score) -> dict[str, float | None]:
    """Root mean square error over all windows, in the channels' units; None where no window has any samples."""
    found: dict[str, float | None] = {}
    for name, column in zip(score.channels, score.rms.T, strict=True):
        known = column[np.isfinite(column)]
        found[name] = float(np.sqrt(np.mean(np.square(known)))) if len(known) else None
    return found
