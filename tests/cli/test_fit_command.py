"""`hybridsim fit` and `hybridsim predict` on the command line: exit codes, output and files."""

import csv
import io
import json
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout

import pytest

from hybridsim.cli.main import run
from hybridsim.identify import score
from hybridsim.identify.initial_state_fit import fit_initial_states
from hybridsim.project.run_folder.folder import RunFolder
from support.fit_tasks import ARM_PROJECT, write_arm_project

LONG = ARM_PROJECT + 500 * "\n[[stage]]\nwindow = 0.25\n"
"""A fit that takes a minute."""
ZERO_TOLERANCES = (
    "solver = { name = 'lm', max_steps = 25, cost_tolerance = 0.0, step_tolerance = 0.0, gradient_tolerance = 0.0 }\n"
)
"""Solver settings with which the last stage of a project takes the maximum number of steps."""


@pytest.fixture(scope="module")
def finished_fit(tmp_path_factory):
    """Project, JSON output and progress lines of a finished fit."""
    folder = tmp_path_factory.mktemp("arm")
    project = write_arm_project(folder)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert run(["fit", str(project), "--json"]) == 0
    return project, out.getvalue(), err.getvalue()


def test_a_fit_ends_with_a_result_a_model_and_a_page(finished_fit):
    project, out, err = finished_fit
    result = json.loads(out)
    run_folder = project.parent / "runs" / "arm"
    assert result["status"] == "converged" and result["run_folder"] == str(run_folder)
    for name in ("result.json", "manifest.json", "history.jsonl", "project.toml", "identified.urdf", "summary.html"):
        assert (run_folder / name).stat().st_size > 0
    stored = RunFolder(run_folder).result()
    assert stored == {key: value for key, value in result.items() if key not in ("run_folder", "interrupted")}
    manifest = json.loads((run_folder / "manifest.json").read_text())
    assert manifest["command"][0] == "hybridsim" and len(manifest["data"]) == 4
    steps = list(map(json.loads, (run_folder / "history.jsonl").read_text().splitlines()))
    for number in (1, 2):
        last = max(step["step"] for step in steps if step["stage"] == number - 1)
        for step in (1, last):  # both ends of a stage are shown, however quick it is
            assert re.search(rf"^stage {number}/2 step {step}: cost .*, held-out ", err, re.MULTILINE)


def test_an_existing_fit_is_not_changed_by_default(finished_fit, capsys):
    project, *_ = finished_fit
    before = (project.parent / "runs" / "arm" / "result.json").read_bytes()
    assert run(["fit", str(project)]) == 1
    assert "already contains a fit (finished)" in capsys.readouterr().err
    assert run(["fit", str(project), "--resume", "--fresh"]) == 1
    assert (project.parent / "runs" / "arm" / "result.json").read_bytes() == before


