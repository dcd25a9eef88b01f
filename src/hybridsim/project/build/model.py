"""Mechanism, actuators and simulator of a project, from its sections `[model]` and `[[command]]`."""

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
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Actuators, Model
from hybridsim.project.schema.load import Project
from hybridsim.project.schema.toml_lines import KeyPath
from hybridsim.robots.built_in import BUILT_IN
from hybridsim.sim.simulator import CONTACTS, Simulator
from hybridsim.taps.blueprint import Blueprint

KEYS_BY_CODE = {"file.missing": "file", "file.directory": "file", "file.unreadable": "file"}
"""Problem codes of model files that are reported at a key of the project."""


def model_of(project: Project, problems: list[Problem]) -> Model | None:
    """Model of a project; None if there are errors. Errors and warnings are appended to `problems`."""
    section, locator = project.content.model, project.locator
    if section.built_in:
        if section.built_in not in BUILT_IN:
            message = f"there is no built-in mechanism {section.built_in!r}"
            key_path = ("model", "built_in")
            problems.append(locator.problem(key_path, message, name_hint(section.built_in, BUILT_IN), "project.model"))
            return None
        model = BUILT_IN[section.built_in]()
    else:
        assert project.model_file is not None
        model, reported = inspect_model(project.model_file, **project.load_options)
        problems += [
            _relocate_to_project(problem, project) for problem in reported if problem.severity is not Severity.NOTE
        ]
        if model is None:
            return None
    if section.contact.kind == "none":
        return model
    try:
        model = with_hulls(model)
        return model if section.contact.floor is None else with_floor(model, section.contact.floor)
    except ModelError as error:
        problems += error.problems
    except ValueError as error:
        problems.append(locator.problem(("model", "contact", "floor"), str(error), "remove it", "project.model"))
    return None


def simulator_of(project: Project, model: Model, blueprint: Blueprint, problems: list[Problem]) -> Simulator | None:
    """Simulator of a project; None if there are errors. Errors and warnings are appended to `problems`."""
    section, locator = project.content.model, project.locator
    contact = section.contact
    try:
        with _collect_warnings(project, problems):
            settings = CONTACTS[contact.kind](**contact.settings)
            return Simulator(
                model,
                blueprint=blueprint,
                contact=settings,
                dt=section.dt,
                integrator=section.integrator,
                backend=section.backend,
            )
    except (ValueError, TypeError) as error:
        key = [key for key in contact.settings if key in str(error)][:1]
        fix = "see docs/contact.md for the settings of contact"
        problems.append(locator.problem(("model", "contact", *key), f"[model.contact]: {error}", fix, "project.model"))
        return None


def with_actuators(project: Project, model: Model, problems: list[Problem]) -> tuple[Model, dict[str, str]]:
    """Add the actuators that the commands of a project need to a model.

    Returns:
        The model, and the actuator of every command by the name of its series.
    """
    locator, actuators = project.locator, {}
    for index, entry in enumerate(project.content.command):
        key_path: KeyPath = ("command", index)
        names = model.actuator.names
        if entry.actuator and entry.actuator not in names:
            message = f"{locator.section(key_path)}: no actuator is named {entry.actuator!r}"
            fix = (
                name_hint(entry.actuator, names) if names else "the model has none; write joint = instead of actuator ="
            )
            problems.append(locator.problem((*key_path, "actuator"), message, fix, "project.command"))
        elif entry.actuator:
            actuators[entry.series_name] = entry.actuator
        elif entry.joint:
            extended = _with_torque_actuator(model, entry.joint)
            if isinstance(extended, tuple):
                model, actuators[entry.series_name] = extended
            else:
                message = f"{locator.section(key_path)}: {extended.message}"
                problems.append(locator.problem((*key_path, "joint"), message, extended.fix, "project.command"))
    duplicates = [name for name in actuators if list(actuators.values()).count(actuators[name]) > 1]
    for index, entry in enumerate(project.content.command):
        if entry.series_name in duplicates[1:]:
            actuator = actuators[entry.series_name]
            message = f"{locator.section(('command', index))}: {actuator!r} is already driven by another command"
            problems.append(locator.problem(("command", index), message, "remove one of them", "project.conflict"))
    return model, actuators


def is_torque_actuator(actuators: Actuators, index: int) -> bool:
    """Whether the command of an actuator is the torque on its joint."""
    law = (actuators.gear[index], actuators.gain[index], *actuators.bias[index])
    return law == (1.0, 1.0, 0.0, 0.0, 0.0)


def _with_torque_actuator(model: Model, joint: str) -> tuple[Model, str] | Problem:
    """Model with a torque actuator on a joint, and the actuator's name; or the reason why that is impossible."""
    topology, actuators = model.topology, model.actuator
    candidates = [
        name
        for name, kind, master in zip(topology.joint_names, topology.joint_types, topology.masters, strict=True)
        if kind in (ElementaryJointType.REVOLUTE, ElementaryJointType.PRISMATIC) and master < 0
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
        fix = f"write actuator = {name!r} if the column is its command, or remove the actuator from the model"
        return Problem(message, fix)
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


def _relocate_to_project(problem: Problem, project: Project) -> Problem:
    """A problem of the model file, relocated to the project's line if a key of the project causes it."""
    topic, _, name = problem.code.partition(".")
    key = KEYS_BY_CODE.get(problem.code) or (name if topic == "option" else "")
    if not key:
        return problem
    key_path = ("model", key)
    message = f"{project.locator.key(key_path)}: {problem.message}: {problem.file}"
    return replace(problem, message=message, file=project.locator.file, line=project.locator.lines.line(key_path))


@contextmanager
def _collect_warnings(project: Project, problems: list[Problem]) -> Iterator[None]:
    """Collect the warnings of a simulator."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        yield
    for warning in caught:
        problem = project.locator.problem(("model",), str(warning.message), "", "project.model")
        problems.append(replace(problem, severity=Severity.WARNING))
