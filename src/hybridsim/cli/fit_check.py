"""`hybridsim fit --check`: the problem to be fitted and the identifiability of its parameters, without fitting."""

from dataclasses import replace
from typing import TYPE_CHECKING

from hybridsim.cli.output import print_json, say
from hybridsim.core.messages import name_list, pluralize
from hybridsim.networks.weight_name import is_network_weight

if TYPE_CHECKING:
    from hybridsim.identify.identifiability import Identifiability
    from hybridsim.identify.problem import Stage
    from hybridsim.project.build.task import Task


def print_fit_check(task: "Task", json: bool) -> int:
    """Print the problem to be fitted and its unidentifiable parameters; returns the exit code."""
    from hybridsim.identify.identifiability import identifiability

    problem = task.problem
    objective, _ = problem.objective(task.stages[-1])
    result = _without_networks(identifiability(objective, objective.point(problem.space.initial)))
    weights = sum(map(is_network_weight, problem.space.labels))
    physics = [label for label in problem.space.labels if not is_network_weight(label)]
    training, held_out = ([run.name for run in runs] for runs in (problem.train, problem.held_out))
    channels = list(problem.measurements.noise)
    if json:
        report = {
            "name": task.name,
            "model": task.model,
            "training": training,
            "held_out": held_out,
            "channels": channels,
            "parameters": list(problem.space.labels),
            "weights": weights,
            "stages": len(task.stages),
            "identifiable": result.is_identifiable,
            "rank": result.rank,
            "condition": result.condition,
            "remarks": result.messages(),
        }
        print_json(report)
        return 0
    say(f"{task.name} can be fitted: {pluralize(problem.space.size, 'free parameter')} of {task.model}")
    say(f"  parameters  {_names(physics)}")
    if weights:
        say(f"  networks    {pluralize(weights, 'weight')}")
    say(f"  channels    {_names(channels)}")
    say(f"  training    {_names(training)}")
    say(f"  held out    {_names(held_out)}")
    for number, stage in enumerate(task.stages, 1):
        say(f"  stage {number}     {_stage(stage)}")
    for message in result.messages():
        say(message, style="yellow")
    if physics and result.is_identifiable:
        # the condition number would include the singular values of weights
        condition = (
            "" if weights else f" (condition number {result.condition:.2g}; above 1e4 some are poorly determined)"
        )
        subject = "All parameters are" if len(physics) > 1 else "The parameter is"
        say(f"{subject} identifiable from these recordings{condition}.")
    if weights:
        say("Identifiability of weights is not assessed: most weights of untrained networks are unidentifiable.")
    return 0


def _without_networks(result: "Identifiability") -> "Identifiability":
    """Identifiability of physical parameters; most weights of an untrained network are unidentifiable or confounded."""
    return replace(
        result,
        names=_without_weights(result.names),
        unidentifiable=_without_weights(result.unidentifiable),
        confounded=tuple(parts for parts in result.confounded if not all(map(is_network_weight, parts))),
        weak=_without_weights(result.weak),
        at_bounds=_without_weights(result.at_bounds),
    )


def _without_weights(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not is_network_weight(name))


def _names(names: list[str]) -> str:
    return f"{len(names)}: {name_list(names)}" if names else "none"


def _stage(stage: "Stage") -> str:
    window = "whole runs" if stage.window is None else f"windows of {stage.window:g} s" if stage.window else "one step"
    solver = f"solver {stage.solver.name} with at most {stage.solver.max_steps} steps"
    return f"{window}, initial states {stage.initial_states}, {solver}"
