"""Errors of run folders, as the command line shows them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hybridsim.core.errors import FolderError


@contextmanager
def folder_error(pattern: str) -> Iterator[None]:
    """Expect an error whose text on the command line matches; in Python it names no flag."""
    with pytest.raises(FolderError) as error:
        yield
    assert re.search(pattern, error.value.for_command_line())
    assert "--" not in str(error.value)
