"""`hybridsim fit --check`: what would be fitted, and what the data can tell about it, before anything is."""

from dataclasses import replace
from typing import TYPE_CHECKING

from hybridsim.cli.output import print_json, say
from hybridsim.core.messages import name_list, pluralize
from hybridsim.networks.weight_name import is_of_network

if TYPE_CHECKING:
    from hybridsim.identify.identifiability import Identifiability
    from hybridsim.identify.problem import Stage
    from hybridsim.project.build.task import Task


def checked(task: "Task", json: bool) -> int:
    """Say what would be fitted, and what the data cannot tell about it; returns the exit code."""
    from hybridsim.identify.identifiability import identifiability

    problem = task.problem
    objective, _ = problem.objective(task.stages[-1])
    found = _of_physics(identifiability(objective, objective.point(problem.space.initial)))
    weights = sum(map(is_of_network, problem.space.labels))
    physics = [label for label in problem.space.labels if not is_of_network(label)]
    training, held_out = ([run.name for run in runs] for runs in (problem.train, problem.held_out))
    channels = list(problem.measured.noise)
    if json:
        facts = {
            "name": task.name,
            "model": task.model,
            "training": training,
            "held_out": held_out,
            "channels": channels,
            "parameters": list(problem.space.labels),
            "weights": weights,
            "stages": len(task.stages),
            "identifiable": found.is_identifiable,
            "rank": found.rank,
            "condition": found.condition,
            "remarks": found.sentences(),
        }
        print_json(facts)
        return 0
    say(f"{task.name} can be fitted: {pluralize(problem.space.size, 'free number')} of {task.model}")
    say(f"  parameters  {_names(physics)}")
    if weights:
        say(f"  networks    {pluralize(weights, 'weight')}")
    say(f"  channels    {_names(channels)}")
    say(f"  training    {_names(training)}")
    say(f"  held out    {_names(held_out)}")
    for number, stage in enumerate(task.stages, 1):
        say(f"  stage {number}     {_stage(stage)}")
    for sentence in found.sentences():
        say(sentence, style="yellow")
    if physics and found.is_identifiable:
        # the singular values of weights are among those that a condition is made of
        grade = "" if weights else f" (condition number {found.condition:.2g}; above 1e4 some are told poorly)"
        say(f"These recordings can tell {'all parameters' if len(physics) > 1 else 'the parameter'}{grade}.")
    if weights:
        say("What they can tell about weights shows in the fit only: at first, networks add nothing.")
    return 0


def _of_physics(found: "Identifiability") -> "Identifiability":
    """What can be told of parameters: a fresh network hides most of its weights, and many stand for the same."""
    return replace(
        found,
        names=_without_weights(found.names),
        unseen=_without_weights(found.unseen),
        confounded=tuple(parts for parts in found.confounded if not all(map(is_of_network, parts))),
        weak=_without_weights(found.weak),
        at_bounds=_without_weights(found.at_bounds),
    )


def _without_weights(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not is_of_network(name))


def _names(names: list[str]) -> str:
    return f"{len(names)}: {name_list(names)}" if names else "none"


def _stage(stage: "Stage") -> str:
    window = "whole runs" if stage.window is None else f"windows of {stage.window:g} s" if stage.window else "one step"
    starts = {"free": "unknown", "near": "nearly known", "measured": "as measured"}[stage.starts]
    return f"{window}, starts {starts}, solver {stage.solver.name} with at most {stage.solver.max_steps} steps"
