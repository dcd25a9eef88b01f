"""Projects and blueprints are read with limits, and absurd ones are refused at once."""

import os
import time

import pytest

from hybridsim.core import files
from hybridsim.networks.mlp import MLP
from hybridsim.project.build.build import build
from hybridsim.project.schema.load import load_project
from hybridsim.project.schema.project_error import ProjectError
from support.small_projects import PROJECT, write_project

TEXTS = {
    "a key of 20,000 parts": (".".join("a" * 20_000) + " = 1", "a key has more than 30 parts"),
    "a table of 20,000 parts": ("[" + ".".join("a" * 20_000) + "]", "a key has more than 30 parts"),
    "deep lists": ("x = " + "[" * 200 + "]" * 200, "nested too deeply"),
    "very deep lists": ("x = " + "[" * 100_000, "nested too deeply"),
    "deep tables": ("x = " + "{a = " * 200 + "1" + "}" * 200, "nested too deeply"),
    "two megabytes": ("# " + "x" * 2**21, "more than the 1048576 bytes allowed"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_absurd_projects_are_refused_at_once(text, tmp_path):
    content, message = TEXTS[text]
    (tmp_path / "project.toml").write_text(content)
    start = time.monotonic()
    with pytest.raises(ProjectError, match=message):
        load_project(tmp_path / "project.toml")
    assert time.monotonic() - start < 2.0


def test_endless_projects_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ProjectError, match="it is a device"):
        load_project("/dev/zero")
    monkeypatch.setattr(files, "PIPE_TIMEOUT", 0.05)
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ProjectError, match="nothing is written into the pipe"):
        load_project(tmp_path / "pipe.toml")


@pytest.mark.parametrize("hidden", [(1,) * 3000, (10_000, 10_000)])
def test_absurd_networks_are_refused(hidden):
    with pytest.raises(ValueError, match="at most 100 hidden layers and 10,000,000 weights"):
        MLP(1, 1, hidden=hidden)


def test_a_recording_of_two_rows_is_named(tmp_path):
    project = write_project(tmp_path, PROJECT.replace("held_out = 0.0", "held_out = 0.25"))
    (tmp_path / "run.csv").write_text("time,q\n0,1\n0.1,2\n")
    with pytest.raises(ProjectError, match=r"of 'run' \(run\.csv\) has fewer than 2 samples"):
        build(load_project(project))
