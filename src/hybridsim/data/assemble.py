"""Columns of tables become series of a recording: units, angles, checks. Every problem is collected."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from hybridsim.core.errors import DataError, Problem, Severity
from hybridsim.data import checks
from hybridsim.data.channel import Channel, problems_of
from hybridsim.data.derivative import derivative, window_in_words
from hybridsim.data.lookup import find_table, no_time_problem
from hybridsim.data.recording import Recording
from hybridsim.data.series import Series
from hybridsim.data.table import Table
from hybridsim.data.units import UNITS, find_unit

OnFault = Literal["error", "drop"]
"""What to do with samples at fault: refuse the recording, or leave them out and say so."""


@dataclass(frozen=True)
class Options:
    """How a recording is made."""

    time: str | float = "time"
    """Time column of channels without their own; or the constant step between samples, where a file has none."""
    time_unit: str = "s"
    on_nan: OnFault = "error"
    """For samples without a finite number."""
    on_disorder: OnFault = "error"
    """For samples that are not later than all before them."""

    def __post_init__(self):
        for name in ("on_nan", "on_disorder"):
            if getattr(self, name) not in get_args(OnFault):
                raise ValueError(f"{name} is one of {', '.join(get_args(OnFault))}, not {getattr(self, name)!r}")

    def problems(self) -> list[Problem]:
        """What is wrong with the times."""
        unit = find_unit(self.time_unit, "time", "time")
        found = [unit] if isinstance(unit, Problem) else []
        if not isinstance(self.time, str) and not 0.0 < self.time < math.inf:
            message = f"the time step {self.time} is not a positive number"
            found.append(Problem(message, "tell the step between samples", code="data.step", element="time"))
        return found


def recording_of(
    name: str,
    channels: Sequence[Channel],
    tables: Mapping[str, Sequence[Table]],
    options: Options,
    *,
    before: Sequence[Problem] = (),
) -> Recording:
    """A recording of channels in tables.

    Args:
        name: of the recording.
        channels: what to take.
        tables: where the column of each channel may be, by the channel's name; a channel without any is passed over.
        options: where times come from, and what to do with samples at fault.
        before: problems that were met while the tables were read.

    Raises:
        DataError: the recording cannot be used; carries every error, `before` included.
    """
    wrong = [*problems_of(channels), *options.problems()]
    distinct = list({id(table): table for found in tables.values() for table in found}.values())
    found = [*before, *wrong, *(problem for table in distinct for problem in table.problems)]
    assembly = _Assembly(options)
    if not options.problems():
        at_fault = {problem.element for problem in wrong}
        for channel in channels:
            if channel.column and channel.name not in at_fault and tables.get(channel.name):
                assembly.add(channel, tables[channel.name])
    file = distinct[0].file if distinct else ""
    found += [*assembly.problems, *checks.alike(list(assembly.series.values()), file)]
    _raise_errors(found)
    for channel in channels:
        if channel.velocity_of:
            assembly.estimate(channel)
    found += assembly.estimates
    _raise_errors(found)
    series = {channel.name: assembly.series[channel.name] for channel in channels}
    sources = dict.fromkeys((table.file, table.sha256) for table in distinct if table.file)
    return Recording(name, series, tuple(sources), tuple(dict.fromkeys(found)))


def recording_of_arrays(
    name: str, t: np.ndarray, channels: Mapping[str, np.ndarray], on_nan: OnFault, on_disorder: OnFault
) -> Recording:
    """A recording of arrays in memory; see `Recording.from_arrays`."""
    time = "t"
    while time in channels:
        time += "'"
    columns, unreadable = {}, {}
    for key, values in {time: t, **channels}.items():
        try:
            array = np.asarray(values, dtype=float)
        except (TypeError, ValueError) as error:
            unreadable[key] = Problem(f"{key!r} is not an array of numbers: {error}", code="data.array", element=key)
            continue
        if array.ndim == 1:
            columns[key] = array
        else:
            message = f"{key!r} has shape {array.shape}, not one dimension"
            unreadable[key] = Problem(message, "give one array per channel", code="data.array", element=key)
    table = Table(columns, first_row=0, row_form="entry {}", unreadable=unreadable)
    wanted = [Channel(key, key) for key in channels]
    return recording_of(name, wanted, {key: [table] for key in channels}, Options(time, "s", on_nan, on_disorder))


def _raise_errors(problems: Sequence[Problem]) -> None:
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if errors:
        raise DataError(dict.fromkeys(errors))


class _Assembly:
    """Series and problems of a recording, as far as it is done."""

    def __init__(self, options: Options):
        self._options = options
        self._drops = options.on_nan == "drop"
        self._times: dict[tuple[int, str | float, int], np.ndarray | None] = {}
        self.series: dict[str, Series] = {}
        self.problems: list[Problem] = []
        self.estimates: list[Problem] = []

    def add(self, channel: Channel, tables: Sequence[Table]) -> None:
        """Add a measured channel, or what is wrong with it."""
        table = find_table(channel, tables)
        if isinstance(table, Problem):
            self.problems.append(table)
            return
        column = channel.column
        numbers = table.columns[column]
        t = self._times_of(channel, table, len(numbers))
        finite = np.isfinite(numbers)
        self.problems += checks.missing_numbers(finite, table, column, channel.name, dropped=self._drops)
        rows = np.flatnonzero(finite if t is None else finite & np.isfinite(t))
        if len(rows) < 2:
            if self._drops or finite.all():  # or else it is told that numbers are missing
                self.problems.append(checks.too_short(len(rows), table, column, channel.name))
            return
        unit = UNITS[channel.unit]
        numbers = numbers[rows]
        if channel.unwrap:
            numbers = np.unwrap(numbers, period=unit.turn)
        self.problems += checks.turns(numbers, rows, unit, table, column, unwrapped=channel.unwrap)
        values = channel.scale * (unit.factor * numbers) + channel.offset
        self.problems += checks.constant(values, table, column, channel.name)
        if t is None:
            return
        if not finite[np.isfinite(t)].all():
            # what was left out of this channel may leave a gap that the times do not show
            self.problems += checks.gaps(t[rows], rows, table, column)
        t = t if len(rows) == len(t) else t[rows]
        self.series[channel.name] = Series(channel.name, t, values)

    def estimate(self, channel: Channel) -> None:
        """Add a channel that is the velocity of another one."""
        source = self.series[channel.velocity_of]
        try:
            self.series[channel.name] = replace(derivative(source, window=channel.window), name=channel.name)
        except DataError as error:
            self.estimates += error.problems
            return
        window = window_in_words(channel.window)
        message = f"channel {channel.name!r} is estimated from {source.name!r} by cubic polynomials over {window}"
        self.estimates.append(Problem(message, severity=Severity.NOTE, code="data.estimated", element=channel.name))

    def _times_of(self, channel: Channel, table: Table, count: int) -> np.ndarray | None:
        """Times of a channel's samples [s], NaN where the file has none; None if they are of no use."""
        time = channel.time or self._options.time
        if isinstance(time, str) and time in table.columns and len(table.columns[time]) != count:
            self.problems.append(checks.other_length(count, len(table.columns[time]), table, channel.column, time))
            return None
        key = (id(table), time, count)
        if key not in self._times:
            self._times[key] = self._checked_times(time, table, count)
        return self._times[key]

    def _checked_times(self, time: str | float, table: Table, count: int) -> np.ndarray | None:
        factor = UNITS[self._options.time_unit].factor
        if not isinstance(time, str):
            return _read_only(np.arange(count) * (time * factor))
        if time not in table.columns:
            self.problems.append(no_time_problem(time, table))
            return None
        t = table.columns[time] * factor
        finite = np.isfinite(t)
        self.problems += checks.missing_numbers(finite, table, time, "", dropped=self._drops)
        rows = np.flatnonzero(finite)
        if self._options.on_disorder == "drop":
            later = np.diff(np.maximum.accumulate(t[rows]), prepend=-np.inf) > 0.0
            self.problems += checks.left_out_of_order(later, rows, table, time)
            t[rows[~later]] = np.nan
            rows = rows[later]
        disorder = checks.order(t[rows], rows, table, time)
        self.problems += disorder
        if disorder:
            return None
        if len(rows) > 1:
            self.problems += checks.sampling(t[rows], rows, table, time)
        return _read_only(t)


def _read_only(array: np.ndarray) -> np.ndarray:
    # so that all series of a recording share it
    array.setflags(write=False)
    return array
