"""Damaged project files: a fit task, or errors with their lines; never another exception."""

import random
import warnings

import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.project.build.build import build
from hybridsim.project.schema.load import load_project
from support.mutations import mutate, seeds
from support.small_projects import write_project

FURTHER = """
[[command]]
actuator = "joint0"
column = "u"
unit = "mNm"

[[stage]]
window = 0.25
solver = { name = "lbfgs", max_steps = 5 }

[[graft]]
outputs = "joint.tau[joint0]"
inputs = ["joint.qd[joint0]"]

[graft.network]
kind = "mlp"
hidden = [4, 4]

[run]
seed = 3
"""


@pytest.mark.parametrize("seed", seeds(120))
def test_damaged_projects(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)
    file = write_project(tmp_path)
    file.write_bytes(mutate(file.read_bytes() + FURTHER.encode(), rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            task = build(load_project(file)).task
        except HybridsimError as error:
            assert str(error)
            return
    assert task.problem.train and task.stages
