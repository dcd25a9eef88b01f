"""Going on with a run: the same bits as if nothing had happened, and only if nothing else has changed."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.problem import Stage
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.project import fit_run
from hybridsim.project.fit_run import run_fit
from hybridsim.project.record import checkpoint_store as keepers
from hybridsim.project.record.history import History
from hybridsim.project.record.manifest import manifest, other_versions
from hybridsim.project.record.record import Record
from support.fit_tasks import arm_task, restless

SOLVERS = {"lm": restless(8), "lbfgs": LBFGS(max_steps=8), "adam": Adam(max_steps=8, batch=2)}


def stages(solver: str) -> tuple[Stage, ...]:
    return (Stage(window=0.25, solver=SOLVERS[solver]), Stage(window=0.75, solver=SOLVERS[solver]))


class Stopping:
    """Says stop after a number of steps."""

    def __init__(self, steps: int):
        self.left = steps

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def steps_of(record: Record) -> list[dict]:
    return [asdict(replace(step, seconds=None, held_out_rms=None)) for step in History(record.history_file).read()]


@pytest.fixture
def fit_only(monkeypatch):
    """No scores and pictures at the end of a fit: they take longer than the fit itself."""
    monkeypatch.setattr(fit_run, "_write_up", lambda *_: {})


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_that_was_stopped_again_and_again_ends_in_the_same_bits(solver, tmp_path, fit_only):
    task = arm_task(tmp_path, stages=stages(solver), held_out=0)
    whole, parts = Record(tmp_path / "whole"), Record(tmp_path / "parts")
    undisturbed = run_fit(task, whole)
    for steps in (3, 8):
        outcome = run_fit(task, parts, mode="resume", stop=Stopping(steps))
        assert outcome.fitted.stopped and outcome.result is None
    assert outcome.place == (1, 3)
    told = []
    resumed = run_fit(task, parts, mode="resume", tell=told.append)
    assert told == ["Going on with stage 2 after step 3."]
    assert resumed.fitted.theta.tobytes() == undisturbed.fitted.theta.tobytes()
    assert steps_of(parts) == steps_of(whole)


def test_the_record_of_a_run_that_was_stopped_is_that_of_one_that_was_not(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_run, "fit_pictures", lambda *_: {})
    task = arm_task(tmp_path, held_out=0)
    whole, parts = Record(tmp_path / "whole"), Record(tmp_path / "parts")
    run_fit(task, whole)
    run_fit(task, parts, stop=Stopping(6))
    assert not parts.result_file.exists()
    run_fit(task, parts, mode="resume")
    assert parts.result_file.read_bytes() == whole.result_file.read_bytes()
    assert (parts.folder / "identified.urdf").read_bytes() == (whole.folder / "identified.urdf").read_bytes()


class Killed(BaseException):
    """Ends a fit where it is, as a kill does."""


KILLS = {
    "after the last step of the first stage": (0, "last"),
    "after the first step behind a stage without any": (2, 1),
    "after the last step of all": (2, "last"),
}


@pytest.mark.parametrize("place", KILLS.values(), ids=KILLS)
def test_a_run_that_was_killed_between_stages_tells_how_all_of_them_ended(place, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_run, "fit_pictures", lambda *_: {})
    monkeypatch.setattr(keepers, "SHARE", 1e9)  # every step is written
    # the second stage has nothing to do: it is the first one again, with a slope that counts as none
    content = LevenbergMarquardt(gradient_tolerance=1e-3)
    task = arm_task(tmp_path, stages=(Stage(window=0.25), Stage(window=0.25, solver=content), Stage(window=0.75)))
    whole, parts = Record(tmp_path / "whole"), Record(tmp_path / "parts")
    run_fit(task, whole)
    expected = whole.result()
    assert [stage["steps"] > 0 for stage in expected["stages"]] == [True, False, True]
    stage, step = place
    step = expected["stages"][stage]["steps"] if step == "last" else step

    def kill(progress, held_out):
        if (progress.stage, progress.step) == (stage, step):
            raise Killed

    with pytest.raises(Killed):
        run_fit(task, parts, watch=kill)
    run_fit(task, parts, mode="resume")
    found = parts.result()
    assert found.keys() == expected.keys()
    for field, value in expected.items():
        assert found[field] == value, field
    words = [stage["words"] for stage in expected["stages"]]
    assert all(parts.summary_file.read_text(encoding="utf-8").count(text) for text in words)


def test_a_run_that_was_killed_before_it_was_written_up_is_not_fitted_again(tmp_path, fit_only):
    task, record = arm_task(tmp_path, held_out=0), Record(tmp_path / "run")
    first = run_fit(task, record)
    seen = []
    again = run_fit(task, record, mode="resume", watch=lambda progress, held_out: seen.append(progress))
    assert not seen and again.result is not None
    assert again.fitted.theta.tobytes() == first.fitted.theta.tobytes()


def test_after_damage_the_run_goes_on_from_the_checkpoint_before(tmp_path, monkeypatch, fit_only):
    monkeypatch.setattr(keepers, "SHARE", 1e9)
    task = arm_task(tmp_path, stages=stages("lm"), held_out=0)
    record = Record(tmp_path / "run")
    run_fit(task, record, stop=Stopping(6))
    newest = max(record.folder.glob("checkpoint-*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:100])
    told = []
    resumed = run_fit(task, record, mode="resume", tell=told.append)
    assert "is damaged" in told[0] and told[1] == "Going on with stage 1 after step 5."
    undisturbed = run_fit(task, Record(tmp_path / "whole"))
    assert resumed.fitted.theta.tobytes() == undisturbed.fitted.theta.tobytes()
    assert steps_of(record) == steps_of(Record(tmp_path / "whole"))


def test_a_run_whose_project_model_or_data_changed_is_not_continued(tmp_path, fit_only):
    task, record = arm_task(tmp_path, held_out=0), Record(tmp_path / "run")
    run_fit(task, record, stop=Stopping(1))
    with pytest.raises(HybridsimError, match=r"the project .*arm\.toml.*--fresh"):
        run_fit(replace(task, project_text="# other"), record, mode="resume")
    model = tmp_path / "arm.urdf"
    text = model.read_text()
    model.write_text(text.replace("1.5", "1.4"))
    with pytest.raises(HybridsimError, match=r"the model .*arm\.urdf"):
        run_fit(task, record, mode="resume")
    model.write_text(text)
    problem = task.problem
    noise = {name: 2.0 * value for name, value in problem.measured.noise.items()}
    other = replace(problem, measured=replace(problem.measured, noise=noise))
    with pytest.raises(HybridsimError, match="a file that the model includes"):
        run_fit(replace(task, problem=other), record, mode="resume")
    run_fit(task, record, mode="resume")


def test_changed_new_and_missing_data_files_are_named(tmp_path, fit_only):
    task, record = arm_task(tmp_path, held_out=0), Record(tmp_path / "run")

    def with_sources(*sources):
        first, *others = task.problem.train
        train = (replace(first, sources=sources), *others)
        return replace(task, problem=replace(task.problem, train=train))

    run_fit(with_sources(("a.csv", "1"), ("b.csv", "2")), record, stop=Stopping(1))
    with pytest.raises(
        HybridsimError, match=r"data a\.csv; the data c\.csv, which is new; the data b\.csv, which is no"
    ):
        run_fit(with_sources(("a.csv", "9"), ("c.csv", "3")), record, mode="resume")
    # the same files elsewhere are the same data
    run_fit(with_sources(("moved/a.csv", "1"), ("moved/b.csv", "2")), record, mode="resume", stop=Stopping(1))


def test_other_versions_are_told_but_do_not_stop_a_run(tmp_path):
    now = manifest(arm_task(tmp_path), ["hybridsim", "fit"])
    then = json.loads(json.dumps(now))
    assert not other_versions(then, now)
    then["versions"]["jax"] = "0.0.1"
    then["machine"]["cpu"] = "abacus"
    assert other_versions(then, now) == [
        f"jax 0.0.1 then, {now['versions']['jax']} now",
        f"a abacus processor then, {now['machine']['cpu']} now",
    ]


FILLING = """
import sys
from pathlib import Path
from hybridsim.core.errors import HybridsimError
from hybridsim.project import fit_run
from hybridsim.project.record import checkpoint_store
from hybridsim.project.fit_run import run_fit
from hybridsim.project.record.record import Record
from support.fit_tasks import arm_task
from project.test_resume import stages

