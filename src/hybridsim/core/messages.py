"""Parts of messages: counts, abbreviated lists, and suggestions for misspelled names."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

SIGMA = "σ: standard deviation of the noise"
"""Explanation of the unit of residuals."""
MAX_NAMES = 8
"""Names listed in a message; further ones are only counted."""
MAX_SUGGESTIONS = 3
"""Names suggested in place of an unknown one."""
MIN_SIMILARITY = 0.5
"""Minimum similarity ratio of a suggested name."""
SIMILARITY_MARGIN = 0.05
"""Maximum difference from the best similarity ratio at which further names are suggested."""
_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters except line breaks and tabs, changes of the writing direction, and bytes that are no text."""
MAX_NAME_LENGTH, MAX_CANDIDATES = 100, 500
"""Limits on the length and number of compared names: input may be hostile, and the comparison is slow."""


def pluralize(count: int, singular: str, plural: str = "") -> str:
    """Count with its noun, such as `1 body` or `3 bodies`."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def remainder_suffix(count: int, singular: str, plural: str = "") -> str:
    """Suffix such as ` (and 3 more rows)`, for a message that names only the first of `count`; empty for one."""
    if count < 2:
        return ""
    return f" (and {count - 1} more {singular if count == 2 else plural or singular + 's'})"


def name_list(names: Iterable[str]) -> str:
    """Names in quotes, separated by commas; a long list is truncated, with the count of the remaining names."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:MAX_NAMES])
    return f"{shown} and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else shown


def spelling_suggestion(name: str, valid: Iterable[str]) -> str:
    """Suggestion of the valid names most similar to `name`; empty if none is similar."""
    matcher = SequenceMatcher(b=name[:MAX_NAME_LENGTH].lower())
    ratios: dict[str, float] = {}
    best = MIN_SIMILARITY + SIMILARITY_MARGIN
    # sorted, since `valid` may be a set
    for candidate in sorted([c for c in dict.fromkeys(valid) if len(c) <= MAX_NAME_LENGTH][:MAX_CANDIDATES]):
        # case-insensitive, since wrong capitalization is the most frequent mistake
        matcher.set_seq1(candidate.lower())
        threshold = best - SIMILARITY_MARGIN
        # the quick ratios are upper bounds, which rule out most names
        if (
            min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= threshold
            and (ratio := matcher.ratio()) >= threshold
        ):
            ratios[candidate] = ratio
            best = max(best, ratio)
    close = [c for c in sorted(ratios, key=lambda c: -ratios[c]) if ratios[c] >= best - SIMILARITY_MARGIN]
    return f"did you mean {' or '.join(map(repr, close[:MAX_SUGGESTIONS]))}?" if close else ""


def name_hint(name: str, valid: Iterable[str]) -> str:
    """Hint for an unknown name: the most similar valid names, or a list of all valid names."""
    valid = list(dict.fromkeys(valid))
    return spelling_suggestion(name, valid) or (f"valid names are {name_list(valid)}" if valid else "there are none")


def printable_json(text: str) -> str:
    """JSON whose control characters are escapes."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def printable(text: str) -> str:
    """Text whose control characters, except line breaks and tabs, are visible.

    Names from files must not control the terminal, or change its reading direction.
    """
    return _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)
