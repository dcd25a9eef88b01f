"""What all commands print alike: tables that lose nothing, problems in colour, JSON for other programs.

Names come from users' files and are printed as they are: nothing in them is taken for markup.
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

WIDE = 10_000
"""Columns of output that does not go to a terminal: every row of a table stays on its line."""


class PlainConsole(Console):
    """A console that prints text as it is, and tells when its reader has gone."""

    def __init__(self, *, stderr: bool = False):
        is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
        super().__init__(stderr=stderr, highlight=False, markup=False, width=None if is_terminal else WIDE)

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def say(text: str, *, style: str = "", stderr: bool = False) -> None:
    """Print a text, wrapped by the terminal itself so that it can be copied whole."""
    PlainConsole(stderr=stderr).print(text, style=style or None, soft_wrap=True)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table; cells too long for the terminal go on in the next line.

    Args:
        titles: of the columns.
        rows: of cells.
        right: titles of the columns to align right.
    """
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        side: Literal["left", "right"] = "right" if title in right else "left"
        table.add_column(title, justify=side, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    PlainConsole().print(table)


_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def print_problems(problems: Sequence[Problem], *, stderr: bool = False) -> None:
    """Print problems, the errors first."""
    for severity, style in _STYLES.items():
        for problem in problems:
            if problem.severity is severity:
                say(str(problem), style=style, stderr=stderr)


@contextmanager
def warnings_said() -> Iterator[None]:
    """Python's warnings as sentences on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        yield
    for warning in caught:
        say(f"warning: {warning.message}", style="yellow", stderr=True)


def print_json(value: Any) -> None:
    """Print a value as JSON; what JSON cannot hold, infinity, becomes null."""
    print(json.dumps(_finite(value), indent=2, ensure_ascii=False))


def verdict(name: str, usable: bool, problems: Iterable[Problem]) -> str:
    """One line on whether a model can be used."""
    numbers = Counter(problem.severity for problem in problems)
    counts = [pluralize(numbers[severity], str(severity)) for severity in (Severity.ERROR, Severity.WARNING)]
    if numbers[Severity.NOTE]:
        counts.append(pluralize(numbers[Severity.NOTE], "note"))
    return f"{name} {'can' if usable else 'cannot'} be used: {', '.join(counts)}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not -float("inf") < value < float("inf") else value
