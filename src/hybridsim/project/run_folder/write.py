"""Atomic writing of the files of a run folder."""

import errno
import hashlib
import io
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.core.errors import FileError, HybridsimError
from hybridsim.core.files import write_atomically

SEAL = "sha256"
"""Key of the hash of a JSON file's other keys."""
DISK_FULL = os.strerror(errno.ENOSPC)
DISK_FULL_ADVICE = (
    "Files saved before are intact: free disk space; `hybridsim fit` and `hybridsim discover` continue with --resume, "
    "fit in Python with resume=True."
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
        raise unwritable_error(path, error.reason, len(content)) from None


def unwritable_error(path: Path, reason: str, size: int) -> HybridsimError:
    """Error of a file that could not be written, with advice if the disk is full."""
    advice = f". {DISK_FULL_ADVICE}" if reason == DISK_FULL else ""
    return HybridsimError(f"cannot write {path} ({size:,} bytes): {reason}{advice}")


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, with null for infinity and NaN."""
    write_file(path, json.dumps(replace_nonfinite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def seal(value: Mapping[str, Any]) -> dict[str, Any]:
    """JSON data with the hash of its content under `SEAL`."""
    content = {key: entry for key, entry in replace_nonfinite(dict(value)).items() if key != SEAL}
    return content | {SEAL: _content_hash(content)}


def is_intact(value: Mapping[str, Any]) -> bool:
    """Whether sealed JSON data that was read back is what was written."""
    content = {key: entry for key, entry in value.items() if key != SEAL}
    return value.get(SEAL) == _content_hash(content)


def _content_hash(content: Mapping[str, Any]) -> str:
    # independent of the order of keys and of white space
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def npz_content(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Content of an NPZ file; equal arrays give equal bytes."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # pyright: ignore[reportArgumentType]
    return content.getvalue()


def replace_nonfinite(value: Any) -> Any:
    """Replace infinity and NaN by null, which JSON can represent."""
    if isinstance(value, dict):
        return {key: replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nonfinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
