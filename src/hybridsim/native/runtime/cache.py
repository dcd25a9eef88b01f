"""Compiled kernels on disk, so that a program that ran before starts without tracing or compiling.

An entry is one file: a line of JSON about the kernel, then its object code. Its SHA-256 is checked when it is read,
and files are written under another name and renamed, so that a killed process, two processes at once or a damaged
file lead to a new compilation and to nothing worse. The folder must belong to the user alone, because its files are
run; one that others can write to is not used.
"""

import hashlib
import json
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

FOLDER_VARIABLE = "HYBRIDSIM_CACHE"
"""Environment variable with the folder to use instead of the user's cache folder; empty for none."""
MAX_BYTES = 500 * 2**20
"""The oldest entries are removed when all of them take more than this."""
_FORMAT = b"hybridsim kernel 1\n"


@dataclass(frozen=True)
class CachedKernel:
    """A compiled kernel: object code and what must be known to call it."""

    name: str
    lanes: int
    width: int
    work: int
    per_state: int
    per_direction: int
    code: bytes


def folder() -> Path | None:
    """Where entries are kept; none if caching is switched off, or the user has no home."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen == "":
        return None
    caches = "~/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    place = Path(chosen) if chosen else Path(caches) / "hybridsim" / "kernels"
    try:
        return place.expanduser()
    except RuntimeError:
        return None


def load(key: str) -> CachedKernel | None:
    """The entry of a key, if there is a sound one."""
    place = _usable_folder(create=False)
    if place is None:
        return None
    path = place / f"{key}.kernel"
    try:
        content = path.read_bytes()
        entry = _decoded(content)
    except OSError:
        return None
    except (ValueError, KeyError, TypeError):
        with suppress(OSError):
            path.unlink()
        return None
    with suppress(OSError):  # a folder that can only be read is good enough
        os.utime(path)  # entries in use are the last to be removed
    return entry


def store(key: str, entry: CachedKernel) -> None:
    """Keep an entry; a disk that is full or read-only is no reason to fail."""
    place = _usable_folder(create=True)
    if place is None:
        return
    new = None
    try:
        handle, name = tempfile.mkstemp(dir=place, suffix=".tmp")
        new = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(_encoded(entry))
            file.flush()
            os.fsync(file.fileno())
        new.replace(place / f"{key}.kernel")
        _make_room(place)
    except OSError as error:
        if new is not None:
            with suppress(OSError):
                new.unlink(missing_ok=True)
        warnings.warn(f"a compiled kernel could not be kept in {place}: {error}", stacklevel=2)


def entries() -> dict[Path, int]:
    """The files of all entries, and their sizes in bytes."""
    place = _usable_folder(create=False)
    return {path: about.st_size for path, about in _files(place, "*.kernel")} if place is not None else {}


def clear() -> dict[Path, int]:
    """Remove all entries, and what killed processes left; returns the entries and their sizes in bytes."""
    place = _usable_folder(create=False)
    if place is None:
        return {}
    found = entries()
    for path in [*found, *(path for path, _ in _files(place, "*.tmp"))]:
        path.unlink(missing_ok=True)
    return found


def unusable_reason() -> str:
    """Why nothing can be kept; empty if it can."""
    place = folder()
    if place is None:
        return f"{FOLDER_VARIABLE} is empty" if FOLDER_VARIABLE in os.environ else "the user has no home folder"
    above = next(path for path in (place, *place.parents) if path.exists())
    if not above.is_dir():
        return f"{above} is not a folder"
    if above == place and not _is_private(place.stat()):
        return f"others may write to {place}"
    return ""


def key(*parts: str) -> str:
    """The key of a kernel, from everything that its code depends on."""
    whole = "\n".join([*parts, source_hash(), *(f"{name} {version(name)}" for name in ("jax", "llvmlite"))])
    return hashlib.sha256(whole.encode()).hexdigest()[:40]


@cache
def source_hash() -> str:
    """A hash of the library's own source, from which kernels are made."""
    root = Path(__file__).parents[2]
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        total.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def _encoded(entry: CachedKernel) -> bytes:
    about = asdict(entry)
    code = about.pop("code")
    body = json.dumps(about).encode() + b"\n" + code
    return _FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _decoded(content: bytes) -> CachedKernel:
    if not content.startswith(_FORMAT):
        raise ValueError("not a kernel")
    digest, body = content[len(_FORMAT) :].split(b"\n", 1)
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("damaged")
    about, code = body.split(b"\n", 1)
    return CachedKernel(**json.loads(about), code=code)


def _usable_folder(*, create: bool) -> Path | None:
    place = folder()
    if place is None:
        return None
    try:
        if create:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = place.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    if not _is_private(found):
        _warn_about(place)
        return None
    return place


def _is_private(folder: os.stat_result) -> bool:
    """Can nobody but the user (or root) write to a folder? Its files are run."""
    if not hasattr(os, "getuid"):
        return True
    return folder.st_uid in (0, os.getuid()) and not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@cache
def _warn_about(place: Path) -> None:
    warnings.warn(f"compiled kernels are not kept: others may write to {place}", stacklevel=4)


def _make_room(place: Path) -> None:
    known = [(about.st_mtime, about.st_size, path) for path, about in _files(place, "*.kernel")]
    total = sum(size for _, size, _ in known)
    for _, size, path in sorted(known):
        if total <= MAX_BYTES:
            break
        path.unlink(missing_ok=True)
        total -= size


def _files(place: Path, pattern: str) -> Iterator[tuple[Path, os.stat_result]]:
    """Files of a folder, in order, with what is known of them."""
    for path in sorted(place.glob(pattern)):
        try:
            about = path.stat()
        except FileNotFoundError:  # another process removed it
            continue
        if stat.S_ISREG(about.st_mode):
            yield path, about
