"""Channels and commands: columns of recordings, their conversion to SI units, and what they are in the simulation."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, replace
from typing import Annotated, Literal

from pydantic import Field, model_validator

from hybridsim.core.errors import Problem
from hybridsim.core.messages import name_hint
from hybridsim.core.specification import (
    NonemptyText,
    Nonnegative,
    Positive,
    setting_error,
    setting_fields,
    specification,
)
from hybridsim.data.units import UNITS, find_unit

DEFAULT_FILTER_WINDOW = 9
"""Default window of the differentiation filter of a velocity estimate [samples]."""
ESTIMATE = "estimate"


@specification
class ColumnSettings:
    """A column of a recording and its conversion to SI units: the value is `scale · (column in SI units) + offset`."""

    column: str = ""
    """Column of the files."""
    _: KW_ONLY
    unit: str = ""
    """Unit of the column; empty if it is in SI units."""
    scale: float = 1.0
    """The value is `scale · (column in SI units) + offset`."""
    offset: float = 0.0
    """Offset in SI units, added after scaling."""
    time: str = ""
    """Time column, if it differs from that of the recording."""
    group: str = ""
    """Group of an HDF5 file or topic of an MCAP file, if it differs from that of the recording."""
    file: str = ""
    """Name of the file, for runs of several files; empty if only one of them has the column."""

    @model_validator(mode="after")
    def _check_scale(self):
        if self.scale == 0.0:
            raise setting_error("scale", "must not be zero", "choose another value", "project.value")
        return self

    @property
    def series_name(self) -> str:
        """Name of the series in a run."""
        return self.column

    @property
    def has_column(self) -> bool:
        """Whether the series is read from a column, not computed from another series."""
        return True

    @property
    def unwraps(self) -> bool:
        """Whether the series is an angle to be unwrapped."""
        return False

    @property
    def factor(self) -> float:
        """Value in SI units per unit of the column."""
        return UNITS[self.unit].factor * self.scale


@specification
class Channel(ColumnSettings):
    """A measured quantity, to be reproduced by the simulation.

    Channel("elbow_deg", "joint.q[elbow]", unit="deg", noise=0.05)
    Channel(measures="joint.qd[elbow]", velocity_of="joint.q[elbow]", noise=0.1)
    """

    measures: NonemptyText | Callable = ""
    """Address of the measured quantity, such as `joint.q[elbow]` or `frame.position[tip].x`; or a sum."""
    _: KW_ONLY
    name: str = ""
    """Name of the channel; by default the address that it measures."""
    noise: Positive | Literal["estimate"] = ESTIMATE
    """Standard deviation of the noise in the column's unit, or `"estimate"` to estimate it from the recordings."""
    unwrap: bool = False
    """Unwrap an angle that is recorded modulo full turns."""
    velocity_of: str = ""
    """Instead of a column: the channel of which this is the numerically estimated time derivative."""
    filter_window: Annotated[int | float, Field(gt=0)] = DEFAULT_FILTER_WINDOW
    """Window of the differentiation filter: samples if an integer, else seconds."""
    gain: float = 1.0
    """Sensor gain."""
    bias: float = 0.0
    """Sensor bias: reading at zero."""
    delay: Nonnegative = 0.0
    """Sensor delay [s]."""

    @model_validator(mode="after")
    def _check_source(self):
        if not self.measures:
            fix = 'add it: the measured quantity, such as "joint.q[elbow]"'
            raise setting_error("", "has no 'measures'", fix, "project.missing")
        if bool(self.column) == bool(self.velocity_of):
            message = "has both a column and velocity_of" if self.column else "has neither a column nor velocity_of"
            raise setting_error("", message, "specify either column or velocity_of")
        if callable(self.measures) and not self.name:
            raise setting_error("name", "is needed for a quantity that a function computes", "specify a name")
        if self.gain == 0.0:
            raise setting_error("gain", "must not be zero", "choose another value", "project.value")
        if self.velocity_of and self.noise == ESTIMATE:
            message = "cannot be estimated for a channel with velocity_of: its errors are correlated"
            raise setting_error("noise", message, "specify a value, such as 0.1")
        if self.velocity_of:
            default = Channel("column", "quantity")
            for key in sorted({*setting_fields(ColumnSettings), "unwrap"} - {"column"}):
                if getattr(self, key) != getattr(default, key):
                    fix = f"specify it for the channel {self.velocity_of!r}"
                    raise setting_error(key, "applies to columns only", fix)
        elif self.filter_window != DEFAULT_FILTER_WINDOW:
            fix = "remove it, or specify velocity_of instead of column"
            raise setting_error("filter_window", "requires velocity_of", fix)
        return self

    @property
    def series_name(self) -> str:
        return self.name or str(self.measures)

    @property
    def has_column(self) -> bool:
        return not self.velocity_of

    @property
    def unwraps(self) -> bool:
        return self.unwrap


