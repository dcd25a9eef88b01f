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
    from hybridsim.project.report.energy_audit import energy_audit
    from hybridsim.project.run_folder.folder import RunFolder
    from hybridsim.project.schema.load import load_project

    run_folder = RunFolder(run)
    run_folder.result()  # fail early if there is none
    with print_warnings():
        task = build(load_project(project or run_folder.origin())).task
        run_folder.require_unchanged_inputs(task)
        energies = energy_audit(task, run_folder.theta())
    if json:
        print_json(energies)
        return 0
    rows = [
        (
            graft["network"],
            ", ".join(graft["outputs"]),
            f"{graft['injected']:.4g} J",
            f"{graft['removed']:.4g} J",
            f"{graft['peak_power']:.3g} W",
        )
        for graft in energies["grafts"]
    ]
    titles = ("network", "output", "injected", "removed", "peak power")
    print_table(titles, rows, right=titles[2:])
    excluded = f"; {pluralize(energies['diverged'], 'window')} diverged and excluded" if energies["diverged"] else ""
    say(f"over {energies['duration']:.4g} s of motion in {pluralize(energies['windows'], 'window')}{excluded}")
    if energies["unconverged"]:
        windows = pluralize(energies["unconverged"], "window")
        say(f"remark: the fit of the initial states did not converge in {windows}", style="yellow")
    say(f"change of mechanical energy in these windows, all effects included: {energies['energy_change']:.4g} J")
    return 0
