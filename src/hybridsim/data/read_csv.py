"""Text tables: comma, semicolon, tab or blank separated, with or without a header.

The header is the first line if any of its cells is not a number, or else a comment right above the first row with as
many names as there are columns (as `numpy.savetxt` writes it). Without one, columns are named "0", "1" and so on. Lines
that begin with # and blank ones are passed over.

Rows are read in blocks: at once where all is well, cell by cell where not, to say what is wrong and in which line.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_list
from hybridsim.data.csv_cells import detect_delimiter, is_text, split_cells
from hybridsim.data.csv_diagnostics import CsvDiagnostics
from hybridsim.data.table import Table

BLOCK_LINES = 20_000
"""Lines that are read at once."""


def read_csv(path: Path) -> Table:
    """The table of a text file.

    Raises:
        DataError: it is not text, or has no rows.
    """
    _refuse_binary_file(path)
    lines = _LineReader(path)
    first_number, first = lines.first()
    following = lines.peek()
    separator = detect_delimiter(first, following)
    cells = split_cells(first, separator)
    names, has_header = _column_names(cells, lines.comment, separator)
    if not has_header:
        lines.put_back(first_number, first)
    faults = CsvDiagnostics(str(path), names, separator)
    blocks = [_read_block(texts, numbers, separator, faults) for texts, numbers in lines.blocks()]
    if not blocks:
        fix = "check whether the recording was stopped before its first sample"
        raise DataError([Problem("the file has a header but no rows", fix, str(path), code="data.empty")])
    values = np.ascontiguousarray(np.concatenate(blocks).T)
    unreadable = faults.column_problems()
    return Table(
        {name: values[k] for k, name in enumerate(names) if name not in unreadable},
        str(path),
        first_row=lines.first_row,
        row_format="line {}",
        skipped_lines=np.array(sorted([*lines.skipped, *faults.ragged_lines]), dtype=int),
        unreadable=unreadable,
        problems=faults.file_problems(),
    )


class _LineReader:
    """The lines of a file that are rows, with their numbers."""

    def __init__(self, path: Path):
        self._path = path
        self._waiting: list[tuple[int, str]] = []
        self._number = 0
        self._raw = self._read()
        self.comment = ""
        """The last comment above the first row."""
        self.skipped: list[int] = []
        """Numbers of the lines after the first row that are none."""
        self.first_row = 0

    def _read(self) -> Iterator[str]:
        with self._path.open(encoding="utf-8-sig") as stream:
            try:
                yield from stream
            except UnicodeDecodeError as error:
                message = f"the file is not text in UTF-8: it has the byte 0x{error.object[error.start]:02x}"
                fix = "save it as UTF-8; spreadsheets offer this when saving as CSV"
                raise DataError([self._problem(f"{message} in line {self._line_of_damage()}", fix)]) from None

    def _line_of_damage(self) -> int:
        """Number of the first line that is not UTF-8; a text is decoded many lines at a time."""
        with self._path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.decode(errors="replace").encode() != line:
                    return number
        return self._number

    def _problem(self, message: str, fix: str) -> Problem:
        return Problem(message, fix, str(self._path), code="data.format")

    def first(self) -> tuple[int, str]:
        """The first line that is neither blank nor a comment."""
        for line in self._raw:
            self._number += 1
            if _is_comment(line):
                self.comment = line.strip().lstrip("#").strip()
            elif not line.isspace():
                return self._number, line
        problem = Problem(
            "the file holds no data", "check whether this is the right file", str(self._path), code="data.empty"
        )
        raise DataError([problem])

    def peek(self) -> str:
        """The row after the first line; empty if there is none."""
        for line in self._raw:
            self._number += 1
            if not line.isspace() and not _is_comment(line):
                self._waiting.append((self._number, line))
                return line
            self.skipped.append(self._number)
        return ""

    def put_back(self, number: int, line: str) -> None:
        """Make the first line the first row."""
        self._waiting.insert(0, (number, line))

    def blocks(self) -> Iterator[tuple[list[str], Sequence[int]]]:
        """Rows and their line numbers, many at a time."""
        if self._waiting:
            numbers, texts = zip(*self._waiting, strict=True)
            self.first_row = numbers[0]
            self.skipped = [number for number in self.skipped if number > self.first_row]
            yield list(texts), numbers
        while raw := list(islice(self._raw, BLOCK_LINES)):
            numbers = range(self._number + 1, self._number + 1 + len(raw))
            self._number += len(raw)
            if any("#" in line or line.isspace() for line in raw):
                kept = [k for k, line in enumerate(raw) if not line.isspace() and not _is_comment(line)]
                self.skipped += sorted({*numbers} - {numbers[k] for k in kept})
                raw, numbers = [raw[k] for k in kept], [numbers[k] for k in kept]
            if raw:
                yield raw, numbers


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _column_names(first: Sequence[str], comment: str, separator: str) -> tuple[list[str], bool]:
    """Names of the columns, and whether the first line holds them; a column without one is called by its position."""
    by_position = [str(k) for k in range(len(first))]
    # a table of pandas has an index without a name before columns that may be called 0, 1, 2
    is_index = len(first) > 1 and [*first] == ["", *by_position[:-1]]
    if is_index or any(is_text(cell) for cell in first):
        return [name or ("index" if is_index else by_position[k]) for k, name in enumerate(first)], True
    told = split_cells(comment, separator)
    if len(told) == len(first) and all(is_text(cell) for cell in told):
        return list(told), False
    return by_position, False


def _read_block(texts: list[str], numbers: Sequence[int], separator: str, faults: CsvDiagnostics) -> np.ndarray:
    """Numbers of some rows (rows, columns); NaN in columns that hold text."""
    count, wanted = len(faults.names), faults.numeric_columns()
    is_blank = separator == " "
    # NumPy does not count the cells of rows from which it takes only some
    is_partial = len(wanted) < count
    if is_partial and (is_blank or not wanted or any(line.count(separator) != count - 1 for line in texts)):
        return faults.read_rows(texts, numbers)
    try:
        columns = wanted if is_partial else None
        values = np.loadtxt(texts, delimiter=None if is_blank else separator, comments=None, ndmin=2, usecols=columns)
    except ValueError:
        return faults.read_rows(texts, numbers)
    if values.shape[1] != len(wanted):
        return faults.read_rows(texts, numbers)
    whole = np.full((len(values), count), np.nan)
    whole[:, wanted] = values
    return whole


def _refuse_binary_file(path: Path) -> None:
    with path.open("rb") as stream:
        head = stream.read(4096)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        message, fix = "the file is text in UTF-16", "save it as UTF-8"
    elif b"\0" in head:
        message = "this is not a text file"
        fix = f"check its ending; formats are told apart by {name_list(['.csv', '.npz', '.h5', '.parquet', '.mcap'])}"
    else:
        return
    raise DataError([Problem(message, fix, str(path), code="data.format")])
