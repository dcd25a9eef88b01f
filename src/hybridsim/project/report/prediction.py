"""Predictions of further recordings by a fitted model: how good they are, and what they look like."""

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
from hybridsim.project.record.manifest import changed, manifest
from hybridsim.project.record.record import Record
from hybridsim.project.record.write import finite, write_file
from hybridsim.project.report.comparison import (
    EXPLAINED,
    PREDICTED,
    Comparison,
    comparison,
    judging_window,
    theta_before,
    time_before_prediction,
)
from hybridsim.project.report.figures import fit_pictures
from hybridsim.project.report.result import score_row

COLUMNS = ("run", "window", "time", "channel", "measured", "before", "after")


class Prediction(NamedTuple):
    """What a fitted model says about recordings."""

    runs: tuple[Recording, ...]
    windows: WindowScores
    """Predictions before and after the fit."""
    comparisons: tuple[Comparison, ...]
    lead: float
    """Time on which the starts of predictions are fitted [s]."""


def fitted_theta(task: Task, record: Record) -> np.ndarray:
    """What the fit found.

    Raises:
        HybridsimError: there is no result, or the project or its files are no longer those of the fit.
    """
    found = record.result()
    if different := changed(record.manifest(), manifest(task, ())):
        raise HybridsimError(
            f"the result in {record.folder} is of something else, because this has changed since the fit: "
            f"{'; '.join(different)}. Undo that, or fit again."
        )
    return np.array(found["theta"], dtype=float)


def predict(task: Task, theta: np.ndarray, runs: Sequence[Recording], horizon: float) -> Prediction:
    """Predict recordings.

    Args:
        task: the fit.
        theta: what it found.
        runs: recordings.
        horizon: how far predictions go [s].
    """
    problem = task.problem
    thetas = np.stack([theta_before(problem), theta])
    lead = time_before_prediction(problem, runs)
    windows = score_predictions(problem, thetas, runs, before=lead, after=horizon)
    comparisons = (
        comparison(windows, "these", PREDICTED, horizon),
        comparison(score_windows(problem, thetas, runs, judging_window(task.stages[-1])), "these", EXPLAINED),
    )
    return Prediction(tuple(runs), windows, comparisons, lead)


def write_prediction(task: Task, prediction: Prediction, folder: Path) -> dict[str, Any]:
    """Write series, scores and pictures into a folder; returns the scores."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HybridsimError(f"cannot make the folder {folder}: {error.strerror}; choose another with --out") from None
    facts = {
        "files": [{"file": file, "sha256": sha} for run in prediction.runs for file, sha in run.sources],
        "runs": [run.name for run in prediction.runs],
        "start_fitted_on": prediction.lead,
        "scores": [score_row(one, task.problem.measured.noise) for one in prediction.comparisons],
    }
    write_file(folder / "prediction.csv", series_as_csv(prediction))
    write_file(folder / "scores.json", json.dumps(finite(facts), indent=2, ensure_ascii=False) + "\n")
    for name, content in fit_pictures(prediction.windows, prediction.runs, "predicted", (), task.units).items():
        write_file(folder / name, content)
    return facts


def series_as_csv(prediction: Prediction) -> str:
    """Every predicted sample: its run, start of the window [s], time [s], channel, and values in the channel's unit.

    Simulated values are empty where the simulation diverged.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    shown = prediction.windows
    w, names = shown.objective.windows, shown.objective.simulated.setup.sensors.names
    for window in range(w.count):
        run, start = prediction.runs[int(w.run[window])].name, float(w.start[window])
        for k in np.flatnonzero(w.weight[window] > 0.0):
            simulated = [float(shown.samples[j, window, k]) if shown.ok[j, window] else "" for j in range(2)]
            time = start + float(w.position[window, k]) * w.dt
            rows.writerow((run, start, time, names[int(w.channel[window, k])], float(w.value[window, k]), *simulated))
    return text.getvalue()
