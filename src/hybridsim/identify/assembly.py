"""Assembly of an experiment: simulator, sensors and actuators, with all problems of its specification."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from hybridsim.contact.contact import NoContact
from hybridsim.core.errors import (
    ModelError,
    ModelWarning,
    Problem,
    Severity,
    TapError,
)
from hybridsim.core.key_path import KeyPath
from hybridsim.identify.channel_units import channel_unit_problem, command_unit_problem
from hybridsim.identify.command_actuators import with_actuators
from hybridsim.io.hulls import with_hulls
from hybridsim.model.floor import with_floor
from hybridsim.model.model import Model
from hybridsim.params.setup import Setup
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State
from hybridsim.taps.address import AxisNames
from hybridsim.taps.blueprint import Blueprint, Graft

if TYPE_CHECKING:
    from hybridsim.identify.experiment import Experiment


class GraftTable(Protocol):
    """A graft whose network is made for the sizes of its inputs and outputs."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Addresses of the outputs."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """Addresses of the inputs."""
        ...

    def graft(self, names: AxisNames, inputs: Mapping[str, int]) -> Graft:
        """The graft with its network, for a model with these names and user inputs."""
        ...


@dataclass(frozen=True, eq=False)
class Assembly:
    """Simulator and sensors of an experiment."""

    setup: Setup
    actuators: Mapping[str, str]
    """Actuator of every command, by the name of its series."""
    missing: tuple[str, ...] = ()
    """Beginnings of the names of parameters that are missing because of errors."""


def assemble(experiment: "Experiment", problems: list[Problem]) -> Assembly | None:
    """Simulator and sensors; None if there is no simulator. Errors and warnings are appended to `problems`."""
    model = _with_surroundings(experiment, problems)
    if model is None:
        return None
    model, actuators = with_actuators(model, experiment.command_list, problems)
    inputs = {command.input: 1 for command in experiment.command_list if command.input}
    sim = _simulator(experiment, model, Blueprint(inputs=inputs), problems)
    if sim is None:
        return None
    count = len(problems)
    blueprint = _blueprint(experiment, dict(sim.axis_names), inputs, problems)
    missing = ("graft",) if len(problems) > count else ()
    if blueprint.grafts and not missing:
        # its warnings have been collected already
        sim = _simulator(experiment, model, blueprint, []) or sim
    sensors = _sensors(experiment, sim, problems)
    missing += () if sensors else ("sensor",)
    if sensors:
        problems += _unit_problems(experiment, sim, sensors, actuators)
    # errors in the other parameters can still be reported
    setup = Setup(sim, sensors or Sensors.from_addresses(sim, {"time": "step.time"}))
    _warn_about_unread_inputs(experiment, sim.blueprint, problems)
    return Assembly(setup, actuators, missing)


def _with_surroundings(experiment: "Experiment", problems: list[Problem]) -> Model | None:
    """The mechanism with hulls of its meshes, for contact, and a floor."""
    model = experiment.model
    try:
        if experiment.contact is not None and not isinstance(experiment.contact, NoContact):
            model = with_hulls(model)
        return model if experiment.floor is None else with_floor(model, experiment.floor)
    except ModelError as error:
        problems += error.problems
    except ValueError as error:
        problems.append(Problem(str(error), "remove it", code="project.model", path=("model", "floor")))
    return None


def _simulator(
    experiment: "Experiment", model: Model, blueprint: Blueprint, problems: list[Problem]
) -> Simulator | None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            sim = Simulator(model, blueprint=blueprint, **experiment.arguments)
        except (ValueError, TypeError) as error:
            setting = getattr(error, "setting", "")
            path = ("model", "contact", setting) if setting else ("model",)
            fix = "see docs/contact.md for the settings of contact"
            problems.append(Problem(str(error), fix, code="project.model", path=path))
            return None
    for warning in caught:
        text = str(warning.message)
        problems.append(Problem(text, severity=Severity.WARNING, code="project.model", path=("model",)))
    return sim


def _blueprint(
    experiment: "Experiment", names: AxisNames, inputs: Mapping[str, int], problems: list[Problem]
) -> Blueprint:
    """All networks of an experiment; those with errors are left out."""
    grafts = make_grafts(experiment.grafts, names, inputs, problems)
    if experiment.blueprint is None:
        return Blueprint(*grafts, inputs=inputs)
    for name, size in experiment.blueprint.inputs:
        if inputs.get(name) != size:
            message = f"it needs the input {name!r} of size {size}, which no command provides"
            fix = f"add a command with the input {name!r}; commands have size 1"
            problems.append(Problem(message, fix, code="project.blueprint", path=("blueprint", "file")))
    return Blueprint(*grafts, *experiment.blueprint.grafts, inputs=inputs)


