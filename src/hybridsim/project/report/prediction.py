"""Predictions of new recordings by a fitted model, with scores and plots."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from hybridsim.core.console import as_text, text_table
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import SIGMA, pluralize
from hybridsim.data.run import Run
from hybridsim.identify.score import WindowScores, score_predictions, score_windows
from hybridsim.identify.task import Task
from hybridsim.project.report.comparison import (
    NEW,
    PREDICTED,
    RECONSTRUCTED,
    Comparison,
    comparison,
    initialization_time,
    scoring_window,
    theta_before_fit,
)
from hybridsim.project.report.figures import figure_makers
from hybridsim.project.report.result import score_label, score_row
from hybridsim.project.run_folder.write import replace_nonfinite, write_file
from hybridsim.viz.fit_plots import as_png

COLUMNS = ("run", "window", "time", "channel", "measured", "before", "after")


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """Predictions of recordings by a fitted model. `print` shows their errors."""

    runs: tuple[Run, ...]
    windows: WindowScores
    """Predictions before and after the fit."""
    comparisons: tuple[Comparison, ...]
    initialization_time: float
    """Length of the interval before each prediction from which its initial state is estimated [s]."""
    units: Mapping[str, str]
    """Units of the channels by name."""
    noise: Mapping[str, float]
    """Standard deviation of the noise by channel."""

    def __str__(self) -> str:
        return as_text(self.text())

    def text(self) -> Iterator[RenderableType]:
        """Tables of the errors."""
        for row in map(self._score_row, self.comparisons):
            yield Text(f"{score_label(row)}, {pluralize(row['windows'], 'window')}:")
            cells = [
                (name, _cell(values["before"]), _cell(values["after"]), self.units.get(name, ""))
                for name, values in row["channels"].items()
            ]
            before, after = (_cell(row["normalized"][when]["rms"]) for when in ("before", "after"))
            cells.append(("residual of all channels", before, after, "σ"))
            yield text_table(("RMS error", "before the fit", "after", "unit"), cells, right=("before the fit", "after"))
        yield Text(SIGMA)

    @property
    def errors(self) -> dict[str, dict[str, float]]:
        """RMS errors of the predictions `before` and `after` the fit by channel, in its unit."""
        return self._score_row(self.comparisons[0])["channels"]

    @property
    def scores(self) -> list[dict[str, Any]]:
        """Errors and residuals as data."""
        return [self._score_row(comparison) for comparison in self.comparisons]

    def _score_row(self, comparison: Comparison) -> dict[str, Any]:
        return score_row(comparison, self.noise)


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def predict(task: Task, theta: np.ndarray, runs: Sequence[Run], horizon: float) -> Prediction:
    """Predict recordings.

    Args:
        task: fit problem, stages and their origin.
        theta: fitted parameters.
        runs: recordings.
        horizon: prediction horizon [s].
    """
    if not (np.isfinite(horizon) and horizon > 0.0):
        raise HybridsimError(f"the prediction horizon must be positive and finite, not {horizon:g} s")
    if not runs:
        raise HybridsimError("there is no recording to predict")
    problem, burn_in = task.problem, task.stages[-1].burn_in
    thetas = np.stack([theta_before_fit(problem), theta])
    time_before = initialization_time(problem, runs)
    windows = score_predictions(
        problem, thetas, runs, initialization_time=time_before, horizon=horizon, burn_in=burn_in
    )
    reconstructed = score_windows(problem, thetas, runs, scoring_window(task.stages[-1]), burn_in=burn_in)
    comparisons = (comparison(windows, NEW, PREDICTED, horizon), comparison(reconstructed, NEW, RECONSTRUCTED))
    return Prediction(tuple(runs), windows, comparisons, time_before, task.units, problem.channel_roles.noise)


def write_prediction(task: Task, prediction: Prediction, folder: Path) -> dict[str, Any]:
    """Write series, scores and plots into a folder; returns the scores."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot create the folder {folder}: {error.strerror}; choose another one with --out"
        raise HybridsimError(message) from None
    scores = {
        "files": [{"file": file, "sha256": sha} for run in prediction.runs for file, sha in run.sources],
        "runs": [run.name for run in prediction.runs],
        "initialization_time": prediction.initialization_time,
        "scores": prediction.scores,
    }
    write_file(folder / "prediction.csv", series_as_csv(prediction))
    write_file(folder / "scores.json", json.dumps(replace_nonfinite(scores), indent=2, ensure_ascii=False) + "\n")
    for name, make in figure_makers(prediction.windows, prediction.runs, "predicted", (), task.units).items():
        write_file(folder / name, as_png(make()))
    return scores


def series_as_csv(prediction: Prediction) -> str:
    """Predicted samples as CSV: run, beginning of the window [s], time [s], channel, and values in the channel's unit.

    Simulated values are empty where the simulation diverged.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    scores = prediction.windows
    w, names = scores.objective.windows, scores.objective.simulator.setup.sensors.names
    for window in range(w.count):
        run, start = prediction.runs[int(w.recording[window])].name, float(w.start[window])
        for k in np.flatnonzero(w.weight[window] > 0.0):
            simulated = [float(scores.sampled_readings[j, window, k]) if scores.ok[j, window] else "" for j in range(2)]
            time = start + float(w.time_in_steps[window, k]) * w.dt
            rows.writerow((run, start, time, names[int(w.channel[window, k])], float(w.value[window, k]), *simulated))
    return text.getvalue()
