"""Samples that no motion explains: huge values, and single samples far from those before and after."""

import numpy as np
from jaxtyping import Float, Int

from hybridsim.core.advice import Advice
from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import remainder_suffix
from hybridsim.data.checks import DROP_NAN
from hybridsim.data.table import Table

MAX_VALUE = 1e12
"""Largest magnitude in SI units; larger values come from broken files."""
SPIKE_FRACTION = 0.5
"""Height of a spike, relative to the range of 98 % of the samples, above which it is reported."""
SPIKE_RATIO = 30.0
"""Height of a spike, relative to the usual distance of a sample from its neighbours."""
MAX_OFFSET = 0.3
"""Largest distance between the samples before and after a spike, relative to its height."""
MIN_SAMPLES = 20
"""Number of samples below which the usual distance is not known."""


def outlier_problems(
    values: Float[np.ndarray, " n"], rows: Int[np.ndarray, " n"], table: Table, column: str
) -> list[Problem]:
    """Huge values, which are errors, and isolated spikes, which are warnings.

    Args:
        values: finite values in SI units; angles unwrapped.
        rows: row indices of the values.
        table: table of the column.
        column: name of the column.
    """
    huge = np.flatnonzero(np.abs(values) > MAX_VALUE)
    if len(huge):
        message = f"column {column!r} has the value {values[huge[0]]:.3g} in SI units"
        return [_problem(message, huge, Severity.ERROR, rows, table, column)]
    spikes = np.flatnonzero(_is_spike(values))
    if not len(spikes):
        return []
    first = spikes[0]
    message = f"column {column!r} jumps to {values[first]:.4g} and back in SI units, {values[first - 1]:.4g} before it"
    return [_problem(message, spikes, Severity.WARNING, rows, table, column)]


def _is_spike(x: np.ndarray) -> np.ndarray:
    result = np.zeros(len(x), dtype=bool)
    if len(x) < MIN_SAMPLES:
        return result
    before, after = x[1:-1] - x[:-2], x[1:-1] - x[2:]
    # the distance from the nearer neighbour: at a step of a signal it is small, at a spike it is not
    distance = np.where(before * after > 0.0, np.minimum(np.abs(before), np.abs(after)), 0.0)
    low, high = np.quantile(x, [0.01, 0.99])
    usual = np.quantile(distance, 0.9)
    # after an impact a signal decays; after a spike it is where it was
    returns = np.abs(before - after) < MAX_OFFSET * distance
    result[1:-1] = returns & (distance > SPIKE_RATIO * usual) & (distance > SPIKE_FRACTION * (high - low))
    return result


def _problem(
    message: str, found: np.ndarray, severity: Severity, rows: np.ndarray, table: Table, column: str
) -> Problem:
    row = int(rows[found[0]])
    where = f"in {table.row_label(row)}{remainder_suffix(len(found), 'such row')}"
    fix = Advice("correct the value, or leave the cell empty and drop it: {}", DROP_NAN)
    return Problem(f"{message}, {where}", fix, table.file, table.row_number(row), severity, "data.outlier", column)
