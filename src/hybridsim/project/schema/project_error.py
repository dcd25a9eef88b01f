"""What is wrong with a project: every problem at once, each at its line."""

import re

from hybridsim.core.errors import ProblemsError

_OTHER_WORDS = (
    (r"tell the column with time=, or time=(\S+) for", r'write time = "..." in [data], or step = \1 for'),
    (r"segments\(recording, longest_gap=([^)]*)\)", r"longest_gap = \1 in [data]"),
    (r"choose one with run=0, or load them all with load_runs", "write several = true in [data]"),
    (r"\b(\w+)='([^']*)'", r'\1 = "\2"'),
    (r"\b(\w+)=True", r"\1 = true"),
    (r"\b(\w+)=(?=[\s,;.]|$)", r"\1"),
)
"""How Python and a project say the same."""


class ProjectError(ProblemsError):
    """A project that cannot be used; carries the problems of its model and data files, too."""


def in_project_words(advice: str) -> str:
    """Advice for Python as advice for a project."""
    for python, project in _OTHER_WORDS:
        advice = re.sub(python, project, advice)
    return advice
