"""Tables of the arrays in a file: `angles[0]` is the first column of the array `angles`; runs become separate tables.

A file stores several runs in one of two ways: stacked, in arrays of shape (runs, samples) or (runs, samples, columns),
or concatenated, with an array that holds the first row of each run, followed by the total number of rows.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hybridsim.core.advice import Advice, Setting
from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint, pluralize
from hybridsim.data.memory_limit import require_memory
from hybridsim.data.table import Table

MAX_COLUMNS = 1000
"""An array with more columns is not a table of channels: it is an image, or has its samples along the columns."""

SEVERAL_RUNS = Advice("load all runs of the file: {}", Setting("several_runs", True, "data"))
"""Advice for files with several runs."""

RunSelection = int | Literal["all"] | None
"""Index of one run, from 0; all runs; or None for a file with a single run."""


def array_tables(arrays: Mapping[str, Any], file: str, run: RunSelection = None, run_starts: str = "") -> list[Table]:
    """Tables of the arrays in a file, one per selected run.

    Args:
        arrays: NumPy arrays or HDF5 datasets by name; the only array of a file without names is named "".
        file: path of the file; for messages.
        run: selected run.
        run_starts: name of the array with the first row of each run, followed by the total number of rows; empty for
            stacked runs.

    Raises:
        DataError: the run or the array `run_starts` does not exist.
    """
    arrays = dict(_split_record_fields(arrays, file))
    if run is None and not run_starts:
        return [_table(arrays, file)]
    if run is None:
        fix = SEVERAL_RUNS
        message = f"run_starts={run_starts!r} is specified, but no run is selected"
        raise DataError([_run_problem(message, fix, file)])
    if run_starts:
        return _concatenated_runs(arrays, file, run, run_starts)
    return _stacked_runs(arrays, file, run)


def as_floats(array: np.ndarray) -> np.ndarray:
    """Values in double precision; dates become seconds since 1970, durations seconds."""
    if array.dtype.kind not in "Mm":
        return array.astype(float)
    unit = "datetime64[ns]" if array.dtype.kind == "M" else "timedelta64[ns]"
    return np.where(np.isnat(array), np.nan, array.astype(unit).astype(np.int64) * 1e-9)


def _stacked_runs(arrays: Mapping[str, Any], file: str, run: int | Literal["all"]) -> list[Table]:
    stacks = [array for array in arrays.values() if _is_numeric(array) and len(array.shape) in (2, 3)]
    if not stacks:
        message = "the file has no stacked runs: no array of shape (runs, samples) or (runs, samples, columns)"
        raise DataError([_run_problem(message, "omit run", file)])
    count = max(stacks, key=lambda array: (len(array.shape), array.size)).shape[0]
    tables = []
    for k in _selected_runs(run, count, file):
        arrays_of_run, unreadable = {}, {}
        for name, array in arrays.items():
            if len(array.shape) < 2:
                arrays_of_run[name] = array  # shared by all runs, such as their time stamps
            elif array.shape[0] == count:
                arrays_of_run[name] = array[k]
            else:
                message = (
                    f"array {name!r} of shape {_shape_text(array)} is not stacked over the {pluralize(count, 'run')}"
                )
                unreadable[name] = _array_problem(name, message, "choose another column", file)
        tables.append(_table(arrays_of_run, file, row_format=f"row {{}} of run {k}", unreadable=unreadable))
    return tables


def _concatenated_runs(arrays: Mapping[str, Any], file: str, run: int | Literal["all"], run_starts: str) -> list[Table]:
    if run_starts not in arrays:
        message = f"the file has no array {run_starts!r}, which run_starts names"
        raise DataError([_run_problem(message, name_hint(run_starts, arrays), file)])
    starts = np.asarray(arrays[run_starts][...])
    is_index_vector = starts.dtype.kind in "iu" and starts.ndim == 1 and len(starts) > 1
    if not is_index_vector or starts[0] < 0 or (np.diff(starts.astype(np.int64)) < 0).any():
        message = f"array {run_starts!r} does not hold increasing row indices"
        fix = "it must hold the index of the first row of each run, from 0, followed by the total number of rows"
        raise DataError([_run_problem(message, fix, file)])
    rows = int(starts[-1])
    sliced = {name: array for name, array in arrays.items() if array.shape and array.shape[0] == rows}
    if not sliced:
        message = (
            f"according to {run_starts!r} the last run ends at row {rows}, but no array has {pluralize(rows, 'row')}"
        )
        fix = f"the last entry of {run_starts!r} must be the total number of rows"
        raise DataError([_run_problem(message, fix, file)])
    total = f"{pluralize(rows, 'row')}, the total of all runs"
    unreadable = {
        name: _array_problem(name, f"array {name!r} does not have {total}", "", file)
        for name in arrays
        if name not in sliced
    }
    return [
        _table(
            {name: array[int(starts[k]) : int(starts[k + 1])] for name, array in sliced.items()},
            file,
            first_row=int(starts[k]) + 1,
            row_format=f"row {{}} (in run {k})",
            unreadable=unreadable,
        )
        for k in _selected_runs(run, len(starts) - 1, file)
    ]


def _selected_runs(run: int | Literal["all"], count: int, file: str) -> range:
    if run == "all":
        return range(count)
    if not 0 <= run < count:
        message = f"the file has no run {run}"
        raise DataError([_run_problem(message, f"it has {pluralize(count, 'run')}, counted from 0", file)])
    return range(run, run + 1)


def _table(
    arrays: Mapping[str, Any],
    file: str,
    *,
    first_row: int = 1,
    row_format: str = "row {}",
    unreadable: Mapping[str, Problem] | None = None,
) -> Table:
    columns: dict[str, np.ndarray] = {}
    unreadable_names = dict(unreadable or {})
    problems = {name: _column_split_problem(name, array, file) for name, array in arrays.items()}
    # arrays of HDF5 files are read only here
    size = sum(array.nbytes for name, array in arrays.items() if problems[name] is None)
    require_memory(Path(file), size, "the data of the file")
    for name, array in arrays.items():
        problem = problems[name]
        if problem is not None:
            unreadable_names[name] = problem
        elif len(array.shape) == 1:
            columns[name or "0"] = as_floats(np.asarray(array[...]))
        else:
            values = np.ascontiguousarray(as_floats(np.asarray(array[...])).T)
            columns |= {f"{name}[{k}]" if name else str(k): column for k, column in enumerate(values)}
            last = array.shape[1] - 1
            message = f"array {name!r} has {pluralize(array.shape[1], 'column')}"
            fix = f"choose one of them: '{name}[0]' to '{name}[{last}]'" if last else f"write '{name}[0]'"
            unreadable_names[name] = _array_problem(name, message, fix, file)
    return Table(columns, file, first_row=first_row, row_format=row_format, unreadable=unreadable_names)


def _column_split_problem(name: str, array: Any, file: str) -> Problem | None:
    """Why an array cannot be split into columns; None if it can."""
    label = f"array {name!r}" if name else "the array"
    if not _is_numeric(array):
        return _array_problem(name, f"{label} is not numeric (type {array.dtype})", "choose another column", file)
    shape = array.shape
    if not shape:
        return _array_problem(name, f"{label} is a scalar, not a column", "choose another column", file)
    if len(shape) == 2 and (shape[1] > MAX_COLUMNS or (shape[1] > shape[0] > 0 and shape[1] > MAX_COLUMNS // 10)):
        fix = "a table has one row per sample; if samples run along the columns, save the transpose"
        return _array_problem(name, f"{label} has {shape[1]} columns and {pluralize(shape[0], 'row')}", fix, file)
    if len(shape) == 3:
        message = f"{label} of shape {_shape_text(array)} looks like a stack of {pluralize(shape[0], 'run')}"
        return _run_problem(message, SEVERAL_RUNS, file, name)
    if len(shape) > 3:
        return _array_problem(name, f"{label} has {len(shape)} dimensions", "choose another column", file)
    return None


def _split_record_fields(arrays: Mapping[str, Any], file: str) -> Iterator[tuple[str, Any]]:
    """Arrays by name; a structured array is split into one array per field, `array.field`."""
    for name, array in arrays.items():
        if array.dtype.names is None:
            yield name, array
        else:
            require_memory(Path(file), array.nbytes, f"array {name!r}")
            records = np.asarray(array[...])
            yield from ((f"{name}.{field}" if name else field, records[field]) for field in array.dtype.names)


def _is_numeric(array: Any) -> bool:
    # the shape of an empty HDF5 dataset is None
    return array.shape is not None and array.dtype.kind in "biufMm"


def _shape_text(array: Any) -> str:
    return f"({', '.join(map(str, array.shape))})"


def _array_problem(name: str, message: str, fix: str, file: str) -> Problem:
    return Problem(message, fix, file, code="data.array", element=name)


def _run_problem(message: str, fix: str, file: str, name: str = "") -> Problem:
    return Problem(message, fix, file, code="data.run", element=name)
