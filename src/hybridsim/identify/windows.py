"""Windows: parts of recordings that are simulated in parallel, each from its own initial state.

All windows have the same number of time steps, so that they are lanes of one rollout. Measurements keep their own time
stamps: the times of samples in a window are in time steps, and may be fractional. The remainder at the end of a run is
a window too, without samples for its last steps.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.core.errors import HybridsimError
from hybridsim.data.resample import resample
from hybridsim.data.run import Run
from hybridsim.sim.state import Inputs

SLACK = 1e-6
"""Tolerance of time stamps at the ends of a window, in time steps."""
COMPLETE_FRACTION = 0.9
"""Fraction of the window length that the last sample of a complete window must reach."""


@dataclass(frozen=True)
class InputSignal:
    """Channel that provides the commands of an actuator, or a user input."""

    channel: str
    """Channel of the recording."""
    interpolation: Literal["hold", "linear"] = "hold"
    """Interpolation between samples: zero-order `hold`, as in a digital controller, or `linear`."""


@dataclass(frozen=True)
class ChannelRoles:
    """Roles of the channels of recordings in a fit: which are measured, and which provide commands or user inputs."""

    noise: Mapping[str, float]
    """Standard deviation of the noise of each measured channel, by its name, in the channel's unit."""
    commands: Mapping[str, InputSignal] = field(default_factory=dict)
    """Command signals by actuator name; other actuators get zero commands."""
    user: Mapping[str, InputSignal] = field(default_factory=dict)
    """Signals of user inputs by name."""


@dataclass(frozen=True, eq=False)
class Windows:
    """W windows with up to M samples each."""

    recording: Int[np.ndarray, " W"]
    """Index of the recording of each window."""
    start: Float[np.ndarray, " W"]
    """Time at which the window begins [s]."""
    follows: Bool[np.ndarray, " W"]
    """Whether the window begins where the preceding one ends."""
    steps: int
    dt: float
    """Time step [s]."""
    inputs: Inputs
    """Inputs of every step, (W, steps, …)."""
    channel: Int[np.ndarray, "W M"]
    """Index of the sensor of each sample."""
    time_in_steps: Float[np.ndarray, "W M"]
    """Time of each sample since the beginning of the window, in time steps; may be fractional."""
    value: Float[np.ndarray, "W M"]
    weight: Float[np.ndarray, "W M"]
    """Reciprocal of the noise's standard deviation; zero for padding."""

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.recording)

    @property
    def sample_count(self) -> int:
        """Number of samples."""
        return int(np.count_nonzero(self.weight))

    def select(self, index) -> "Windows":
        """Select windows."""
        inputs = Inputs(self.inputs.u[index], None, {k: v[index] for k, v in self.inputs.user.items()})
        rows = {name: getattr(self, name)[index] for name in ("channel", "time_in_steps", "value", "weight")}
        return replace(
            self,
            recording=self.recording[index],
            start=self.start[index],
            follows=self.follows[index],
            inputs=inputs,
            **rows,
        )

    def truncate(self, steps: int) -> "Windows":
        """Truncate every window to its first steps, and to the samples within them."""
        within = (self.time_in_steps <= steps) & (self.weight > 0.0)
        max_samples = int(np.flatnonzero(within.any(axis=0)).max(initial=0)) + 1
        u, user = self.inputs.u[:, :steps], {k: v[:, :steps] for k, v in self.inputs.user.items()}
        rows = {
            name: np.where(within, getattr(self, name), 0)[:, :max_samples]
            for name in ("channel", "time_in_steps", "value", "weight")
        }
        return replace(self, steps=steps, inputs=Inputs(u, None, user), **rows)

    @property
    def is_complete(self) -> Bool[np.ndarray, " W"]:
        """Which windows have samples almost up to their end; the last window of a run may be incomplete."""
        last = np.where(self.weight > 0.0, self.time_in_steps, 0.0).max(axis=1)
        return last >= COMPLETE_FRACTION * self.steps

    @property
    def duration(self) -> float:
        """Length of the windows [s]; if none is complete, up to the last sample."""
        if self.is_complete.any():
            return self.dt * self.steps
        return self.dt * float(np.where(self.weight > 0.0, self.time_in_steps, 0.0).max(initial=0.0))


