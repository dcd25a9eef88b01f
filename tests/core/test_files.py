"""Atomic writing of files."""

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from hybridsim.core import files
from hybridsim.core.errors import FileError
from hybridsim.core.files import read_bounded, write_atomically


def test_writing_replaces_the_content_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "a.urdf"
    write_atomically(path, b"one")
    path.chmod(0o640)
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["a.urdf"]


def test_a_new_file_has_the_permissions_of_new_files(tmp_path):
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a.urdf", b"one")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.urdf").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "a.urdf", tmp_path / "link.urdf"
    target.write_bytes(b"old")
    link.symlink_to("folder/a.urdf")
    write_atomically(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    target.unlink()
    write_atomically(link, b"newer")
    assert link.is_symlink() and target.read_bytes() == b"newer"


def test_a_pipe_is_written_into(tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"data")
    reader.join(timeout=10.0)
    assert received == [b"data"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_a_device():
    write_atomically(os.devnull, b"data")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_folder_is_rejected(tmp_path):
    with pytest.raises(FileError, match="Is a directory"):
        write_atomically(tmp_path, b"data")


def test_failure_keeps_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "a.urdf"
    path.write_bytes(b"old")

    def raise_disk_full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", raise_disk_full)
    with pytest.raises(FileError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.urdf"]


def test_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileError, match="cannot write"):
        write_atomically(tmp_path / "no" / "a.urdf", b"")


def test_reading_stops_one_byte_after_the_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_bounded(tmp_path / "file", 10) == b"0123456789"
    assert read_bounded(tmp_path / "file", 4) == b"01234"
    with pytest.raises(IsADirectoryError):
        read_bounded(tmp_path, 10)


def test_devices_and_pipes_without_a_writer_are_not_read(tmp_path, monkeypatch):
    with pytest.raises(OSError, match="it is a device"):
        read_bounded("/dev/zero", 10)
    monkeypatch.setattr(files, "PIPE_TIMEOUT", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="nothing is written into the pipe"):
        read_bounded(tmp_path / "pipe", 10)


def test_an_endless_pipe_is_read_up_to_the_limit(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    def write():
        with suppress(BrokenPipeError), (tmp_path / "pipe").open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(1000))

    writer = threading.Thread(target=write)
    writer.start()
    assert read_bounded(tmp_path / "pipe", 10**5) == bytes(10**5 + 1)
    writer.join(timeout=10.0)
    assert not writer.is_alive()