work, disk = map(Path, sys.argv[1:])
checkpoint_store.SHARE = 1e9
fit_run._write_up = lambda *_: {}
record = Record(disk / "run")


def fill(progress, held_out):
    if progress.step == 4:
        with (disk / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1024))
            except OSError:
                pass


try:
    run_fit(arm_task(work, stages=stages("lm"), held_out=0), record, watch=fill)
except HybridsimError as error:
    print(error)
(disk / "filler").unlink()
print(run_fit(arm_task(work, stages=stages("lm"), held_out=0), record, mode="resume").fitted.theta.tobytes().hex())
"""


@pytest.mark.slow
def test_a_full_disk_ends_a_fit_with_advice_and_room_lets_it_go_on(tmp_path, fit_only):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounting = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"', "sh"]
    probe = subprocess.run([*mounting, str(disk), "true"], capture_output=True) if os.name == "posix" else None
    if probe is None or probe.returncode:
        pytest.skip("no small disk can be mounted here")
    work = tmp_path / "work"
    work.mkdir()
    tests = Path(__file__).parents[1]
    program = [sys.executable, "-c", FILLING, str(work), str(disk)]
    done = subprocess.run(
        [*mounting, str(disk), *program],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tests)},
        check=True,
    )
    error, theta = done.stdout.splitlines()
    assert "No space left on device" in error and "--resume" in error and str(disk / "run") in error
    undisturbed = run_fit(arm_task(work, stages=stages("lm"), held_out=0), Record(tmp_path / "whole"))
    assert np.frombuffer(bytes.fromhex(theta)).tobytes() == undisturbed.fitted.theta.tobytes()
