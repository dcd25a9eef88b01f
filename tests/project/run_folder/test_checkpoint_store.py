"""Checkpoints in a folder: the newest two, with detection of damage, and without slowing down a fast solver."""

import errno
import os

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.objective import Point
from hybridsim.identify.solve import Checkpoint
from hybridsim.identify.solvers.solver import SolverState, Termination
from hybridsim.project.run_folder import checkpoint_store
from hybridsim.project.run_folder.checkpoint_store import FolderCheckpointStore
from support.folder_errors import folder_error


def checkpoint_at_step(step: int, stage: int = 0, termination: Termination = Termination.RUNNING) -> Checkpoint:
    point = Point(np.full((1, 2), float(step)), np.zeros((1, 1, 1)), np.zeros((1, 1, 1)))
    return Checkpoint(stage, SolverState(point, np.array([1.0]), np.array([int(termination)]), np.asarray(step), ()))


def step_of(checkpoint: Checkpoint | None) -> int:
    assert checkpoint is not None
    return int(checkpoint.state.steps)


@pytest.fixture
def write_immediately(monkeypatch):
    """Write every checkpoint immediately."""
    monkeypatch.setattr(checkpoint_store, "MAX_TIME_SHARE", 1e9)


def store_with_four_steps(folder) -> FolderCheckpointStore:
    store = FolderCheckpointStore(folder, "fit")
    for step in range(1, 5):
        store.save(checkpoint_at_step(step))
    return store


def test_the_newest_two_checkpoints_are_stored(write_immediately, tmp_path):
    store_with_four_steps(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-000003.safetensors",
        "checkpoint-000004.safetensors",
    ]
    assert step_of(FolderCheckpointStore(tmp_path, "fit").load_newest()) == 4


def test_an_empty_folder_has_no_checkpoint(tmp_path):
    assert FolderCheckpointStore(tmp_path, "fit").load_newest() is None


def test_a_damaged_checkpoint_is_reported_and_the_previous_one_is_used(write_immediately, tmp_path):
    store_with_four_steps(tmp_path)
    newest = tmp_path / "checkpoint-000004.safetensors"
    newest.write_bytes(newest.read_bytes()[:-3])
    messages = []
    store = FolderCheckpointStore(tmp_path, "fit", log=messages.append)
    assert step_of(store.load_newest()) == 3
    assert len(messages) == 1
    assert "checkpoint-000004.safetensors is damaged" in messages[0] and "checkpoint-000003" in messages[0]
    # the damaged one does not displace the intact one
    store.save(checkpoint_at_step(4))
    names = {path.name for path in tmp_path.iterdir()}
    assert {"checkpoint-000003.safetensors", "checkpoint-000005.safetensors", "checkpoint-000004.damaged"} == names
    assert step_of(FolderCheckpointStore(tmp_path, "fit").load_newest()) == 4


def test_an_error_is_raised_if_all_checkpoints_are_damaged(write_immediately, tmp_path):
    store_with_four_steps(tmp_path)
    for path in tmp_path.glob("checkpoint-*"):
        path.write_bytes(b"")
    for _ in range(2):
        with folder_error("--fresh"):
            FolderCheckpointStore(tmp_path, "fit").load_newest()


def test_partial_files_are_ignored(write_immediately, tmp_path):
    store_with_four_steps(tmp_path)
    (tmp_path / ".checkpoint-000005.safetensors.abc.part").write_bytes(b"half")
    assert step_of(FolderCheckpointStore(tmp_path, "fit").load_newest()) == 4


def test_a_full_disk_is_reported_and_earlier_checkpoints_are_intact(write_immediately, tmp_path, monkeypatch):
    store = store_with_four_steps(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def raise_disk_full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", raise_disk_full)
    with pytest.raises(HybridsimError, match=r"checkpoint-000005.*bytes\).*No space left.*--resume"):
        store.save(checkpoint_at_step(5))
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert step_of(FolderCheckpointStore(tmp_path, "fit").load_newest()) == 4


def test_frequent_checkpoints_are_held_back_until_flushed(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_store, "MAX_TIME_SHARE", 1e-9)
    store = store_with_four_steps(tmp_path)
    assert step_of(FolderCheckpointStore(tmp_path, "fit").load_newest()) == 1
    store.flush()
    assert step_of(FolderCheckpointStore(tmp_path, "fit").load_newest()) == 4
    store.flush()
    assert len(list(tmp_path.iterdir())) == 2


def test_the_last_checkpoint_of_a_stage_is_written_immediately(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_store, "MAX_TIME_SHARE", 1e-9)
    store = store_with_four_steps(tmp_path)
    store.save(checkpoint_at_step(5, termination=Termination.SMALL_DECREASE))
    store.save(checkpoint_at_step(1, stage=1))
    store.flush()
    again = FolderCheckpointStore(tmp_path, "fit")
    found = again.load_newest()
    assert found is not None and found.stage == 1
    assert again.stage_results[0].termination is Termination.SMALL_DECREASE and again.stage_results[0].steps == 5
