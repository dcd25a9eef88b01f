"""A recording: the columns of the files of one run, which channels select and convert to SI units."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.assemble import assemble_run, table_from_arrays
from hybridsim.data.channel import ColumnSettings
from hybridsim.data.read import read_tables
from hybridsim.data.recording_options import RecordingOptions
from hybridsim.data.run import Run
from hybridsim.data.segments import segments
from hybridsim.data.table import Table

_SUFFIX = re.compile(r"(\[\d+\])?( \([^()]* s to [^()]* s\))*")
"""What the name of one of several runs of a file, and that of a slice, add to the name of the file."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Recorded columns of one run, in the units of its files."""

    name: str
    files: tuple[str, ...] = ()
    """Files of the run; empty for arrays in memory."""
    folder: str = field(default_factory=lambda: str(Path.cwd()))
    """Folder to which relative paths of files refer: the working directory when the recording was made."""
    options: RecordingOptions = field(default_factory=RecordingOptions)
    interval: tuple[float, float] | None = None
    """Part of the recording to use [s]; all of it by default."""
    tables: dict[tuple[str, str], Table] = field(default_factory=dict, repr=False)
    """Tables that have been read, by file and group."""

    @classmethod
    def from_arrays(cls, name: str, t, columns: Mapping[str, np.ndarray], **options) -> "Recording":
        """Recording of arrays in memory, with the same checks as for a file.

        Args:
            name: name of the recording.
            t: time stamps of the samples, in the unit `time_unit`.
            columns: samples by column name, in the units of the channels that use them.
            **options: `time_unit`, `max_sample_interval`, `on_nan`, `on_out_of_order`; see `RecordingOptions`.
        """
        table, time = table_from_arrays(t, columns)
        return cls(name, options=RecordingOptions(time=time, **options), tables={("", ""): table})

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the numeric columns."""
        if not self.files:
            return tuple(name for table in self.tables.values() for name in table.columns)
        return tuple(name for file in self.files for name in self._table(file, self.options.group).columns)

    def slice(self, start: float, end: float, *, name: str = "") -> "Recording":
        """The part from `start` to `end` [s], both inclusive.

        Args:
            start: first time.
            end: last time.
            name: name of the part; by default that of the recording and the interval.
        """
        return replace(self, interval=(start, end), name=name or f"{self.name} ({start:g} s to {end:g} s)")

    def runs(self, channels: Sequence[ColumnSettings]) -> list[Run]:
        """The channels in SI units: one run, or its segments between gaps longer than `max_sample_interval`.

        Raises:
            DataError: the recording cannot be used; carries every error.
        """
        problems: list[Problem] = []
        tables = {}
        for channel in channels:
            if channel.has_column:
                tables[channel.series_name] = self._candidate_tables(channel, problems)
        try:
            run = assemble_run(self.name, channels, tables, self.options, read_problems=problems)
        except DataError as error:
            raise DataError(map(self._with_name, error.problems)) from None
        if self.interval is not None:
            run = run.slice(*self.interval)
        limit = self.options.max_sample_interval
        return [run] if limit is None else segments(run, max_sample_interval=limit)

    def _with_name(self, problem: Problem) -> Problem:
        """Problem that names the recording if it has no file."""
        return problem if self.files else replace(problem, message=f"{self.name}: {problem.message}")

    def _candidate_tables(self, channel: ColumnSettings, problems: list[Problem]) -> list[Table]:
        """Tables that may hold the column of a channel."""
        if not self.files:
            return list(self.tables.values())
        files = [file for file in self.files if channel.file in ("", file, Path(file).name)]
        if not files:
            message = f"file {channel.file!r} of channel {channel.series_name!r} is not one of the recording's files"
            fix = name_hint(channel.file, self.files)
            problems.append(Problem(message, fix, code="data.file", element=channel.series_name))
        found = []
        for key in product(files, [channel.group or self.options.group]):
            try:
                found.append(self._table(*key))
            except DataError as error:
                problems += [problem for problem in error.problems if problem not in problems]
        return found

    def path_of(self, file: str) -> Path:
        """Absolute path of one of the files."""
        return Path(self.folder, file)

    def _table(self, file: str, group: str) -> Table:
        if (file, group) not in self.tables:
            path = file if str(Path.cwd()) == self.folder else self.path_of(file)
            self.tables[file, group] = read_tables(path, group=group)[0]
        return self.tables[file, group]


def read_recordings(
    groups: Sequence[Sequence[str | Path]], options: RecordingOptions, folder: str | Path = "."
) -> list[Recording]:
    """Recordings of files, which are read when they are needed, or at once if they contain several runs.

    Args:
        groups: files of each run, or files with several runs.
        options: how to read them.
        folder: folder to which paths are relative.

    Raises:
        DataError: files with several runs cannot be read; carries all problems.
    """
    recordings: list[Recording] = []
    problems: list[Problem] = []
    for group, name in zip(groups, unique_names([Path(folder, group[0]) for group in groups]), strict=True):
        files = tuple(map(str, group))
        try:
            if options.several_runs:
                tables = read_tables(files[0], group=options.group, run="all", run_starts=options.run_starts)
                recordings += [
                    Recording(f"{name}[{k}]", files, options=options, tables={(files[0], options.group): table})
                    for k, table in enumerate(tables)
                ]
                continue
            recordings.append(Recording(name, files, options=options))
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(dict.fromkeys(problems))
    return recordings


def as_recordings(argument: str, recordings: object) -> list[Recording]:
    """A list of recordings, from one or several.

    Raises:
        TypeError: something else was passed as this argument.
    """
    entries = [recordings] if isinstance(recordings, str) or not isinstance(recordings, Sequence) else list(recordings)
    found = [entry for entry in entries if isinstance(entry, Recording)]
    if len(found) < len(entries):
        kind = next(type(entry).__name__ for entry in entries if not isinstance(entry, Recording))
        raise TypeError(f"{argument}: expected recordings, as load_recordings returns them, not {kind}")
    return found


def with_unique_names(recordings: Sequence[Recording]) -> list[Recording]:
    """Recordings with the names that loading all of their files at once would give; names of other kinds are kept.

    Files of the same name in several folders are then named by the ends of their paths.
    """
    suffixes = [_name_suffix(recording) for recording in recordings]
    files = {
        recording.path_of(recording.files[0])
        for recording, suffix in zip(recordings, suffixes, strict=True)
        if suffix is not None
    }
    names = dict(zip(files, unique_names(list(files)), strict=True))
    return [
        recording if suffix is None else replace(recording, name=names[recording.path_of(recording.files[0])] + suffix)
        for recording, suffix in zip(recordings, suffixes, strict=True)
    ]


def _name_suffix(recording: Recording) -> str | None:
    """What follows the name of the file in the name of a recording; None if it is not named by its file."""
    if not recording.files:
        return None
    parts = recording.path_of(recording.files[0]).parts
    ends = [Path(parts[-1]).stem, *(Path(*parts[-length:]).as_posix() for length in range(1, len(parts)))]
    end = max((end for end in ends if recording.name.startswith(end)), key=len, default=None)
    suffix = None if end is None else recording.name.removeprefix(end)
    return suffix if suffix is not None and _SUFFIX.fullmatch(suffix) else None


def unique_names(files: Sequence[Path]) -> list[str]:
    """Names of files that do not depend on the working directory: stems, or the shortest ends of paths that differ."""
    count = Counter(file.stem for file in files)
    names = []
    for file in files:
        same = [other for other in files if other.stem == file.stem and other != file]
        lengths = range(1, len(file.parts))
        ends = (length for length in lengths if all(other.parts[-length:] != file.parts[-length:] for other in same))
        length = next(ends, len(file.parts))
        names.append(file.stem if count[file.stem] == 1 else Path(*file.parts[-length:]).as_posix())
    return names
