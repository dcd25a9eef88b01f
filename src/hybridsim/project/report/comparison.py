"""Before and after: how far the model is from runs with the numbers that it had and with those that were found.

Both are simulated side by side and scored as in `identify.score`: what a model can explain, and what it predicts.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import HybridsimError, ParameterError
from hybridsim.data.recording import Recording
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.score import Score, WindowScores, score_predictions
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


def theta_before(problem: FitProblem) -> Float[Array, " n"]:
    """The numbers that the model has, as θ; where no θ gives them, those that the fit starts from."""
    try:
        return problem.space.theta_of(problem.setup)
    except ParameterError:
        return np.asarray(problem.space.initial)


def judging_window(stage: Stage) -> float | None:
    """Length of the windows by which a fit is judged that ended with a stage [s]; whole runs if there is none.

    A start that is fitted on a few samples explains them whatever the model does.
    """
    return stage.window if stage.window is None or stage.window >= SHORTEST else USUAL


def comparison(judged: WindowScores, runs: str, kind: str, seconds: float | None = None) -> Comparison:
    """Scores of windows before and after, by default told with the length of the windows."""
    w = judged.objective.windows
    before, after = judged.scores
    return Comparison(runs, kind, w.duration if seconds is None else seconds, before, after)


def predictions(
    problem: FitProblem, thetas: Float[Array, "2 n"], runs: Sequence[Recording], name: str
) -> list[Comparison]:
    """What the model predicts of runs, as far ahead as they are long enough for."""
    before = time_before_prediction(problem, runs)
    longest = max(end - begin for begin, end in (span(run, problem.measured) for run in runs))
    found = []
    for after in HORIZONS:
        if before + after > longest:
            continue
        try:
            judged = score_predictions(problem, thetas, runs, before=before, after=after)
        except HybridsimError:
            continue  # sensors may be so late that such a window has no samples; a fit is not lost for that
        found.append(comparison(judged, name, PREDICTED, after))
    return found


def time_before_prediction(problem: FitProblem, runs: Sequence[Recording]) -> float:
    """Time on which the start of a prediction is fitted [s]: a moment, or longer where samples are rare."""
    slowest = max(run.series[name].median_step for run in runs for name in problem.measured.noise)
    return max(BEFORE_PREDICTION, LEAST_SAMPLES * slowest)


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
