"""Arrays of a file as columns: `angles[0]` is the first column of the array `angles`; stacks of runs are taken apart.

A file with several runs holds them in one of two ways: as a stack, arrays of shape (runs, samples) or (runs, samples,
columns), or one after the other, with an array that says in which row each run starts.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import advice, counted
from hybridsim.data.table import Table

MOST_COLUMNS = 1000
"""An array with more columns holds something else: an image, or samples side by side."""

WhichRun = int | Literal["all"] | None
"""One run, counted from 0; all of them; or None where a file holds a single one."""


def tables_of(arrays: Mapping[str, Any], file: str, run: WhichRun = None, run_starts: str = "") -> list[Table]:
    """The arrays of a file as tables, one for every run that is wanted.

    Args:
        arrays: by name, of NumPy or HDF5; the one array of a file without names is called "".
        file: for messages.
        run: which run is wanted.
        run_starts: array of the rows where runs start, with the end of the last run as its last entry; empty for a
            stack.

    Raises:
        DataError: there is no such run, or no such array.
    """
    arrays = dict(_without_fields(arrays))
    if run is None and not run_starts:
        return [_table(arrays, file)]
    if run is None:
        fix = "choose one with run=0, or load them all with load_runs"
        raise DataError([_run_problem(f"{run_starts!r} says where runs start, but no run is chosen", fix, file)])
    if run_starts:
        return _runs_in_a_row(arrays, file, run, run_starts)
    return _stacked_runs(arrays, file, run)


def as_floats(array: np.ndarray) -> np.ndarray:
    """Numbers in double precision; points in time become seconds since 1970, durations seconds."""
    if array.dtype.kind not in "Mm":
        return array.astype(float)
    unit = "datetime64[ns]" if array.dtype.kind == "M" else "timedelta64[ns]"
    return np.where(np.isnat(array), np.nan, array.astype(unit).astype(np.int64) * 1e-9)


def _stacked_runs(arrays: Mapping[str, Any], file: str, run: int | Literal["all"]) -> list[Table]:
    stacks = [array for array in arrays.values() if _is_numeric(array) and len(array.shape) in (2, 3)]
    if not stacks:
        message = "there is no stack of runs: no array of shape (runs, samples) or (runs, samples, columns)"
        raise DataError([_run_problem(message, "leave the run out", file)])
    count = max(stacks, key=lambda array: (len(array.shape), array.size)).shape[0]
    tables = []
    for k in _wanted(run, count, file):
        chosen, others = {}, {}
        for name, array in arrays.items():
            if len(array.shape) < 2:
                chosen[name] = array  # shared by all runs, such as their time
            elif array.shape[0] == count:
                chosen[name] = array[k]
            else:
                message = f"array {name!r} of shape {_shape(array)} is not one of {counted(count, 'run')}"
                others[name] = _array_problem(name, message, "name another column", file)
        tables.append(_table(chosen, file, row_form=f"row {{}} of run {k}", unreadable=others))
    return tables


def _runs_in_a_row(arrays: Mapping[str, Any], file: str, run: int | Literal["all"], run_starts: str) -> list[Table]:
    if run_starts not in arrays:
        message = f"there is no array {run_starts!r} that says where runs start"
        raise DataError([_run_problem(message, advice(run_starts, arrays), file)])
    starts = np.asarray(arrays[run_starts][...])
    form_is_right = starts.dtype.kind in "iu" and starts.ndim == 1 and len(starts) > 1
    if not form_is_right or starts[0] < 0 or (np.diff(starts.astype(np.int64)) < 0).any():
        message = f"{run_starts!r} does not hold increasing row numbers"
        fix = "it needs the row where each run starts, counted from 0, and the end of the last run"
        raise DataError([_run_problem(message, fix, file)])
    rows = int(starts[-1])
    sliced = {name: array for name, array in arrays.items() if array.shape and array.shape[0] == rows}
    if not sliced:
        message = f"no array has the {rows} rows at which the last run of {run_starts!r} ends"
        raise DataError([_run_problem(message, "append the end of the last run to it", file)])
    others = {
        name: _array_problem(name, f"array {name!r} has not {counted(rows, 'row')} like the runs", "", file)
        for name in arrays
        if name not in sliced
    }
    return [
        _table(
            {name: array[int(starts[k]) : int(starts[k + 1])] for name, array in sliced.items()},
            file,
            first_row=int(starts[k]) + 1,
            row_form=f"row {{}} (in run {k})",
            unreadable=others,
        )
        for k in _wanted(run, len(starts) - 1, file)
    ]


def _wanted(run: int | Literal["all"], count: int, file: str) -> range:
    if run == "all":
        return range(count)
    if not 0 <= run < count:
        message = f"there is no run {run}"
        raise DataError([_run_problem(message, f"its {counted(count, 'run')} are counted from 0", file)])
    return range(run, run + 1)


def _table(
    arrays: Mapping[str, Any],
    file: str,
    *,
    first_row: int = 1,
    row_form: str = "row {}",
    unreadable: Mapping[str, Problem] | None = None,
) -> Table:
    columns: dict[str, np.ndarray] = {}
    unusable = dict(unreadable or {})
    for name, array in arrays.items():
        problem = _unusable(name, array, file)
        if problem is not None:
            unusable[name] = problem
        elif len(array.shape) == 1:
            columns[name or "0"] = as_floats(np.asarray(array[...]))
        else:
            numbers = np.ascontiguousarray(as_floats(np.asarray(array[...])).T)
            columns |= {f"{name}[{k}]" if name else str(k): column for k, column in enumerate(numbers)}
            last = array.shape[1] - 1
            message = f"array {name!r} has {counted(array.shape[1], 'column')}"
            fix = f"name one of them: '{name}[0]' to '{name}[{last}]'" if last else f"write '{name}[0]'"
            unusable[name] = _array_problem(name, message, fix, file)
    return Table(columns, file, first_row=first_row, row_form=row_form, unreadable=unusable)


def _unusable(name: str, array: Any, file: str) -> Problem | None:
    """Why an array cannot be taken for columns."""
    called = f"array {name!r}" if name else "the array"
    if not _is_numeric(array):
        return _array_problem(name, f"{called} holds no numbers (type {array.dtype})", "name another column", file)
    shape = array.shape
    if not shape:
        return _array_problem(name, f"{called} is a single number, not a column", "name another column", file)
    if len(shape) == 2 and (shape[1] > MOST_COLUMNS or (shape[1] > shape[0] > 0 and shape[1] > MOST_COLUMNS // 10)):
        fix = "save its transpose if samples are side by side: one row per sample"
        return _array_problem(name, f"{called} has {shape[1]} columns and {counted(shape[0], 'row')}", fix, file)
    if len(shape) == 3:
        message = f"{called} of shape {_shape(array)} seems to be a stack of {counted(shape[0], 'run')}"
        return _run_problem(message, "choose one with run=0, or load them all with load_runs", file, name)
    if len(shape) > 3:
        return _array_problem(name, f"{called} has {len(shape)} dimensions", "name another column", file)
    return None


def _without_fields(arrays: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Arrays of records with named fields become one array per field, `array.field`."""
    for name, array in arrays.items():
        if array.dtype.names is None:
            yield name, array
        else:
            records = np.asarray(array[...])
            yield from ((f"{name}.{field}" if name else field, records[field]) for field in array.dtype.names)


def _is_numeric(array: Any) -> bool:
    # an empty data set of HDF5 has no shape at all
    return array.shape is not None and array.dtype.kind in "biufMm"


def _shape(array: Any) -> str:
    return f"({', '.join(map(str, array.shape))})"


def _array_problem(name: str, message: str, fix: str, file: str) -> Problem:
    return Problem(message, fix, file, code="data.array", element=name)


def _run_problem(message: str, fix: str, file: str, name: str = "") -> Problem:
    return Problem(message, fix, file, code="data.run", element=name)
