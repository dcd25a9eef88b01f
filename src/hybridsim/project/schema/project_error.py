"""Error of an invalid project, with the lines of all problems."""

import re

from hybridsim.core.errors import ProblemsError

_TRANSLATIONS = (
    (
        r"name the time column with time=, or set time=(\S+) for",
        r'write time = "..." in [data], or sample_interval = \1 for',
    ),
    (r"segments\(recording, max_sample_interval=([^)]*)\)", r"max_sample_interval = \1 in [data]"),
    (r"choose one with run=0, or load them all with load_runs", "write several_runs = true in [data]"),
    (r"\b(\w+)='([^']*)'", r'\1 = "\2"'),
    (r"\b(\w+)=True", r"\1 = true"),
    (r"\b(\w+)=(?=[\s,;.]|$)", r"\1"),
)
"""Advice for Python users and its equivalent in a project file."""


class ProjectError(ProblemsError):
    """An invalid project; carries the problems of its model and data files as well."""


def translate_advice(advice: str) -> str:
    """Rewrite advice for Python users for users of a project file."""
    for python, project in _TRANSLATIONS:
        advice = re.sub(python, project, advice)
    return advice
