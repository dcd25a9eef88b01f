"""Actuators of recorded commands: those of the model, or torque actuators that are added to its joints."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybridsim.core.advice import Advice, Setting
from hybridsim.core.errors import Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.channel import Command
from hybridsim.model.model import Actuators, Model


def with_actuators(model: Model, commands: Sequence[Command], problems: list[Problem]) -> tuple[Model, dict[str, str]]:
    """Add the actuators that commands need to a model.

    Args:
        model: the mechanism.
        commands: recorded commands.
        problems: list to which errors are appended.

    Returns:
        The model, and the actuator of every command by the name of its series.
    """
    actuators: dict[str, str] = {}
    for index, command in enumerate(commands):
        names = model.actuator.names
        if command.actuator and command.actuator not in names:
            message = f"no actuator is named {command.actuator!r}"
            fix = name_hint(command.actuator, names) if names else "the model has none; name the joint instead"
            problems.append(_problem((index, "actuator"), message, fix))
        elif command.actuator:
            actuators[command.series_name] = command.actuator
        elif command.joint:
            extended = _with_torque_actuator(model, command.joint)
            if isinstance(extended, Problem):
                problems.append(_problem((index, "joint"), extended.message, extended.fix))
            else:
                model, actuators[command.series_name] = extended
    seen: set[str] = set()
    for index, command in enumerate(commands):
        actuator = actuators.get(command.series_name)
        if actuator in seen:
            message = f"{actuator!r} is already driven by another command"
            problems.append(_problem((index,), message, "remove one of them", "project.conflict"))
        seen |= {actuator} if actuator else set()
    return model, actuators


def is_torque_actuator(actuators: Actuators, index: int) -> bool:
    """Whether the command of an actuator is the torque on its joint."""
    law = (actuators.gear[index], actuators.gain[index], *actuators.bias[index])
    return law == (1.0, 1.0, 0.0, 0.0, 0.0)


def _problem(path: tuple[str | int, ...], message: str, fix: str, code: str = "project.command") -> Problem:
    return Problem(message, fix, code=code, path=("command", *path))


def _with_torque_actuator(model: Model, joint: str) -> tuple[Model, str] | Problem:
    """Model with a torque actuator on a joint, and the actuator's name; or the reason why that is impossible."""
    topology, actuators = model.topology, model.actuator
    candidates = [
        name
        for name, kind, master in zip(topology.joint_names, topology.joint_types, topology.masters, strict=True)
        if kind.joint.is_single_axis and master < 0
    ]
    if joint not in candidates:
        return Problem(f"no joint that can be actuated is named {joint!r}", name_hint(joint, candidates))
    index = topology.joint_names.index(joint)
    existing = [k for k, driven_joint in enumerate(actuators.joints) if driven_joint == index]
    for k in existing:
        if is_torque_actuator(actuators, k):
            return model, actuators.names[k]
    if existing:
        name = actuators.names[existing[0]]
        message = f"joint {joint!r} has an actuator {name!r}, whose command is not the torque on the joint"
        fix = "write {} if the column is its command, or remove the actuator from the model"
        return Problem(message, Advice(fix, Setting("actuator", name)))
    name = joint if joint not in actuators.names else f"{joint}_torque"

    def append(values, value) -> np.ndarray:
        return np.concatenate([np.asarray(values), np.asarray([value], dtype=float)])

    extended = replace(
        actuators,
        names=(*actuators.names, name),
        joints=(*actuators.joints, index),
        gear=append(actuators.gear, 1.0),
        gain=append(actuators.gain, 1.0),
        bias=append(actuators.bias, np.zeros(3)),
        command_lower=append(actuators.command_lower, -np.inf),
        command_upper=append(actuators.command_upper, np.inf),
        force_lower=append(actuators.force_lower, -np.inf),
        force_upper=append(actuators.force_upper, np.inf),
    )
    return replace(model, actuator=extended), name
