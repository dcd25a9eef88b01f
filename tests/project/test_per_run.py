"""Parameters estimated separately for each run of a project: in results, reports, and predictions of new recordings."""

import json

import numpy as np
import pytest

from hybridsim.cli.main import run
from support.fit_tasks import ARM_PROJECT, MASS, swing, write_arm_project

OFFSETS = (0.0, 0.05, -0.04, 0.02)
PER_RUN_PROJECT = ARM_PROJECT.replace(
    "[[stage]]", '[[free]]\nname = "sensor.bias[angle]"\nbounds = [-0.3, 0.3]\nper = "run"\n\n[[stage]]', 1
)


@pytest.fixture
def project(tmp_path):
    """Swings of an arm whose encoder is zeroed before each run."""
    file = write_arm_project(tmp_path, PER_RUN_PROJECT)
    for k, offset in enumerate(OFFSETS):
        write_swing(tmp_path / f"swing_{k}.csv", 0.5 + 0.2 * k, k, offset)
    return file


def write_swing(path, initial_angle, seed, offset) -> None:
    t, angle = swing(initial_angle, seed=seed)
    table = np.column_stack([t, angle + offset])
    np.savetxt(path, table, delimiter=",", header="time,angle", comments="")


def test_per_run_biases_are_identified_and_reported(project, capsys):
    assert run(["fit", str(project)]) == 0
    shown = capsys.readouterr().out
    folder = project.parent / "runs" / "arm"
    found = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    for name, values in found["run_values"].items():
        assert values["sensor.bias[angle]"] == pytest.approx(OFFSETS[int(name[-1])], abs=4e-3)
    assert {row["name"] for row in found["parameters"]} == {"joint.damping[shoulder]", "body.mass[upper]"}
    mass = next(row for row in found["parameters"] if row["name"] == "body.mass[upper]")
    assert mass["after"] == pytest.approx(MASS, rel=0.05)
    for name in found["run_values"]:
        assert name in shown and name in (folder / "summary.html").read_text(encoding="utf-8")
    kinds = ("held-out", "reconstructed")
    held_out = next(row for row in found["scores"] if (row["run_kind"], row["score_kind"]) == kinds)
    assert held_out["normalized"]["after"]["rms"] < 1.2

    # a recording with yet another offset
    write_swing(project.parent / "new.csv", 0.8, 9, 0.1)
    command = ["predict", str(folder), "--data", str(project.parent / "new.csv"), "--horizon", "0.3", "--json"]
    assert run(command) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert all(row["normalized"]["after"]["rms"] < 3.0 for row in scores)
