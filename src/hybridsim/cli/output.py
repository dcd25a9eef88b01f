"""Output of all commands: tables, problems in colour, JSON.

Names from users' files are printed verbatim and never interpreted as markup.
"""

import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hybridsim.core.errors import ModelWarning, Problem, Severity
from hybridsim.core.messages import pluralize

SIGMA = "σ: standard deviation of the noise"
"""Explanation of the unit of residuals."""
UNLIMITED_WIDTH = 10_000
"""Width of output that does not go to a terminal [characters], so that rows of tables are not wrapped."""


class PlainConsole(Console):
    """A console without markup that raises BrokenPipeError when its consumer has exited."""

    def __init__(self, *, stderr: bool = False):
        is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
        super().__init__(stderr=stderr, highlight=False, markup=False, width=None if is_terminal else UNLIMITED_WIDTH)

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def say(text: str, *, style: str = "", stderr: bool = False) -> None:
    """Print a text; wrapping is left to the terminal, so that it can be copied without line breaks."""
    PlainConsole(stderr=stderr).print(text, style=style or None, soft_wrap=True)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table; cells too long for the terminal are wrapped.

    Args:
        titles: column titles.
        rows: cells, row by row.
        right: titles of right-aligned columns.
    """
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        justify: Literal["left", "right"] = "right" if title in right else "left"
        table.add_column(title, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    PlainConsole().print(table)


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
    print(json.dumps(_replace_nonfinite(value), indent=2, ensure_ascii=False))


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
