"""Atomic writing of files: a killed program never leaves a truncated file under the final name."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from hybridsim.core.errors import FileError, Problem


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file so that it holds either its old or its new content, even after a crash.

    Symbolic links are followed, and an existing file keeps its permissions. Pipes and devices are written directly.

    Raises:
        FileError: the file cannot be written.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:  # raises for a folder
                stream.write(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        reason = error.strerror or str(error)
        problem = Problem(
            f"cannot write {str(path)!r}: {reason}", "choose another path", str(path), code="file.unwritable"
        )
        raise FileError([problem], reason) from None


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.part")
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    try:
        # created by open(2), so that the user's umask determines the permissions of a new file
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # makes the rename durable; some systems cannot open a folder
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
