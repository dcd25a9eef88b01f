"""Errors of file readers: missing optional packages and damaged files."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from hybridsim.core.errors import DataError, HybridsimError, Problem


def import_optional(path: Path, package: str, submodule: str = "") -> Any:
    """An optional package or one of its submodules.

    Args:
        path: the file that needs it; for messages.
        package: name of the package, such as `h5py`.
        submodule: name of a submodule; empty for the package itself.

    Raises:
        DataError: the package is not installed; says how to install it.
    """
    try:
        return import_module(f"{package}.{submodule}" if submodule else package)
    except ImportError:
        message = f"the package {package} is needed to read {path.suffix} files"
        fix = "pip install 'hybridsim[data]'"
        raise DataError([Problem(message, fix, str(path), code="data.package")]) from None


@contextmanager
def parser_errors_as_data_errors(path: Path, fix: str, element: str = "") -> Iterator[None]:
    """Convert any exception of a parser to a `DataError`; errors of this library pass through.

    All exceptions are caught, as parsers raise many kinds on damaged files, from errors of the decompressor or the
    tokenizer to a `MemoryError` for sizes claimed in a header. The exception is chained as the cause.

    Args:
        path: the file.
        fix: advice for the user.
        element: name of the array that cannot be read; empty for the whole file.
    """
    try:
        yield
    except HybridsimError:
        raise
    except Exception as error:
        subject = f"array {element!r}" if element else "the file"
        reason = str(error).partition("\n")[0] or type(error).__name__
        message = f"{subject} cannot be read: {reason}"
        raise DataError([Problem(message, fix, str(path), code="data.format", element=element)]) from error
