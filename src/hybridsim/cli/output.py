"""Output of all commands: tables, problems in colour, JSON.

Names from users' files are never interpreted as markup, and their control characters are shown as escapes.
"""

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from hybridsim.core.console import PlainConsole, printable_part, text_table
from hybridsim.core.errors import ModelWarning, Problem, Severity
from hybridsim.core.messages import pluralize, printable, printable_json


def say(text: str, *, style: str = "", stderr: bool = False) -> None:
    """Print a text; wrapping is left to the terminal, so that it can be copied without line breaks."""
    PlainConsole(stderr=stderr).print(printable(text), style=style or None, soft_wrap=True)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table; cells too long for the terminal are wrapped.

    Args:
        titles: column titles.
        rows: cells, row by row.
        right: titles of right-aligned columns.
    """
    PlainConsole().print(text_table(titles, rows, right=right))


def print_parts(parts: Iterable[RenderableType]) -> None:
    """Print tables and texts; only tables are wrapped."""
    console = PlainConsole()
    for part in parts:
        console.print(printable_part(part), soft_wrap=not isinstance(part, Table))


_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def print_problems(problems: Sequence[Problem], *, stderr: bool = False) -> None:
    """Print problems, errors first."""
    for severity, style in _STYLES.items():
        for problem in problems:
            if problem.severity is severity:
                say(str(problem), style=style, stderr=stderr)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print the model warnings raised in a block on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        yield
    for warning in caught:
        say(f"warning: {warning.message}", style="yellow", stderr=True)


def print_json(value: Any) -> None:
    """Print a value as JSON, with null for infinity and NaN."""
    print(printable_json(json.dumps(_replace_nonfinite(value), indent=2, ensure_ascii=False)))


def summary_line(name: str, usable: bool, problems: Iterable[Problem]) -> str:
    """Whether a model can be used, and the number of its problems, in one line."""
    counts = Counter(problem.severity for problem in problems)
    parts = [pluralize(counts[severity], str(severity)) for severity in (Severity.ERROR, Severity.WARNING)]
    if counts[Severity.NOTE]:
        parts.append(pluralize(counts[Severity.NOTE], "note"))
    return f"{name} {'can' if usable else 'cannot'} be used: {', '.join(parts)}"


def _replace_nonfinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nonfinite(item) for item in value]
    return None if isinstance(value, float) and not -float("inf") < value < float("inf") else value
