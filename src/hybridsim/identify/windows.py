"""Windows: pieces of recordings that are simulated side by side, each from a start of its own.

All windows have the same number of time steps, so that they are lanes of one rollout. Measurements stay at their own
time stamps: a window's samples have positions in time steps, whole or not. What a run has left over at its end is a
window too, whose last steps nobody looks at.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.core.errors import HybridsimError
from hybridsim.data.recording import Recording
from hybridsim.data.resample import resample
from hybridsim.sim.state import Inputs

SLACK = 1e-6
"""Share of a time step by which time stamps may miss a window's ends."""
WHOLE = 0.9
"""Share of its length from which on a window counts as whole."""


@dataclass(frozen=True)
class InputSignal:
    """Where the commands of an actuator, or a user input, come from."""

    channel: str
    """Of the recording."""
    between: Literal["hold", "linear"] = "hold"
    """What happens between samples: `hold` the last one, as a controller does, or go on `linear`ly."""


@dataclass(frozen=True)
class Measurements:
    """What a fit compares with: channels of the recordings, and how it is driven."""

    noise: Mapping[str, float]
    """Standard deviation of each channel that sensors measure, by its name, in the channel's unit."""
    commands: Mapping[str, InputSignal] = field(default_factory=dict)
    """By the name of the actuator; others get zero."""
    user: Mapping[str, InputSignal] = field(default_factory=dict)
    """By the name of the user input."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows side by side, W of them with up to M samples."""

    run: Int[np.ndarray, " W"]
    """Which recording each is a piece of."""
    start: Float[np.ndarray, " W"]
    """Time at which it begins [s]."""
    follows: Bool[np.ndarray, " W"]
    """Does it begin where the window before it ends?"""
    steps: int
    dt: float
    """Time step that positions are counted in [s]."""
    inputs: Inputs
    """Of every step, (W, steps, …)."""
    channel: Int[np.ndarray, "W M"]
    """Which sensor a sample is of."""
    position: Float[np.ndarray, "W M"]
    """When it was taken, in steps since the window's start."""
    value: Float[np.ndarray, "W M"]
    weight: Float[np.ndarray, "W M"]
    """One by the standard deviation; zero for what fills up the rows."""

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.run)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(np.count_nonzero(self.weight))

    def chosen(self, which) -> "Windows":
        """Some of the windows."""
        inputs = Inputs(self.inputs.u[which], None, {k: v[which] for k, v in self.inputs.user.items()})
        rows = {name: getattr(self, name)[which] for name in ("channel", "position", "value", "weight")}
        return replace(
            self, run=self.run[which], start=self.start[which], follows=self.follows[which], inputs=inputs, **rows
        )

    def until(self, steps: int) -> "Windows":
        """The first steps of every window, and the samples that were taken by then."""
        early = (self.position <= steps) & (self.weight > 0.0)
        most = int(np.flatnonzero(early.any(axis=0)).max(initial=0)) + 1
        u, user = self.inputs.u[:, :steps], {k: v[:, :steps] for k, v in self.inputs.user.items()}
        rows = {
            name: np.where(early, getattr(self, name), 0)[:, :most]
            for name in ("channel", "position", "value", "weight")
        }
        return replace(self, steps=steps, inputs=Inputs(u, None, user), **rows)

    @property
    def is_whole(self) -> Bool[np.ndarray, " W"]:
        """Which windows have samples up to near their end: what a run has left over at its end may be a small piece."""
        last = np.where(self.weight > 0.0, self.position, 0.0).max(axis=1)
        return last >= WHOLE * self.steps

    @property
    def duration(self) -> float:
        """Length of the longest window, as far as there are samples [s]."""
        if self.is_whole.any():
            return self.dt * self.steps
        return self.dt * float(np.where(self.weight > 0.0, self.position, 0.0).max(initial=0.0))


