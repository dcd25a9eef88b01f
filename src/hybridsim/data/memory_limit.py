"""Limit on the memory that a file of recordings may claim, checked before it is allocated."""

import os
from pathlib import Path

from hybridsim.core.errors import DataError, Problem

VARIABLE = "HYBRIDSIM_MAX_GIB"
"""Environment variable that overrides the limit [GiB]."""
DEFAULT_GIB = 4.0


def max_bytes() -> float:
    """Largest total size of the arrays of one file [bytes]."""
    text = os.environ.get(VARIABLE, "")
    try:
        return float(text or DEFAULT_GIB) * 2**30
    except ValueError:
        return DEFAULT_GIB * 2**30


def require_memory(path: Path, size: float, what: str) -> None:
    """Raise if an array, or all arrays of a file, claim more memory than the limit.

    Args:
        path: the file.
        size: claimed size [bytes].
        what: what claims it, for the message.
    """
    if size > max_bytes():
        message = f"{what} claims {size / 2**30:.3g} GiB, more than the {max_bytes() / 2**30:g} GiB allowed"
        fix = f"split the file, or set the environment variable {VARIABLE} to a larger number"
        raise DataError([Problem(message, fix, str(path), code="data.size")])
