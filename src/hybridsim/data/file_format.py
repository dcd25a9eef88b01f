"""File formats of recordings: what `read.py` needs to know about each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hybridsim.data.arrays import RunSelection
from hybridsim.data.table import Table


class FileSelection(NamedTuple):
    """What to read of a file."""

    group: str = ""
    """Group or topic; empty for all of them."""
    run: RunSelection = None
    """Run of a file that holds several."""
    run_starts: str = ""
    """Name of the array with the first row of each run, followed by the total number of rows; empty if runs are not
    concatenated."""


@dataclass(frozen=True)
class FileFormat:
    """A file format, defined at the end of the file of its reader and listed in `read.FORMATS`."""

    title: str
    """Name in messages."""
    extensions: tuple[str, ...]
    """File extensions, in lower case."""
    read: Callable[[Path, FileSelection], list[Table]]
    """Tables of a file: one, or one per selected run. Raises `DataError` if nothing in the file can be read."""
    group_noun: str = ""
    """What `FileSelection.group` names in such a file, such as `topic`; empty if files have no groups."""
    has_runs: bool = False
    """Whether a file can hold several runs."""
