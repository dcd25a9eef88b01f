"""`hybridsim audit`: how much energy the networks of a fitted model bring in and take out."""

from pathlib import Path
from typing import Annotated

import tyro

from hybridsim.cli.output import print_json, print_table, say, warnings_said
from hybridsim.core.messages import pluralize


def audit(
    run: Annotated[Path, tyro.conf.Positional],
    project: Path | None = None,
    json: bool = False,
) -> int:
    """Tell how much energy each network of a fitted model injects into the recorded motions, and removes.

    A network that stands for friction or drag should inject none. Kinds that keep that promise are in docs/projects.md.

    For example:
      hybridsim audit runs/arm

    Args:
        run: folder of a run of `hybridsim fit`.
        project: the project file, if it is no longer where it was.
        json: print JSON for other programs.
    """
    from hybridsim.project.build.build import build
    from hybridsim.project.build.task import task_of
    from hybridsim.project.record.record import Record
    from hybridsim.project.report.energy_audit import energy_audit
    from hybridsim.project.report.prediction import fitted_theta
    from hybridsim.project.schema.load import load_project

    record = Record(run)
    record.result()  # before anything that takes long
    with warnings_said():
        task = task_of(build(load_project(project or Path(record.manifest()["project"]["file"]))))
        found = energy_audit(task, fitted_theta(task, record))
    if json:
        print_json(found)
        return 0
    rows = [
        (
            one["network"],
            ", ".join(one["outputs"]),
            f"{one['injected']:.4g} J",
            f"{one['removed']:.4g} J",
            f"{one['most_power']:.3g} W",
        )
        for one in found["grafts"]
    ]
    titles = ("network", "on", "injected", "removed", "most power")
    print_table(titles, rows, right=titles[2:])
    left_out = f", {pluralize(found['diverged'], 'window')} that diverge left out" if found["diverged"] else ""
    say(f"over {found['seconds']:.4g} s of motion in {pluralize(found['windows'], 'window')}{left_out}")
    say(f"mechanical energy gained in these, by all that acts together: {found['gained']:.4g} J")
    return 0
