"""Writing files of a run record: whole or not at all, with advice where the disk is full."""

import json
import math
from pathlib import Path
from typing import Any

from hybridsim.core.errors import HybridsimError, ModelError
from hybridsim.core.files import write_atomically

ADVICE = "What was saved before is whole: make room, then go on with --resume."


def write_file(path: Path, data: bytes | str) -> None:
    """Write a file so that it holds either its old or its new content, whatever happens.

    Raises:
        HybridsimError: it cannot be written; says how large it is.
    """
    content = data.encode() if isinstance(data, str) else data
    try:
        write_atomically(path, content)
    except ModelError as error:
        reason = error.problems[0].message.rpartition(": ")[2]
        raise cannot_write(path, reason, len(content)) from None


def cannot_write(path: Path, reason: str, size: int) -> HybridsimError:
    """The error that tells of a file that could not be written."""
    return HybridsimError(f"cannot write {path} ({size:,} bytes): {reason}. {ADVICE}")


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON for people and programs; what JSON cannot hold, infinity and NaN, becomes null."""
    write_file(path, json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def finite(value: Any) -> Any:
    """A value with null in place of numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
