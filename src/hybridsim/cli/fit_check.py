"""`hybridsim fit --check`: the fit problem and the identifiability of its parameters, without fitting."""

from dataclasses import replace
from typing import TYPE_CHECKING

from hybridsim.cli.output import print_json, say
from hybridsim.core.messages import name_list, pluralize
from hybridsim.networks.weight_name import is_graft_parameter

if TYPE_CHECKING:
    from hybridsim.identify.identifiability import Identifiability
    from hybridsim.identify.stage import Stage
    from hybridsim.identify.task import Task


def print_fit_check(task: "Task", json: bool) -> int:
    """Print the fit problem and its unidentifiable parameters; returns the exit code."""
    from hybridsim.identify.identifiability import identifiability

    problem = task.problem
    model_name = task.experiment.model.name if task.model_file is None else task.model_file.name
    objective, _ = problem.objective(task.stages[-1])
    result = _drop_networks(identifiability(objective, objective.point(problem.space.initial)))
    weights = sum(map(is_graft_parameter, problem.space.names))
    physical_names = [name for name in problem.space.names if not is_graft_parameter(name)]
    training, held_out = ([run.name for run in runs] for runs in (problem.train, problem.held_out))
    channels = list(problem.channel_roles.noise)
    # the condition number would include the singular values of weights
    condition = None if weights else result.condition_number
    if json:
        summary = {
            "name": task.name,
            "model": model_name,
            "training": training,
            "held_out": held_out,
            "channels": channels,
            "parameters": list(problem.space.names),
            "weights": weights,
            "stages": len(task.stages),
            "identifiable": result.is_identifiable,
            "rank": result.rank,
            "condition": condition,
            "remarks": result.messages(),
        }
        print_json(summary)
        return 0
    say(f"{task.name} can be fitted: {pluralize(problem.space.size, 'free parameter')} of {model_name}")
    say(f"  parameters  {_names(physical_names)}")
    if weights:
        say(f"  networks    {pluralize(weights, 'weight')}")
    say(f"  channels    {_names(channels)}")
    say(f"  training    {_names(training)}")
    say(f"  held out    {_names(held_out)}")
    for number, stage in enumerate(task.stages, 1):
        say(f"  stage {number}     {_stage(stage)}")
    for message in result.messages():
        say(message, style="yellow")
    if physical_names and result.is_identifiable:
        condition_text = (
            "" if condition is None else f" (condition number {condition:.2g}; above 1e4 some are poorly determined)"
        )
        subject = "All parameters are" if len(physical_names) > 1 else "The parameter is"
        say(f"{subject} identifiable from these recordings{condition_text}.")
    if weights:
        say("Identifiability of weights is not assessed: most weights of untrained networks are unidentifiable.")
    return 0


def _drop_networks(result: "Identifiability") -> "Identifiability":
    """Identifiability of physical parameters; most weights of an untrained network are unidentifiable or confounded."""
    return replace(
        result,
        names=_drop_weights(result.names),
        unidentifiable=_drop_weights(result.unidentifiable),
        confounded=tuple(parts for parts in result.confounded if not all(map(is_graft_parameter, parts))),
        weak=_drop_weights(result.weak),
        at_bounds=_drop_weights(result.at_bounds),
    )


def _drop_weights(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not is_graft_parameter(name))


def _names(names: list[str]) -> str:
    return f"{len(names)}: {name_list(names)}" if names else "none"


def _stage(stage: "Stage") -> str:
    from hybridsim.identify.solvers.registry import as_solver

    window = "whole runs" if stage.window is None else f"windows of {stage.window:g} s" if stage.window else "one step"
    solver = as_solver(stage.solver)
    search = f"solver {solver.name} with at most {solver.max_steps} steps"
    return f"{window}, initial states: {stage.initial_states}, {search}"
