"""Readers for all supported file formats, selected by the file extension."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hybridsim.core.errors import DataError, Problem, Severity
from hybridsim.core.messages import spelling_suggestion
from hybridsim.data.arrays import RunSelection
from hybridsim.data.file_format import FileFormat, FileSelection
from hybridsim.data.read_csv import CSV
from hybridsim.data.read_hdf5 import HDF5
from hybridsim.data.read_mcap import MCAP
from hybridsim.data.read_npz import NPZ
from hybridsim.data.read_parquet import PARQUET
from hybridsim.data.table import Table

FORMATS = (CSV, NPZ, HDF5, PARQUET, MCAP)
"""Supported formats."""
UNSUPPORTED_FORMATS = {
    (".pkl", ".pickle", ".pt", ".pth"): "save it as NPZ; pickle files are never loaded, as they can run arbitrary code",
    (".bag", ".db3"): "convert it to MCAP with JSON messages, or to CSV",
    (".xls", ".xlsx", ".ods"): "save the sheet as CSV",
    (".mat",): "save it as NPZ or HDF5",
    (".gz", ".zip", ".zst", ".xz", ".bz2"): "unpack it first",
}
"""Advice for formats that are not supported, by file extension."""
GIT_LFS_MAGIC = b"version https://git-lfs.github.com/spec/"
"""First bytes of a Git LFS pointer file."""


def read_table(path: str | Path, *, group: str = "", run: int | None = None, run_starts: str = "") -> Table:
    """Columns of a file of one of the `FORMATS`.

    In every format, a column of a two-dimensional array is named like `angles[0]`; in files without names, columns are
    named by their index: "0", "1" and so on.

    Args:
        path: the file.
        group: group of an HDF5 file or topic of an MCAP file; empty for all of them.
        run: index of the run, from 0, in an NPZ, NPY or HDF5 file that holds several.
        run_starts: name of the array with the first row of each run, followed by the total number of rows, for runs
            that are concatenated. Empty for arrays of shape (runs, samples) or (runs, samples, columns).

    Returns:
        The table. Names that are not numeric columns are in its `unreadable`.

    Raises:
        DataError: the file cannot be read.
    """
    table = read_tables(path, group=group, run=run, run_starts=run_starts)[0]
    errors = [problem for problem in table.problems if problem.severity is Severity.ERROR]
    if errors:
        raise DataError(errors)
    return table


def read_tables(
    path: str | Path, *, group: str = "", run: RunSelection = None, run_starts: str = ""
) -> Sequence[Table]:
    """Tables of a file: one, or with `run="all"` one per run. Takes the arguments of `read_table`.

    Unlike `read_table`, malformed rows do not raise but are listed in the tables' `problems`, so that the caller can
    report them together with all others.

    Raises:
        DataError: nothing in the file can be read.
    """
    path = Path(path)
    file_format = _format(path)
    sha256 = file_sha256(path)
    _reject_lfs_pointer(path)
    if group and not file_format.group_noun:
        nouns = (f"only {other.title} files have {other.group_noun}s" for other in FORMATS if other.group_noun)
        fix = f"omit group; {' and '.join(nouns)}"
        message = f"the file has no group {group!r}"
        raise DataError([Problem(message, fix, str(path), code="data.group", element=group)])
    if (run is not None or run_starts) and not file_format.has_runs:
        titles = (other.title for other in FORMATS if other.has_runs)
        fix = f"omit run and run_starts; only {' and '.join(titles)} files can hold several runs"
        raise DataError([Problem("the file holds a single run", fix, str(path), code="data.run")])
    tables = file_format.read(path, FileSelection(group, run, run_starts))
    return [replace(table, sha256=sha256) for table in tables]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, read in chunks.

    Raises:
        DataError: the file does not exist or cannot be read.
    """
    try:
        # the file is read several times, and opening a pipe without a writer would block forever
        if path.exists() and not path.is_file() and not path.is_dir():
            message = "this is a pipe or a device, not a regular file"
            raise DataError([Problem(message, "save its output to a file", str(path), code="file.special")])
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        problem = Problem("the file does not exist", _missing_file_fix(path), str(path), code="file.missing")
    except IsADirectoryError:
        problem = Problem("this is a folder, not a file", "name a file in it", str(path), code="file.directory")
    except OSError as error:
        reason = error.strerror or str(error)
        fix = "check the path and the permissions"
        problem = Problem(f"the file cannot be read: {reason}", fix, str(path), code="file.unreadable")
    raise DataError([problem])


def _format(path: Path) -> FileFormat:
    suffix = path.suffix.lower()
    for file_format in FORMATS:
        if suffix in file_format.extensions:
            return file_format
    if not path.exists() or path.is_dir():
        file_sha256(path)  # raises the specific error
    known = ", ".join(extension for file_format in FORMATS for extension in file_format.extensions)
    fix = next(
        (fix for suffixes, fix in UNSUPPORTED_FORMATS.items() if suffix in suffixes), "save it in one of these formats"
    )
    message = f"file extension {suffix!r} is not one of {known}"
    raise DataError([Problem(message, fix, str(path), code="data.format")])


def _reject_lfs_pointer(path: Path) -> None:
    """Raise if the file is the pointer that Git LFS leaves in place of a large file that was not fetched."""
    with path.open("rb") as stream:
        if stream.read(len(GIT_LFS_MAGIC)) == GIT_LFS_MAGIC:
            message = "this is a Git LFS pointer, not the recording itself"
            raise DataError([Problem(message, "fetch it with `git lfs pull`", str(path), code="data.format")])


def _missing_file_fix(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"the folder {str(path.parent)!r} does not exist either; check the path"
    return spelling_suggestion(path.name, names) or "check the path"
