"""Predictions of new recordings by a fitted model, with scores and plots."""

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
from hybridsim.project.report.figures import fit_figures
from hybridsim.project.report.result import score_row
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.manifest import input_changes, manifest
from hybridsim.project.run_folder.write import replace_nonfinite, write_file

COLUMNS = ("run", "window", "time", "channel", "measured", "before", "after")


class Prediction(NamedTuple):
    """Predictions of recordings by a fitted model."""

    runs: tuple[Recording, ...]
    windows: WindowScores
    """Predictions before and after the fit."""
    comparisons: tuple[Comparison, ...]
    initialization_time: float
    """Length of the interval before each prediction from which its initial state is estimated [s]."""


def fitted_theta(task: Task, run_folder: RunFolder) -> np.ndarray:
    """Parameters θ of a completed fit.

    Raises:
        HybridsimError: there is no result, or the project or its files have changed since the fit.
    """
    result = run_folder.result()
    if changes := input_changes(run_folder.manifest(), manifest(task, ())):
        raise HybridsimError(
            f"the result in {run_folder.path} is out of date, because its inputs have changed since the fit: "
            f"{'; '.join(changes)}. Undo the changes, or fit again."
        )
    return np.array(result["theta"], dtype=float)


def predict(task: Task, theta: np.ndarray, runs: Sequence[Recording], horizon: float) -> Prediction:
    """Predict recordings.

    Args:
        task: fit problem, stages and their origin.
        theta: fitted parameters.
        runs: recordings.
        horizon: prediction horizon [s].
    """
    problem = task.problem
    thetas = np.stack([theta_before_fit(problem), theta])
    time_before = initialization_time(problem, runs)
    windows = score_predictions(problem, thetas, runs, initialization_time=time_before, horizon=horizon)
    comparisons = (
        comparison(windows, NEW, PREDICTED, horizon),
        comparison(score_windows(problem, thetas, runs, scoring_window(task.stages[-1])), NEW, RECONSTRUCTED),
    )
    return Prediction(tuple(runs), windows, comparisons, time_before)


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
        "scores": [score_row(comparison, task.problem.channel_roles.noise) for comparison in prediction.comparisons],
    }
    write_file(folder / "prediction.csv", series_as_csv(prediction))
    write_file(folder / "scores.json", json.dumps(replace_nonfinite(scores), indent=2, ensure_ascii=False) + "\n")
    for name, content in fit_figures(prediction.windows, prediction.runs, "predicted", (), task.units).items():
        write_file(folder / name, content)
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
