"""Load recordings from files."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.assemble import OnInvalid, RecordingOptions, assemble_recording
from hybridsim.data.channel import Channel
from hybridsim.data.read import read_tables
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
    on_nan: OnInvalid = "error",
    on_out_of_order: OnInvalid = "error",
) -> Recording:
    """Load the recording of one run.

    Args:
        path: the file, or several files of the same run.
        channels: the channels to load, with their columns.
        time: time column of channels that do not name one; or, for a file without time stamps, the constant sample
            interval.
        time_unit: unit of all time columns, or of the sample interval.
        name: name of the recording; by default the stem of the (first) file.
        group: group or topic of channels that do not name one; see `read_table`.
        run: index of the run in a file with several; see `read_table`.
        run_starts: array with the first row of each run, followed by the total number of rows; see `read_table`.
        on_nan: `drop` drops samples of a channel whose value is missing or not finite, with a note in the recording's
            problems.
        on_out_of_order: `drop` drops samples that are not later than all samples before them, with a note.

    Returns:
        The recording, with all warnings and notes in its `problems`.

    Raises:
        DataError: the recording cannot be used; carries every error.
    """
    options = RecordingOptions(time, time_unit, on_nan, on_out_of_order)
    paths = [path] if isinstance(path, str | Path) else list(path)
    if not paths:
        raise ValueError("path is an empty list; give at least one file")
    files = [str(file) for file in paths]
    problems: list[Problem] = []
    tables: dict[str, list[Table]] = {}
    cache: dict[tuple[str, str], Table | None] = {}
    for channel in channels:
        if not channel.column:
            continue
        candidates = [file for file in files if channel.file in ("", file, Path(file).name)]
        if not candidates:
            message = f"file {channel.file!r} of channel {channel.name!r} is not one of the recording's files"
            problems.append(Problem(message, name_hint(channel.file, files), code="data.file", element=channel.name))
        for key in product(candidates, [channel.group or group]):
            if key not in cache:
                try:
                    cache[key] = read_tables(key[0], group=key[1], run=run, run_starts=run_starts)[0]
                except DataError as error:
                    problems += error.problems
                    cache[key] = None
        loaded = (cache[file, channel.group or group] for file in candidates)
        tables[channel.name] = [table for table in loaded if table is not None]
    name = name or _default_name(paths, run)
    return assemble_recording(name, channels, tables, options, read_problems=problems)


def load_runs(
    path: str | Path,
    channels: Sequence[Channel],
    *,
    time: str | float = "time",
    time_unit: str = "s",
    name: str | None = None,
    group: str = "",
    run_starts: str = "",
    on_nan: OnInvalid = "error",
    on_out_of_order: OnInvalid = "error",
) -> list[Recording]:
    """Load every run of an NPZ, NPY or HDF5 file that holds several; they are named `name[0]`, `name[1]` and so on.

    Takes the arguments of `load_recording` except `run`; `path` is a single file.

    Raises:
        DataError: carries every error of every run.
    """
    options = RecordingOptions(time, time_unit, on_nan, on_out_of_order)
    if any(channel.group for channel in channels):
        raise ValueError(
            "all channels of a file with several runs must be in one group: pass group to load_runs, not to Channel"
        )
    recordings, problems = [], []
    for k, table in enumerate(read_tables(path, group=group, run="all", run_starts=run_starts)):
        tables = {channel.name: [table] for channel in channels}
        run_name = f"{name or Path(path).stem}[{k}]"
        try:
            recordings.append(assemble_recording(run_name, channels, tables, options))
        except DataError as error:
            problems += error.problems
    if problems:
        # a missing column is missing in every run: report it once
        raise DataError(dict.fromkeys(problems))
    return recordings


def _default_name(paths: Sequence[str | Path], run: int | None) -> str:
    stem = Path(paths[0]).stem
    return stem if run is None else f"{stem}[{run}]"
