"""Result of a fit: parameters and scores, remarks and suggestions, and the exported model."""

import numpy as np
import pytest

from hybridsim.cli.main import run
from hybridsim.project.report.comparison import HELD_OUT
from hybridsim.project.report.result import CONVERGED, remarks_on, suggestions, unconverged_windows
from support.fit_tasks import DAMPING, MASS, write_arm_project


def test_the_result_is_accurate_and_better_on_held_out_runs(finished_fit):
    _, _, outcome = finished_fit
    damping, mass = (row["after"] for row in outcome.result["parameters"])
    # the tolerance follows from the noise of 3 runs of 300 samples
    assert damping == pytest.approx(DAMPING, rel=0.05) and mass == pytest.approx(MASS, rel=0.05)
    held_out = [row for row in outcome.result["scores"] if row["run_kind"] == "held-out"]
    assert [(row["score_kind"], row["duration"]) for row in held_out] == [
        ("reconstructed", 0.75),
        ("predicted", 0.25),
        ("predicted", 1.0),
    ]
    for row in held_out:
        before, after = row["normalized"]["before"]["rms"], row["normalized"]["after"]["rms"]
        assert before > 5.0 and after < 2.0
        channel = row["channels"]["angle"]
        assert channel["after"] == pytest.approx(0.005 * after, rel=1e-6)


def test_only_the_identified_parameters_change_in_the_model_file(finished_fit):
    task, run_folder, outcome = finished_fit
    mass = outcome.result["parameters"][1]["after"]
    old = task.model_file.read_text()
    new = (run_folder.path / "identified.urdf").read_text()
    assert f'value="{mass!r}"' in new
    assert [line for line in old.splitlines() if "inertia " in line] == [
        line for line in new.splitlines() if "inertia " in line
    ]


def test_suggestions_omit_free_parameters():
    assert suggestions(["body.mass[arm]"]).startswith(
        "Free joint.armature or joint.friction or sensor.delay, estimate sensor.bias separately for each run"
    )
    text = suggestions(["joint.armature[hinge]", "joint.friction[hinge]", "sensor.bias[angle]"])
    assert text == "Free sensor.delay, or graft a network."
    free = ["joint.armature[a]", "joint.friction[a]", "sensor.delay[b]", "sensor.bias[b]"]
    assert suggestions(free) == "Graft a network."


@pytest.mark.parametrize("after, is_reported", [(0.99, False), (1.0005, False), (1.2, True)])
def test_an_increased_residual_is_reported_if_it_is_visible_in_the_digits_shown(after, is_reported):
    residuals = {
        name: {"rms": rms, "diverged": 0, "unconverged": 0} for name, rms in (("before", 1.0), ("after", after))
    }
    score = {
        "run_kind": HELD_OUT,
        "score_kind": "reconstructed",
        "duration": 1.0,
        "windows": 3,
        "normalized": residuals,
    }
    remarks = remarks_on(
        {"status": CONVERGED, "parameters": [], "scores": [score], "model": None, "labels": [], "further_remarks": []}
    )
    assert any("increased the RMS residual" in remark for remark in remarks) == is_reported


def test_windows_that_did_not_converge_cause_one_remark():
    def row(kind, before, after):
        normalized = {"before": {"unconverged": before}, "after": {"unconverged": after}}
        return {"run_kind": kind, "score_kind": "predicted", "duration": 1.0, "windows": 9, "normalized": normalized}

    assert unconverged_windows([row(HELD_OUT, 0, 0)]) == []
    (remark,) = unconverged_windows([row(HELD_OUT, 0, 2), row("training", 0, 0), row("new", 3, 1)])
    assert remark.endswith(
        "may be too large: 0 before the fit and 2 after it, of 9 (held-out runs, predictions over 1 s); "
        "3 before the fit and 1 after it, of 9 (new runs, predictions over 1 s)."
    )


def test_a_fit_with_large_errors_causes_a_remark(tmp_path, capsys):
    file = write_arm_project(tmp_path)
    for k in range(4):
        t = 0.005 * np.arange(300)
        table = np.column_stack([t, np.sign(np.sin(20.0 * t + k))])
        np.savetxt(tmp_path / f"swing_{k}.csv", table, delimiter=",", header="time,angle", comments="")
    run(["fit", str(file)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "the model lacks an effect" in shown
    assert "In some windows the fit of the initial states, or of per-run parameters, did not converge" in shown
