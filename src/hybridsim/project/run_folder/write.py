"""Atomic writing of the files of a run folder."""

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

from hybridsim.core.errors import FileError, HybridsimError
from hybridsim.core.files import write_atomically

DISK_FULL = os.strerror(errno.ENOSPC)
DISK_FULL_ADVICE = (
    "Files saved before are intact: free disk space; `hybridsim fit` and `hybridsim discover` continue with --resume."
)


def write_file(path: Path, data: bytes | str) -> None:
    """Write a file atomically: it contains either its old or its new content.

    Raises:
        HybridsimError: the file cannot be written.
    """
    content = data.encode() if isinstance(data, str) else data
    try:
        write_atomically(path, content)
    except FileError as error:
        reason = error.problems[0].message.rpartition(": ")[2]
        raise unwritable_error(path, reason, len(content)) from None


def unwritable_error(path: Path, reason: str, size: int) -> HybridsimError:
    """Error of a file that could not be written, with advice if the disk is full."""
    advice = f". {DISK_FULL_ADVICE}" if reason == DISK_FULL else ""
    return HybridsimError(f"cannot write {path} ({size:,} bytes): {reason}{advice}")


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, with null for infinity and NaN."""
    write_file(path, json.dumps(replace_nonfinite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def replace_nonfinite(value: Any) -> Any:
    """Replace infinity and NaN by null, which JSON can represent."""
    if isinstance(value, dict):
        return {key: replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nonfinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
