"""The demonstration: its recordings are what its program makes, and both fits gain what they promise."""

import json
from pathlib import Path

import numpy as np
import pytest

import hybridsim
from hybridsim.cli.main import run
from hybridsim.demo.record import RATE, STARTS, recorded
from hybridsim.project.build.build import build
from hybridsim.project.schema.load import load_project

FOLDER = Path(hybridsim.__file__).parent / "demo"


def test_recordings_are_what_the_program_makes():
    """Their first second: later on, the last bits of another processor's sines may show."""
    kept = np.loadtxt(FOLDER / "run0.csv", delimiter=",", skiprows=1)
    made = recorded(STARTS[0], seed=0, seconds=1.0)
    np.testing.assert_allclose(made, kept[: round(RATE) + 1], atol=2e-5)


@pytest.mark.parametrize(("name", "numbers"), [("parameters", 6), ("networks", 76)])
def test_projects_can_be_fitted(name, numbers):
    built = build(load_project(FOLDER / f"{name}.toml"))
    assert built.problem.space.size == numbers
    assert [run.name for run in built.problem.held_out] == ["run4", "run5"]


@pytest.mark.slow
def test_each_fit_predicts_unseen_runs_better(tmp_path, capsys):
    assert run(["demo", "--out", str(tmp_path / "arm"), "--no-browser", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    as_it_is, parameters, networks = found["error_in_noise"].values()
    assert parameters < 0.5 * as_it_is and networks < 0.2 * parameters
    assert Path(found["page"]).read_text().startswith("<!")
