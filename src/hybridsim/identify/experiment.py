"""An experiment: a mechanism in a simulation, the channels that measure it, and the commands that drive it."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, replace
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import InstanceOf

from hybridsim.core.errors import (
    DataError,
    Problem,
    Severity,
    SpecificationError,
)
from hybridsim.core.key_path import KeyPath, with_place
from hybridsim.core.specification import specification
from hybridsim.core.warnings import warn_user
from hybridsim.data.channel import ESTIMATE, Channel, Command, column_problems
from hybridsim.data.noise import noise_level
from hybridsim.data.recording import Recording
from hybridsim.data.run import Run
from hybridsim.identify.assembly import Assembly, assemble
from hybridsim.identify.windows import ChannelRoles, InputSignal
from hybridsim.model.model import Model
from hybridsim.params.setup import Setup
from hybridsim.sim.simulation_settings import SimulationSettings
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint

MIN_RELATIVE_NOISE = 1e-6
"""Lower bound on estimated noise relative to the standard deviation of a channel; lower values are rounding errors."""


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

    def __repr__(self) -> str:
        measured = ", ".join(channel.series_name for channel in self.channels)
        return f"Experiment({self.model.name!r}, channels=[{measured}])"

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
        return assemble(self, problems), problems

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