def make_grafts(
    entries: Sequence[Graft | GraftTable], names: AxisNames, inputs: Mapping[str, int], problems: list[Problem]
) -> list[Graft]:
    """Grafts that match a model; errors of others are appended to `problems`.

    Args:
        entries: grafts, or tables of grafts.
        names: axis names of the model.
        inputs: user inputs and their sizes.
        problems: list to which errors are appended.
    """
    grafts: list[Graft] = []
    for index, entry in enumerate(entries):
        try:
            graft = entry if isinstance(entry, Graft) else entry.graft(names, inputs)
            Blueprint(graft, inputs=inputs).bind(names)
            grafts.append(graft)
        except (TapError, ValueError) as error:
            path = ("graft", index, *_key_at_fault(entry, error))
            fix = "`hybridsim taps MODEL` lists the available quantities"
            problems.append(Problem(str(error), fix, code="project.graft", path=path))
    return grafts


def _key_at_fault(entry: Graft | GraftTable, error: Exception) -> KeyPath:
    """Key of a graft, and index in its value, of the address at fault."""
    address = getattr(error, "address", "")
    for key in ("outputs", "inputs"):
        addresses = getattr(entry, key)
        addresses = (addresses,) if isinstance(addresses, str) else addresses
        if address and address in addresses:
            return (key, addresses.index(address)) if len(addresses) > 1 else (key,)
    setting = getattr(error, "setting", "")
    return ("network", setting) if setting else ()


def _sensors(experiment: "Experiment", sim: Simulator, problems: list[Problem]) -> Sensors | None:
    """Sensors of the channels, or None if a measured quantity does not exist or names are not unique."""
    count = len(problems)
    if len({channel.series_name for channel in experiment.channels} - {""}) < max(len(experiment.channels), 1):
        return None
    for index, channel in enumerate(experiment.channels):
        if callable(channel.measures):
            continue
        try:
            Sensors.from_addresses(sim, {channel.series_name: channel.measures})
        except TapError as error:
            fix = "`hybridsim taps MODEL` lists the quantities that can be measured"
            path = ("channel", index, "measures")
            problems.append(Problem(str(error), fix, code="project.tap", path=path))
    if len(problems) > count:
        return None
    channels = experiment.ordered_channels
    functions = tuple(channel.measures for channel in channels if callable(channel.measures))
    return Sensors.from_addresses(
        sim,
        {channel.series_name: channel.measures for channel in channels if not callable(channel.measures)},
        gain=[channel.gain for channel in channels],
        bias=[channel.bias for channel in channels],
        delay=[channel.delay for channel in channels],
        function=_Readings(functions) if functions else None,
        function_names=[channel.series_name for channel in channels if callable(channel.measures)],
    )


def _unit_problems(
    experiment: "Experiment", sim: Simulator, sensors: Sensors, actuators: Mapping[str, str]
) -> Iterator[Problem]:
    """Problems of units that are not units of what a channel measures or a command drives."""
    for index, channel in enumerate(experiment.channels):
        if channel.has_column:
            problem = channel_unit_problem(sim, sensors, sensors.names.index(channel.series_name), channel)
            if problem is not None:
                yield replace(problem, path=("channel", index, "unit"))
    for index, command in enumerate(experiment.command_list):
        actuator = actuators.get(command.series_name)
        problem = command_unit_problem(sim, actuator, command) if actuator else None
        if problem is not None:
            yield replace(problem, path=("command", index, "unit"))


class _Readings(eqx.Module):
    """Readings of channels that are computed by functions."""

    functions: tuple[Callable, ...] = eqx.field(static=True)

    def __call__(self, sim: Simulator, state: State, inputs: Inputs) -> Float[Array, " m"]:
        return jnp.stack([jnp.asarray(function(sim, state, inputs)).reshape(()) for function in self.functions])


def _warn_about_unread_inputs(experiment: "Experiment", blueprint: Blueprint, problems: list[Problem]) -> None:
    """Append a warning for each user input that no network reads."""
    addresses = [address for graft in (*experiment.grafts, *blueprint.grafts) for address in graft.inputs]
    for index, command in enumerate(experiment.command_list):
        name = f"input.{command.input}"
        if command.input and not any(address.partition("@")[0].partition("[")[0] == name for address in addresses):
            fix = f"add {name!r} to the inputs of a graft"
            problem = Problem("is read by no network", fix, code="project.command", path=("command", index, "input"))
            problems.append(replace(problem, severity=Severity.WARNING))
