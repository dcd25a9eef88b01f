"""Damaged run folders: the result that was written, or an error; never another result, never another exception."""

import random
import shutil

import numpy as np
import pytest

import hybridsim as hs
from hybridsim.core.errors import HybridsimError
from hybridsim.native.runtime import cache
from hybridsim.robots import pendulum
from support.mutations import mutate, seeds

FILES = ("result.json", "manifest.json", "history.jsonl", "project.toml", "recordings/swing.npz")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Run folder of a fit, and its result."""
    folder, t = tmp_path_factory.mktemp("fit") / "run", np.arange(150) * 0.01
    run = hs.Recording.from_arrays("swing", t, {"q": np.cos(5.0 * t) * np.exp(-0.1 * t)})
    experiment = hs.Experiment(pendulum(), dt=0.01, channels=[hs.Channel("q", "joint.q[joint0]", noise=0.01)])
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=3))
    result = hs.fit(experiment, "joint.damping[*]", run, 0, stages=stage, folder=folder)
    return folder, result


@pytest.mark.parametrize("seed", seeds(100, fast=4))
def test_damaged_run_folders(seed, original, tmp_path):
    rng = random.Random(seed)
    folder, result = original
    copy = shutil.copytree(folder, tmp_path / "run")
    file = copy / rng.choice(FILES)
    content = file.read_bytes()
    file.write_bytes(mutate(content, rng))
    try:
        loaded = hs.load_result(copy)
    except HybridsimError as error:
        assert str(error)
        return
    assert loaded.theta.tobytes() == result.theta.tobytes() and loaded.record == result.record
    assert set(loaded.history) <= set(result.history)


@pytest.mark.parametrize("seed", seeds(60, fast=4))
def test_damaged_kernels_are_not_linked(seed, tmp_path, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path))
    entry = cache.CompiledKernel("forward", 1, 1, 1, 0, 0, rng.randbytes(200))
    cache.store("a", entry)
    cache.store("b", cache.CompiledKernel("gradient", 1, 1, 1, 0, 0, rng.randbytes(200)))
    file, other = tmp_path / "a.kernel", tmp_path / "b.kernel"
    file.write_bytes(other.read_bytes() if seed % 5 == 0 else mutate(file.read_bytes(), rng))
    loaded = cache.load("a")
    assert loaded is None or loaded == entry
