"""Persistent cache of compiled kernels, so that a program that has run before starts without tracing or compiling.

An entry is one file: lines with the format, the SHA-256 of the rest and metadata in JSON, then the object code. The
hash is checked on reading, and files are written under a temporary name and renamed, so that a killed process,
concurrent processes or a damaged file cause at worst a recompilation. Because the files are executed, a folder that
other users can write to is not used.
"""

import hashlib
import json
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path

FOLDER_VARIABLE = "HYBRIDSIM_CACHE"
"""Environment variable that overrides the user's cache folder; if empty, nothing is cached."""
MAX_BYTES = 500 * 2**20
"""Maximum total size; beyond it the least recently used entries are evicted."""
_FORMAT = b"hybridsim kernel 1\n"


@dataclass(frozen=True)
class CompiledKernel:
    """A compiled kernel: object code, and the metadata needed to call it."""

    name: str
    """Name of its entry point."""
    group_size: int
    """Trajectories per group; for this and the next fields see `kernel_writer.Kernel`."""
    lanes: int
    work_cells: int
    cells_per_state: int
    cells_per_direction: int
    code: bytes


def folder() -> Path | None:
    """Folder of the cache; None if caching is disabled or the user has no home folder."""
    override = os.environ.get(FOLDER_VARIABLE)
    if override == "":
        return None
    try:
        return Path(override or user_cache_path("hybridsim", appauthor=False) / "kernels").expanduser()
    except RuntimeError:
        return None


def load(key: str) -> CompiledKernel | None:
    """Entry for a key; None if it is missing or damaged. A damaged file is removed."""
    root = _usable_folder(create=False)
    if root is None:
        return None
    path = root / f"{key}.kernel"
    try:
        content = path.read_bytes()
        entry = _decode(content)
    except OSError:
        return None
    except (ValueError, KeyError, TypeError):
        with suppress(OSError):
            path.unlink()
        return None
    with suppress(OSError):  # a read-only folder is fine
        os.utime(path)  # marks the entry as recently used
    return entry


def store(key: str, entry: CompiledKernel) -> None:
    """Store an entry; a full or read-only disk causes a warning only."""
    root = _usable_folder(create=True)
    if root is None:
        return
    new = None
    try:
        handle, name = tempfile.mkstemp(dir=root, suffix=".tmp")
        new = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(_encode(entry))
            file.flush()
            os.fsync(file.fileno())
        new.replace(root / f"{key}.kernel")
        _evict(root)
    except OSError as error:
        if new is not None:
            with suppress(OSError):
                new.unlink(missing_ok=True)
        warnings.warn(f"cannot store a compiled kernel in {root}: {error}", stacklevel=2)


def entries() -> dict[Path, int]:
    """Files of all entries, and their sizes [bytes]."""
    root = _usable_folder(create=False)
    return {path: status.st_size for path, status in _files(root, "*.kernel")} if root is not None else {}


def clear() -> dict[Path, int]:
    """Remove all entries and temporary files of killed processes; returns the entries and their sizes [bytes]."""
    root = _usable_folder(create=False)
    if root is None:
        return {}
    removed = entries()
    for path in [*removed, *(path for path, _ in _files(root, "*.tmp"))]:
        path.unlink(missing_ok=True)
    return removed


def unusable_reason() -> str:
    """Why kernels cannot be cached; empty if they can."""
    root = folder()
    if root is None:
        return f"{FOLDER_VARIABLE} is empty" if FOLDER_VARIABLE in os.environ else "the user has no home folder"
    existing = next(path for path in (root, *root.parents) if path.exists())
    if not existing.is_dir():
        return f"{existing} is not a folder"
    if existing == root and not _is_private(root.stat()):
        return f"other users may write to {root}"
    return ""


def key(*parts: str) -> str:
    """Cache key of a kernel: a hash of everything that its code depends on."""
    text = "\n".join([*parts, source_hash(), *(f"{name} {version(name)}" for name in ("jax", "llvmlite"))])
    return hashlib.sha256(text.encode()).hexdigest()[:40]


@cache
def source_hash() -> str:
    """Hash of the library's source code."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _encode(entry: CompiledKernel) -> bytes:
    metadata = asdict(entry)
    code = metadata.pop("code")
    body = json.dumps(metadata).encode() + b"\n" + code
    return _FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _decode(content: bytes) -> CompiledKernel:
    if not content.startswith(_FORMAT):
        raise ValueError("not a kernel")
    digest, body = content[len(_FORMAT) :].split(b"\n", 1)
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("damaged")
    metadata, code = body.split(b"\n", 1)
    return CompiledKernel(**json.loads(metadata), code=code)


def _usable_folder(*, create: bool) -> Path | None:
    root = folder()
    if root is None:
        return None
    try:
        if create:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = root.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if not _is_private(status):
        _warn_not_private(root)
        return None
    return root


def _is_private(folder: os.stat_result) -> bool:
    """Whether nobody but the user and root can write to a folder, whose files are executed."""
    if not hasattr(os, "getuid"):
        return True
    return folder.st_uid in (0, os.getuid()) and not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@cache
def _warn_not_private(folder: Path) -> None:
    warnings.warn(f"compiled kernels are not cached: other users may write to {folder}", stacklevel=4)


def _evict(folder: Path) -> None:
    """Remove the least recently used entries beyond the maximum total size."""
    files = [(status.st_mtime, status.st_size, path) for path, status in _files(folder, "*.kernel")]
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= MAX_BYTES:
            break
        path.unlink(missing_ok=True)
        total -= size


def _files(folder: Path, pattern: str) -> Iterator[tuple[Path, os.stat_result]]:
    """Regular files of a folder, sorted by name, with their status."""
    for path in sorted(folder.glob(pattern)):
        try:
            status = path.stat()
        except FileNotFoundError:  # another process removed it
            continue
        if stat.S_ISREG(status.st_mode):
            yield path, status
