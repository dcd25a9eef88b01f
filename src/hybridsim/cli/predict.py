"""`hybridsim predict`: score a fitted model on new recordings."""

import math
from pathlib import Path
from typing import Annotated

import tyro

from hybridsim.cli.options import require_new_files
from hybridsim.cli.output import print_json, print_parts, print_problems, print_warnings, say
from hybridsim.core.errors import HybridsimError

DIVERGED = 3


def predict(
    run: Annotated[Path, tyro.conf.Positional],
    data: tuple[Path, ...],
    horizon: float = 1.0,
    out: Path | None = None,
    force: bool = False,
    project: Path | None = None,
    json: bool = False,
) -> int:
    """Score a fitted model on new recordings and write its predictions.

    Recordings are read as specified in the project. The initial state of each prediction is fitted to a short interval
    before it; only the samples after that interval are scored. In addition, windows as long as those of the last stage
    of the fit, or of 1 s if those are shorter than 0.25 s, are scored with initial states fitted to the whole window.
    The exit code is 3 if the simulation diverges in every window.

    For example:
      hybridsim predict runs/arm --data new_swing.csv
      hybridsim predict runs/arm --data new/*.csv --horizon 0.25 --out check

    Args:
        run: run folder written by `hybridsim fit`.
        data: recordings, one run each.
        horizon: prediction horizon [s].
        out: folder for prediction.csv, scores.json and plots; by default `predictions` in the run folder.
        force: overwrite predictions in the folder --out.
        project: project file, if it has moved since the fit.
        json: print the scores as JSON instead of text.
    """
    from hybridsim.project.build.build import build, project_runs
    from hybridsim.project.report.prediction import predict as predict_runs
    from hybridsim.project.report.prediction import write_prediction
    from hybridsim.project.report.result import has_diverged, unconverged_windows
    from hybridsim.project.run_folder.folder import RunFolder
    from hybridsim.project.schema.load import load_project

    if not (math.isfinite(horizon) and horizon > 0.0):
        raise HybridsimError(f"--horizon must be positive and finite, not {horizon:g} s")
    run_folder = RunFolder(run)
    run_folder.result()  # fail early if there is none
    with print_warnings():
        loaded = load_project(project or run_folder.origin())
        task = build(loaded).task
        run_folder.require_unchanged_inputs(task)
        runs = project_runs(loaded, task, data)
    print_problems([problem for recording in runs for problem in recording.problems], stderr=True)
    folder = out or run_folder.predictions
    if out is None:
        run_folder.require_no_links()
    else:
        require_new_files([folder / name for name in ("prediction.csv", "scores.json")], data, force=force)
    prediction = predict_runs(task, run_folder.theta(), runs, horizon)
    scores = write_prediction(task, prediction, folder)
    code = DIVERGED if has_diverged(scores["scores"]) else 0
    if json:
        print_json(scores | {"out": str(folder)})
        return code
    print_parts(prediction.text())
    for remark in unconverged_windows(scores["scores"]):
        say(f"remark: {remark}", style="yellow")
    say(f"written to {folder}")
    if code:
        say("the simulation diverges in every window", style="red", stderr=True)
    return code
