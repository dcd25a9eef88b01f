"""Channels: measured quantities and the columns of a file that hold them."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hybridsim.core.errors import Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.units import UNITS, find_unit

DEFAULT_FILTER_WINDOW = 9
"""Default window of the differentiation filter of a velocity estimate [samples]."""


@dataclass(frozen=True)
class Channel:
    """One measured quantity: its column in a file, and its conversion to SI units.

    The value is `scale · (column in SI units) + offset`.
    """

    name: str
    """Name of the measured quantity; any text, such as the name of a joint."""
    column: str = ""
    """Name of the column; empty with `velocity_of`."""
    unit: str = ""
    """Unit of the column, see `units.UNITS`; empty for SI units."""
    time: str = ""
    """Time column of this channel; empty for the recording's time column."""
    unwrap: bool = False
    """Whether to unwrap an angle that was recorded modulo one revolution."""
    scale: float = 1.0
    offset: float = 0.0
    """Offset in SI units, added last."""
    velocity_of: str = ""
    """Channel that this one is the time derivative of: estimated numerically instead of measured."""
    filter_window: int | float = DEFAULT_FILTER_WINDOW
    """Window of the differentiation filter, with `velocity_of`: samples if an `int`, seconds if a `float`; see
    `derivative`."""
    group: str = ""
    """Group of an HDF5 file or topic of an MCAP file; empty for the recording's group."""
    file: str = ""
    """File name, for a recording of several files; may be empty if only one of them has the column."""


def channel_problems(channels: Sequence[Channel]) -> list[Problem]:
    """Problems with the channels' settings, independent of the files."""
    problems: list[Problem] = []
    if not channels:
        problems.append(_problem("", "no channels are specified", "specify at least one channel"))
    for name, count in Counter(channel.name for channel in channels).items():
        if count > 1:
            problems.append(_problem(name, f"{count} channels are named {name!r}", "give each channel a unique name"))
    for channel in channels:
        problems += _single_channel_problems(channel, channels)
    return problems


def _single_channel_problems(channel: Channel, channels: Sequence[Channel]) -> list[Problem]:
    name, problems = channel.name, []
    if not name:
        message = f"the channel of column {channel.column!r} has no name"
        problems.append(_problem(name, message, "give the name of the measured quantity"))
    if not (math.isfinite(channel.scale) and math.isfinite(channel.offset)) or channel.scale == 0.0:
        message = f"channel {name!r} has scale {channel.scale} and offset {channel.offset}"
        problems.append(_problem(name, message, "both must be finite, and the scale must not be zero"))
    unit = find_unit(channel.unit, name)
    if isinstance(unit, Problem):
        problems.append(unit)
    elif channel.unwrap and not unit.period:
        angles = ", ".join(unit for unit, entry in UNITS.items() if entry.period)
        message = f"channel {name!r} is to be unwrapped, but its unit {channel.unit!r} is not an angle unit"
        problems.append(_problem(name, message, f"give the unit of the column: {angles}"))
    if bool(channel.column) == bool(channel.velocity_of):
        message = f"channel {name!r} must have either a column or velocity_of, not both or neither"
        problems.append(_problem(name, message, "give column or velocity_of"))
    elif channel.velocity_of:
        measured = [other.name for other in channels if other.column]
        if channel.velocity_of not in measured:
            message = f"channel {name!r} is the velocity of {channel.velocity_of!r}, which is not a measured channel"
            problems.append(_problem(name, message, name_hint(channel.velocity_of, measured)))
        if channel != Channel(name, velocity_of=channel.velocity_of, filter_window=channel.filter_window):
            message = f"channel {name!r} is an estimated velocity and can have no settings other than filter_window"
            problems.append(_problem(name, message, f"move them to channel {channel.velocity_of!r}"))
    return problems


def _problem(name: str, message: str, fix: str) -> Problem:
    return Problem(message, fix, code="data.channel", element=name)
