"""What the parsers of binary formats say about damaged files, as an error that names the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hybridsim.core.errors import DataError, HybridsimError, Problem


@contextmanager
def parser_errors_as_data_errors(path: Path, fix: str, element: str = "") -> Iterator[None]:
    """Turn whatever a parser raises into a `DataError`; errors that the library raises on purpose pass.

    There is no list of what they raise: random damage brings out ever new kinds, from errors of the decompressor and
    the tokenizer to running out of memory where a header claims too much. The exception stays the cause of the error.

    Args:
        path: the file.
        fix: what the user can do.
        element: the array in the file, if it is one that cannot be read.
    """
    try:
        yield
    except HybridsimError:
        raise
    except Exception as error:
        what = f"array {element!r}" if element else "the file"
        reason = str(error).partition("\n")[0] or type(error).__name__
        message = f"{what} cannot be read: {reason}"
        raise DataError([Problem(message, fix, str(path), code="data.format", element=element)]) from error
