"""Assemble a run from table columns: units, unwrapping, checks. All problems are collected before raising."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hybridsim.core.errors import DataError, Problem, Severity
from hybridsim.data import checks
from hybridsim.data.channel import Channel, ColumnSettings, channel_problems
from hybridsim.data.derivative import derivative, filter_window_text
from hybridsim.data.lookup import find_table, missing_time_problem
from hybridsim.data.outliers import outlier_problems
from hybridsim.data.recording_options import OnInvalid, RecordingOptions
from hybridsim.data.run import Run
from hybridsim.data.series import Series
from hybridsim.data.table import Table
from hybridsim.data.units import UNITS


def assemble_run(
    name: str,
    channels: Sequence[ColumnSettings],
    tables: Mapping[str, Sequence[Table]],
    options: RecordingOptions,
    *,
    read_problems: Sequence[Problem] = (),
) -> Run:
    """Run of the channels, with their columns taken from the tables.

    Args:
        name: name of the run.
        channels: channels to assemble.
        tables: tables that may hold the column of each channel, by channel name; a channel without tables is skipped.
        options: source of the time stamps, and treatment of invalid samples.
        read_problems: problems found while the tables were read.

    Raises:
        DataError: the data cannot be used; carries every error, including those in `read_problems`.
    """
    config_problems = [*channel_problems(channels), *options.problems()]
    unique_tables = list({id(table): table for candidates in tables.values() for table in candidates}.values())
    table_problems = (problem for table in unique_tables for problem in table.problems)
    problems = [*read_problems, *config_problems, *table_problems]
    assembly = _Assembly(options)
    if not options.problems():
        invalid = {problem.element for problem in config_problems}
        for channel in channels:
            if channel.has_column and channel.series_name not in invalid and tables.get(channel.series_name):
                assembly.add(channel, tables[channel.series_name])
    file = unique_tables[0].file if unique_tables else ""
    problems += [*assembly.problems, *checks.duplicate_channel_problems(list(assembly.series.values()), file)]
    _raise_errors(problems)
    for channel in channels:
        if isinstance(channel, Channel) and channel.velocity_of:
            assembly.estimate_velocity(channel)
    problems += assembly.estimate_problems
    _raise_errors(problems)
    series = {channel.series_name: assembly.series[channel.series_name] for channel in channels}
    sources = dict.fromkeys((table.file, table.sha256) for table in unique_tables if table.file)
    return Run(name, series, tuple(sources), tuple(dict.fromkeys(problems)))


def table_from_arrays(t: np.ndarray, columns: Mapping[str, np.ndarray]) -> tuple[Table, str]:
    """Table of arrays in memory, and the name of its time column."""
    time = "t"
    while time in columns:
        time += "'"
    readable, unreadable = {}, {}
    for key, values in {time: t, **columns}.items():
        try:
            array = np.asarray(values, dtype=float)
        except (TypeError, ValueError) as error:
            unreadable[key] = Problem(f"{key!r} is not an array of numbers: {error}", code="data.array", element=key)
            continue
        if array.ndim == 1:
            readable[key] = array
        else:
            message = f"{key!r} has shape {array.shape}; a column must be one-dimensional"
            unreadable[key] = Problem(message, "pass one array per column", code="data.array", element=key)
    return Table(readable, first_row=0, row_format="entry {}", unreadable=unreadable), time


def run_from_arrays(
    name: str, t: np.ndarray, channels: Mapping[str, np.ndarray], on_nan: OnInvalid, on_out_of_order: OnInvalid
) -> Run:
    """Run of arrays in memory; see `Run.from_arrays`."""
    table, time = table_from_arrays(t, channels)
    specs = [Channel(key, key) for key in channels]
    options = RecordingOptions(time=time, on_nan=on_nan, on_out_of_order=on_out_of_order)
    return assemble_run(name, specs, {key: [table] for key in channels}, options)


def _raise_errors(problems: Sequence[Problem]) -> None:
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if errors:
        raise DataError(dict.fromkeys(errors))


class _Assembly:
    """Series of a run and their problems, accumulated channel by channel."""

    def __init__(self, options: RecordingOptions):
        self._options = options
        self._drop_nan = options.on_nan == "drop"
        self._times: dict[tuple[int, str | float, int], np.ndarray | None] = {}
        self.series: dict[str, Series] = {}
        self.problems: list[Problem] = []
        self.estimate_problems: list[Problem] = []

    def add(self, channel: ColumnSettings, tables: Sequence[Table]) -> None:
        """Add a measured channel, or its problems if it cannot be used."""
        table = find_table(channel, tables)
        if isinstance(table, Problem):
            self.problems.append(table)
            return
        column = channel.column
        raw = table.columns[column]
        t = self._channel_times(channel, table, len(raw))
        finite = np.isfinite(raw)
        self.problems += checks.missing_value_problems(
            finite, table, column, channel.series_name, dropped=self._drop_nan
        )
        rows = np.flatnonzero(finite if t is None else finite & np.isfinite(t))
        if len(rows) < 2:
            if self._drop_nan or finite.all():  # otherwise the missing values are already an error
                self.problems.append(checks.too_few_samples_problem(len(rows), table, column, channel.series_name))
            return
        unit = UNITS[channel.unit]
        raw = raw[rows]
        if channel.unwraps:
            raw = np.unwrap(raw, period=unit.period)
        self.problems += checks.wrap_around_problems(raw, rows, unit, table, column, unwrapped=channel.unwraps)
        values = channel.scale * (unit.factor * raw) + channel.offset
        self.problems += outlier_problems(values, rows, table, column)
        self.problems += checks.constant_channel_problems(values, table, column, channel.series_name)
        if t is None:
            return
        if not finite[np.isfinite(t)].all():
            # samples dropped from this channel may leave a gap that the time column does not have
            self.problems += checks.gap_problems(t[rows], rows, table, column)
        t = t if len(rows) == len(t) else t[rows]
        self.series[channel.series_name] = Series(channel.series_name, t, values)

    def estimate_velocity(self, channel: Channel) -> None:
        """Add a channel that is the numerical derivative of another one."""
        source = self.series[channel.velocity_of]
        try:
            self.series[channel.series_name] = replace(
                derivative(source, filter_window=channel.filter_window), name=channel.series_name
            )
        except DataError as error:
            self.estimate_problems += error.problems
            return
        window = filter_window_text(channel.filter_window)
        message = (
            f"channel {channel.series_name!r} is differentiated numerically from {source.name!r}, by local cubic "
            f"polynomials over {window}"
        )
        note = Problem(message, severity=Severity.NOTE, code="data.estimated", element=channel.series_name)
        self.estimate_problems.append(note)

    def _channel_times(self, channel: ColumnSettings, table: Table, count: int) -> np.ndarray | None:
        """Time stamps of a channel's samples [s], NaN where missing or dropped; None if they cannot be used."""
        time = channel.time or self._options.sample_interval or self._options.time
        if isinstance(time, str) and time in table.columns and len(table.columns[time]) != count:
            times = len(table.columns[time])
            self.problems.append(checks.length_mismatch_problem(count, times, table, channel.column, time))
            return None
        key = (id(table), time, count)
        if key not in self._times:
            self._times[key] = self._checked_times(time, table, count)
        return self._times[key]

    def _checked_times(self, time: str | float, table: Table, count: int) -> np.ndarray | None:
        factor = UNITS[self._options.time_unit].factor
        if not isinstance(time, str):
            return _make_read_only(np.arange(count) * (time * factor))
        if time not in table.columns:
            self.problems.append(missing_time_problem(time, table))
            return None
        t = table.columns[time] * factor
        finite = np.isfinite(t)
        self.problems += checks.missing_value_problems(finite, table, time, "", dropped=self._drop_nan)
        rows = np.flatnonzero(finite)
        if self._options.on_out_of_order == "drop":
            is_later = np.diff(np.maximum.accumulate(t[rows]), prepend=-np.inf) > 0.0
            self.problems += checks.out_of_order_problems(is_later, rows, table, time)
            t[rows[~is_later]] = np.nan
            rows = rows[is_later]
        order_problems = checks.time_order_problems(t[rows], rows, table, time)
        self.problems += order_problems
        if order_problems:
            return None
        if len(rows) > 1:
            self.problems += checks.sampling_problems(t[rows], rows, table, time)
        return _make_read_only(t)


def _make_read_only(array: np.ndarray) -> np.ndarray:
    # series copy writeable arrays only, so all series of a run share this one
    array.setflags(write=False)
    return array
