"""What all file formats are read into: columns of numbers by name, with the row numbers that a user knows them by."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from hybridsim.core.errors import Problem


def _no_lines() -> np.ndarray:
    return np.zeros(0, dtype=int)


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a file, or of one run or topic in it.

    Every name in the file is either a column or `unreadable`. What cannot be read only matters to who asks for it: a
    recording with a text column beside the numbers is a good one.
    """

    columns: Mapping[str, Float[np.ndarray, " n"]]
    """Numbers by name, NaN where the file has none. Streams of one file may differ in length."""
    file: str = ""
    """Path of the file as the user gave it; empty for arrays in memory."""
    sha256: str = ""
    """Of the file's bytes."""
    first_row: int = 1
    """How the user counts the first row: of a text file its line, of arrays 1."""
    row_form: str = "row {}"
    """How messages call a row."""
    skipped: Int[np.ndarray, " k"] = field(default_factory=_no_lines)
    """Lines after the first row that are no rows: comments and blank ones; increasing."""
    unreadable: Mapping[str, Problem] = field(default_factory=dict)
    """Why a name in the file is no column of numbers."""
    problems: tuple[Problem, ...] = ()
    """What is wrong with the file as a whole."""

    def row(self, index: int) -> int:
        """The user's number of the row with this index."""
        rows_before = self.skipped - self.first_row - np.arange(len(self.skipped))
        return self.first_row + index + int(np.searchsorted(rows_before, index, side="right"))

    def place(self, index: int) -> str:
        """How messages call the row with this index: `line 17`, `row 16 of run 3`."""
        return self.row_form.format(self.row(index))
