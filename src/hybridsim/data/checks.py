"""What can be wrong with measured times and values; every function returns problems and changes nothing.

Times and values come without what is not finite; `rows` tells where in the table the remaining ones are.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import and_more, name_list, pluralize
from hybridsim.data.series import Series
from hybridsim.data.table import Table
from hybridsim.data.units import Unit

GAP_FACTOR = 5.0
"""A step that is longer than this many usual ones is a gap."""
PLAUSIBLE_STEP = (1e-7, 10.0)
"""Between these, a usual time step [s] needs no question about its unit."""
UNEVEN_DEVIATION, UNEVEN_FRACTION = 0.5, 0.1
"""Sampling is called uneven where a tenth of the steps differ from the usual one by more than half of it."""
WRAP_JUMP = (0.8, 1.2)
"""Changes from one sample to the next between these parts of a full turn look like an angle that starts again."""
RANGE_TOLERANCE = 0.1
"""How near numbers without a unit must come to both ends of a turn to be taken for an angle [rad]."""
MAX_MEDIAN_CHANGE = 0.25
"""An angle whose usual change is more than this part of a turn does not show where it starts again."""
AMBIGUOUS_CHANGE = 0.4
"""Changes of more than this part of a turn leave open in which direction the angle moved."""


def missing_values(
    finite: Sequence[bool] | np.ndarray, table: Table, column: str, name: str, *, dropped: bool
) -> list[Problem]:
    """Numbers that are missing or not finite: errors, or a note if they were left out."""
    bad = np.flatnonzero(~np.asarray(finite))
    if not len(bad):
        return []
    first = int(bad[0])
    where = f"in {table.row_label(first)}{and_more(len(bad), 'such row')}"
    if dropped:
        message = (
            f"{_column_label(column, name)} has no finite number {where}; left out {pluralize(len(bad), 'sample')}"
        )
        return [_problem(table, column, message, "", "data.nan", first, Severity.NOTE)]
    message = f"{_column_label(column, name)} has no finite number {where}: empty, NaN or infinite"
    return [
        _problem(
            table, column, message, "correct the file, or leave these samples out: on_nan='drop'", "data.nan", first
        )
    ]


def time_order(t: Float[np.ndarray, " n"], rows: Int[np.ndarray, " n"], table: Table, column: str) -> list[Problem]:
    """Times that go back or stand still."""
    steps, found = np.diff(t), []
    back, still = np.flatnonzero(steps < 0.0), np.flatnonzero(steps == 0.0)
    if len(back):
        row = int(rows[back[0] + 1])
        more = and_more(len(back), "such row")
        before, after = t[back[0]], t[back[0] + 1]
        message = f"time {column!r} goes back from {before:.15g} to {after:.15g} s in {table.row_label(row)}{more}"
        fix = (
            "cut the file there if two recordings follow one another, sort its rows, or leave out samples that are not "
            "later than all before them: on_disorder='drop'"
        )
        found.append(_problem(table, column, message, fix, "data.time_order", row))
    if len(still):
        row = int(rows[still[0] + 1])
        more = and_more(len(still), "such row")
        message = f"time {column!r} in {table.row_label(row)} is the same as before, {t[still[0]]:.15g} s{more}"
        fix = "write time stamps with more digits, or leave the second sample out: on_disorder='drop'"
        found.append(_problem(table, column, message, fix, "data.time_duplicate", row))
    return found


def dropped_out_of_order(later: np.ndarray, rows: Int[np.ndarray, " n"], table: Table, column: str) -> list[Problem]:
    """A note on samples that were left out because they are not later than all before them."""
    out = np.flatnonzero(~later)
    if not len(out):
        return []
    row = int(rows[out[0]])
    where = f"in {table.row_label(row)}{and_more(len(out), 'such row')}"
    message = f"time {column!r} goes back or stands still {where}; left out {pluralize(len(out), 'sample')}"
    return [_problem(table, column, message, "", "data.time_order", row, Severity.NOTE)]


def sampling(t: Float[np.ndarray, " n"], rows: Int[np.ndarray, " n"], table: Table, column: str) -> list[Problem]:
    """Doubts about increasing times: their unit, gaps, uneven steps."""
    found = []
    steps = np.diff(t)
    usual = float(np.median(steps))
    if not PLAUSIBLE_STEP[0] <= usual <= PLAUSIBLE_STEP[1]:
        fix = "tell the unit of the time column: time_unit='ms', 'us' or 'ns'" if usual > 1.0 else "time_unit='s'?"
        message = f"the usual step of time {column!r} is {usual:.3g} s, which is hard to believe"
        found.append(_problem(table, column, message, fix, "data.time_unit", severity=Severity.WARNING))
    found += gaps(t, rows, table, column)
    if (np.abs(steps - usual) > UNEVEN_DEVIATION * usual).mean() > UNEVEN_FRACTION:
        low, high = np.quantile(steps, [0.05, 0.95])
        message = f"time {column!r} is sampled unevenly: most steps are between {low:.3g} and {high:.3g} s"
        found.append(_problem(table, column, message, "", "data.uneven", severity=Severity.NOTE))
    return found


def gaps(t: Float[np.ndarray, " n"], rows: Int[np.ndarray, " n"], table: Table, column: str) -> list[Problem]:
    """Steps in time that are much longer than usual."""
    steps = np.diff(t)
    usual = float(np.median(steps))
    long = np.flatnonzero(steps > GAP_FACTOR * usual)
    if not len(long):
        return []
    longest = int(long[np.argmax(steps[long])])
    row = int(rows[longest + 1])
    others = f"; there are {pluralize(len(long), 'gap')} in all" if len(long) > 1 else ""
    message = (
        f"{column!r} has a gap of {steps[longest]:.3g} s before {table.row_label(row)}, at {t[longest]:.15g} s, "
        f"where {usual:.3g} s are usual{others}"
    )
    fix = f"cut the recording there: segments(recording, longest_gap={GAP_FACTOR * usual:.2g})"
    return [_problem(table, column, message, fix, "data.gap", row, Severity.WARNING)]


def wrap_around(
    values: Float[np.ndarray, " n"],
    rows: Int[np.ndarray, " n"],
    unit: Unit,
    table: Table,
    column: str,
    *,
    unwrapped: bool,
) -> list[Problem]:
    """Angles that start again after a full turn, or that change too fast to be unwrapped.

    Numbers without a unit that fill exactly one turn in radians are taken for an angle, too.

    Args:
        values: numbers as they are in the file, or already unwrapped.
        rows: where they are.
        unit: their unit.
        table: where they come from.
        column: its column.
        unwrapped: whether they are.
    """
    turn = unit.period or (2 * np.pi if not unit.quantity and _spans_one_revolution(values) else 0.0)
    if not turn:
        return []
    changes = np.abs(np.diff(values)) / turn
    if unwrapped:
        doubtful = np.flatnonzero(changes > AMBIGUOUS_CHANGE)
        if not len(doubtful):
            return []
        row = int(rows[doubtful[0] + 1])
        message = (
            f"column {column!r} changes by {changes[doubtful[0]]:.2g} turns at {table.row_label(row)}"
            f"{and_more(len(doubtful), 'such place')}, so that unwrapping may have gone the wrong way round"
        )
        return [_problem(table, column, message, "check the place", "data.unwrap", row, Severity.WARNING)]
    jumps = np.flatnonzero((changes > WRAP_JUMP[0]) & (changes < WRAP_JUMP[1]))
    if not len(jumps) or np.median(changes) > MAX_MEDIAN_CHANGE:
        return []
    row = int(rows[jumps[0] + 1])
    more = and_more(len(jumps), "such jump")
    message = f"column {column!r} jumps by {changes[jumps[0]]:.2g} turns at {table.row_label(row)}{more}"
    fix = "set unwrap=True" if unit.period else "if it is an angle, set unit='rad' and unwrap=True"
    return [_problem(table, column, message, fix, "data.jump", row, Severity.WARNING)]


def _spans_one_revolution(values: np.ndarray) -> bool:
    low, high = values.min(), values.max()
    return any(
        start <= low <= start + RANGE_TOLERANCE and start + 2 * np.pi - RANGE_TOLERANCE <= high <= start + 2 * np.pi
        for start in (-np.pi, 0.0)
    )


def too_few_samples(count: int, table: Table, column: str, name: str) -> Problem:
    """A channel with too few samples."""
    message = f"{_column_label(column, name)} has {pluralize(count, 'usable sample')}; at least 2 are needed"
    return _problem(table, column, message, "check whether the recording was cut off", "data.empty")


def length_mismatch(count: int, times: int, table: Table, column: str, time: str) -> Problem:
    """A channel with more or fewer samples than times."""
    message = f"column {column!r} has {pluralize(count, 'sample')}, but its time {time!r} has {times}"
    return _problem(table, column, message, "name the time column that belongs to it in the channel", "data.length")


def constant_channel(values: Float[np.ndarray, " n"], table: Table, column: str, name: str) -> list[Problem]:
    """A channel that never changes."""
    if (values != values[0]).any():
        return []
    message = f"{_column_label(column, name)} is constant"
    fix = "check the sensor and its cable; leave the channel out if it was not used"
    return [_problem(table, column, message, fix, "data.constant", severity=Severity.WARNING)]


def duplicate_channels(series: Sequence[Series], file: str) -> list[Problem]:
    """Channels with the same numbers to the last bit."""
    by_bytes: dict[bytes, list[str]] = {}
    for one in series:
        if (one.values != one.values[0]).any():  # constant channels are told already
            by_bytes.setdefault(one.values.tobytes(), []).append(one.name)
    return [
        Problem(
            f"channels {name_list(names)} are identical to the last bit",
            "check whether a column was named twice or a sensor recorded twice",
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
