"""Load recordings from files."""

from collections.abc import Sequence
from pathlib import Path

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.recording import Recording, read_recordings
from hybridsim.data.recording_options import OnInvalid, RecordingOptions

WILDCARDS = frozenset("*?[")

FilePattern = str | Path | Sequence[str | Path]
"""A file, a pattern with wildcards, or the files of one run."""


def load_recordings(
    files: str | Path | Sequence[FilePattern],
    *,
    time: str = "time",
    sample_interval: float | None = None,
    time_unit: str = "s",
    group: str = "",
    several_runs: bool = False,
    run_starts: str = "",
    max_sample_interval: float | None = None,
    on_nan: OnInvalid = "error",
    on_out_of_order: OnInvalid = "error",
) -> list[Recording]:
    """Load recordings from files, such as CSV, HDF5 or Parquet; docs/projects.md lists the formats.

        load_recordings("runs/*.csv")
        load_recordings(["first.csv", ["encoders.csv", "motors.csv"]], time="stamp", time_unit="ms")

    Args:
        files: files, one run each, with wildcards; a nested list is one run of several files.
        time: time column.
        sample_interval: sample interval of files without a time column, in the unit `time_unit`.
        time_unit: unit of time columns and of the sample interval.
        group: group of HDF5 files or topic of MCAP files.
        several_runs: whether every file contains several runs (NPZ, NPY, HDF5).
        run_starts: array with the index of the first row of each run, followed by the total number of rows, where
            several runs are concatenated.
        max_sample_interval: longest time between consecutive samples [s]; a longer one splits the run.
        on_nan: `drop` drops samples of a channel that are not finite, with a note; `error` rejects the recording.
        on_out_of_order: `drop` drops samples that are not later than all samples before them, with a note.

    Returns:
        The recordings, sorted by name within each pattern. Their columns are checked when channels use them.

    Raises:
        DataError: files do not exist or cannot be read; carries all problems.
        SpecificationError: an option is invalid.
    """
    options = RecordingOptions(
        time=time,
        sample_interval=sample_interval,
        time_unit=time_unit,
        group=group,
        several_runs=several_runs,
        run_starts=run_starts,
        max_sample_interval=max_sample_interval,
        on_nan=on_nan,
        on_out_of_order=on_out_of_order,
    )
    problems = options.problems()
    groups: list[tuple[Path, ...]] = []
    for pattern in [files] if isinstance(files, str | Path) else files:
        matches = matching_files(pattern, Path())
        if isinstance(matches, Problem):
            problems.append(matches)
        else:
            groups += matches
    if problems or not groups:
        raise DataError(problems or [Problem("no files are specified", "name at least one file", code="data.file")])
    recordings = read_recordings(list(dict.fromkeys(groups)), options)
    for recording in recordings:
        try:
            _ = recording.columns  # reads the files
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(dict.fromkeys(problems))
    return recordings


def matching_files(pattern: FilePattern, folder: Path) -> list[tuple[Path, ...]] | Problem:
    """Files of the runs that match a pattern relative to a folder, sorted; or why there are none."""
    if not isinstance(pattern, str | Path):
        if not pattern:
            return Problem("a run has no files", "name its files", code="project.file")
        return [tuple(folder / name for name in pattern)]
    exact, parts = folder / pattern, Path(pattern).parts
    first_wildcard = next((k for k, part in enumerate(parts) if set(part) & WILDCARDS), len(parts))
    try:
        if exact.exists() or first_wildcard == len(parts):
            return [(exact,)]
        matches = folder.joinpath(*parts[:first_wildcard]).glob(str(Path(*parts[first_wildcard:])))
        files = sorted(file for file in matches if file.is_file())
    except (OSError, ValueError) as error:
        # names that are too long and, in some versions of Python, ** within a name
        message = f"{str(pattern)[:60]!r} cannot be expanded: {error}"
        return Problem(message, "write names with * and ?, or **/ for all folders", code="project.file")
    if files:
        return [(file,) for file in files]
    parent = exact.parent
    names = [entry.name for entry in parent.iterdir() if entry.is_file()] if parent.is_dir() else []
    fix = name_hint(exact.name, names) if names else f"the folder {str(parent)!r} does not exist or is empty"
    return Problem(f"no file matches {str(pattern)!r}", fix, code="project.file")
