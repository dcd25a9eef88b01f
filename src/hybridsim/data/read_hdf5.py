"""HDF5 files: the datasets of a group and its subgroups, named by their path relative to the group."""

from pathlib import Path
from typing import Any

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.arrays import array_tables
from hybridsim.data.file_format import FileFormat, FileSelection
from hybridsim.data.reader_errors import import_optional, parser_errors_as_data_errors
from hybridsim.data.table import Table


def read_hdf5(path: Path, selection: FileSelection) -> list[Table]:
    """Tables of a group, one per selected run; see `arrays.array_tables`.

    Args:
        path: the file.
        selection: path of the group, and run. Column `angles[0]` of group `trial_3` is column `trial_3/angles[0]` of
            the whole file.

    Raises:
        DataError: the file is damaged, or has no such group or run.
    """
    h5py = import_optional(path, "h5py")
    fix = "check that it is an HDF5 file and was closed after writing"
    with parser_errors_as_data_errors(path, fix), h5py.File(path, "r") as file:
        datasets = _datasets(h5py, file, selection.group, path)
        return array_tables(datasets, str(path), selection.run, selection.run_starts)


def _datasets(h5py: Any, file: Any, group: str, path: Path) -> dict[str, Any]:
    groups: list[str] = []
    file.visititems(lambda name, item: groups.append(name) if isinstance(item, h5py.Group) else None)
    group_path = group.strip("/")
    if group_path and group_path not in groups:
        reason = "is a dataset, not a group" if group_path in file else "is not in the file"
        fix = name_hint(group_path, groups) if groups else "omit group: the file has none"
        raise DataError([Problem(f"group {group!r} {reason}", fix, str(path), code="data.group", element=group)])
    datasets: dict[str, Any] = {}

    def collect(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            datasets[name] = item

    (file[group_path] if group_path else file).visititems(collect)
    for name, dataset in datasets.items():
        if foreign := _foreign_file(dataset):
            message = f"array {name!r} has its values in another file, {foreign!r}, which is not read"
            fix = "write the values into the file itself, for example with h5repack"
            raise DataError([Problem(message, fix, str(path), code="data.link", element=name)])
    return datasets


def _foreign_file(dataset: Any) -> str:
    """Another file in which the values of a dataset are; empty if they are in its own."""
    if dataset.external:
        return str(dataset.external[0][0])
    sources = dataset.virtual_sources() if dataset.is_virtual else ()
    return next((str(source.file_name) for source in sources if source.file_name != "."), "")


HDF5 = FileFormat("HDF5", (".h5", ".hdf5", ".hdf"), read_hdf5, group_noun="group", has_runs=True)
