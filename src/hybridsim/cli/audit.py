"""`hybridsim audit`: energy that the networks of a fitted model inject and remove."""

from pathlib import Path
from typing import Annotated

import tyro

from hybridsim.cli.output import print_json, print_table, print_warnings, say
from hybridsim.core.messages import pluralize


def audit(
    run: Annotated[Path, tyro.conf.Positional],
    project: Path | None = None,
    json: bool = False,
) -> int:
    """Report the energy that each network of a fitted model injects and removes in simulations of the recorded runs.

    A network that models friction or drag should inject none; docs/projects.md lists the kinds that guarantee this.

    For example:
      hybridsim audit runs/arm

    Args:
        run: run folder written by `hybridsim fit`.
        project: project file, if it has moved since the fit.
        json: print JSON instead of text.
    """
    from hybridsim.project.build.build import build
    from hybridsim.project.build.task import task_of
    from hybridsim.project.record.record import Record
    from hybridsim.project.report.energy_audit import energy_audit
    from hybridsim.project.report.prediction import fitted_theta
    from hybridsim.project.schema.load import load_project

    record = Record(run)
    record.result()  # fail early if there is none
    with print_warnings():
        task = task_of(build(load_project(project or Path(record.manifest()["project"]["file"]))))
        report = energy_audit(task, fitted_theta(task, record))
    if json:
        print_json(report)
        return 0
    rows = [
        (
            graft["network"],
            ", ".join(graft["outputs"]),
            f"{graft['injected']:.4g} J",
            f"{graft['removed']:.4g} J",
            f"{graft['peak_power']:.3g} W",
        )
        for graft in report["grafts"]
    ]
    titles = ("network", "output", "injected", "removed", "peak power")
    print_table(titles, rows, right=titles[2:])
    excluded = f"; {pluralize(report['diverged'], 'window')} diverged and excluded" if report["diverged"] else ""
    say(f"over {report['seconds']:.4g} s of motion in {pluralize(report['windows'], 'window')}{excluded}")
    say(f"change of mechanical energy in these windows, all effects included: {report['energy_change']:.4g} J")
    return 0
