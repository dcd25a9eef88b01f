"""Small pieces of messages: counts, lists that stay short, and the names that were probably meant."""

from collections.abc import Iterable
from difflib import SequenceMatcher

MAX_NAMES = 8
"""Names that a message lists before it only counts the others."""
MOST_MEANT = 3
"""Names that a message asks about."""
ALIKE = 0.5
"""How much of two names must agree for one to be meant by the other."""
AS_GOOD = 0.05
"""By how much less another name may agree than the best one to be asked about as well."""
LONGEST, MOST_COMPARED = 100, 500
"""Letters and names that are compared: texts may be hostile, and the comparison is slow."""


def pluralize(count: int, one: str, many: str = "") -> str:
    """`1 body`, `3 bodies`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def and_more(count: int, one: str, many: str = "") -> str:
    """` (and 3 more rows)`, to follow the first of `count`; empty for one."""
    if count < 2:
        return ""
    return f" (and {count - 1} more {one if count == 2 else many or one + 's'})"


def name_list(names: Iterable[str]) -> str:
    """Names in quotes, separated by commas; of many only the first ones and how many more there are."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:MAX_NAMES])
    return f"{shown} and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else shown


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """A question that names the valid names most like `name`; empty if none is."""
    matcher = SequenceMatcher(b=name[:LONGEST].lower())
    likeness: dict[str, float] = {}
    best = ALIKE + AS_GOOD
    # sorted, since some of the valid names are sets
    for candidate in sorted([c for c in dict.fromkeys(valid) if len(c) <= LONGEST][:MOST_COMPARED]):
        # without regard to capitals, since these are what people get wrong most often
        matcher.set_seq1(candidate.lower())
        least = best - AS_GOOD
        # the quick ratios are upper bounds: most names cannot come near the best one so far
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= least and (ratio := matcher.ratio()) >= least:
            likeness[candidate] = ratio
            best = max(best, ratio)
    close = [c for c in sorted(likeness, key=lambda c: -likeness[c]) if likeness[c] >= best - AS_GOOD]
    return f"did you mean {' or '.join(map(repr, close[:MOST_MEANT]))}?" if close else ""


def name_hint(name: str, valid: Iterable[str]) -> str:
    """Advice for a name that is not there: the most similar valid ones, or else what there is."""
    valid = list(dict.fromkeys(valid))
    return did_you_mean(name, valid) or (f"there are {name_list(valid)}" if valid else "there are none")
