"""Small pieces of messages: counts, and the names that were probably meant."""

import difflib
from collections.abc import Iterable

MOST_NAMES = 12
"""Names that a message lists before it only counts the others."""


def counted(count: int, one: str, many: str = "") -> str:
    """`1 row` or `3 rows`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def and_more(count: int, one: str, many: str = "") -> str:
    """` (and 3 more rows)`, to follow the first of `count`; empty for one."""
    if count < 2:
        return ""
    return f" (and {count - 1} more {one if count == 2 else many or one + 's'})"


def listed(names: Iterable[str]) -> str:
    """Names in quotes, separated by commas; of many only the first ones and how many more there are."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    return f"{shown} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else shown


def nearest(name: str, valid: Iterable[str]) -> str:
    """A question that names the most similar valid names; empty if there are none."""
    # without regard to capitals, since these are what people get wrong most often
    by_lower = {candidate.lower(): candidate for candidate in valid}
    close = [by_lower[found] for found in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""


def advice(name: str, valid: Iterable[str]) -> str:
    """Advice for a name that is not there: the most similar valid ones, or else what there is."""
    valid = list(dict.fromkeys(valid))
    return nearest(name, valid) or (f"there are {listed(valid)}" if valid else "there are none")