def cut_windows(
    recordings: Sequence[Recording],
    measured: Measurements,
    actuators: Sequence[str],
    *,
    dt: float,
    length: float,
    stride: float | None = None,
    lead: float = 0.0,
    at_start: bool = True,
) -> Windows:
    """Cut recordings into windows.

    Args:
        recordings: whole runs.
        measured: what of them is used.
        actuators: names of the model's actuators.
        dt: time step of the simulation [s].
        length: of a window [s]; rounded to whole steps.
        stride: time between the starts of windows [s]; the length by default.
        lead: samples that come sooner after a window's start than this are left out [s]: a delayed sensor still shows
            what was before.
        at_start: are samples at a window's very start used, and not those at its very end, or the other way round?
    """
    steps = max(round(length / dt), 1)
    stride_steps = steps if stride is None else max(round(stride / dt), 1)
    pieces = []
    for run, recording in enumerate(recordings):
        begin, end = span(recording, measured)
        count = max(math.ceil((end - begin) / dt / stride_steps - SLACK), 1)
        last = -1
        for k in range(count):
            t0 = begin + k * stride_steps * dt
            rows = _samples(recording, measured, t0, steps, dt, end, lead, at_start)
            if len(rows[0]):
                pieces.append(
                    (
                        run,
                        t0,
                        last >= 0 and last == k - 1 and stride_steps == steps,
                        rows,
                        _driven(recording, measured, actuators, t0, steps, dt),
                    )
                )
                last = k
    if not pieces:
        raise HybridsimError(_without_samples(steps * dt, lead))
    most = max(len(rows[0]) for *_, rows, _ in pieces)
    columns = [np.stack([_filled(rows[c], most) for *_, rows, _ in pieces]) for c in range(4)]
    commands = np.stack([u for *_, (u, _) in pieces])
    user = {name: np.stack([given[name] for *_, (_, given) in pieces]) for name in measured.user}
    return Windows(
        run=np.array([run for run, *_ in pieces]),
        start=np.array([t0 for _, t0, *_ in pieces]),
        follows=np.array([follows for _, _, follows, *_ in pieces]),
        steps=steps,
        dt=dt,
        inputs=Inputs(commands, None, user),
        channel=columns[0].astype(int),
        position=columns[1],
        value=columns[2],
        weight=columns[3],
    )


def _without_samples(length: float, lead: float) -> str:
    if lead >= length:
        return (
            f"windows of {length:g} s are over before the sensors have shown anything of them: delays may be up to "
            f"{lead:g} s; make windows longer, or give the delays upper bounds"
        )
    return "no window holds a sample; are windows longer than the recordings?"


def span(recording: Recording, measured: Measurements) -> tuple[float, float]:
    """First and last time at which everything that is used of a recording is known [s]."""
    names = [*measured.noise, *(d.channel for d in (*measured.commands.values(), *measured.user.values()))]
    times = [recording.series[name].t for name in names]
    begin, end = max(t[0] for t in times), min(t[-1] for t in times)
    if not end > begin:
        raise HybridsimError(f"run {recording.name!r}: its channels have no time in common")
    return float(begin), float(end)


def _samples(
    recording: Recording,
    measured: Measurements,
    t0: float,
    steps: int,
    dt: float,
    end: float,
    lead: float,
    at_start: bool,
) -> tuple[np.ndarray, ...]:
    """Channels, positions, values and weights of one window's samples."""
    parts = []
    for channel, (name, noise) in enumerate(measured.noise.items()):
        series = recording.series[name]
        position = (series.t - t0) / dt
        slack = SLACK if at_start else -SLACK
        inside = (position >= -slack) & (position <= steps - slack) & (series.t <= end + SLACK * dt)
        inside &= position * dt >= lead - SLACK * dt
        found = np.clip(position[inside], 0.0, steps)
        parts.append((np.full(found.shape, channel), found, series.values[inside], np.full(found.shape, 1.0 / noise)))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    # in the order in which a simulation makes its readings, so that often nothing has to be picked out of them
    order = np.lexsort((columns[0], columns[1]))
    return tuple(column[order] for column in columns)


def _driven(
    recording: Recording, measured: Measurements, actuators: Sequence[str], t0: float, steps: int, dt: float
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Commands (steps, nu) and user inputs of one window."""
    commands = np.zeros((steps, len(actuators)))
    for name, drive in measured.commands.items():
        commands[:, list(actuators).index(name)] = _over_steps(recording, drive, t0, steps, dt)
    return commands, {name: _over_steps(recording, drive, t0, steps, dt) for name, drive in measured.user.items()}


def _over_steps(recording: Recording, drive: InputSignal, t0: float, steps: int, dt: float) -> np.ndarray:
    """What drives each step: what holds at its start, or the value half way through it."""
    series = recording.series[drive.channel]
    # a command that comes with a step is there when the step begins, whatever the rounding of time stamps says
    rounding = max(SLACK * dt, 4.0 * np.spacing(series.t[-1]))
    later = rounding if drive.between == "hold" else 0.5 * dt
    t = np.clip(t0 + np.arange(steps) * dt + later, series.t[0], series.t[-1])
    return resample(series, t, kind=drive.between)


def _filled(column: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([column, np.zeros(size - len(column), dtype=column.dtype)])
