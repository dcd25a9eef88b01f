"""Damaged model files: a usable model with finite values, or errors; never another exception."""

import random
import warnings

import jax
import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError, Severity
from hybridsim.io.convert import convert
from hybridsim.io.load import inspect_model
from support.mutations import mutate, seeds
from support.random_models import random_model


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> list:
    """Files of random robots in both formats, with shapes and actuators."""
    folder, files = tmp_path_factory.mktemp("models"), []
    for seed in range(6):
        kinds = ("revolute", "prismatic", "continuous", "fixed")
        for suffix in (".urdf", ".xml"):
            file = folder / f"robot{seed}{suffix}"
            convert(random_model(seed, 4, kinds=kinds), file)
            files.append(file)
    return files


@pytest.mark.parametrize("seed", seeds(220))
def test_damaged_models(seed, originals, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log on errors
    rng = random.Random(seed)
    original = rng.choice(originals)
    file = tmp_path / original.name
    file.write_bytes(mutate(original.read_bytes(), rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, problems = inspect_model(file)
        except HybridsimError:
            return
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    assert (model is None) == bool(errors) and all(problem.message for problem in problems)
    if model is not None:
        values = jax.tree.leaves((model.body, model.joint.placement, model.joint.axis, model.gravity))
        assert all(np.isfinite(np.asarray(leaf)).all() for leaf in values)
