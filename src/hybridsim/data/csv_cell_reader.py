"""Cell-by-cell reader of text tables, which reports the line and column of each problem with advice."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from hybridsim.core.errors import Problem
from hybridsim.core.messages import remainder_suffix
from hybridsim.data.csv_cells import DELIMITERS, parse_number, split_cells

MAX_QUOTED = 40
"""Maximum number of characters of a cell quoted in a message."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_NUMBER_WITH_UNIT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*[a-zA-Z°µ%][a-zA-Z0-9°µ%/²^*]*")


class CsvCellReader:
    """Reads the rows of a table cell by cell, and collects their problems."""

    def __init__(self, file: str, names: Sequence[str], delimiter: str):
        """Initialize with no problems so far.

        Args:
            file: path of the file; for messages.
            names: names of the columns.
            delimiter: delimiter of the cells.
        """
        self.names = names
        self._file, self._delimiter = file, delimiter
        self.ragged_lines: list[int] = []
        self._first_ragged = ""
        self._text_cells: dict[int, tuple[int, str]] = {}

    def numeric_columns(self) -> list[int]:
        """Columns without text so far."""
        return [k for k in range(len(self.names)) if k not in self._text_cells]

    def read_rows(self, lines: Sequence[str], line_numbers: Sequence[int]) -> np.ndarray:
        """Values of these rows (rows, columns), NaN where missing; rows with too few or too many cells are skipped."""
        rows, row_lines = [], []
        for number, line in zip(line_numbers, lines, strict=True):
            cells = split_cells(line, self._delimiter)
            if len(cells) == len(self.names):
                rows.append(cells)
                row_lines.append(number)
            else:
                self._first_ragged = self._first_ragged or line
                self.ragged_lines.append(number)
        values = np.full((len(rows), len(self.names)), np.nan)
        for k in self.numeric_columns():
            values[:, k] = self._parse_column([row[k] for row in rows], k, row_lines)
        return values

    def _parse_column(self, cells: Sequence[str], column: int, lines: Sequence[int]) -> list[float]:
        values = []
        for cell, line in zip(cells, lines, strict=True):
            value = parse_number(cell)
            if value is None:
                # one cell of text makes the whole column unusable
                self._text_cells[column] = (line, cell)
                return [float("nan")] * len(cells)
            values.append(value)
        return values

    def column_problems(self) -> dict[str, Problem]:
        """Problems with columns that are not numeric, or whose name is not unique."""
        problems = {}
        for k, (line, cell) in self._text_cells.items():
            name = self.names[k]
            quoted = cell if len(cell) <= MAX_QUOTED else cell[:MAX_QUOTED] + "…"
            message = f"column {name!r} has the text {quoted!r} in line {line}, not a number"
            problems[name] = Problem(message, _cell_fix(cell), self._file, line, code="data.text", element=name)
        for name, count in Counter(self.names).items():
            if count > 1:
                message = f"{count} columns are named {name!r}, so the name is ambiguous"
                fix = "give each column of the header a unique name"
                problems[name] = Problem(message, fix, self._file, code="data.duplicate_column", element=name)
        return problems

    def file_problems(self) -> tuple[Problem, ...]:
        """Problems with rows that do not have one cell per column."""
        if not self.ragged_lines:
            return ()
        line, count = self.ragged_lines[0], len(split_cells(self._first_ragged, self._delimiter))
        more = remainder_suffix(len(self.ragged_lines), "such row")
        message = f"line {line} has {count} of {len(self.names)} cells{more}"
        if count > len(self.names):
            message = f"line {line} has {count} cells, but there are {len(self.names)} columns{more}"
        fix = "complete or delete the line; a recording that was cut off often ends in the middle of a row"
        other_delimiters = [s for s in DELIMITERS if s != self._delimiter and s in self._first_ragged]
        if count == 1 and other_delimiters:
            fix = f"use one delimiter in header and rows; this line seems to be separated by {other_delimiters[0]!r}"
        elif count == len(self.names) + 1 and not split_cells(self._first_ragged, self._delimiter)[-1]:
            fix = f"remove the {self._delimiter!r} at the end of the line"
        return (Problem(message, fix, self._file, line, code="data.ragged"),)


def _cell_fix(cell: str) -> str:
    if _DECIMAL_COMMA.fullmatch(cell):
        return f"write numbers with a decimal point, {cell.replace(',', '.')} instead of {cell}"
    if _NUMBER_WITH_UNIT.fullmatch(cell):
        return "write the number only, and specify the unit in the channel"
    parts = re.split(r"[;,\s]+", cell)
    if len(parts) > 1 and all(parse_number(part) is not None for part in parts):
        return "use the same delimiter in the whole file"
    return "correct the cell, or leave it empty where nothing was measured"
