"""Cutting a recording where it has gaps."""

from dataclasses import replace

import numpy as np

from hybridsim.core.errors import DataError, Problem, Severity
from hybridsim.core.messages import counted
from hybridsim.data.recording import Recording


def segments(recording: Recording, *, longest_gap: float) -> list[Recording]:
    """The parts of a recording in which no series has a gap.

    Parts are called `name.0`, `name.1` and so on; a recording without gaps is returned as it is. Parts in which a
    series has fewer than 2 samples are left out, and a note in the others says so.

    Args:
        recording: what to cut.
        longest_gap: longest time between two samples that is not a gap [s].

    Raises:
        DataError: no part is left.
    """
    if not longest_gap > 0.0:
        raise ValueError(f"longest_gap must be positive, not {longest_gap}")
    bounds = _without_gaps(recording, longest_gap)
    if len(bounds) == 1:
        return [recording]
    parts, lost = [], []
    for start, end in bounds:
        try:
            parts.append(recording.between(start, end))
        except DataError:
            lost.append((start, end))
    if not parts:
        message = (
            f"gaps of more than {longest_gap:g} s leave no part of {recording.name!r} with 2 samples of each series"
        )
        raise DataError([Problem(message, "allow longer gaps", code="data.gap", element=recording.name)])
    # it is cut where the gaps are, so that there is nothing to be done about them
    notes = tuple(problem for problem in recording.problems if problem.code != "data.gap")
    notes += (_lost_note(recording.name, lost),) if lost else ()
    return [
        replace(part, name=f"{recording.name}.{k}", problems=notes, piece_of=recording.run)
        for k, part in enumerate(parts)
    ]


def _without_gaps(recording: Recording, longest_gap: float) -> list[tuple[float, float]]:
    """Stretches of time in which no series has a gap."""
    cuts = []
    for one in recording.series.values():
        gaps = np.flatnonzero(np.diff(one.t) > longest_gap)
        cuts += [(float(one.t[k]), float(one.t[k + 1])) for k in gaps]
    start = min(float(one.t[0]) for one in recording.series.values())
    end = max(float(one.t[-1]) for one in recording.series.values())
    stretches = []
    for gap_start, gap_end in sorted(cuts):
        if gap_start >= start:
            stretches.append((start, gap_start))
        # gaps of two series may overlap
        start = max(start, gap_end)
    return [*stretches, (start, end)]


def _lost_note(name: str, lost: list[tuple[float, float]]) -> Problem:
    start, end = lost[0]
    message = (
        f"{counted(len(lost), 'part')} between gaps of {name!r} left out, with fewer than 2 samples of some series; "
        f"the first from {start:.15g} to {end:.15g} s"
    )
    return Problem(message, severity=Severity.NOTE, code="data.gap", element=name)
