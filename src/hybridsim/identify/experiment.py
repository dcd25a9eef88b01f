"""An experiment: a mechanism in a simulation, the channels that measure it, and the commands that drive it."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import InstanceOf

from hybridsim.contact.contact import NoContact
from hybridsim.core.errors import (
    DataError,
    ModelError,
    ModelWarning,
    Problem,
    Severity,
    SpecificationError,
    TapError,
)
from hybridsim.core.specification import specification
from hybridsim.core.specification_errors import KeyPath
from hybridsim.core.warnings import warn_user
from hybridsim.data.channel import ESTIMATE, Channel, Command, column_problems
from hybridsim.data.noise import noise_level
from hybridsim.data.recording import Recording
from hybridsim.data.run import Run
from hybridsim.identify.command_actuators import with_actuators
from hybridsim.identify.windows import ChannelRoles, InputSignal
from hybridsim.io.hulls import with_hulls
from hybridsim.model.floor import with_floor
from hybridsim.model.model import Model
from hybridsim.params.setup import Setup
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulation_settings import SimulationSettings
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State
from hybridsim.taps.address import AxisNames
from hybridsim.taps.blueprint import Blueprint, Graft

MIN_RELATIVE_NOISE = 1e-6
"""Lower bound on estimated noise relative to the standard deviation of a channel; lower values are rounding errors."""


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


@specification
class Experiment(SimulationSettings):
    """A mechanism in a simulation, the channels that measure it, and the commands that drive it.

    Experiment(
        load_model("arm.urdf"),
        dt=0.002,
        channels=[Channel("elbow_deg", "joint.q[elbow]", unit="deg", noise=0.05)],
        commands={"elbow": "torque"},
    )
    """

    model: InstanceOf[Model]
    """The mechanism."""
    _: KW_ONLY
    channels: Sequence[Channel]
    """Measured quantities, to be reproduced by the simulation."""
    commands: Sequence[Command] | Mapping[str, str] = ()
    """Recorded inputs of the simulation; or columns by the name of the actuator or joint that they drive."""
    grafts: Sequence[Any] = ()
    """Networks that read quantities of the simulation and modify others."""
    blueprint: InstanceOf[Blueprint] | None = None
    """Additional networks, which follow those of `grafts`."""

    def check_consistency(self) -> None:
        """Raise `SpecificationError` if names do not match the model; issue warnings about the model."""
        problems = list(column_problems(self.channels, self.command_list))
        self.assemble(problems)
        if errors := [problem for problem in problems if problem.severity is Severity.ERROR]:
            raise SpecificationError(map(with_place, errors))
        for problem in problems:
            warn_user(problem.message)

    @cached_property
    def command_list(self) -> tuple[Command, ...]:
        """The commands as records."""
        if not isinstance(self.commands, Mapping):
            return tuple(self.commands)
        actuators = self.model.actuator.names
        return tuple(
            Command(column, actuator=name) if name in actuators else Command(column, joint=name)
            for name, column in self.commands.items()
        )

    @property
    def ordered_channels(self) -> tuple[Channel, ...]:
        """Channels in the order of the sensors: those that a function computes come last."""
        return tuple(sorted(self.channels, key=lambda channel: callable(channel.measures)))

    @property
    def setup(self) -> Setup:
        """Simulator and sensors."""
        return self.assembly.setup

    @property
    def simulator(self) -> Simulator:
        """The simulator, before a fit."""
        return self.setup.sim

    @property
    def assembly(self) -> Assembly:
        """Simulator, sensors and actuators of commands."""
        problems: list[Problem] = []
        assembly = self.assemble(problems)
        if assembly is None or assembly.missing:
            raise SpecificationError(map(with_place, problems))
        return assembly

    def assemble(self, problems: list[Problem]) -> Assembly | None:
        """Simulator and sensors; None if there is no simulator. Errors and warnings are appended to `problems`."""
        assembly, found = self._assembly
        problems += found
        return assembly

    @cached_property
    def _assembly(self) -> tuple[Assembly | None, list[Problem]]:
        problems: list[Problem] = []
        return _assemble(self, problems), problems

    def channel_roles(self, noise: Mapping[str, float]) -> ChannelRoles:
        """Roles of the series of runs.

        Args:
            noise: standard deviation of the noise of every channel in SI units.
        """
        commands, user_inputs = {}, {}
        for command in self.command_list:
            signal = InputSignal(command.series_name, command.interpolation)
            if command.input:
                user_inputs[command.input] = signal
            else:
                commands[self.assembly.actuators[command.series_name]] = signal
        return ChannelRoles(noise, commands, user_inputs)

    def runs(self, recordings: Sequence[Recording], problems: list[Problem]) -> list[Run]:
        """Runs of recordings; errors are appended to `problems`."""
        runs: list[Run] = []
        for recording in recordings:
            try:
                runs += recording.runs([*self.channels, *self.command_list])
            except DataError as error:
                problems += error.problems
        return runs

    def noise(self, runs: Sequence[Run], problems: list[Problem]) -> dict[str, float]:
        """Noise of every channel in SI units: as specified, or the median of the estimates over runs."""
        noise: dict[str, float] = {}
        for channel in self.ordered_channels:
            if channel.noise != ESTIMATE:
                noise[channel.series_name] = float(channel.noise) * abs(channel.factor)
                continue
            path: KeyPath = ("channel", list(self.channels).index(channel), "noise")
            series = [run.series[channel.series_name] for run in runs]
            try:
                level = float(np.median([noise_level(s) for s in series]))
            except DataError as error:
                problems += [replace(problem, path=path) for problem in error.problems]
                continue
            spread = float(np.std(np.concatenate([s.values for s in series])))
            if spread == 0.0:
                message = f"channel {channel.series_name!r} is constant, so that its noise cannot be estimated"
                fix = "remove the channel, or specify noise as a value"
                problems.append(Problem(message, fix, code="project.noise", path=path[:2]))
            noise[channel.series_name] = max(level, MIN_RELATIVE_NOISE * spread)
        return noise


def with_place(problem: Problem) -> Problem:
    """Problem whose message begins with its place in Python: `channels[1]`."""
    if not problem.path:
        return problem
    section, *rest = problem.path
    plural = {"channel": "channels", "command": "commands", "graft": "grafts", "stage": "stages"}
    words = [
        plural.get(str(section), str(section)),
        *(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest),
    ]
    return replace(problem, message=f"{''.join(words)}: {problem.message}")


def _assemble(experiment: Experiment, problems: list[Problem]) -> Assembly | None:
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
    # errors in the other parameters can still be reported
    setup = Setup(sim, sensors or Sensors.from_addresses(sim, {"time": "step.time"}))
    _warn_about_unread_inputs(experiment, sim.blueprint, problems)
    return Assembly(setup, actuators, missing)


def _with_surroundings(experiment: Experiment, problems: list[Problem]) -> Model | None:
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


def _simulator(experiment: Experiment, model: Model, blueprint: Blueprint, problems: list[Problem]) -> Simulator | None:
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
    experiment: Experiment, names: AxisNames, inputs: Mapping[str, int], problems: list[Problem]
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


def _sensors(experiment: Experiment, sim: Simulator, problems: list[Problem]) -> Sensors | None:
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


class _Readings(eqx.Module):
    """Readings of channels that are computed by functions."""

    functions: tuple[Callable, ...] = eqx.field(static=True)

    def __call__(self, sim: Simulator, state: State, inputs: Inputs) -> Float[Array, " m"]:
        return jnp.stack([jnp.asarray(function(sim, state, inputs)).reshape(()) for function in self.functions])


def _warn_about_unread_inputs(experiment: Experiment, blueprint: Blueprint, problems: list[Problem]) -> None:
    """Append a warning for each user input that no network reads."""
    addresses = [address for graft in (*experiment.grafts, *blueprint.grafts) for address in graft.inputs]
    for index, command in enumerate(experiment.command_list):
        name = f"input.{command.input}"
        if command.input and not any(address.partition("@")[0].partition("[")[0] == name for address in addresses):
            fix = f"add {name!r} to the inputs of a graft"
            problem = Problem("is read by no network", fix, code="project.command", path=("command", index, "input"))
            problems.append(replace(problem, severity=Severity.WARNING))
