"""Predictions of further recordings by a fitted model, with scores and plots."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.data.recording import Recording
from hybridsim.identify.score import WindowScores, score_predictions, score_windows
from hybridsim.project.build.task import Task
from hybridsim.project.record.manifest import input_changes, manifest
from hybridsim.project.record.record import Record
from hybridsim.project.record.write import replace_nonfinite, write_file
from hybridsim.project.report.comparison import (
    EXPLAINED,
    NEW,
    PREDICTED,
    Comparison,
    comparison,
    initialization_time,
    scoring_window,
    theta_before,
)
from hybridsim.project.report.figures import fit_figures
from hybridsim.project.report.result import score_row

COLUMNS = ("run", "window", "time", "channel", "measured", "before", "after")


class Prediction(NamedTuple):
    """Predictions of recordings by a fitted model."""

    runs: tuple[Recording, ...]
    windows: WindowScores
    """Predictions before and after the fit."""
    comparisons: tuple[Comparison, ...]
    initialization_time: float
    """Length of the interval before each prediction from which its initial state is estimated [s]."""


def fitted_theta(task: Task, record: Record) -> np.ndarray:
    """Parameters θ of a completed fit.

    Raises:
        HybridsimError: there is no result, or the project or its files have changed since the fit.
    """
    result = record.result()
    if changes := input_changes(record.manifest(), manifest(task, ())):
        raise HybridsimError(
            f"the result in {record.folder} is out of date, because its inputs have changed since the fit: "
            f"{'; '.join(changes)}. Undo the changes, or fit again."
        )
    return np.array(result["theta"], dtype=float)


def predict(task: Task, theta: np.ndarray, runs: Sequence[Recording], horizon: float) -> Prediction:
    """Predict recordings.

    Args:
        task: the fit.
        theta: fitted parameters.
        runs: recordings.
        horizon: prediction horizon [s].
    """
    problem = task.problem
    thetas = np.stack([theta_before(problem), theta])
    history = initialization_time(problem, runs)
    windows = score_predictions(problem, thetas, runs, history=history, horizon=horizon)
    comparisons = (
        comparison(windows, NEW, PREDICTED, horizon),
        comparison(score_windows(problem, thetas, runs, scoring_window(task.stages[-1])), NEW, EXPLAINED),
    )
    return Prediction(tuple(runs), windows, comparisons, history)


def write_prediction(task: Task, prediction: Prediction, folder: Path) -> dict[str, Any]:
    """Write series, scores and plots into a folder; returns the scores."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot create the folder {folder}: {error.strerror}; choose another one with --out"
        raise HybridsimError(message) from None
    report = {
        "files": [{"file": file, "sha256": sha} for run in prediction.runs for file, sha in run.sources],
        "runs": [run.name for run in prediction.runs],
        "initialization_time": prediction.initialization_time,
        "scores": [score_row(comparison, task.problem.measurements.noise) for comparison in prediction.comparisons],
    }
    write_file(folder / "prediction.csv", series_as_csv(prediction))
    write_file(folder / "scores.json", json.dumps(replace_nonfinite(report), indent=2, ensure_ascii=False) + "\n")
    for name, content in fit_figures(prediction.windows, prediction.runs, "predicted", (), task.units).items():
        write_file(folder / name, content)
    return report


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
        run, start = prediction.runs[int(w.run[window])].name, float(w.start[window])
        for k in np.flatnonzero(w.weight[window] > 0.0):
            simulated = [float(scores.samples[j, window, k]) if scores.ok[j, window] else "" for j in range(2)]
            time = start + float(w.position[window, k]) * w.dt
            rows.writerow((run, start, time, names[int(w.channel[window, k])], float(w.value[window, k]), *simulated))
    return text.getvalue()
