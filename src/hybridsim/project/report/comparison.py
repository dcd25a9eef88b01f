"""Scores of the model before and after a fit.

Both are simulated in parallel and scored as in `identify.score`: reconstructed windows, whose initial states are fitted
to the whole window, and predicted ones, whose initial states are fitted to the samples before the prediction.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import HybridsimError, ParameterError
from hybridsim.data.run import Run
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.score import Score, WindowScores, score_predictions
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import time_span

Array = np.ndarray
MIN_INITIALIZATION_TIME = 0.1
"""Minimum length of the interval before a prediction from which its initial state is estimated [s]."""
MIN_SAMPLES = 10
"""Minimum number of samples of every channel in that interval."""
HORIZONS = (0.25, 1.0)
"""Prediction horizons [s]."""
MIN_WINDOW, REPLACEMENT_WINDOW = 0.25, 1.0
"""Minimum window length for scoring [s], and the length that replaces shorter windows of a fit [s]."""
RECONSTRUCTED, PREDICTED = "reconstructed", "predicted"
TRAINING, HELD_OUT, NEW = "training", "held-out", "new"
"""Kinds of scores and of runs."""


class Comparison(NamedTuple):
    """Scores before and after a fit."""

    run_kind: str
    """`training`, `held-out` or `new`."""
    score_kind: str
    """`reconstructed` or `predicted`."""
    duration: float
    """Length of the windows, or prediction horizon [s]."""
    before: Score
    after: Score


def theta_before_fit(problem: FitProblem) -> Float[Array, " n"]:
    """θ of the model before the fit; the initial values if no θ represents that model."""
    try:
        return problem.space.theta_of(problem.setup)
    except ParameterError:
        return np.asarray(problem.space.initial)


def scoring_window(stage: Stage) -> float | None:
    """Window length for scoring a fit with a given last stage, without burn-in [s]; None for whole runs.

    With initial states fitted to them, very short windows are reproduced by any model.
    """
    if stage.window is None:
        return None
    window = stage.window - stage.burn_in
    return window if window >= MIN_WINDOW else REPLACEMENT_WINDOW


def comparison(scores: WindowScores, run_kind: str, score_kind: str, duration: float | None = None) -> Comparison:
    """Scores of windows before and after the fit; `duration` is the length of the windows by default."""
    w = scores.objective.windows
    before, after = scores.scores
    return Comparison(run_kind, score_kind, w.duration if duration is None else duration, before, after)


def prediction_comparisons(
    problem: FitProblem, thetas: Float[Array, "2 n"], runs: Sequence[Run], run_kind: str, burn_in: float
) -> list[Comparison]:
    """Scores of predictions of runs, for all horizons for which the runs are long enough."""
    time_before = initialization_time(problem, runs)
    longest = max(end - begin for begin, end in (time_span(run, problem.channel_roles) for run in runs))
    comparisons = []
    for horizon in HORIZONS:
        if burn_in + time_before + horizon > longest:
            continue
        try:
            scores = score_predictions(
                problem, thetas, runs, initialization_time=time_before, horizon=horizon, burn_in=burn_in
            )
        except HybridsimError:
            continue  # sensor delays may leave such a window without samples, which must not discard a finished fit
        comparisons.append(comparison(scores, run_kind, PREDICTED, horizon))
    return comparisons


def initialization_time(problem: FitProblem, runs: Sequence[Run]) -> float:
    """Length of the interval used to estimate the initial state of a prediction [s]; longer if sampling is slow."""
    slowest = max(run.series[name].median_sample_interval for run in runs for name in problem.channel_roles.noise)
    return max(MIN_INITIALIZATION_TIME, MIN_SAMPLES * slowest)


def normalized_rms(score: Score, noise: Mapping[str, float]) -> Float[Array, " W"]:
    """Root mean square residual of every window over its channels, in standard deviations of the noise."""
    square = np.square(score.rms / np.array([noise[name] for name in score.channels]))
    count = np.isfinite(square).sum(axis=1)
    return np.sqrt(np.nansum(square, axis=1)[count > 0] / count[count > 0])


def rms_by_channel(score: Score) -> dict[str, float | None]:
    """Root mean square error over all windows by channel, in the channel's unit; None for channels without samples."""
    errors: dict[str, float | None] = {}
    for name, column in zip(score.channels, score.rms.T, strict=True):
        finite = column[np.isfinite(column)]
        errors[name] = float(np.sqrt(np.mean(np.square(finite)))) if len(finite) else None
    return errors
