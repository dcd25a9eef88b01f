"""Checkpoints in a folder: the newest two, with detection of damage, and without slowing down a fast solver."""

import errno
import os

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.fit import Checkpoint
from hybridsim.identify.objective import Point
from hybridsim.identify.solvers.solver import SolverState, Termination
from hybridsim.project.record import checkpoint_store as keepers
from hybridsim.project.record.checkpoint_store import FolderCheckpointStore


def at_step(step: int, stage: int = 0, termination: Termination = Termination.RUNNING) -> Checkpoint:
    point = Point(np.full((1, 2), float(step)), np.zeros((1, 1, 1)), np.zeros((1, 1, 1)))
    return Checkpoint(stage, SolverState(point, np.array([1.0]), np.array([int(termination)]), np.asarray(step), ()))


def step_of(checkpoint: Checkpoint | None) -> int:
    assert checkpoint is not None
    return int(checkpoint.state.steps)


@pytest.fixture
def eager(monkeypatch):
    """Write every checkpoint immediately."""
    monkeypatch.setattr(keepers, "MAX_TIME_SHARE", 1e9)


def saved_steps(folder) -> FolderCheckpointStore:
    keeper = FolderCheckpointStore(folder)
    for step in range(1, 5):
        keeper.save(at_step(step))
    return keeper


def test_the_newest_two_checkpoints_are_stored(eager, tmp_path):
    saved_steps(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-000003.safetensors",
        "checkpoint-000004.safetensors",
    ]
    assert step_of(FolderCheckpointStore(tmp_path).newest()) == 4


def test_an_empty_folder_has_no_checkpoint(tmp_path):
    assert FolderCheckpointStore(tmp_path).newest() is None


def test_a_damaged_checkpoint_is_reported_and_the_previous_one_is_used(eager, tmp_path):
    saved_steps(tmp_path)
    newest = tmp_path / "checkpoint-000004.safetensors"
    newest.write_bytes(newest.read_bytes()[:-3])
    messages = []
    keeper = FolderCheckpointStore(tmp_path, log=messages.append)
    assert step_of(keeper.newest()) == 3
    assert len(messages) == 1
    assert "checkpoint-000004.safetensors is damaged" in messages[0] and "checkpoint-000003" in messages[0]
    # the damaged one does not displace the intact one
    keeper.save(at_step(4))
    names = {path.name for path in tmp_path.iterdir()}
    assert {"checkpoint-000003.safetensors", "checkpoint-000005.safetensors", "checkpoint-000004.damaged"} == names
    assert step_of(FolderCheckpointStore(tmp_path).newest()) == 4


def test_an_error_is_raised_if_all_checkpoints_are_damaged(eager, tmp_path):
    saved_steps(tmp_path)
    for path in tmp_path.glob("checkpoint-*"):
        path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(HybridsimError, match="--fresh"):
            FolderCheckpointStore(tmp_path).newest()


def test_partial_files_are_ignored(eager, tmp_path):
    saved_steps(tmp_path)
    (tmp_path / ".checkpoint-000005.safetensors.abc.part").write_bytes(b"half")
    assert step_of(FolderCheckpointStore(tmp_path).newest()) == 4


def test_a_full_disk_is_reported_and_earlier_checkpoints_are_intact(eager, tmp_path, monkeypatch):
    keeper = saved_steps(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HybridsimError, match=r"checkpoint-000005.*bytes\).*No space left.*--resume"):
        keeper.save(at_step(5))
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert step_of(FolderCheckpointStore(tmp_path).newest()) == 4


def test_frequent_checkpoints_are_held_back_until_flushed(tmp_path, monkeypatch):
    monkeypatch.setattr(keepers, "MAX_TIME_SHARE", 1e-9)
    keeper = saved_steps(tmp_path)
    assert step_of(FolderCheckpointStore(tmp_path).newest()) == 1
    keeper.flush()
    assert step_of(FolderCheckpointStore(tmp_path).newest()) == 4
    keeper.flush()
    assert len(list(tmp_path.iterdir())) == 2


def test_the_last_checkpoint_of_a_stage_is_written_immediately(tmp_path, monkeypatch):
    monkeypatch.setattr(keepers, "MAX_TIME_SHARE", 1e-9)
    keeper = saved_steps(tmp_path)
    keeper.save(at_step(5, termination=Termination.SMALL_GAIN))
    keeper.save(at_step(1, stage=1))
    keeper.flush()
    again = FolderCheckpointStore(tmp_path)
    found = again.newest()
    assert found is not None and found.stage == 1
    assert again.stage_results[0].termination is Termination.SMALL_GAIN and again.stage_results[0].steps == 5
