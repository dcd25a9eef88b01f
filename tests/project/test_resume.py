"""Resumed fits are bitwise identical to uninterrupted ones, and are refused if their inputs have changed."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.solvers.registry import SOLVERS as REGISTERED
from hybridsim.identify.stage import Stage
from hybridsim.project import fit_run
from hybridsim.project.fit_run import run_fit
from hybridsim.project.run_folder import checkpoint_store
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.history import History
from hybridsim.project.run_folder.manifest import manifest, version_changes
from support.fit_tasks import StopAfter, arm_task, solver_without_tolerances
from support.folder_errors import folder_error

SOLVERS = {name: solver(max_steps=8) for name, solver in REGISTERED.items()}  # type: ignore[call-arg]
SOLVERS |= {"lm": solver_without_tolerances(8), "adam": Adam(max_steps=8, batch_size=2)}


def stages(solver: str) -> tuple[Stage, ...]:
    return (Stage(window=0.25, solver=SOLVERS[solver]), Stage(window=0.75, solver=SOLVERS[solver]))


def steps_of(run_folder: RunFolder) -> list[dict]:
    return [asdict(replace(step, elapsed=None, held_out_rms=None)) for step in History(run_folder.history_file).read()]


@pytest.fixture
def fit_only(monkeypatch):
    """Skip scores and figures at the end of a fit, which take longer than the fit itself."""
    monkeypatch.setattr(fit_run, "write_report", lambda *_: {})


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_stopped_repeatedly_is_bitwise_identical_to_an_uninterrupted_run(solver, tmp_path, fit_only):
    task = arm_task(tmp_path, stages=stages(solver), held_out=0)
    uninterrupted_folder, interrupted_folder = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    uninterrupted = run_fit(task, uninterrupted_folder)
    for steps in (3, 8):
        outcome = run_fit(task, interrupted_folder, mode="resume", stop=StopAfter(steps))
        assert outcome.solution.stopped and outcome.result is None
    assert outcome.last_step == (1, 3)
    messages = []
    resumed = run_fit(task, interrupted_folder, mode="resume", log=messages.append)
    assert messages == ["Resuming in stage 2 after step 3."]
    assert resumed.solution.theta.tobytes() == uninterrupted.solution.theta.tobytes()
    assert steps_of(interrupted_folder) == steps_of(uninterrupted_folder)


def test_the_record_of_a_stopped_run_equals_that_of_an_uninterrupted_run(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_run, "figure_makers", lambda *_: {})
    task = arm_task(tmp_path, held_out=0)
    uninterrupted_folder, interrupted_folder = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    run_fit(task, uninterrupted_folder)
    run_fit(task, interrupted_folder, stop=StopAfter(6))
    assert not interrupted_folder.result_file.exists()
    run_fit(task, interrupted_folder, mode="resume")
    assert interrupted_folder.result_file.read_bytes() == uninterrupted_folder.result_file.read_bytes()
    assert (interrupted_folder.path / "identified.urdf").read_bytes() == (
        uninterrupted_folder.path / "identified.urdf"
    ).read_bytes()


class Killed(BaseException):
    """Terminates a fit like a kill."""


KILLS = {
    "after the last step of the first stage": (0, "last"),
    "after the first step following a stage without steps": (2, 1),
    "after the last step of all": (2, "last"),
}


@pytest.mark.parametrize("position", KILLS.values(), ids=KILLS)
def test_a_run_killed_between_stages_reports_the_termination_of_all_stages(position, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_run, "figure_makers", lambda *_: {})
    monkeypatch.setattr(checkpoint_store, "MAX_TIME_SHARE", 1e9)  # every step is written
    # the second stage terminates immediately: it repeats the first one with a loose gradient tolerance
    loose_solver = LevenbergMarquardt(gradient_tolerance=1e-3)
    task = arm_task(tmp_path, stages=(Stage(window=0.25), Stage(window=0.25, solver=loose_solver), Stage(window=0.75)))
    uninterrupted_folder, interrupted_folder = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    run_fit(task, uninterrupted_folder)
    expected = uninterrupted_folder.result()
    assert [stage["steps"] > 0 for stage in expected["stages"]] == [True, False, True]
    stage, step = position
    step = expected["stages"][stage]["steps"] if step == "last" else step

    def kill(progress, held_out):
        if (progress.stage, progress.step) == (stage, step):
            raise Killed

    with pytest.raises(Killed):
        run_fit(task, interrupted_folder, callback=kill)
    run_fit(task, interrupted_folder, mode="resume")
    found = interrupted_folder.result()
    assert found.keys() == expected.keys()
    for field, value in expected.items():
        assert found[field] == value, field
    words = [stage["message"] for stage in expected["stages"]]
    assert all(interrupted_folder.summary_file.read_text(encoding="utf-8").count(text) for text in words)


def test_a_run_killed_before_its_report_was_written_is_not_fitted_again(tmp_path, fit_only):
    task, run_folder = arm_task(tmp_path, held_out=0), RunFolder(tmp_path / "run")
    first = run_fit(task, run_folder)
    progress_calls = []
    again = run_fit(
        task, run_folder, mode="resume", callback=lambda progress, held_out_rms: progress_calls.append(progress)
    )
    assert not progress_calls and again.result is not None
    assert again.solution.theta.tobytes() == first.solution.theta.tobytes()


def test_after_damage_the_run_resumes_from_the_previous_checkpoint(tmp_path, monkeypatch, fit_only):
    monkeypatch.setattr(checkpoint_store, "MAX_TIME_SHARE", 1e9)
    task = arm_task(tmp_path, stages=stages("lm"), held_out=0)
    run_folder = RunFolder(tmp_path / "run")
    run_fit(task, run_folder, stop=StopAfter(6))
    newest = max(run_folder.path.glob("checkpoint-*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:100])
    messages = []
    resumed = run_fit(task, run_folder, mode="resume", log=messages.append)
    assert "is damaged" in messages[0] and messages[1] == "Resuming in stage 1 after step 5."
    uninterrupted = run_fit(task, RunFolder(tmp_path / "whole"))
    assert resumed.solution.theta.tobytes() == uninterrupted.solution.theta.tobytes()
    assert steps_of(run_folder) == steps_of(RunFolder(tmp_path / "whole"))


def test_a_run_whose_project_model_or_data_changed_is_not_continued(tmp_path, fit_only):
    task, run_folder = arm_task(tmp_path, held_out=0), RunFolder(tmp_path / "run")
    run_fit(task, run_folder, stop=StopAfter(1))
    with folder_error(r"the project .*arm\.toml.*--fresh"):
        run_fit(replace(task, project_text="# other"), run_folder, mode="resume")
    model = tmp_path / "arm.urdf"
    text = model.read_text()
    model.write_text(text.replace("1.5", "1.4"))
    with pytest.raises(HybridsimError, match=r"the model .*arm\.urdf"):
        run_fit(task, run_folder, mode="resume")
    model.write_text(text)
    problem = task.problem
    noise = {name: 2.0 * value for name, value in problem.channel_roles.noise.items()}
    other = replace(problem, channel_roles=replace(problem.channel_roles, noise=noise))
    with pytest.raises(HybridsimError, match="free parameters, noise, stages"):
        run_fit(replace(task, problem=other), run_folder, mode="resume")
    run_fit(task, run_folder, mode="resume")


def test_changed_new_and_missing_data_files_are_named(tmp_path, fit_only):
    task, run_folder = arm_task(tmp_path, held_out=0), RunFolder(tmp_path / "run")

    def with_sources(*sources):
        first, *others = task.problem.train
        train = (replace(first, sources=sources), *others)
        return replace(task, problem=replace(task.problem, train=train))

    run_fit(with_sources(("a.csv", "1"), ("b.csv", "2")), run_folder, stop=StopAfter(1))
    with pytest.raises(
        HybridsimError, match=r"data a\.csv; the data c\.csv, which is new; the data b\.csv, which is no"
    ):
        run_fit(with_sources(("a.csv", "9"), ("c.csv", "3")), run_folder, mode="resume")
    # the same files elsewhere are the same data
    run_fit(with_sources(("moved/a.csv", "1"), ("moved/b.csv", "2")), run_folder, mode="resume", stop=StopAfter(1))


def test_version_changes_are_reported_but_do_not_prevent_resuming(tmp_path):
    now = manifest(arm_task(tmp_path), ["hybridsim", "fit"])
    then = json.loads(json.dumps(now))
    assert not version_changes(then, now)
    then["versions"]["jax"] = "0.0.1"
    then["machine"]["cpu"] = "abacus"
    assert version_changes(then, now) == [
        f"jax 0.0.1 before, {now['versions']['jax']} now",
        f"processor abacus before, {now['machine']['cpu']} now",
    ]


DISK_FILLER = """
import sys
from pathlib import Path
from hybridsim.core.errors import HybridsimError
from hybridsim.project import fit_run
from hybridsim.project.run_folder import checkpoint_store
from hybridsim.project.fit_run import run_fit
from hybridsim.project.run_folder.folder import RunFolder
from support.fit_tasks import arm_task
from project.test_resume import stages

