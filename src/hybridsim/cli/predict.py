"""`hybridsim predict`: try a fitted model on further recordings."""

import math
from pathlib import Path
from typing import Annotated

import tyro

from hybridsim.cli.output import print_json, print_problems, print_table, say, warnings_said
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
    """Score a fitted model on further recordings, and write down what it predicts.

    Recordings are read as the project says. The start of each prediction is fitted on the moment before it, and what
    comes next is compared; beside that, how well the model can explain windows as long as those of the fit.

    For example:
      hybridsim predict runs/arm --data new_swing.csv
      hybridsim predict runs/arm --data new/*.csv --horizon 0.25 --out check

    Args:
        run: folder of a run of `hybridsim fit`.
        data: recordings, one run each.
        horizon: how far predictions go [s].
        out: folder for prediction.csv, scores.json and pictures; predictions in the folder of the run by default.
        project: the project file, if it is no longer where it was.
        json: print the scores as JSON for other programs.
    """
    from hybridsim.project.build.build import build
    from hybridsim.project.build.data import recordings_of
    from hybridsim.project.build.task import task_of
    from hybridsim.project.record.record import Record
    from hybridsim.project.report.prediction import fitted_theta, write_prediction
    from hybridsim.project.report.prediction import predict as predicted
    from hybridsim.project.schema.load import load_project

    if not (math.isfinite(horizon) and horizon > 0.0):
        raise HybridsimError(f"--horizon must be positive and finite, not {horizon:g} s")
    record = Record(run)
    record.result()  # before anything that takes long
    with warnings_said():
        loaded = load_project(project or Path(record.manifest()["project"]["file"]))
        task = task_of(build(loaded))
        theta = fitted_theta(task, record)
        runs = recordings_of(loaded, [(path,) for path in data])
    print_problems([problem for one in runs for problem in one.problems], stderr=True)
    folder = out or record.predictions
    facts = write_prediction(task, predicted(task, theta, runs, horizon), folder)
    if json:
        print_json(facts | {"out": str(folder)})
        return 0
    for row in facts["scores"]:
        say(f"{row['kind']} over {row['seconds']:.3g} s, {pluralize(row['windows'], 'window')}:")
        cells = [
            (name, _shown(values["before"]), _shown(values["after"]), task.units.get(name, ""))
            for name, values in row["channels"].items()
        ]
        before, after = (_shown(row["in_noise"][when]["rms"]) for when in ("before", "after"))
        cells.append(("all, by the noise", before, after, ""))
        print_table(("error of", "before the fit", "after", "unit"), cells, right=("before the fit", "after"))
    say(f"written to {folder}")
    return 0


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
