"""Parquet files: numeric and time columns; struct fields are named `name.field`, list entries `name[0]`."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.core.errors import Problem
from hybridsim.data.arrays import MAX_COLUMNS, as_floats
from hybridsim.data.file_format import FileFormat, FileSelection
from hybridsim.data.reader_errors import import_optional, parser_errors_as_data_errors
from hybridsim.data.table import Table


def read_parquet(path: Path, selection: FileSelection) -> list[Table]:
    """Table of a Parquet file, which has no groups or runs to select.

    Raises:
        DataError: the file is damaged.
    """
    del selection
    arrow, parquet = import_optional(path, "pyarrow"), import_optional(path, "pyarrow", "parquet")
    fix = "check that it is a Parquet file and was closed after writing"
    with parser_errors_as_data_errors(path, fix), parquet.ParquetFile(path) as file:
        content = file.read()
        while any(arrow.types.is_struct(field.type) for field in content.schema):
            content = content.flatten()
        return [_table(arrow, content, str(path))]


def _table(arrow: Any, content: Any, file: str) -> Table:
    columns: dict[str, np.ndarray] = {}
    unreadable: dict[str, Problem] = {}
    counts = Counter(content.column_names)
    for name, values in zip(content.column_names, content.columns, strict=True):
        if counts[name] > 1:
            message = f"{counts[name]} columns are named {name!r}, so the name is ambiguous"
            problem = Problem(message, "give each column a unique name", file, code="data.duplicate_column")
            unreadable[name] = problem
        elif _is_numeric(arrow, values.type):
            columns[name] = _floats(arrow, values)
        elif (entries := _list_columns(arrow, values)) is not None:
            columns |= {f"{name}[{k}]": column for k, column in enumerate(entries)}
        else:
            message = f"column {name!r} is not numeric (type {values.type})"
            unreadable[name] = Problem(message, "choose another column", file, code="data.array", element=name)
    return Table(columns, file, unreadable=unreadable)


def _is_numeric(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_timestamp)
    return any(test(kind) for test in (*tests, types.is_duration, types.is_null))


def _floats(arrow: Any, values: Any) -> np.ndarray:
    """Values of a column, NaN where missing."""
    if arrow.types.is_timestamp(values.type) or arrow.types.is_duration(values.type):
        return as_floats(values.to_numpy())
    if arrow.types.is_boolean(values.type):
        values = values.cast(arrow.uint8())
    return np.array(values.cast(arrow.float64(), safe=False).to_numpy(), dtype=float)


def _list_columns(arrow: Any, values: Any) -> np.ndarray | None:
    """Entries of lists that all have the same length (entries, rows); None for anything else."""
    types = arrow.types
    is_list = types.is_list(values.type) or types.is_fixed_size_list(values.type) or types.is_large_list(values.type)
    if not is_list or not _is_numeric(arrow, values.type.value_type) or values.null_count:
        return None
    lengths = {len(row) for row in values}
    if len(lengths) != 1 or not 0 < (length := lengths.pop()) <= MAX_COLUMNS:
        return None
    flat = arrow.chunked_array([chunk.flatten() for chunk in values.chunks], type=values.type.value_type)
    return np.ascontiguousarray(_floats(arrow, flat).reshape(-1, length).T)


PARQUET = FileFormat("Parquet", (".parquet", ".pq"), read_parquet)