work, disk = map(Path, sys.argv[1:])
checkpoint_store.MAX_TIME_SHARE = 1e9
fit_run.write_report = lambda *_: {}
run_folder = RunFolder(disk / "run")


def fill(progress, held_out_rms):
    if progress.step == 4:
        with (disk / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1024))
            except OSError:
                pass


try:
    run_fit(arm_task(work, stages=stages("lm"), held_out=0), run_folder, callback=fill)
except HybridsimError as error:
    print(error)
(disk / "filler").unlink()
outcome = run_fit(arm_task(work, stages=stages("lm"), held_out=0), run_folder, mode="resume")
print(outcome.solution.theta.tobytes().hex())
"""


@pytest.mark.slow
def test_a_full_disk_ends_a_fit_with_advice_and_the_fit_resumes_with_free_space(tmp_path, fit_only):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounting = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"', "sh"]
    probe = subprocess.run([*mounting, str(disk), "true"], capture_output=True) if os.name == "posix" else None
    if probe is None or probe.returncode:
        pytest.skip("no small disk can be mounted here")
    work = tmp_path / "work"
    work.mkdir()
    tests = Path(__file__).parents[1]
    program = [sys.executable, "-c", DISK_FILLER, str(work), str(disk)]
    done = subprocess.run(
        [*mounting, str(disk), *program],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tests)},
        check=True,
    )
    error, theta = done.stdout.splitlines()
    assert "No space left on device" in error and "--resume" in error and str(disk / "run") in error
    uninterrupted = run_fit(arm_task(work, stages=stages("lm"), held_out=0), RunFolder(tmp_path / "whole"))
    assert np.frombuffer(bytes.fromhex(theta)).tobytes() == uninterrupted.solution.theta.tobytes()
