"""Exclusive lock of a run folder for the process that writes it.

The operating system releases the lock when the process ends, even after a crash. The lock file remains and contains
the id of the last process that held it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from hybridsim.core.errors import FolderError


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes.

    Raises:
        FolderError: another process has locked it, or it cannot be written to.
    """
    path = folder / "lock"
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        holder = "unknown"
        with suppress(OSError):
            holder = path.read_bytes()[:100].decode(errors="replace").strip() or holder
        raise FolderError(
            f"{folder} is in use by another process (process id {holder})",
            python="wait until it has finished, or choose another folder",
            command="wait until it has finished, or choose another folder with --out",
        ) from None
    except OSError as error:
        message = f"cannot write to {folder}: {error.strerror}"
        raise FolderError(message, python="choose another folder", command="choose another folder with --out") from None
    try:
        # the process id is only informative: a full disk must not prevent locking
        with suppress(OSError):
            path.write_text(f"{os.getpid()}\n", encoding="utf-8")
        yield
    finally:
        lock.release()
