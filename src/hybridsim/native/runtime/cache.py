"""Persistent cache of compiled kernels, so that a program that has run before starts without tracing or compiling.

An entry is one file: lines with the format, the SHA-256 of the rest and metadata in JSON, then the object code. Hash
and key are checked on reading, and files are written under a temporary name and renamed, so that a killed process,
concurrent processes, a damaged file or one of another kernel cause at worst a recompilation. Because the files are
executed, nothing is used that another user could have written: neither the files, nor any folder above them.
"""

import hashlib
import json
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path

FOLDER_VARIABLE = "HYBRIDSIM_CACHE"
"""Environment variable that overrides the user's cache folder; if empty, nothing is cached."""
MAX_BYTES = 500 * 2**20
"""Maximum total size; beyond it the least recently used entries are evicted."""
_FORMAT = b"hybridsim kernel 2\n"
_TEMPORARY = ".hybridsim-"
"""Prefix of temporary files."""


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
        entry = _decode(key, _read_private(path))
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
        handle, name = tempfile.mkstemp(dir=root, prefix=_TEMPORARY, suffix=".tmp")
        new = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(_encode(key, entry))
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
    for path in [*removed, *(path for path, _ in _files(root, f"{_TEMPORARY}*.tmp"))]:
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
    public = _public_folder(existing)
    return "" if public is None else f"other users may write to {public}"


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


def _encode(key: str, entry: CompiledKernel) -> bytes:
    metadata = {"key": key} | asdict(replace(entry, code=b""))
    del metadata["code"]
    body = json.dumps(metadata).encode() + b"\n" + entry.code
    return _FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _read_private(path: Path) -> bytes:
    """Content of a file that nobody but the user can have written.

    Raises:
        OSError: it cannot be read, or others may write to it; symbolic links are not followed.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _is_private(status):
            raise PermissionError(f"{path} may have been written by another user")
        return file.read()


def _decode(key: str, content: bytes) -> CompiledKernel:
    if not content.startswith(_FORMAT):
        raise ValueError("not a kernel")
    digest, body = content[len(_FORMAT) :].split(b"\n", 1)
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("damaged")
    header, code = body.split(b"\n", 1)
    metadata = json.loads(header)
    if metadata.pop("key") != key:
        raise ValueError("the entry of another kernel")
    return CompiledKernel(**metadata, code=code)


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
    public = _public_folder(root)
    if public is not None:
        _warn_not_private(public)
        return None
    return root


def _public_folder(folder: Path) -> Path | None:
    """The first of a folder and those above it in which another user could replace what the next one is; None if none.

    In a folder with the sticky bit, such as /tmp, others can add files but not replace those of the user.
    """
    above = False
    try:
        real = folder.resolve(strict=True)
        for path in (real, *real.parents):
            status = path.stat()
            if not _is_private(status) and not (above and _is_sticky(status)):
                return path
            above = True
    except OSError:
        return folder
    return None


def _is_private(status: os.stat_result) -> bool:
    """Whether nobody but the user and root can write to a file or folder."""
    if not hasattr(os, "getuid"):
        return True
    is_open_to_group = bool(status.st_mode & stat.S_IWGRP) and status.st_gid != _private_group()
    return status.st_uid in (0, os.getuid()) and not is_open_to_group and not status.st_mode & stat.S_IWOTH


@cache
def _private_group() -> int | None:
    """The user's own group, if nobody else is in it, as many distributions create for every user."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.getuid())
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        return None
    return group.gr_gid if group.gr_name == user.pw_name and not {*group.gr_mem} - {user.pw_name} else None


def _is_sticky(status: os.stat_result) -> bool:
    return bool(status.st_mode & stat.S_ISVTX) and status.st_uid in (0, os.getuid())


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
