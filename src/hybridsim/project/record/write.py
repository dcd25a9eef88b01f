"""Atomic writing of the files of a run record."""

import json
import math
from pathlib import Path
from typing import Any

from hybridsim.core.errors import HybridsimError, ModelError
from hybridsim.core.files import write_atomically

ADVICE = "Files saved before are intact: free disk space, then continue with --resume."


def write_file(path: Path, data: bytes | str) -> None:
    """Write a file atomically: it contains either its old or its new content.

    Raises:
        HybridsimError: the file cannot be written.
    """
    content = data.encode() if isinstance(data, str) else data
    try:
        write_atomically(path, content)
    except ModelError as error:
        reason = error.problems[0].message.rpartition(": ")[2]
        raise write_error(path, reason, len(content)) from None


def write_error(path: Path, reason: str, size: int) -> HybridsimError:
    """Error for a file that could not be written."""
    return HybridsimError(f"cannot write {path} ({size:,} bytes): {reason}. {ADVICE}")


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
