"""Downgrading of errors to warnings at the user's request."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from hybridsim.core.codes import CODES, OPEN_TOPICS
from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import did_you_mean

ALL = "all"
"""Wildcard in `lenient` that stands for every code."""

_DOWNGRADABLE = ("inertia.", "mesh.", "geometry.", "contact.", "limit.order", "limit.missing", "limit.velocity")
"""Prefixes of the codes of errors that can be downgraded, because the model remains usable."""


def is_downgraded(code: str, lenient: Collection[str] | str) -> bool:
    """Whether an error with this code is downgraded to a warning."""
    codes = _codes(lenient)
    return (ALL in codes or code in codes) and code.startswith(_DOWNGRADABLE)


def apply_lenience(problems: Iterable[Problem], lenient: Collection[str] | str, file: str) -> list[Problem]:
    """Downgrade the errors named in `lenient` to warnings and report unknown codes in `lenient` as errors.

    Args:
        problems: problems of the file.
        lenient: one or several codes, or `all`.
        file: path of the file, for messages.
    """
    result = [
        Problem(
            f"unknown code {code!r} in option 'lenient'",
            did_you_mean(code, CODES) or "hybridsim check --json lists the codes of all problems",
            file,
            code="option.lenient",
        )
        for code in sorted(_codes(lenient))
        if code != ALL and code not in CODES and not code.startswith(OPEN_TOPICS)
    ]
    for problem in problems:
        downgraded = problem.severity is Severity.ERROR and is_downgraded(problem.code, lenient)
        result.append(replace(problem, severity=Severity.WARNING) if downgraded else problem)
    return result


def _codes(lenient: Collection[str] | str) -> set[str]:
    return {lenient} if isinstance(lenient, str) else set(lenient)
