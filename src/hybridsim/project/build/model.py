"""From the section `[model]` to a mechanism that can be simulated."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from hybridsim.core.errors import ModelError, ModelWarning, Problem, Severity
from hybridsim.core.messages import name_hint
from hybridsim.io.hulls import with_hulls
from hybridsim.io.load import inspect_model
from hybridsim.model.floor import with_floor
from hybridsim.model.joints import JointType
from hybridsim.model.model import Actuators, Model
from hybridsim.project.schema.load import Project
from hybridsim.project.schema.toml_lines import Way
from hybridsim.robots import BUILT_IN
from hybridsim.sim.simulator import CONTACTS, Simulator
from hybridsim.taps.blueprint import Blueprint

OF_PROJECT = {"file.missing": "file", "file.directory": "file", "file.unreadable": "file"}
"""Problems of a model file that the project is to blame for, and the key."""


def mechanism(project: Project, found: list[Problem]) -> Model | None:
    """The model as the project asks for it, or None; whatever is wrong or doubtful is added to `found`."""
    section, place = project.content.model, project.place
    if section.built_in:
        if section.built_in not in BUILT_IN:
            message = f"there is no built-in mechanism {section.built_in!r}"
            way = ("model", "built_in")
            found.append(place.problem(way, message, name_hint(section.built_in, BUILT_IN), "project.model"))
            return None
        model = BUILT_IN[section.built_in]()
    else:
        assert project.model_file is not None
        model, problems = inspect_model(project.model_file, **project.reading)
        found += [_blamed(problem, project) for problem in problems if problem.severity is not Severity.NOTE]
        if model is None:
            return None
    if section.contact.kind == "none":
        return model
    try:
        model = with_hulls(model)
        return model if section.contact.floor is None else with_floor(model, section.contact.floor)
    except ModelError as error:
        found += error.problems
    except ValueError as error:
        found.append(place.problem(("model", "contact", "floor"), str(error), "leave it out", "project.model"))
    return None


def simulator(project: Project, model: Model, blueprint: Blueprint, found: list[Problem]) -> Simulator | None:
    """The simulator as the project asks for it, or None; whatever is wrong or doubtful is added to `found`."""
    section, place = project.content.model, project.place
    contact = section.contact
    try:
        with _doubts_told(project, found):
            touching = CONTACTS[contact.kind](**contact.settings)
            return Simulator(
                model,
                blueprint=blueprint,
                contact=touching,
                dt=section.dt,
                integrator=section.integrator,
                backend=section.backend,
            )
    except (ValueError, TypeError) as error:
        key = [key for key in contact.settings if key in str(error)][:1]
        fix = "see docs/contact.md for what contact takes"
        found.append(place.problem(("model", "contact", *key), f"[model.contact]: {error}", fix, "project.model"))
        return None


def driven(project: Project, model: Model, found: list[Problem]) -> tuple[Model, dict[str, str]]:
    """The model with an actuator for everything that is commanded.

    Returns:
        The model, and by the name of each command the actuator that it goes to.
    """
    place, actuators = project.place, {}
    for number, entry in enumerate(project.content.command):
        way: Way = ("command", number)
        names = model.actuator.names
        if entry.actuator and entry.actuator not in names:
            message = f"{place.section(way)}: no actuator is named {entry.actuator!r}"
            fix = (
                name_hint(entry.actuator, names) if names else "the model has none; write joint = instead of actuator ="
            )
            found.append(place.problem((*way, "actuator"), message, fix, "project.command"))
        elif entry.actuator:
            actuators[entry.called] = entry.actuator
        elif entry.joint:
            reached = _with_torque(model, entry.joint)
            if isinstance(reached, tuple):
                model, actuators[entry.called] = reached
            else:
                message = f"{place.section(way)}: {reached.message}"
                found.append(place.problem((*way, "joint"), message, reached.fix, "project.command"))
    twice = [name for name in actuators if list(actuators.values()).count(actuators[name]) > 1]
    for number, entry in enumerate(project.content.command):
        if entry.called in twice[1:]:
            message = f"{place.section(('command', number))} drives {actuators[entry.called]!r}, as another one does"
            found.append(place.problem(("command", number), message, "leave one of them out", "project.conflict"))
    return model, actuators


def is_direct(actuators: Actuators, number: int) -> bool:
    """Is the command of an actuator the torque on its joint?"""
    law = (actuators.gear[number], actuators.gain[number], *actuators.bias[number])
    return law == (1.0, 1.0, 0.0, 0.0, 0.0)


def _with_torque(model: Model, joint: str) -> tuple[Model, str] | Problem:
    """The model with a direct actuator on a joint, and its name; or why there cannot be one."""
    topology, actuators = model.topology, model.actuator
    drivable = [
        name
        for name, kind, master in zip(topology.joint_names, topology.joint_types, topology.mimics, strict=True)
        if kind in (JointType.REVOLUTE, JointType.PRISMATIC) and master < 0
    ]
    if joint not in drivable:
        return Problem(f"no joint that can be driven is named {joint!r}", name_hint(joint, drivable))
    index = topology.joint_names.index(joint)
    own = [number for number, driven in enumerate(actuators.joints) if driven == index]
    for number in own:
        if is_direct(actuators, number):
            return model, actuators.names[number]
    if own:
        name = actuators.names[own[0]]
        message = f"joint {joint!r} has an actuator {name!r}, whose command is not the torque on the joint"
        return Problem(message, f"write actuator = {name!r} if the column is its command; or take it out of the model")
    name = joint if joint not in actuators.names else f"{joint}_torque"

    def added(values, value) -> np.ndarray:
        return np.concatenate([np.asarray(values), np.asarray([value], dtype=float)])

    extended = replace(
        actuators,
        names=(*actuators.names, name),
        joints=(*actuators.joints, index),
        gear=added(actuators.gear, 1.0),
        gain=added(actuators.gain, 1.0),
        bias=added(actuators.bias, np.zeros(3)),
        control_lower=added(actuators.control_lower, -np.inf),
        control_upper=added(actuators.control_upper, np.inf),
        force_lower=added(actuators.force_lower, -np.inf),
        force_upper=added(actuators.force_upper, np.inf),
    )
    return replace(model, actuator=extended), name


def _blamed(problem: Problem, project: Project) -> Problem:
    """A problem of the model file, at the project's line if the project is to blame."""
    topic, _, name = problem.code.partition(".")
    key = OF_PROJECT.get(problem.code) or (name if topic == "option" else "")
    if not key:
        return problem
    way = ("model", key)
    message = f"{project.place.key(way)}: {problem.message}: {problem.file}"
    return replace(problem, message=message, file=project.place.file, line=project.place.lines.line(way))


@contextmanager
def _doubts_told(project: Project, found: list[Problem]) -> Iterator[None]:
    """Collect what a simulator warns about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        yield
    for warning in caught:
        problem = project.place.problem(("model",), str(warning.message), "", "project.model")
        found.append(replace(problem, severity=Severity.WARNING))
