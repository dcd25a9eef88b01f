"""Split recordings into training runs and held-out runs."""

from collections import Counter
from collections.abc import Sequence

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.recording import Recording


def split_runs(
    recordings: Sequence[Recording], *, validation: float | Sequence[str] = 0.25
) -> tuple[list[Recording], list[Recording]]:
    """Training runs and held-out runs, each in their original order.

    A fraction keeps all segments of a run in the same set, since samples of one run are too strongly correlated for one
    part to validate a fit to the other; only a single run is divided. By name, single segments can be held out.

    Args:
        recordings: all runs.
        validation: names of the held-out runs or segments; or the fraction of runs to hold out, spread evenly over them
            so that both sets contain early and late runs. Unless it is 0, neither set is empty.

    Raises:
        DataError: a name is unknown or not unique, or one of the sets would be empty.
    """
    names = [recording.name for recording in recordings]
    if isinstance(validation, str):
        validation = [validation]
    if isinstance(validation, int | float):
        runs = list(dict.fromkeys(recording.run for recording in recordings))
        # of a single run, hold out segments: better than no validation at all
        keys = names if len(runs) == 1 else [recording.run for recording in recordings]
        unique = list(dict.fromkeys(keys))
        held_out_keys = {unique[k] for k in _held_out_indices(len(unique), float(validation))}
        held_out = {k for k, key in enumerate(keys) if key in held_out_keys}
    else:
        _check_names(validation, [*names, *{recording.run for recording in recordings if recording.segment_of}])
        held_out = {k for k, recording in enumerate(recordings) if {recording.name, recording.run} & set(validation)}
        if len(held_out) == len(names):
            raise DataError([_problem("all runs are held out for validation", "leave some runs for training")])
    training = [recording for k, recording in enumerate(recordings) if k not in held_out]
    return training, [recording for k, recording in enumerate(recordings) if k in held_out]


def _held_out_indices(count: int, fraction: float) -> list[int]:
    """Indices of the held-out runs, evenly spread over all runs."""
    if not 0.0 <= fraction < 1.0:
        message = f"the fraction of runs for validation is {fraction:g}"
        raise DataError([_problem(message, "choose a fraction from 0 to less than 1")])
    if fraction == 0.0:
        return []
    if count < 2:
        fix = "record another run, cut this one with Recording.slice, or set validation to 0"
        raise DataError([_problem("a single run cannot be split into training and validation", fix)])
    held_out = min(max(round(fraction * count), 1), count - 1)
    # the centres of `held_out` equal intervals
    return [int((k + 0.5) * count / held_out) for k in range(held_out)]


def _check_names(requested: Sequence[str], names: Sequence[str]) -> None:
    problems = [
        _problem(f"there is no run {name!r}", name_hint(name, names), name) for name in requested if name not in names
    ]
    problems += [
        _problem(f"{count} runs are named {name!r}", "give each run a unique name", name)
        for name, count in Counter(names).items()
        if count > 1 and name in requested
    ]
    if problems:
        raise DataError(problems)


def _problem(message: str, fix: str, element: str = "") -> Problem:
    return Problem(message, fix, code="data.split", element=element)
