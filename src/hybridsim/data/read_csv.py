"""Text tables, delimited by commas, semicolons, tabs or whitespace, with or without a header.

The header is the first line if any of its cells is not a number, or else the last comment above the first row if it has
as many names as there are columns (as written by `numpy.savetxt`). Without one, columns are named "0", "1" and so on.
Blank lines and lines that begin with # are skipped.

Rows are read in blocks: by NumPy if they are well-formed, otherwise cell by cell, to report the line of each problem.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.data.csv_cell_reader import CsvCellReader
from hybridsim.data.csv_cells import detect_delimiter, is_text, split_cells
from hybridsim.data.file_format import FileFormat, FileSelection
from hybridsim.data.table import Table

BLOCK_LINES = 20_000
"""Lines per block."""


def read_csv(path: Path, selection: FileSelection) -> list[Table]:
    """The table of a text file, which has no groups or runs to select.

    Raises:
        DataError: the file is not text, or has no rows.
    """
    del selection
    _reject_binary_file(path)
    lines = _LineReader(path)
    first_number, first = lines.read_first_line()
    second = lines.peek()
    delimiter = detect_delimiter(first, second)
    cells = split_cells(first, delimiter)
    names, has_header = _column_names(cells, lines.comment, delimiter)
    if not has_header:
        lines.put_back(first_number, first)
    cell_reader = CsvCellReader(str(path), names, delimiter)
    blocks = [_read_block(texts, numbers, delimiter, cell_reader) for texts, numbers in lines.blocks()]
    if not blocks:
        fix = "check whether the recording was stopped before its first sample"
        raise DataError([Problem("the file has a header but no rows", fix, str(path), code="data.empty")])
    values = np.ascontiguousarray(np.concatenate(blocks).T)
    unreadable = cell_reader.column_problems()
    table = Table(
        {name: values[k] for k, name in enumerate(names) if name not in unreadable},
        str(path),
        first_row=lines.first_row,
        row_format="line {}",
        skipped_lines=np.array(sorted([*lines.skipped, *cell_reader.ragged_lines]), dtype=int),
        unreadable=unreadable,
        problems=cell_reader.file_problems(),
    )
    return [table]


class _LineReader:
    """Reader of the rows of a file, with their line numbers."""

    def __init__(self, path: Path):
        self._path = path
        self._pending: list[tuple[int, str]] = []
        self._number = 0
        self._raw = self._read()
        self.comment = ""
        """The last comment above the first row."""
        self.skipped: list[int] = []
        """Numbers of the lines after the first row that are not rows."""
        self.first_row = 0

    def _read(self) -> Iterator[str]:
        with self._path.open(encoding="utf-8-sig") as stream:
            try:
                yield from stream
            except UnicodeDecodeError as error:
                message = f"the file is not UTF-8 text: it has the byte 0x{error.object[error.start]:02x}"
                fix = "save it as UTF-8; spreadsheets offer this when saving as CSV"
                raise DataError([self._problem(f"{message} in line {self._first_invalid_line()}", fix)]) from None

    def _first_invalid_line(self) -> int:
        """Number of the first line that is not UTF-8, as text is decoded in chunks of many lines."""
        with self._path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.decode(errors="replace").encode() != line:
                    return number
        return self._number

    def _problem(self, message: str, fix: str) -> Problem:
        return Problem(message, fix, str(self._path), code="data.format")

    def read_first_line(self) -> tuple[int, str]:
        """Number and text of the first line that is neither blank nor a comment."""
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
                self._pending.append((self._number, line))
                return line
            self.skipped.append(self._number)
        return ""

    def put_back(self, number: int, line: str) -> None:
        """Push the first line back: it is a row, not a header."""
        self._pending.insert(0, (number, line))

    def blocks(self) -> Iterator[tuple[list[str], Sequence[int]]]:
        """Blocks of rows with their line numbers."""
        if self._pending:
            numbers, texts = zip(*self._pending, strict=True)
            self.first_row = numbers[0]
            self.skipped = [number for number in self.skipped if number > self.first_row]
            yield list(texts), numbers
        while raw := list(islice(self._raw, BLOCK_LINES)):
            numbers = range(self._number + 1, self._number + 1 + len(raw))
            self._number += len(raw)
            if any("#" in line or line.isspace() for line in raw):
                rows = [k for k, line in enumerate(raw) if not line.isspace() and not _is_comment(line)]
                self.skipped += sorted({*numbers} - {numbers[k] for k in rows})
                raw, numbers = [raw[k] for k in rows], [numbers[k] for k in rows]
            if raw:
                yield raw, numbers


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _column_names(first: Sequence[str], comment: str, delimiter: str) -> tuple[list[str], bool]:
    """Names of the columns, and whether the first line is the header; unnamed columns are named by their index."""
    indices = [str(k) for k in range(len(first))]
    # pandas writes an unnamed index column before columns that may be named 0, 1, 2
    is_index = len(first) > 1 and [*first] == ["", *indices[:-1]]
    if is_index or any(is_text(cell) for cell in first):
        return [name or ("index" if is_index else indices[k]) for k, name in enumerate(first)], True
    comment_cells = split_cells(comment, delimiter)
    if len(comment_cells) == len(first) and all(is_text(cell) for cell in comment_cells):
        return list(comment_cells), False
    return indices, False


def _read_block(texts: list[str], numbers: Sequence[int], delimiter: str, cell_reader: CsvCellReader) -> np.ndarray:
    """Values of a block of rows (rows, columns); NaN in columns that hold text."""
    count, numeric = len(cell_reader.names), cell_reader.numeric_columns()
    is_whitespace_delimited = delimiter == " "
    # with usecols, NumPy does not check the number of cells per row
    is_partial = len(numeric) < count
    if is_partial and (
        is_whitespace_delimited or not numeric or any(line.count(delimiter) != count - 1 for line in texts)
    ):
        return cell_reader.read_rows(texts, numbers)
    try:
        columns = numeric if is_partial else None
        values = np.loadtxt(
            texts, delimiter=None if is_whitespace_delimited else delimiter, comments=None, ndmin=2, usecols=columns
        )
    except ValueError:
        return cell_reader.read_rows(texts, numbers)
    if values.shape[1] != len(numeric):
        return cell_reader.read_rows(texts, numbers)
    block = np.full((len(values), count), np.nan)
    block[:, numeric] = values
    return block


def _reject_binary_file(path: Path) -> None:
    with path.open("rb") as stream:
        head = stream.read(4096)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        message, fix = "the file is UTF-16 text", "save it as UTF-8"
    elif b"\0" in head:
        message = "this is not a text file"
        fix = "check its extension, which selects the format"
    else:
        return
    raise DataError([Problem(message, fix, str(path), code="data.format")])


CSV = FileFormat("CSV", (".csv", ".tsv", ".txt", ".dat"), read_csv)
