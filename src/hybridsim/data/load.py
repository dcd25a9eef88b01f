"""Loading recordings from files."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import advice
from hybridsim.data.assemble import OnFault, Options, recording_of
from hybridsim.data.channel import Channel
from hybridsim.data.read import inspect_tables
from hybridsim.data.recording import Recording
from hybridsim.data.table import Table


def load_recording(
    path: str | Path | Sequence[str | Path],
    channels: Sequence[Channel],
    *,
    time: str | float = "time",
    time_unit: str = "s",
    name: str | None = None,
    group: str = "",
    run: int | None = None,
    run_starts: str = "",
    on_nan: OnFault = "error",
    on_disorder: OnFault = "error",
) -> Recording:
    """Load what was measured in one run.

    Args:
        path: the file, or several files of the same run.
        channels: what to load, and from which columns.
        time: time column of channels without their own; or, where a file has none, the constant step between samples.
        time_unit: unit of all time columns, or of the step.
        name: of the recording; by default the name of the (first) file.
        group: group or topic of channels without their own; see `read_table`.
        run: which run of a file with several; see `read_table`.
        run_starts: array that says where runs start; see `read_table`.
        on_nan: `drop` leaves out samples of a channel that have no finite number, and says so in the recording's
            problems.
        on_disorder: `drop` leaves out samples that are not later than all before them, and says so.

    Returns:
        The recording, with every doubt about it in its `problems`.

    Raises:
        DataError: the recording cannot be used; carries every error that was found.
    """
    options = Options(time, time_unit, on_nan, on_disorder)
    paths = [path] if isinstance(path, str | Path) else list(path)
    if not paths:
        raise ValueError("no file is named")
    files = [str(file) for file in paths]
    problems: list[Problem] = []
    tables: dict[str, list[Table]] = {}
    read: dict[tuple[str, str], Table | None] = {}
    for channel in channels:
        if not channel.column:
            continue
        chosen = [file for file in files if channel.file in ("", file, Path(file).name)]
        if not chosen:
            message = f"file {channel.file!r} of channel {channel.name!r} is not one of the recording's"
            problems.append(Problem(message, advice(channel.file, files), code="data.file", element=channel.name))
        for key in product(chosen, [channel.group or group]):
            if key not in read:
                try:
                    read[key] = inspect_tables(key[0], group=key[1], run=run, run_starts=run_starts)[0]
                except DataError as error:
                    problems += error.problems
                    read[key] = None
        tables[channel.name] = [table for file in chosen if (table := read[file, channel.group or group]) is not None]
    name = name or _default_name(paths, run)
    return recording_of(name, channels, tables, options, before=problems)


def load_runs(
    path: str | Path,
    channels: Sequence[Channel],
    *,
    time: str | float = "time",
    time_unit: str = "s",
    name: str | None = None,
    group: str = "",
    run_starts: str = "",
    on_nan: OnFault = "error",
    on_disorder: OnFault = "error",
) -> list[Recording]:
    """Load every run of an NPZ, NPY or HDF5 file that holds several; they are called `name[0]`, `name[1]` and so on.

    Takes the arguments of `load_recording`.

    Raises:
        DataError: carries every error of every run.
    """
    options = Options(time, time_unit, on_nan, on_disorder)
    if any(channel.group for channel in channels):
        raise ValueError("all channels of a file with several runs come from the same group: give group to load_runs")
    recordings, problems = [], []
    for k, table in enumerate(inspect_tables(path, group=group, run="all", run_starts=run_starts)):
        tables = {channel.name: [table] for channel in channels}
        called = f"{name or Path(path).stem}[{k}]"
        try:
            recordings.append(recording_of(called, channels, tables, options))
        except DataError as error:
            problems += error.problems
    if problems:
        # a column that is missing is missing in every run
        raise DataError(dict.fromkeys(problems))
    return recordings


def _default_name(paths: Sequence[str | Path], run: int | None) -> str:
    stem = Path(paths[0]).stem
    return stem if run is None else f"{stem}[{run}]"
