"""Split a recording at its gaps."""

from dataclasses import replace

import numpy as np

from hybridsim.core.errors import DataError, Problem, Severity
from hybridsim.core.messages import pluralize
from hybridsim.data.run import Run


def segments(recording: Run, *, max_sample_interval: float) -> list[Run]:
    """Segments of a recording in which no series has a gap.

    Segments are named `name.0`, `name.1` and so on; a recording without gaps is returned unchanged. Segments in which a
    series has fewer than 2 samples are dropped, with a note in the others.

    Args:
        recording: recording to split.
        max_sample_interval: longest time between consecutive samples of a segment [s]; a longer one splits the run.

    Raises:
        DataError: no segment is long enough.
    """
    if not max_sample_interval > 0.0:
        raise ValueError(f"max_sample_interval must be positive, not {max_sample_interval}")
    intervals = _intervals_without_gaps(recording, max_sample_interval)
    if len(intervals) == 1:
        return [recording]
    slices, dropped = [], []
    for start, end in intervals:
        try:
            slices.append(recording.slice(start, end))
        except DataError:
            dropped.append((start, end))
    if not slices:
        message = (
            f"gaps of more than {max_sample_interval:g} s leave no segment of {recording.name!r} with 2 samples of "
            "each series"
        )
        raise DataError([Problem(message, "raise max_sample_interval", code="data.gap", element=recording.name)])
    # the segments end at the gaps, so warnings about gaps no longer apply
    notes = tuple(problem for problem in recording.problems if problem.code != "data.gap")
    notes += (_dropped_note(recording.name, dropped),) if dropped else ()
    return [
        replace(segment, name=f"{recording.name}.{k}", problems=notes, segment_of=recording.run_name)
        for k, segment in enumerate(slices)
    ]


def _intervals_without_gaps(recording: Run, max_sample_interval: float) -> list[tuple[float, float]]:
    """Time intervals in which no series has a gap."""
    gaps = []
    for series in recording.series.values():
        long = np.flatnonzero(np.diff(series.t) > max_sample_interval)
        gaps += [(float(series.t[k]), float(series.t[k + 1])) for k in long]
    start = min(float(series.t[0]) for series in recording.series.values())
    end = max(float(series.t[-1]) for series in recording.series.values())
    intervals = []
    for gap_start, gap_end in sorted(gaps):
        if gap_start >= start:
            intervals.append((start, gap_start))
        # gaps of different series may overlap
        start = max(start, gap_end)
    return [*intervals, (start, end)]


def _dropped_note(name: str, dropped: list[tuple[float, float]]) -> Problem:
    start, end = dropped[0]
    message = (
        f"dropped {pluralize(len(dropped), 'segment')} of {name!r} with fewer than 2 samples of some series; "
        f"the first is from {start:.15g} to {end:.15g} s"
    )
    return Problem(message, severity=Severity.NOTE, code="data.gap", element=name)
