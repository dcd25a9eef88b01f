"""HDF5 files: the data sets of a group, and of the groups inside it, by their path from there."""

from pathlib import Path
from typing import Any

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.arrays import RunSelection, array_tables
from hybridsim.data.optional_packages import import_optional
from hybridsim.data.parser_errors import parser_errors_as_data_errors
from hybridsim.data.table import Table


def read_hdf5(path: Path, group: str = "", run: RunSelection = None, run_starts: str = "") -> list[Table]:
    """The tables of a group, one per wanted run; see `arrays.tables_of`.

    Args:
        path: the file.
        group: path of the group in it; empty for the whole file. `trial_3` has the column `angles[0]`, which is
            `trial_3/angles[0]` of the whole file.
        run: which run is wanted.
        run_starts: array of the rows where runs start.

    Raises:
        DataError: the file is damaged, or has no such group or run.
    """
    h5py = import_optional(path, "h5py")
    fix = "check that it is an HDF5 file and was closed after writing"
    with parser_errors_as_data_errors(path, fix), h5py.File(path, "r") as file:
        return array_tables(_datasets(h5py, file, group, path), str(path), run, run_starts)


def _datasets(h5py: Any, file: Any, group: str, path: Path) -> dict[str, Any]:
    groups: list[str] = []
    file.visititems(lambda name, item: groups.append(name) if isinstance(item, h5py.Group) else None)
    inside = group.strip("/")
    if inside and inside not in groups:
        what = "is a data set, not a group" if inside in file else "is not in the file"
        fix = name_hint(inside, groups) if groups else "leave the group out: the file has none"
        raise DataError([Problem(f"group {group!r} {what}", fix, str(path), code="data.group", element=group)])
    found: dict[str, Any] = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item

    (file[inside] if inside else file).visititems(keep)
    return found
