"""Checks on measured times and values; every function returns problems and modifies nothing.

Times and values passed in are finite; `rows` holds their row indices in the table.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from hybridsim.core.advice import Advice, Setting
from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import name_list, pluralize, remainder_suffix
from hybridsim.data.series import Series
from hybridsim.data.table import Table
from hybridsim.data.units import Unit

GAP_FACTOR = 5.0
"""A sample interval longer than this multiple of the median is a gap."""
PLAUSIBLE_SAMPLE_INTERVAL = (1e-7, 10.0)
"""Range of median sample intervals [s] outside which the time unit is probably wrong."""
UNEVEN_DEVIATION, UNEVEN_FRACTION = 0.5, 0.1
"""Sampling is uneven if more than `UNEVEN_FRACTION` of the sample intervals deviate from the median by more than
`UNEVEN_DEVIATION` times the median."""
WRAP_JUMP = (0.8, 1.2)
"""Range of changes between samples, in revolutions, that indicate a wrapped angle."""
RANGE_TOLERANCE = 0.1
"""Values without a unit that span one revolution to within this tolerance at both ends are taken for an angle [rad]."""
MAX_MEDIAN_CHANGE = 0.25
"""Largest median change, in revolutions, at which wrapping can be detected."""
AMBIGUOUS_CHANGE = 0.4
"""Changes above this fraction of a revolution are ambiguous in direction."""

DROP_NAN, DROP_OUT_OF_ORDER = Setting("on_nan", "drop", "data"), Setting("on_out_of_order", "drop", "data")
"""Options that drop invalid samples."""


def missing_value_problems(
    finite: Sequence[bool] | np.ndarray, table: Table, column: str, name: str, *, dropped: bool
) -> list[Problem]:
    """Missing or non-finite values: an error, or a note if they were dropped."""
    invalid = np.flatnonzero(~np.asarray(finite))
    if not len(invalid):
        return []
    first = int(invalid[0])
    where = f"in {table.row_label(first)}{remainder_suffix(len(invalid), 'such row')}"
    if dropped:
        message = (
            f"{_column_label(column, name)} has no finite value {where}; dropped {pluralize(len(invalid), 'sample')}"
        )
        return [_problem(table, column, message, "", "data.nan", first, Severity.NOTE)]
    message = f"{_column_label(column, name)} has no finite value {where}: empty, NaN or infinite"
    return [
        _problem(
            table, column, message, Advice("correct the file, or drop these samples: {}", DROP_NAN), "data.nan", first
        )
    ]


def time_order_problems(
    t: Float[np.ndarray, " n"], rows: Int[np.ndarray, " n"], table: Table, column: str
) -> list[Problem]:
    """Time stamps that decrease or repeat."""
    steps, problems = np.diff(t), []
    decreasing, repeated = np.flatnonzero(steps < 0.0), np.flatnonzero(steps == 0.0)
    if len(decreasing):
        row = int(rows[decreasing[0] + 1])
        more = remainder_suffix(len(decreasing), "such row")
        before, after = t[decreasing[0]], t[decreasing[0] + 1]
        message = f"time {column!r} decreases from {before:.15g} to {after:.15g} s in {table.row_label(row)}{more}"
        fix = Advice(
            "split the file there if it holds two recordings, sort its rows, or drop samples that are not later than "
            "all before them: {}",
            DROP_OUT_OF_ORDER,
        )
        problems.append(_problem(table, column, message, fix, "data.time_order", row))
    if len(repeated):
        row = int(rows[repeated[0] + 1])
        more = remainder_suffix(len(repeated), "such row")
        message = f"time {column!r} in {table.row_label(row)} repeats the previous one, {t[repeated[0]]:.15g} s{more}"
        fix = Advice("write time stamps with more digits, or drop the repeated samples: {}", DROP_OUT_OF_ORDER)
        problems.append(_problem(table, column, message, fix, "data.time_duplicate", row))
    return problems


def out_of_order_problems(
    is_later: np.ndarray, rows: Int[np.ndarray, " n"], table: Table, column: str
) -> list[Problem]:
    """A note on samples that were dropped because they are not later than all before them."""
    dropped = np.flatnonzero(~is_later)
    if not len(dropped):
        return []
    row = int(rows[dropped[0]])
    where = f"in {table.row_label(row)}{remainder_suffix(len(dropped), 'such row')}"
    message = f"time {column!r} decreases or repeats {where}; dropped {pluralize(len(dropped), 'sample')}"
    return [_problem(table, column, message, "", "data.time_order", row, Severity.NOTE)]


def sampling_problems(
    t: Float[np.ndarray, " n"], rows: Int[np.ndarray, " n"], table: Table, column: str
) -> list[Problem]:
    """Warnings and notes about increasing times: implausible unit, gaps, uneven sampling."""
    problems = []
    intervals = np.diff(t)
    median = float(np.median(intervals))
    if not PLAUSIBLE_SAMPLE_INTERVAL[0] <= median <= PLAUSIBLE_SAMPLE_INTERVAL[1]:
        fix = (
            Advice("set the unit of the time column: {}, 'us' or 'ns'", Setting("time_unit", "ms", "data"))
            if median > 1.0
            else Advice("check whether it is in seconds: {}", Setting("time_unit", "s", "data"))
        )
        message = f"the median sample interval of time {column!r} is {median:.3g} s, which is implausible"
        problems.append(_problem(table, column, message, fix, "data.time_unit", severity=Severity.WARNING))
    problems += gap_problems(t, rows, table, column)
    if (np.abs(intervals - median) > UNEVEN_DEVIATION * median).mean() > UNEVEN_FRACTION:
        low, high = np.quantile(intervals, [0.05, 0.95])
        message = (
            f"the stamps of time {column!r} are unevenly spaced: 90 % of the intervals are between {low:.3g} and "
            f"{high:.3g} s"
        )
        problems.append(_problem(table, column, message, "", "data.uneven", severity=Severity.NOTE))
    return problems


def gap_problems(t: Float[np.ndarray, " n"], rows: Int[np.ndarray, " n"], table: Table, column: str) -> list[Problem]:
    """Sample intervals much longer than the median."""
    intervals = np.diff(t)
    median = float(np.median(intervals))
    long = np.flatnonzero(intervals > GAP_FACTOR * median)
    if not len(long):
        return []
    longest = int(long[np.argmax(intervals[long])])
    row = int(rows[longest + 1])
    total = f"; there are {pluralize(len(long), 'gap')} in total" if len(long) > 1 else ""
    message = (
        f"{column!r} has a gap of {intervals[longest]:.3g} s before {table.row_label(row)}, at {t[longest]:.15g} s, "
        f"while the median sample interval is {median:.3g} s{total}"
    )
    limit = float(f"{GAP_FACTOR * median:.2g}")
    fix = Advice("split the recording there: {}", Setting("max_sample_interval", limit, "data"))
    return [_problem(table, column, message, fix, "data.gap", row, Severity.WARNING)]


def wrap_around_problems(
    values: Float[np.ndarray, " n"],
    rows: Int[np.ndarray, " n"],
    unit: Unit,
    table: Table,
    column: str,
    *,
    unwrapped: bool,
) -> list[Problem]:
    """Wrapped angles, and angles that change too fast to be unwrapped.

    Values without a unit that span one revolution, from −π to π or from 0 to 2π, are also taken for an angle.

    Args:
        values: values as in the file, or unwrapped.
        rows: row indices of the values.
        unit: unit of the values.
        table: table of the column.
        column: name of the column.
        unwrapped: whether the values are unwrapped.
    """
    period = unit.period or (2 * np.pi if not unit.quantity and _is_one_revolution(values) else 0.0)
    if not period:
        return []
    changes = np.abs(np.diff(values)) / period
    if unwrapped:
        ambiguous = np.flatnonzero(changes > AMBIGUOUS_CHANGE)
        if not len(ambiguous):
            return []
        row = int(rows[ambiguous[0] + 1])
        message = (
            f"column {column!r} changes by {changes[ambiguous[0]]:.2g} revolutions at {table.row_label(row)}"
            f"{remainder_suffix(len(ambiguous), 'such change')}, so the direction of unwrapping is ambiguous"
        )
        return [
            _problem(
                table, column, message, "check the samples before and after it", "data.unwrap", row, Severity.WARNING
            )
        ]
    jumps = np.flatnonzero((changes > WRAP_JUMP[0]) & (changes < WRAP_JUMP[1]))
    if not len(jumps) or np.median(changes) > MAX_MEDIAN_CHANGE:
        return []
    row = int(rows[jumps[0] + 1])
    more = remainder_suffix(len(jumps), "such jump")
    message = f"column {column!r} jumps by {changes[jumps[0]]:.2g} revolutions at {table.row_label(row)}{more}"
    unwrap = Setting("unwrap", True)
    fix = Advice("set {}", unwrap)
    if not unit.period:
        fix = Advice("if it is an angle, set {} and {}", Setting("unit", "rad"), unwrap)
    return [_problem(table, column, message, fix, "data.jump", row, Severity.WARNING)]


def _is_one_revolution(values: np.ndarray) -> bool:
    low, high = values.min(), values.max()
    return any(
        start <= low <= start + RANGE_TOLERANCE and start + 2 * np.pi - RANGE_TOLERANCE <= high <= start + 2 * np.pi
        for start in (-np.pi, 0.0)
    )


def too_few_samples_problem(count: int, table: Table, column: str, name: str) -> Problem:
    """A channel with too few samples."""
    message = f"{_column_label(column, name)} has {pluralize(count, 'usable sample')}; at least 2 are needed"
    return _problem(table, column, message, "check whether the recording was cut off", "data.empty")


def length_mismatch_problem(count: int, times: int, table: Table, column: str, time: str) -> Problem:
    """A channel whose number of samples differs from that of its time stamps."""
    message = f"column {column!r} has {pluralize(count, 'sample')}, but its time {time!r} has {times}"
    return _problem(table, column, message, "specify the matching time column in the channel", "data.length")


def constant_channel_problems(values: Float[np.ndarray, " n"], table: Table, column: str, name: str) -> list[Problem]:
    """A channel that is constant."""
    if (values != values[0]).any():
        return []
    message = f"{_column_label(column, name)} is constant"
    fix = "check the sensor and its cable; omit the channel if it was not in use"
    return [_problem(table, column, message, fix, "data.constant", severity=Severity.WARNING)]


def duplicate_channel_problems(series: Sequence[Series], file: str) -> list[Problem]:
    """Channels that are bitwise identical."""
    by_bytes: dict[bytes, list[str]] = {}
    for channel in series:
        if (channel.values != channel.values[0]).any():  # constant channels are reported already
            by_bytes.setdefault(channel.values.tobytes(), []).append(channel.name)
    return [
        Problem(
            f"channels {name_list(names)} are bitwise identical",
            "check whether a column was selected twice or a sensor recorded twice",
            file,
            severity=Severity.WARNING,
            code="data.duplicate_channel",
            element=names[1],
        )
        for names in by_bytes.values()
        if len(names) > 1
    ]


def _column_label(column: str, name: str) -> str:
    return f"column {column!r}" + (f" (channel {name!r})" if name not in ("", column) else "")


def _problem(
    table: Table,
    column: str,
    message: str,
    fix: str,
    code: str,
    row: int | None = None,
    severity: Severity = Severity.ERROR,
) -> Problem:
    line = 0 if row is None else table.row_number(row)
    return Problem(message, fix, table.file, line, severity, code, column)
