"""Exclusive lock of a run folder for the process that writes it.

The operating system releases the lock when the process ends, even after a crash. The lock file remains and contains
the id of the last process that held it.
"""

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hybridsim.core.errors import HybridsimError

try:
    import fcntl
except ImportError:  # not available on Windows
    fcntl = None


class FolderLock:
    """Context manager that locks a folder against other processes."""

    def __init__(self, folder: Path):
        self.path = folder / "lock"
        self._descriptor = -1

    def __enter__(self) -> "FolderLock":
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise HybridsimError(
                f"cannot write to {self.path.parent}: {error.strerror}; choose another folder with --out"
            ) from None
        try:
            _lock(descriptor)
        except BlockingIOError:
            holder = os.read(descriptor, 100).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise HybridsimError(
                f"{self.path.parent} is in use by another process (process id {holder}); "
                "wait until it has finished, or choose another folder with --out"
            ) from None
        # the process id is only informative: a full disk must not prevent locking
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    """Lock an open file; raises BlockingIOError if another process has locked it."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            # some network file systems do not support locks; concurrent writers are then not detected
            return
    else:
        _lock_on_windows(descriptor)


def _lock_on_windows(descriptor: int) -> None:
    import msvcrt

    try:
        # a byte far beyond the content, which stays readable for other processes
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue]
    except OSError:
        raise BlockingIOError from None
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)
