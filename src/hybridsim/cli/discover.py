"""`hybridsim discover`: of all that networks might read, the few that explain the data."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from hybridsim.cli.output import print_json, print_problems, print_table, say, warnings_said
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import pluralize


def discover(
    project: Annotated[Path, tyro.conf.Positional],
    seeds: int = 5,
    resume: bool = False,
    fresh: bool = False,
    out: Path | None = None,
    quiet: bool = False,
    json: bool = False,
) -> int:
    """Find the smallest set of inputs of a project's networks that explains its recordings.

    The project's [[graft]] sections name all that may be missing, with generous inputs. Inputs that are not needed are
    dropped, and what is left is written as a blueprint, ready to use. Runs that are held out decide. Every seed is kept
    as soon as it is done.

    For example:
      hybridsim discover arm.toml
      hybridsim discover arm.toml --seeds 10 --resume

    Args:
        project: project file with candidates as [[graft]], and held-out runs.
        seeds: first weights, and runs to leave out, that are tried; how often an input is chosen tells how sure it is.
        resume: go on with a discovery that was stopped.
        fresh: begin again.
        out: folder for the results; runs/NAME-discovery beside the project by default.
        quiet: no progress.
        json: print the result as JSON for other programs.
    """
    from hybridsim.identify.discover import discover as discovered
    from hybridsim.networks.prune import columns_of
    from hybridsim.project.build.build import build
    from hybridsim.project.build.task import task_of
    from hybridsim.project.record.discovery import DiscoveryRecord
    from hybridsim.project.schema.load import load_project

    if seeds < 1:
        raise HybridsimError(f"--seeds must be at least 1, not {seeds}")
    if resume and fresh:
        raise HybridsimError("--resume goes on with a discovery and --fresh begins again; give one of them")
    loaded = load_project(project)
    with warnings_said():
        built = build(loaded)
    print_problems(built.doubts, stderr=True)
    task = task_of(built)
    problem = task.problem
    columns = columns_of(problem.setup.sim.bound_blueprint(), problem.space.labels)
    folder = out or loaded.out.with_name(f"{loaded.out.name}-discovery")
    record = DiscoveryRecord(folder, task, columns, ["hybridsim", *sys.argv[1:]])
    *warm_up, stage = task.stages
    found = discovered(
        problem,
        stage,
        seeds=range(seeds),
        warm_up=warm_up,
        known=record.begin(resume=resume, fresh=fresh),
        keep=record.keep,
        tell=(lambda words: None) if quiet or json else lambda words: say(words, style="dim", stderr=True),
    )
    facts = record.finish(found)
    if json:
        print_json(facts | {"out": str(folder)})
        return 0
    rows = [(name, f"{share:.0%}") for name, share in facts["inputs"].items() if share > 0.0]
    print_table(("input → output", "chosen"), rows or [("nothing", "–")], right=("chosen",))
    never = sum(share == 0.0 and not name.startswith("a constant") for name, share in facts["inputs"].items())
    say(f"{pluralize(never, 'other input')} never chosen, in {pluralize(len(facts['seeds']), 'seed')}")
    say(
        f"error on held-out runs, in standard deviations of the noise: {facts['error_without_networks']:.3g} without "
        f"networks, {facts['error_with_all_inputs']:.3g} with all inputs, {facts['error']:.3g} with what is left"
    )
    say(f"blueprint, wiring.svg and weights.svg: {folder}")
    return 0
