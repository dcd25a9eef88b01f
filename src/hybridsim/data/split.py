"""Which runs are fitted, and which are kept to judge the fit."""

from collections import Counter
from collections.abc import Sequence

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import advice
from hybridsim.data.recording import Recording


def split_runs(
    recordings: Sequence[Recording], *, validation: float | Sequence[str] = 0.25
) -> tuple[list[Recording], list[Recording]]:
    """Runs for training and runs for validation, in their order.

    Runs stay whole, pieces between gaps included: samples of the same run are too much alike for one part to judge what
    the other one taught.

    Args:
        recordings: all runs.
        validation: names of the runs, or pieces, for validation; or what part of all to take, spread evenly over them,
            so that both parts see early and late runs. At least one run ends up on either side, unless it is 0.

    Raises:
        DataError: a name is unknown or not unique, or nothing is left for one side.
    """
    names = [recording.name for recording in recordings]
    if isinstance(validation, str):
        validation = [validation]
    if isinstance(validation, int | float):
        runs = list(dict.fromkeys(recording.run for recording in recordings))
        # pieces of the only run there is are better than nothing to judge by
        called = names if len(runs) == 1 else [recording.run for recording in recordings]
        apart = list(dict.fromkeys(called))
        chosen = {apart[k] for k in _spread(len(apart), float(validation))}
        held = {k for k, name in enumerate(called) if name in chosen}
    else:
        _check_names(validation, [*names, *{recording.run for recording in recordings if recording.piece_of}])
        held = {k for k, one in enumerate(recordings) if {one.name, one.run} & set(validation)}
        if len(held) == len(names):
            raise DataError([_problem("all runs are for validation", "leave some for the fit")])
    training = [recording for k, recording in enumerate(recordings) if k not in held]
    return training, [recording for k, recording in enumerate(recordings) if k in held]


def _spread(count: int, share: float) -> list[int]:
    if not 0.0 <= share < 1.0:
        raise DataError([_problem(f"the part for validation is {share:g}", "choose it from 0 to less than 1")])
    if share == 0.0:
        return []
    if count < 2:
        fix = "record another run, cut this one with Recording.between, or set validation to 0"
        raise DataError([_problem("a single run cannot be split into training and validation", fix)])
    held = min(max(round(share * count), 1), count - 1)
    # the middle of each of as many equal stretches
    return [int((k + 0.5) * count / held) for k in range(held)]


def _check_names(wanted: Sequence[str], names: Sequence[str]) -> None:
    found = [_problem(f"there is no run {name!r}", advice(name, names), name) for name in wanted if name not in names]
    found += [
        _problem(f"{count} runs are called {name!r}", "give each a name of its own", name)
        for name, count in Counter(names).items()
        if count > 1 and name in wanted
    ]
    if found:
        raise DataError(found)


def _problem(message: str, fix: str, element: str = "") -> Problem:
    return Problem(message, fix, code="data.split", element=element)
