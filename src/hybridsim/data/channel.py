"""What a column of a file measures."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hybridsim.core.errors import Problem
from hybridsim.core.messages import advice
from hybridsim.data.units import UNITS, find_unit

DEFAULT_WINDOW = 9
"""Samples from which a velocity is estimated, unless told otherwise."""


@dataclass(frozen=True)
class Channel:
    """One measured quantity: where it is in a file, and how its numbers become SI units.

    The value is `scale · (number in SI units) + offset`.
    """

    name: str
    """What it measures; any text, such as the name of a joint."""
    column: str = ""
    """Name of the column; empty with `velocity_of`."""
    unit: str = ""
    """Unit of the column, see `units.UNITS`; empty if it is in SI units."""
    time: str = ""
    """Time column of its own; empty for the recording's."""
    unwrap: bool = False
    """Remove the jumps of an angle that is only told up to full turns."""
    scale: float = 1.0
    offset: float = 0.0
    """In SI units, added last."""
    velocity_of: str = ""
    """Another channel, whose rate of change this one is: estimated, where it was not measured."""
    window: int | float = DEFAULT_WINDOW
    """Of the estimate, with `velocity_of`: samples if a whole number, else seconds; see `derivative`."""
    group: str = ""
    """Group of an HDF5 file or topic of an MCAP file; empty for the recording's."""
    file: str = ""
    """Name of the file, for a recording of several; empty if only one of them has the column."""


def problems_of(channels: Sequence[Channel]) -> list[Problem]:
    """Everything that is wrong with channels in themselves."""
    found: list[Problem] = []
    if not channels:
        found.append(_problem("", "there are no channels", "name at least one column"))
    for name, count in Counter(channel.name for channel in channels).items():
        if count > 1:
            found.append(_problem(name, f"{count} channels are named {name!r}", "give each a name of its own"))
    for channel in channels:
        found += _problems_of_one(channel, channels)
    return found


def _problems_of_one(channel: Channel, channels: Sequence[Channel]) -> list[Problem]:
    name, found = channel.name, []
    if not name:
        found.append(_problem(name, f"the channel of column {channel.column!r} has no name", "name what it measures"))
    if not (math.isfinite(channel.scale) and math.isfinite(channel.offset)) or channel.scale == 0.0:
        message = f"channel {name!r} has the scale {channel.scale} and the offset {channel.offset}"
        found.append(_problem(name, message, "use finite numbers and a scale that is not zero"))
    unit = find_unit(channel.unit, name)
    if isinstance(unit, Problem):
        found.append(unit)
    elif channel.unwrap and not unit.turn:
        angles = ", ".join(unit for unit, entry in UNITS.items() if entry.turn)
        message = f"channel {name!r} is to be unwrapped, but its unit {channel.unit!r} is not one of angle"
        found.append(_problem(name, message, f"tell the unit of the column: {angles}"))
    if bool(channel.column) == bool(channel.velocity_of):
        message = f"channel {name!r} needs either a column or another channel that it is the velocity of"
        found.append(_problem(name, message, "give column or velocity_of"))
    elif channel.velocity_of:
        measured = [other.name for other in channels if other.column]
        if channel.velocity_of not in measured:
            message = f"channel {name!r} is the velocity of {channel.velocity_of!r}, which is not a measured channel"
            found.append(_problem(name, message, advice(channel.velocity_of, measured)))
        if channel != Channel(name, velocity_of=channel.velocity_of, window=channel.window):
            message = f"channel {name!r} is estimated and has further settings"
            found.append(_problem(name, message, "make them for the channel that it is the velocity of"))
    return found


def _problem(name: str, message: str, fix: str) -> Problem:
    return Problem(message, fix, code="data.channel", element=name)
