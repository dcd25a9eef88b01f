"""Output to terminals and to text, with tables; names from users' files are never interpreted as markup."""

import io
import sys
from collections.abc import Iterable, Sequence
from typing import Literal, NoReturn

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from hybridsim.core.messages import printable

UNLIMITED_WIDTH = 10_000
"""Width of output that does not go to a terminal [characters], so that rows of tables are not wrapped."""


class PlainConsole(Console):
    """A console without markup that raises BrokenPipeError when its consumer has exited."""

    def __init__(self, *, stderr: bool = False):
        stream = sys.stderr if stderr else sys.stdout
        is_terminal = stream is not None and stream.isatty()
        super().__init__(stderr=stderr, highlight=False, markup=False, width=None if is_terminal else UNLIMITED_WIDTH)

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def text_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> Table:
    """Table of texts; cells too long for the terminal are wrapped.

    Args:
        titles: column titles.
        rows: cells, row by row.
        right: titles of right-aligned columns.
    """
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        justify: Literal["left", "right"] = "right" if title in right else "left"
        table.add_column(printable(title), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def printable_part(part: RenderableType) -> RenderableType:
    """A part of the output whose control characters are visible; tables of `text_table` are already."""
    if isinstance(part, str):
        return printable(part)
    return Text(printable(part.plain), style=part.style) if isinstance(part, Text) else part


def as_text(parts: Iterable[RenderableType]) -> str:
    """Tables and texts as one text without colours."""
    console = Console(
        file=io.StringIO(), width=UNLIMITED_WIDTH, color_system=None, markup=False, highlight=False, emoji=False
    )
    with console.capture() as captured:
        for part in parts:
            console.print(printable_part(part), soft_wrap=True)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
