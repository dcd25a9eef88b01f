"""Split recordings into training runs and held-out runs."""

from collections import Counter
from collections.abc import Sequence

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.run import Run


def split_runs(recordings: Sequence[Run], *, held_out: float | Sequence[str] = 0.25) -> tuple[list[Run], list[Run]]:
    """Training runs and held-out runs, each in their original order.

    If `held_out` is a fraction, all segments of a run stay in the same set, since samples of one run are too strongly
    correlated for one part to validate a fit to the other; only if there is a single run is it divided. If it lists
    names, individual segments can be held out.

    Args:
        recordings: all runs.
        held_out: names of the held-out runs or segments; or the fraction of runs to hold out, spread evenly over them
            so that both sets contain early and late runs. Unless it is 0, neither set is empty.

    Raises:
        DataError: a name is unknown or not unique, or one of the sets would be empty.
    """
    names = [recording.name for recording in recordings]
    if isinstance(held_out, str):
        held_out = [held_out]
    if isinstance(held_out, int | float):
        run_names = list(dict.fromkeys(recording.run_name for recording in recordings))
        # if there is only one run, hold out segments of it: better than no validation at all
        keys = names if len(run_names) == 1 else [recording.run_name for recording in recordings]
        unique = list(dict.fromkeys(keys))
        held_out_keys = {unique[k] for k in _held_out_indices(len(unique), float(held_out))}
        indices = {k for k, key in enumerate(keys) if key in held_out_keys}
    else:
        _check_names(held_out, [*names, *{recording.run_name for recording in recordings if recording.segment_of}])
        selected = set(held_out)
        indices = {k for k, recording in enumerate(recordings) if {recording.name, recording.run_name} & selected}
        if len(indices) == len(names):
            raise DataError([_problem("all runs are held out", "leave some runs for training")])
    training = [recording for k, recording in enumerate(recordings) if k not in indices]
    return training, [recording for k, recording in enumerate(recordings) if k in indices]


def _held_out_indices(count: int, fraction: float) -> list[int]:
    """Indices of the held-out runs, evenly spread over all runs."""
    if not 0.0 <= fraction < 1.0:
        message = f"the fraction of held-out runs is {fraction:g}"
        raise DataError([_problem(message, "choose a fraction from 0 to less than 1")])
    if fraction == 0.0:
        return []
    if count < 2:
        fix = "record another run, cut this one with Run.slice, or set held_out to 0"
        raise DataError([_problem("a single run cannot be split into training and held-out runs", fix)])
    held_out_count = min(max(round(fraction * count), 1), count - 1)
    # the centres of as many equal intervals
    return [int((k + 0.5) * count / held_out_count) for k in range(held_out_count)]


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
