"""Demo: the recordings are reproducible, and both fits reduce the error as stated."""

import json
from pathlib import Path

import numpy as np
import pytest

import hybridsim
from hybridsim.cli.main import run
from hybridsim.demo.record import INITIAL_ANGLES, RATE, record
from hybridsim.project.build.build import build
from hybridsim.project.schema.load import load_project

FOLDER = Path(hybridsim.__file__).parent / "demo"


def test_recordings_are_reproducible():
    """Only the first second is compared: later, rounding differences between processors may show."""
    stored = np.loadtxt(FOLDER / "run0.csv", delimiter=",", skiprows=1)
    made = record(INITIAL_ANGLES[0], seed=0, duration=1.0)
    np.testing.assert_allclose(made, stored[: round(RATE) + 1], atol=2e-5)


@pytest.mark.parametrize(("name", "size"), [("parameters", 6), ("networks", 76)])
def test_projects_can_be_fitted(name, size):
    built = build(load_project(FOLDER / f"{name}.toml"))
    assert built.problem.space.size == size
    assert [run.name for run in built.problem.held_out] == ["run4", "run5"]


@pytest.mark.slow
def test_each_fit_improves_predictions_of_held_out_runs(tmp_path, capsys):
    assert run(["demo", "--out", str(tmp_path / "arm"), "--no-browser", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    initial, parameters, networks = found["residual_rms"].values()
    assert parameters < 0.5 * initial and networks < 0.2 * parameters
    assert Path(found["page"]).read_text().startswith("<!")
