"""Downgrading of errors to warnings at the user's request."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from hybridsim.core.codes import CODES, OPEN_TOPICS
from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import spelling_suggestion

ALL = "all"
"""Wildcard in `tolerate` that stands for every code."""

_DOWNGRADABLE = ("inertia.", "mesh.", "geometry.", "contact.", "limit.order", "limit.missing", "limit.velocity")
"""Prefixes of the codes of errors that can be downgraded, because the model remains usable."""


def is_tolerated(code: str, tolerate: Collection[str] | str) -> bool:
    """Whether an error with this code is downgraded to a warning."""
    codes = _codes(tolerate)
    return (ALL in codes or code in codes) and code.startswith(_DOWNGRADABLE)


def downgrade_tolerated(problems: Iterable[Problem], tolerate: Collection[str] | str, file: str) -> list[Problem]:
    """Downgrade the errors named in `tolerate` to warnings and report unknown codes in `tolerate` as errors.

    Args:
        problems: problems of the file.
        tolerate: one or several codes, or `all`.
        file: path of the file, for messages.
    """
    result = [
        Problem(
            f"unknown code {code!r} in option 'tolerate'",
            spelling_suggestion(code, CODES) or "hybridsim check --json lists the codes of all problems",
            file,
            code="option.tolerate",
        )
        for code in sorted(_codes(tolerate))
        if code != ALL and code not in CODES and not code.startswith(OPEN_TOPICS)
    ]
    for problem in problems:
        downgraded = problem.severity is Severity.ERROR and is_tolerated(problem.code, tolerate)
        result.append(replace(problem, severity=Severity.WARNING) if downgraded else problem)
    return result


def _codes(tolerate: Collection[str] | str) -> set[str]:
    return {tolerate} if isinstance(tolerate, str) else set(tolerate)
