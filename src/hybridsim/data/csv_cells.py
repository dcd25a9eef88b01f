"""Cells of a line of text: how they are separated, and what is a number."""

import csv
import re
from collections.abc import Sequence

SEPARATORS = (";", "\t", ",")
"""In the order of preference where a line contains several; where none of them occurs, blanks separate."""
NO_NUMBER = frozenset({"", "-", "--", "na", "n/a", "#n/a", "nan", "null", "none", "nil"})
"""What people and programs write where a number is missing, in small letters."""

_QUOTED = re.compile(r'"[^"]*"')


def separator_of(first: str, second: str) -> str:
    """What separates the cells of a table, judged by its first two lines."""
    bare = _QUOTED.sub("", first)
    present = [separator for separator in SEPARATORS if separator in bare.strip(" \r\n")]
    alike = [s for s in present if len(cells_of(first, s)) == len(cells_of(second, s))]
    return (alike or present or [" "])[0]


def cells_of(line: str, separator: str) -> Sequence[str]:
    """Cells of a line, without quotes and surrounding blanks."""
    if '"' in line:
        try:
            found = next(csv.reader([line.strip(" \r\n")], delimiter=separator, skipinitialspace=True))
        except csv.Error:
            return [line.strip()]
        return [cell.strip() for cell in found]
    # a tab at the end of a line separates an empty cell from the others
    return line.split() if separator == " " else [cell.strip() for cell in line.split(separator)]


def number_of(cell: str) -> float | None:
    """The number in a cell, NaN if it is missing, None if there is something else."""
    if cell.lower() in NO_NUMBER:
        return float("nan")
    try:
        # Python reads 1_000 as a number, which nobody else writes
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def is_text(cell: str) -> bool:
    """Whether a cell holds something that is neither a number nor a missing one."""
    return number_of(cell) is None
