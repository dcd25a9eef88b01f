"""Cells of a line of text: delimiters and number formats."""

import csv
import re
from collections.abc import Sequence

DELIMITERS = (";", "\t", ",")
"""Delimiters in order of preference, if a line contains more than one; lines without any are delimited by
whitespace."""
MISSING_VALUE_MARKERS = frozenset({"", "-", "--", "na", "n/a", "#n/a", "nan", "null", "none", "nil"})
"""Common markers of missing values, in lower case."""

_QUOTED = re.compile(r'"[^"]*"')


def detect_delimiter(first: str, second: str) -> str:
    """Delimiter of a table, detected from its first two lines."""
    unquoted = _QUOTED.sub("", first)
    present = [delimiter for delimiter in DELIMITERS if delimiter in unquoted.strip(" \r\n")]
    consistent = [s for s in present if len(split_cells(first, s)) == len(split_cells(second, s))]
    return (consistent or present or [" "])[0]


def split_cells(line: str, delimiter: str) -> Sequence[str]:
    """Cells of a line, without quotes and surrounding whitespace."""
    if '"' in line:
        try:
            cells = next(csv.reader([line.strip(" \r\n")], delimiter=delimiter, skipinitialspace=True))
        except csv.Error:
            return [line.strip()]
        return [cell.strip() for cell in cells]
    # a trailing tab is followed by an empty cell, so the line is not stripped
    return line.split() if delimiter == " " else [cell.strip() for cell in line.split(delimiter)]


def parse_number(cell: str) -> float | None:
    """Number in a cell; NaN if missing, None if the cell holds text."""
    if cell.lower() in MISSING_VALUE_MARKERS:
        return float("nan")
    try:
        # 1_000 and digits of other scripts are numbers in Python only
        return None if "_" in cell or not cell.isascii() else float(cell)
    except ValueError:
        return None


def is_text(cell: str) -> bool:
    """Whether a cell is neither a number nor a marker of a missing value."""
    return parse_number(cell) is None
