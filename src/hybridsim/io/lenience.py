"""Passing over problems that the user has decided to live with."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from hybridsim.core.codes import CODES, OPEN_TOPICS
from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import did_you_mean

ALL = "all"
"""Stands for every code in `lenient`."""

_FORGIVABLE = ("inertia.", "mesh.", "geometry.", "contact.", "limit.order", "limit.missing", "limit.velocity")
"""Beginnings of the codes of problems that leave a model to simulate; with others leniency cannot help."""


def is_forgiven(code: str, lenient: Collection[str] | str) -> bool:
    """Whether the user asked to be lenient about this problem and a model is left."""
    codes = _codes(lenient)
    return (ALL in codes or code in codes) and code.startswith(_FORGIVABLE)


def judged(problems: Iterable[Problem], lenient: Collection[str] | str, file: str) -> list[Problem]:
    """The problems, forgiven errors as warnings; a code in `lenient` that no problem ever has is a problem, too.

    Args:
        problems: what was found.
        lenient: codes to be lenient about, one or several, or `all`.
        file: the file that is read.
    """
    judged = [
        Problem(
            f"lenient names {code!r}, which is not the code of any problem",
            did_you_mean(code, CODES) or "problems are listed with their codes by hybridsim check --json",
            file,
            code="option.lenient",
        )
        for code in sorted(_codes(lenient))
        if code != ALL and code not in CODES and not code.startswith(OPEN_TOPICS)
    ]
    for problem in problems:
        forgiven = problem.severity is Severity.ERROR and is_forgiven(problem.code, lenient)
        judged.append(replace(problem, severity=Severity.WARNING) if forgiven else problem)
    return judged


def _codes(lenient: Collection[str] | str) -> set[str]:
    return {lenient} if isinstance(lenient, str) else set(lenient)
