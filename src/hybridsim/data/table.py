"""The common representation of all file formats: numeric columns by name, with row numbers as in the file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from hybridsim.core.errors import Problem


def _no_skipped_lines() -> np.ndarray:
    return np.zeros(0, dtype=int)


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a file, or of one run or topic in it.

    Every name in the file is either a column or `unreadable`. An unreadable column is an error only if a channel uses
    it: a recording may well have a text column beside the numeric ones.
    """

    columns: Mapping[str, Float[np.ndarray, " n"]]
    """Values by column name, NaN where missing. Columns of one file may differ in length."""
    file: str = ""
    """Path of the file as the user gave it; empty for arrays in memory."""
    sha256: str = ""
    """SHA-256 of the file's bytes."""
    first_row: int = 1
    """Number of the first row in messages: its line in a text file, 1 for arrays from a file, 0 for arrays in memory;
    larger for later runs of a concatenated file."""
    row_format: str = "row {}"
    """Format of a row number in messages."""
    skipped_lines: Int[np.ndarray, " k"] = field(default_factory=_no_skipped_lines)
    """Lines after the first row that are not rows, such as comments and blank lines; increasing."""
    unreadable: Mapping[str, Problem] = field(default_factory=dict)
    """Why a name in the file is not a numeric column."""
    problems: tuple[Problem, ...] = ()
    """Problems of the file as a whole."""

    def row_number(self, index: int) -> int:
        """Number of the row with this index in messages."""
        rows_before = self.skipped_lines - self.first_row - np.arange(len(self.skipped_lines))
        return self.first_row + index + int(np.searchsorted(rows_before, index, side="right"))

    def row_label(self, index: int) -> str:
        """Row with this index in messages: `line 17`, `row 16 of run 3`."""
        return self.row_format.format(self.row_number(index))