@specification
class Command(ColumnSettings):
    """A recorded input of the simulation.

    Command("tau1", joint="shoulder", unit="mNm")
    Command("wind", input="wind", interpolation="linear")
    """

    _: KW_ONLY
    actuator: str = ""
    """Actuator that it commands."""
    joint: str = ""
    """Joint to which it is applied as torque or force; a torque actuator is added if the joint has none."""
    input: str = ""
    """User input of grafted networks, which read it as `input.NAME`."""
    interpolation: Literal["hold", "linear"] = "hold"
    """Interpolation between samples: zero-order hold, as in digital controllers, or linear."""

    @model_validator(mode="after")
    def _check_target(self):
        if not self.column:
            raise setting_error("", "has no 'column'", "add it: a column of the recordings", "project.missing")
        if sum(map(bool, (self.actuator, self.joint, self.input))) != 1:
            raise setting_error("", "must have exactly one target", "specify one of actuator, joint and input")
        if self.input and not self.input.isidentifier():
            fix = "use letters, digits and underscores"
            raise setting_error("input", "is not a valid name in an address", fix, "project.value")
        return self

    @property
    def series_name(self) -> str:
        """Name of the series, distinct from those of channels."""
        kind = "actuator" if self.actuator else "joint" if self.joint else "input"
        return f"{kind}:{self.actuator or self.joint or self.input}"


def column_problems(channels: Sequence[Channel], commands: Sequence[Command]) -> list[Problem]:
    """Problems of channels and commands that do not depend on recordings; their paths name the entry and its key."""
    problems = []
    for problem in channel_problems([*channels, *commands]):
        index, *key = problem.path or (0,)
        assert isinstance(index, int)
        entry = ("channel", index) if index < len(channels) else ("command", index - len(channels))
        problems.append(replace(problem, path=(*entry, *key) if problem.path else ("channel",)))
    return problems


def channel_problems(channels: Sequence[ColumnSettings]) -> list[Problem]:
    """Problems of channels that do not depend on recordings; their paths begin with the index of the channel."""
    problems: list[Problem] = []
    if not channels:
        problems.append(_problem((), "", "no channels are specified", "specify at least one channel"))
    indices: dict[str, int] = {}
    for index, channel in enumerate(channels):
        indices.setdefault(channel.series_name, index)
        problems += _single_channel_problems(index, channel, channels)
    for name, count in Counter(channel.series_name for channel in channels).items():
        if count > 1:
            last = max(k for k, channel in enumerate(channels) if channel.series_name == name)
            message = f"{count} channels are named {name!r}"
            problems.append(_problem((last,), name, message, "give each channel a unique name"))
    return problems


def _single_channel_problems(index: int, channel: ColumnSettings, channels: Sequence[ColumnSettings]) -> list[Problem]:
    name, problems = channel.series_name, []
    unit = find_unit(channel.unit, name)
    if isinstance(unit, Problem):
        problems.append(_problem((index, "unit"), name, unit.message, unit.fix, unit.code))
    elif channel.unwraps and not unit.period:
        angles = ", ".join(unit for unit, entry in UNITS.items() if entry.period)
        message = f"channel {name!r} is to be unwrapped, but its unit {channel.unit!r} is not an angle unit"
        problems.append(_problem((index, "unwrap"), name, message, f"give the unit of the column: {angles}"))
    if isinstance(channel, Channel) and channel.velocity_of:
        measured = [other.series_name for other in channels if other.has_column and isinstance(other, Channel)]
        if channel.velocity_of not in measured:
            message = f"channel {name!r} is the velocity of {channel.velocity_of!r}, which is not a measured channel"
            hint = name_hint(channel.velocity_of, measured)
            problems.append(_problem((index, "velocity_of"), name, message, hint))
    return problems


def _problem(path: tuple[str | int, ...], name: str, message: str, fix: str, code: str = "data.channel") -> Problem:
    return Problem(message, fix, code=code, element=name, path=path)
