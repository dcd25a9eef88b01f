"""Runs from files, for tests of the checks of recordings."""

from collections.abc import Sequence
from pathlib import Path

from hybridsim.data.channel import Channel
from hybridsim.data.recording import read_recordings
from hybridsim.data.recording_options import RecordingOptions
from hybridsim.data.run import Run


def load_run(path: str | Path | Sequence[str | Path], channels: Sequence[Channel], **options) -> Run:
    """The run in a file, or in several files."""
    files = [path] if isinstance(path, str | Path) else path
    (recording,) = read_recordings([files], RecordingOptions(**options))
    (run,) = recording.runs(channels)
    return run


def load_runs(path: str | Path, channels: Sequence[Channel], **options) -> list[Run]:
    """The runs in a file with several."""
    recordings = read_recordings([[path]], RecordingOptions(several_runs=True, **options))
    return [run for recording in recordings for run in recording.runs(channels)]
