"""`hybridsim predict`: score a fitted model on new recordings."""

import math
from pathlib import Path
from typing import Annotated

import tyro

from hybridsim.cli.output import SIGMA, print_json, print_problems, print_table, print_warnings, say
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import pluralize


def predict(
    run: Annotated[Path, tyro.conf.Positional],
    data: tuple[Path, ...],
    horizon: float = 1.0,
    out: Path | None = None,
    project: Path | None = None,
    json: bool = False,
) -> int:
    """Score a fitted model on new recordings and write its predictions.

    Recordings are read as specified in the project. The initial state of each prediction is fitted to a short interval
    before it; only the samples after that interval are scored. In addition, windows as long as those of the last stage
    of the fit, or of 1 s if those are shorter than 0.25 s, are scored with initial states fitted to the whole window.

    For example:
      hybridsim predict runs/arm --data new_swing.csv
      hybridsim predict runs/arm --data new/*.csv --horizon 0.25 --out check

    Args:
        run: run folder written by `hybridsim fit`.
        data: recordings, one run each.
        horizon: prediction horizon [s].
        out: folder for prediction.csv, scores.json and plots; by default `predictions` in the run folder.
        project: project file, if it has moved since the fit.
        json: print the scores as JSON instead of text.
    """
    from hybridsim.project.build.build import build
    from hybridsim.project.build.data import recordings_of
    from hybridsim.project.build.task import task_of
    from hybridsim.project.report.prediction import fitted_theta, write_prediction
    from hybridsim.project.report.prediction import predict as predict_runs
    from hybridsim.project.report.result import score_label, unconverged_windows
    from hybridsim.project.run_folder.folder import RunFolder
    from hybridsim.project.schema.load import load_project

    if not (math.isfinite(horizon) and horizon > 0.0):
        raise HybridsimError(f"--horizon must be positive and finite, not {horizon:g} s")
    run_folder = RunFolder(run)
    run_folder.result()  # fail early if there is none
    with print_warnings():
        loaded = load_project(project or Path(run_folder.manifest()["project"]["file"]))
        task = task_of(build(loaded))
        theta = fitted_theta(task, run_folder)
        runs = recordings_of(loaded, [(path,) for path in data])
    print_problems([problem for recording in runs for problem in recording.problems], stderr=True)
    folder = out or run_folder.predictions
    scores = write_prediction(task, predict_runs(task, theta, runs, horizon), folder)
    if json:
        print_json(scores | {"out": str(folder)})
        return 0
    for row in scores["scores"]:
        say(f"{score_label(row)}, {pluralize(row['windows'], 'window')}:")
        cells = [
            (name, _cell(values["before"]), _cell(values["after"]), task.units.get(name, ""))
            for name, values in row["channels"].items()
        ]
        before, after = (_cell(row["normalized"][when]["rms"]) for when in ("before", "after"))
        cells.append(("residual of all channels", before, after, "σ"))
        print_table(("RMS error", "before the fit", "after", "unit"), cells, right=("before the fit", "after"))
    say(SIGMA)
    for remark in unconverged_windows(scores["scores"]):
        say(f"remark: {remark}", style="yellow")
    say(f"written to {folder}")
    return 0


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
