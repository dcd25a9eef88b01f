"""NPZ and NPY files. Arrays of Python objects are never unpickled, as unpickling can run arbitrary code."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.data.arrays import array_tables
from hybridsim.data.file_format import FileFormat, FileSelection
from hybridsim.data.memory_limit import require_memory
from hybridsim.data.reader_errors import parser_errors_as_data_errors
from hybridsim.data.table import Table


def read_npz(path: Path, selection: FileSelection) -> list[Table]:
    """Tables of an NPZ or NPY file, one per selected run; see `arrays.array_tables`.

    Raises:
        DataError: the file is damaged, or has no such run.
    """
    # opened here, as NumPy does not close a damaged file
    with path.open("rb") as stream:
        loaded = _open_npz(path, stream)
        if isinstance(loaded, np.ndarray):
            return array_tables({"": loaded}, str(path), selection.run, selection.run_starts)
        require_memory(path, sum(entry.file_size for entry in loaded.zip.infolist()), "the file, unpacked,")
        arrays, objects, damage = {}, {}, []
        for name in loaded.files:
            try:
                arrays[name] = _load_array(path, loaded, name)
            except DataError as error:
                if error.problems[0].code == "data.object":
                    objects[name] = error.problems[0]  # an error only if a channel uses this array
                else:
                    damage += error.problems
    if damage:
        raise DataError(damage)
    tables = array_tables(arrays, str(path), selection.run, selection.run_starts)
    return [replace(table, unreadable={**table.unreadable, **objects}) for table in tables]


def _open_npz(path: Path, stream: Any) -> Any:
    with parser_errors_as_data_errors(path, "save it again with numpy.savez or numpy.save"):
        try:
            return np.load(stream, allow_pickle=False)
        except ValueError as error:
            # NumPy takes any unknown format for a pickle
            raise _pickle_error(path, error, "the file holds Python objects, or was not written by NumPy") from None


def _load_array(path: Path, loaded: Any, name: str) -> np.ndarray:
    with parser_errors_as_data_errors(path, "save it again with numpy.savez", name):
        try:
            return np.asarray(loaded[name])
        except ValueError as error:
            raise _pickle_error(path, error, f"array {name!r} holds Python objects", name) from None


def _pickle_error(path: Path, error: ValueError, message: str, name: str = "") -> Exception:
    """A `DataError` if NumPy refused to unpickle; any other error is returned unchanged."""
    if "allow_pickle" not in str(error):
        return error
    fix = "save numeric arrays only; pickled objects are never loaded, as they can run arbitrary code"
    return DataError([Problem(message, fix, str(path), code="data.object", element=name)])


NPZ = FileFormat("NPZ, NPY", (".npz", ".npy"), read_npz, has_runs=True)
