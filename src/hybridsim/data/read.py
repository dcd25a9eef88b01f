"""Reading a recorded file, whatever its format; its ending tells which it is."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hybridsim.core.errors import DataError, Problem, Severity
from hybridsim.core.messages import nearest
from hybridsim.data.arrays import WhichRun
from hybridsim.data.read_csv import read_csv
from hybridsim.data.read_hdf5 import read_hdf5
from hybridsim.data.read_mcap import read_mcap
from hybridsim.data.read_npz import read_npz
from hybridsim.data.read_parquet import read_parquet
from hybridsim.data.table import Table

FORMATS = {
    "csv": (".csv", ".tsv", ".txt", ".dat"),
    "npz": (".npz", ".npy"),
    "hdf5": (".h5", ".hdf5", ".hdf"),
    "parquet": (".parquet", ".pq"),
    "mcap": (".mcap",),
}
"""Endings of files by format."""
OTHER_FORMATS = {
    (".pkl", ".pickle", ".pt", ".pth"): "save it as NPZ; pickled files are never loaded, since they could run any code",
    (".bag", ".db3"): "convert it to MCAP with JSON messages, or to CSV",
    (".xls", ".xlsx", ".ods"): "save the sheet as CSV",
    (".mat",): "save it as NPZ or HDF5",
    (".gz", ".zip", ".zst", ".xz", ".bz2"): "unpack it first",
}
"""What to do with files that cannot be read."""
GIT_LFS = b"version https://git-lfs.github.com/spec/"
"""How pointers of Git LFS begin."""


def read_table(path: str | Path, *, group: str = "", run: int | None = None, run_starts: str = "") -> Table:
    """The columns of a CSV, NPZ, NPY, HDF5, Parquet or MCAP file.

    A column of an array with two dimensions is called `angles[0]`, in every format; in files without names, columns are
    called by their number, "0", "1" and so on.

    Args:
        path: the file.
        group: group of an HDF5 file or topic of an MCAP file; empty for all of them.
        run: which run, counted from 0, of an NPZ, NPY or HDF5 file that holds several.
        run_starts: array that says in which row each run starts, where runs follow one another; it ends with the end of
            the last one. Empty for arrays of shape (runs, samples) or (runs, samples, columns).

    Returns:
        The table. What is not a column of numbers is in its `unreadable`.

    Raises:
        DataError: the file cannot be read.
    """
    table = inspect_tables(path, group=group, run=run, run_starts=run_starts)[0]
    errors = [problem for problem in table.problems if problem.severity is Severity.ERROR]
    if errors:
        raise DataError(errors)
    return table


def inspect_tables(path: str | Path, *, group: str = "", run: WhichRun = None, run_starts: str = "") -> Sequence[Table]:
    """The tables of a file: one, or with `run="all"` one per run. Takes the arguments of `read_table`.

    Other than there, wrong rows are no exception but in the tables' `problems`, to be told with all others.

    Raises:
        DataError: nothing in the file can be read.
    """
    path = Path(path)
    kind = _format(path)
    sha256 = sha256_of(path)
    _refuse_pointers(path)
    if group and kind not in ("hdf5", "mcap"):
        fix = "leave the group out; only HDF5 and MCAP files have groups"
        raise DataError([Problem(f"there is no group {group!r}", fix, str(path), code="data.group", element=group)])
    if (run is not None or run_starts) and kind not in ("npz", "hdf5"):
        fix = "leave the run out; only NPZ, NPY and HDF5 files hold several"
        raise DataError([Problem("the file holds a single run", fix, str(path), code="data.run")])
    match kind:
        case "csv":
            tables = [read_csv(path)]
        case "npz":
            tables = read_npz(path, run, run_starts)
        case "hdf5":
            tables = read_hdf5(path, group, run, run_starts)
        case "parquet":
            tables = [read_parquet(path)]
        case _:
            tables = [read_mcap(path, group)]
    return [replace(table, sha256=sha256) for table in tables]


def sha256_of(path: Path) -> str:
    """Hash of a file's bytes, read piece by piece.

    Raises:
        DataError: the file is not there or cannot be read.
    """
    try:
        # what it holds is read several times, and a pipe without a writer would keep us waiting for ever
        if path.exists() and not path.is_file() and not path.is_dir():
            message = "this is a pipe or a device, not a file"
            raise DataError([Problem(message, "save what it gives to a file", str(path), code="file.special")])
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        problem = Problem("there is no such file", _similar_file(path), str(path), code="file.missing")
    except IsADirectoryError:
        problem = Problem("this is a folder", "name a file in it", str(path), code="file.directory")
    except OSError as error:
        reason = error.strerror or str(error)
        problem = Problem(
            f"the file cannot be read: {reason}", "check path and permissions", str(path), code="file.unreadable"
        )
    raise DataError([problem])


def _format(path: Path) -> str:
    suffix = path.suffix.lower()
    for name, suffixes in FORMATS.items():
        if suffix in suffixes:
            return name
    if not path.exists() or path.is_dir():
        sha256_of(path)  # says what is wrong with it
    known = ", ".join(suffix for suffixes in FORMATS.values() for suffix in suffixes)
    fix = next(
        (fix for suffixes, fix in OTHER_FORMATS.items() if suffix in suffixes), "save it in one of these formats"
    )
    message = f"the file has the ending {suffix!r}, which is none of {known}"
    raise DataError([Problem(message, fix, str(path), code="data.format")])


def _refuse_pointers(path: Path) -> None:
    """Raise for what Git LFS leaves in the place of a large file that was not fetched."""
    with path.open("rb") as stream:
        if stream.read(len(GIT_LFS)) == GIT_LFS:
            message = "this is a pointer of Git LFS, not the recording itself"
            raise DataError([Problem(message, "fetch it with `git lfs pull`", str(path), code="data.format")])


def _similar_file(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"there is no folder {str(path.parent)!r} either"
    return nearest(path.name, names) or "check the path"
