"""No command overwrites or deletes what it did not write, and failed output leaves nothing behind."""

import os

import pytest

from hybridsim.cli.main import run
from hybridsim.core.files import PendingFile, write_atomically
from hybridsim.errors import FileError

COMMANDS = {
    "simulate": (["simulate", "pendulum", "--time", "0.05", "--out", "out.csv"], ["out.csv"]),
    "plot": (
        ["simulate", "pendulum", "--time", "0.05", "--out", "out.csv", "--plot", "out.png"],
        ["out.csv", "out.png"],
    ),
    "convert": (["convert", "pendulum", "out.urdf"], ["out.urdf"]),
    "export-c": (["export-c", "pendulum", "--out", "out.c"], ["out.c", "out.h"]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_existing_files_are_overwritten_with_force_only(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments, outputs = COMMANDS[command]
    for output in outputs:
        for other in outputs:
            (tmp_path / other).unlink(missing_ok=True)
        (tmp_path / output).write_text("mine")
        assert run(arguments) == 1
        assert f"{output} already exists; --force overwrites it" in capsys.readouterr().err
        assert [path.name for path in tmp_path.iterdir()] == [output]
        assert (tmp_path / output).read_text() == "mine"
    assert run([*arguments, "--force"]) == 0
    assert all((tmp_path / output).read_bytes() != b"mine" for output in outputs)


def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch, capsys):
    def fail(self):
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(PendingFile, "commit", fail)
    for arguments, _ in COMMANDS.values():
        assert run(arguments) == 1
        assert "No space left on device" in capsys.readouterr().err
        assert not list(tmp_path.iterdir())


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(FileError, match="No space left"):
        patch.setattr(os, "fsync", fail)
        write_atomically(path, b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"] and path.read_text() == "old"


def test_the_demo_keeps_edited_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hybridsim.cli.demo._fit", lambda *arguments, **options: pytest.fail("the demo was fitted"))
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "parameters.toml").write_text("# edited")
    assert run(["demo", "--out", str(folder), "--no-browser"]) == 1
    assert "parameters.toml has been edited" in capsys.readouterr().err
    assert (folder / "parameters.toml").read_text() == "# edited" and len(list(folder.iterdir())) == 1
