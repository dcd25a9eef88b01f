"""Cells of a line of text: how they are separated, and what is a number."""

import csv
import re
from collections.abc import Sequence

DELIMITERS = (";", "\t", ",")
"""In the order of preference where a line contains several; where none of them occurs, blanks separate."""
MISSING_VALUE_MARKERS = frozenset({"", "-", "--", "na", "n/a", "#n/a", "nan", "null", "none", "nil"})
"""What people and programs write where a number is missing, in small letters."""

_QUOTED = re.compile(r'"[^"]*"')


def detect_delimiter(first: str, second: str) -> str:
    """What separates the cells of a table, judged by its first two lines."""
    bare = _QUOTED.sub("", first)
    present = [separator for separator in DELIMITERS if separator in bare.strip(" \r\n")]
    consistent = [s for s in present if len(split_cells(first, s)) == len(split_cells(second, s))]
    return (consistent or present or [" "])[0]


def split_cells(line: str, separator: str) -> Sequence[str]:
    """Cells of a line, without quotes and surrounding blanks."""
    if '"' in line:
        try:
            cells = next(csv.reader([line.strip(" \r\n")], delimiter=separator, skipinitialspace=True))
        except csv.Error:
            return [line.strip()]
        return [cell.strip() for cell in cells]
    # a tab at the end of a line separates an empty cell from the others
    return line.split() if separator == " " else [cell.strip() for cell in line.split(separator)]


def parse_number(cell: str) -> float | None:
    """The number in a cell, NaN if it is missing, None if there is something else."""
    if cell.lower() in MISSING_VALUE_MARKERS:
        return float("nan")
    try:
        # Python reads 1_000 as a number, which nobody else writes
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def is_text(cell: str) -> bool:
    """Whether a cell holds something that is neither a number nor a missing one."""
    return parse_number(cell) is None