def test_resuming_a_finished_fit_shows_its_result_and_changes_nothing(finished_fit, capsys):
    project, *_ = finished_fit
    before = _contents(project.parent)
    assert run(["fit", str(project), "--resume", "--quiet"]) == 0
    assert _contents(project.parent) == before
    shown = capsys.readouterr()
    assert "arm: converged" in shown.out and "body.mass[upper]" in shown.out and "summary.html" in shown.out
    assert "held-out runs, predictions over 1 s" in shown.out
    assert shown.err == f"The fit in {project.parent / 'runs' / 'arm'} is complete.\n"
    assert run(["fit", str(project), "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "converged"


def _contents(folder) -> dict:
    """Contents and modification times of all files in a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_fit_is_not_resumed_with_other_data(finished_fit, capsys):
    project, *_ = finished_fit
    data = project.parent / "swing_1.csv"
    text = data.read_text()
    data.write_text(text.replace("\n0.", "\n0.0000001", 1) if "\n0.0000001" not in text else text[:-40])
    try:
        assert run(["fit", str(project), "--resume"]) == 1
        assert "swing_1.csv" in capsys.readouterr().err
    finally:
        data.write_text(text)


def test_check_reports_the_problem_and_writes_nothing(tmp_path, capsys):
    project = write_arm_project(tmp_path)
    assert run(["fit", str(project), "--check"]) == 0
    said = capsys.readouterr().out
    assert "arm can be fitted: 2 free parameters of arm.urdf" in said
    assert "training    3: 'swing_0', 'swing_1', 'swing_3'" in said and "held out    1: 'swing_2'" in said
    assert "stage 2     windows of 0.75 s, initial states: free, solver lm with at most 100 steps" in said
    assert "All parameters are identifiable from these recordings (condition number" in said
    assert run(["fit", str(project), "--check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == ["joint.damping[shoulder]", "body.mass[upper]"]
    assert not (tmp_path / "runs").exists()


def test_a_fit_out_of_steps_has_a_result_and_its_own_exit_code(tmp_path, capsys):
    project = write_arm_project(tmp_path, ARM_PROJECT + "solver = { name = 'lm', max_steps = 1 }\n")
    assert run(["fit", str(project), "--out", str(tmp_path / "elsewhere"), "--quiet"]) == 4
    assert "step limit reached" in capsys.readouterr().out
    assert run(["fit", str(project), "--out", str(tmp_path / "elsewhere"), "--resume"]) == 4
    assert "is complete" in capsys.readouterr().err
    result = json.loads((tmp_path / "elsewhere" / "result.json").read_text())
    assert result["status"] == "not converged" and not (tmp_path / "runs").exists()


def test_divergence_at_the_initial_values_has_its_own_exit_code(tmp_path, capsys):
    stiff = "\n[[free]]\nname = 'joint.stiffness[*]'\ninitial = 1e9\nbounds = [0.0, 1e10]\n"
    project = write_arm_project(tmp_path, ARM_PROJECT.replace("\n[[stage]]", stiff + "\n[[stage]]", 1))
    assert run(["fit", str(project)]) == 3
    assert "diverges at the initial values" in capsys.readouterr().err
    assert run(["fit", str(project), "--fresh", "--json"]) == 3
    assert "diverges" in json.loads(capsys.readouterr().out)["problem"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("arm.toml", "[model]\nfile = 3", "arm.toml:2"),
        ("arm.toml", "not toml", "arm.toml:1"),
        ("arm.urdf", "<robot", "arm.urdf"),
        ("swing_2.csv", "time,angle\n0,1\n0,2\n", "swing_2.csv"),
    ],
)
def test_problems_of_files_are_reported_without_a_traceback(file, text, message, tmp_path, capsys):
    project = write_arm_project(tmp_path)
    (tmp_path / file).write_text(text)
    assert run(["fit", str(project)]) == 1
    shown = capsys.readouterr()
    assert message in shown.err and "Traceback" not in shown.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_saves_and_shows_how_to_resume(number, code, tmp_path):
    project = write_arm_project(tmp_path, LONG)
    run_folder = tmp_path / "runs" / "arm"
    process = subprocess.Popen(
        [sys.executable, "-m", "hybridsim", "fit", str(project)], stderr=subprocess.PIPE, text=True
    )
    _wait_for(lambda: _lines(run_folder / "history.jsonl") > 5, process)
    # no other process may write to the run folder meanwhile
    assert run(["fit", str(project), "--resume"]) == 1
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == code
    assert f"Resume with: hybridsim fit {project} --resume" in said
    assert list(run_folder.glob("checkpoint-*")) and not (run_folder / "result.json").exists()


def _wait_for(condition, process: subprocess.Popen, timeout: float = 60.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)


def _lines(path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def test_predict_scores_new_recordings_and_writes_predictions(finished_fit, tmp_path, capsys):
    project, *_ = finished_fit
    folder = project.parent
    data = [str(folder / "swing_2.csv"), str(folder / "swing_3.csv")]
    out = tmp_path / "out"
    command = [
        "predict",
        str(folder / "runs" / "arm"),
        "--horizon",
        "0.5",
        "--out",
        str(out),
        "--json",
        "--data",
        *data,
    ]
    assert run(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["runs"] == ["swing_2", "swing_3"] and [row["score_kind"] for row in found["scores"]] == [
        "predicted",
        "reconstructed",
    ]
    for row in found["scores"]:
        assert row["normalized"]["after"]["rms"] < 2.0 < row["normalized"]["before"]["rms"]
    with (out / "prediction.csv").open() as file:
        rows = list(csv.DictReader(file))
    off = [abs(float(row["after"]) - float(row["measured"])) for row in rows if row["run"] == "swing_3"]
    assert len(off) > 150 and max(off) < 0.03
    first = min(float(row["time"]) - float(row["window"]) for row in rows)
    assert 0.1 < first < 0.11
    assert (out / "windows.png").stat().st_size > 0


def test_predict_reports_initial_states_that_did_not_converge(finished_fit, tmp_path, capsys, monkeypatch):
    project, *_ = finished_fit
    folder = project.parent
    command = ["predict", str(folder / "runs" / "arm"), "--horizon", "0.5", "--out", str(tmp_path / "out")]
    command += ["--data", str(folder / "swing_3.csv")]
    assert run(command) == 0 and "did not converge" not in capsys.readouterr().out
    monkeypatch.setattr(score, "fit_initial_states", lambda *args, **_: fit_initial_states(*args, max_steps=1))
    assert run([*command, "--force"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "remark: In some windows the fit of the initial states" in shown and "new runs, predictions over" in shown


def test_predict_needs_a_finished_fit_of_this_project(finished_fit, tmp_path, capsys):
    project, *_ = finished_fit
    data = str(project.parent / "swing_0.csv")
    assert run(["predict", str(tmp_path), "--data", data]) == 1
    assert "is not a run folder" in capsys.readouterr().err
    assert run(["predict", str(project.parent / "runs" / "arm"), "--horizon", "-1", "--data", data]) == 1
    text = project.read_text()
    project.write_text(text.replace("0.5, 5.0", "0.4, 5.0"))
    try:
        assert run(["predict", str(project.parent / "runs" / "arm"), "--data", data]) == 1
        assert "inputs have changed since the fit: the project" in capsys.readouterr().err
    finally:
        project.write_text(text)


@pytest.mark.slow
def test_a_killed_fit_resumes(tmp_path):
    project = write_arm_project(tmp_path, ARM_PROJECT + ZERO_TOLERANCES)
    command = [sys.executable, "-m", "hybridsim", "fit", str(project), "--quiet", "--resume"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _wait_for(lambda: _lines(tmp_path / "runs" / "arm" / "history.jsonl") > 6, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run(command[3:]) in (0, 4)
    assert run(["fit", str(project), "--quiet", "--out", str(tmp_path / "whole")]) in (0, 4)
    results = [
        json.loads((folder / "result.json").read_text()) for folder in (tmp_path / "runs" / "arm", tmp_path / "whole")
    ]
    assert results[0] == results[1]


NETWORK = """
[[free]]
name = "graft[*]"

[[graft]]
outputs = "joint.tau"
inputs = ["joint.qd"]

[graft.network]
hidden = [3]
"""


def test_check_ignores_weights_of_untrained_networks(tmp_path, capsys):
    """Initially, no sample depends on the first layer of a network, as intended."""
    project = write_arm_project(tmp_path, ARM_PROJECT + NETWORK)
    assert run(["fit", str(project), "--check"]) == 0
    said = capsys.readouterr().out
    assert "networks    10 weights" in said and "most weights of untrained networks are unidentifiable" in said
    assert "graft[" not in said and "All parameters are identifiable from these recordings." in said
    assert run(["fit", str(project), "--check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["condition"] is None