def cut_windows(
    recordings: Sequence[Run],
    channel_roles: ChannelRoles,
    actuators: Sequence[str],
    *,
    dt: float,
    length: float,
    stride: float | None = None,
    skip: float = 0.0,
    include_start: bool = True,
) -> Windows:
    """Cut recordings into windows.

    Args:
        recordings: runs to cut.
        channel_roles: roles of the channels.
        actuators: names of the model's actuators.
        dt: time step of the simulation [s].
        length: window length [s], rounded to whole steps.
        stride: time between the beginnings of consecutive windows [s]; the length by default.
        skip: time at the beginning of a window whose samples are not used [s]: readings of a delayed sensor depend on
            the motion before the window.
        include_start: use samples exactly at the beginning of a window but not those at its end, or vice versa.
    """
    steps = max(round(length / dt), 1)
    stride_steps = steps if stride is None else max(round(stride / dt), 1)
    windows = []
    for index, recording in enumerate(recordings):
        begin, end = time_span(recording, channel_roles)
        count = max(math.ceil((end - begin) / dt / stride_steps - SLACK), 1)
        last = -1
        for k in range(count):
            t0 = begin + k * stride_steps * dt
            rows = _samples(recording, channel_roles, t0, steps, dt, end, skip, include_start)
            if len(rows[0]):
                windows.append(
                    (
                        index,
                        t0,
                        last >= 0 and last == k - 1 and stride_steps == steps,
                        rows,
                        _inputs(recording, channel_roles, actuators, t0, steps, dt),
                    )
                )
                last = k
    if not windows:
        raise HybridsimError(_no_samples_message(steps * dt, skip))
    max_samples = max(len(rows[0]) for *_, rows, _ in windows)
    columns = [np.stack([_pad(rows[c], max_samples) for *_, rows, _ in windows]) for c in range(4)]
    commands = np.stack([u for *_, (u, _) in windows])
    user = {name: np.stack([inputs[name] for *_, (_, inputs) in windows]) for name in channel_roles.user}
    return Windows(
        recording=np.array([index for index, *_ in windows]),
        start=np.array([t0 for _, t0, *_ in windows]),
        follows=np.array([follows for _, _, follows, *_ in windows]),
        steps=steps,
        dt=dt,
        inputs=Inputs(commands, None, user),
        channel=columns[0].astype(int),
        time_in_steps=columns[1],
        value=columns[2],
        weight=columns[3],
    )


def _no_samples_message(length: float, skip: float) -> str:
    if skip >= length:
        return (
            f"windows of {length:g} s contain no samples after the sensor delay and burn-in, which may be up to "
            f"{skip:g} s; lengthen the windows, or give free delays upper bounds"
        )
    return (
        f"no window contains a sample after the sensor delay and burn-in of up to {skip:g} s; are the recordings "
        "shorter than that?"
    )


def time_span(recording: Run, channel_roles: ChannelRoles) -> tuple[float, float]:
    """First and last time [s] at which all used channels of a recording have data."""
    inputs = (*channel_roles.commands.values(), *channel_roles.user.values())
    names = [*channel_roles.noise, *(signal.channel for signal in inputs)]
    times = [recording.series[name].t for name in names]
    begin, end = max(t[0] for t in times), min(t[-1] for t in times)
    if not end > begin:
        raise HybridsimError(f"run {recording.name!r}: its channels do not overlap in time")
    return float(begin), float(end)


def _samples(
    recording: Run,
    channel_roles: ChannelRoles,
    t0: float,
    steps: int,
    dt: float,
    end: float,
    skip: float,
    include_start: bool,
) -> tuple[np.ndarray, ...]:
    """Channels, times in steps, values and weights of one window's samples."""
    parts = []
    for channel, (name, noise) in enumerate(channel_roles.noise.items()):
        series = recording.series[name]
        time = (series.t - t0) / dt
        slack = SLACK if include_start else -SLACK
        inside = (time >= -slack) & (time <= steps - slack) & (series.t <= end + SLACK * dt)
        inside &= time * dt >= skip - SLACK * dt
        clipped = np.clip(time[inside], 0.0, steps)
        weight = np.full(clipped.shape, 1.0 / noise)
        parts.append((np.full(clipped.shape, channel), clipped, series.values[inside], weight))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    # in the order of the simulated readings, so that these often need no gather
    order = np.lexsort((columns[0], columns[1]))
    return tuple(column[order] for column in columns)


def _inputs(
    recording: Run, channel_roles: ChannelRoles, actuators: Sequence[str], t0: float, steps: int, dt: float
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Commands (steps, nu) and user inputs of one window."""
    commands = np.zeros((steps, len(actuators)))
    for name, signal in channel_roles.commands.items():
        commands[:, list(actuators).index(name)] = _step_values(recording, signal, t0, steps, dt)
    user = {name: _step_values(recording, signal, t0, steps, dt) for name, signal in channel_roles.user.items()}
    return commands, user


def _step_values(recording: Run, signal: InputSignal, t0: float, steps: int, dt: float) -> np.ndarray:
    """Value of a signal in each step: held from the beginning of the step, or interpolated at its midpoint."""
    series = recording.series[signal.channel]
    # a command stamped with the beginning of a step acts in that step, despite rounding of time stamps
    margin = max(SLACK * dt, 4.0 * np.spacing(series.t[-1]))
    offset = margin if signal.interpolation == "hold" else 0.5 * dt
    t = np.clip(t0 + np.arange(steps) * dt + offset, series.t[0], series.t[-1])
    return resample(series, t, kind=signal.interpolation)


def _pad(column: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([column, np.zeros(size - len(column), dtype=column.dtype)])
