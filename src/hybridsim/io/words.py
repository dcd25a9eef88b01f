"""Small pieces of messages: lists that stay short, counts, and the name that was probably meant."""

import difflib
from collections.abc import Iterable, Sequence

MOST_NAMES = 4
"""Names that a message lists before it only counts the others."""


def listed(names: Sequence[str]) -> str:
    """Names in quotes, separated by commas; of many only the first ones and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    return f"{shown} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else shown


def counted(count: int, one: str, many: str = "") -> str:
    """`1 link` or `3 links`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Advice naming the candidate most like `name`; empty if none is."""
    best, score = "", 0.55
    matcher = difflib.SequenceMatcher(b=name[:100])
    # bounded, since the text may be hostile and the comparison is slow; sorted, since some candidates are sets
    for candidate in sorted([c for c in candidates if len(c) <= 100][:200]):
        matcher.set_seq1(candidate)
        # the quick ratios are upper bounds: most candidates cannot beat the best one so far
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) > score and matcher.ratio() > score:
            best, score = candidate, matcher.ratio()
    return f"did you mean {best!r}?" if best else ""
