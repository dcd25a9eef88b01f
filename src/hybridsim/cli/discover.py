"""`hybridsim discover`: select the few network inputs that explain the recordings."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from hybridsim.cli.output import print_json, print_problems, print_table, print_warnings, say
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import SIGMA, pluralize


def discover(
    project: Annotated[Path, tyro.conf.Positional],
    seeds: int = 5,
    resume: bool = False,
    fresh: bool = False,
    out: Path | None = None,
    quiet: bool = False,
    json: bool = False,
) -> int:
    """Select the smallest set of network inputs that explains a project's recordings.

    The project's [[graft]] sections list all candidate outputs and inputs. Inputs that the held-out runs
    show to be unnecessary are removed, and the remaining networks are written as a blueprint. Results are saved after
    every seed.

    For example:
      hybridsim discover arm.toml
      hybridsim discover arm.toml --seeds 10 --resume

    Args:
        project: project file with candidates as [[graft]], and held-out runs.
        seeds: number of restarts, each with different initial weights and, given at least four training runs, a random
            three quarters of them; the fraction of seeds that select an input is a measure of confidence in it.
        resume: continue an interrupted discovery.
        fresh: discard an earlier discovery and start over.
        out: output folder; by default runs/NAME-discovery next to the project.
        quiet: print no progress.
        json: print the result as JSON instead of text.
    """
    from hybridsim.identify.discover import discover as search_inputs
    from hybridsim.networks.prune import pruning_units
    from hybridsim.project.build.build import build
    from hybridsim.project.run_folder.discovery import DiscoveryFolder
    from hybridsim.project.run_folder.lock import folder_lock
    from hybridsim.project.schema.load import load_project

    if seeds < 1:
        raise HybridsimError(f"--seeds must be at least 1, not {seeds}")
    if resume and fresh:
        raise HybridsimError("--resume continues a discovery and --fresh starts over; give only one of them")
    loaded = load_project(project)
    with print_warnings():
        built = build(loaded)
    print_problems(built.warnings, stderr=True)
    task = built.task
    problem = task.problem
    candidates = pruning_units(problem.setup.sim.bound_blueprint(), problem.space.names)
    folder = out or loaded.out.with_name(f"{loaded.out.name}-discovery")
    discovery_folder = DiscoveryFolder(folder, task, candidates, ["hybridsim", *sys.argv[1:]])
    *warm_up, stage = task.stages
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HybridsimError(f"cannot create the folder {folder}: {error.strerror}") from None
    with folder_lock(folder):
        discovery = search_inputs(
            problem,
            stage,
            seeds=range(seeds),
            warm_up=warm_up,
            completed=discovery_folder.begin(resume=resume, fresh=fresh),
            on_seed=discovery_folder.save_seed,
            log=(lambda text: None) if quiet or json else lambda text: say(text, style="dim", stderr=True),
        )
        summary = discovery_folder.finish(discovery)
    if json:
        print_json(summary | {"out": str(folder)})
        return 0
    rows = [(name, f"{share:.0%}") for name, share in summary["inputs"].items() if share > 0.0]
    print_table(("input → output", "selected"), rows or [("nothing", "–")], right=("selected",))
    never = sum(share == 0.0 and not name.startswith("a constant") for name, share in summary["inputs"].items())
    say(f"{pluralize(never, 'other input')} never selected in {pluralize(len(summary['seeds']), 'seed')}")
    say(
        f"RMS residual of held-out runs: {summary['rms_without_networks']:.3g} σ without networks, "
        f"{summary['rms_with_all_inputs']:.3g} σ with all inputs, {summary['rms']:.3g} σ with the selected inputs "
        f"({SIGMA})"
    )
    if not summary["converged"]:
        say(
            "remark: the fit of the selected inputs did not converge; their weights are the best iterate",
            style="yellow",
        )
    say(f"blueprint, wiring.svg and weights.svg: {folder}")
    return 0
