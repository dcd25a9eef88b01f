"""Reading of files with a limit, and atomic writing: a killed program never leaves a truncated file under its name."""

import errno
import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path

from hybridsim.core.errors import FileError, Problem

PIPE_TIMEOUT = 10.0
"""Time without data after which a pipe is given up [s]."""


def read_bounded(path: str | Path, max_bytes: int) -> bytes:
    """At most one byte more than a limit of a file or pipe, by which a longer file differs from one at the limit.

    Raises:
        OSError: the file cannot be read, is a device, which may never end, or a pipe into which nothing is written.
    """
    # opening a pipe without a writer would block
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as stream:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if stat.S_ISFIFO(mode):
            return _read_pipe(descriptor, max_bytes + 1, str(path))
        if not stat.S_ISREG(mode):
            raise OSError(0, "it is a device, not a file", str(path))
        return stream.read(max_bytes + 1)


def _read_pipe(descriptor: int, max_bytes: int, path: str) -> bytes:
    content, deadline = b"", time.monotonic() + PIPE_TIMEOUT
    while len(content) < max_bytes:
        try:
            part = os.read(descriptor, min(max_bytes - len(content), 2**16))
        except BlockingIOError:
            part = None  # a program has opened the pipe, but not written yet
        if part == b"" and content:
            break
        if part:
            content, deadline = content + part, time.monotonic() + PIPE_TIMEOUT
        elif time.monotonic() > deadline:
            raise OSError(0, f"nothing is written into the pipe for {PIPE_TIMEOUT:g} s", path)
        else:
            time.sleep(0.01)
    return content


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file so that it holds either its old or its new content, even after a crash.

    Raises:
        FileError: the file cannot be written.
    """
    file = None
    try:
        file = PendingFile(path)
        file.stream.write(data)
        file.commit()
    except BaseException as error:
        if file is not None:
            file.discard()
        if not isinstance(error, OSError):
            raise
        reason = error.strerror or str(error)
        problem = Problem(
            f"cannot write {str(path)!r}: {reason}", "choose another path", str(path), code="file.unwritable"
        )
        raise FileError([problem], reason) from None


class PendingFile:
    """File that is written beside its final name and gets that name when it is complete.

    Symbolic links are followed, and an existing file keeps its permissions. Pipes and devices are written directly.
    """

    def __init__(self, path: str | Path):
        """Open a file for writing.

        Raises:
            OSError: it cannot be written.
        """
        path = Path(path)
        if path.exists() and not path.is_file():
            self._path, self._temporary = path, None
            self.stream = path.open("wb")  # raises for a folder
            return
        self._path = Path(os.path.realpath(path))
        self._temporary = self._path.with_name(f".{self._path.name[:100]}.{secrets.token_hex(6)}.part")
        # created by open(2), so that the user's umask determines the permissions of a new file
        self.stream = os.fdopen(os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb")

    def commit(self) -> None:
        """Give the file its final name, durably."""
        if self._temporary is None:
            self.stream.close()
            return
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.stream.close()
        if self._path.exists():
            self._temporary.chmod(stat.S_IMODE(self._path.stat().st_mode))
        self._temporary.replace(self._path)
        _sync_folder(self._path.parent)

    def discard(self) -> None:
        """Remove what has been written."""
        with suppress(OSError):  # closing flushes, which may fail again
            self.stream.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    # makes the rename durable; some systems cannot open a folder
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
