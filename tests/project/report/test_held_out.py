"""Evaluation of held-out runs during a fit: regular, with bounded cost, and without effect on the fit."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybridsim.identify.solve import Progress
from hybridsim.identify.stage import Stage
from hybridsim.project.fit_run import run_fit
from hybridsim.project.report import held_out
from hybridsim.project.report.held_out import MAX_TIME_SHARE_AT_POWERS_OF_TWO, HeldOutMonitor
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.history import History
from support.fit_tasks import arm_task, solver_without_tolerances


def evaluations(
    task, monkeypatch, *, steps: int, step_time: float, evaluation_time: float
) -> tuple[list[list[int]], float]:
    """Steps of each stage after which held-out runs are evaluated, and the fraction of time spent on it."""
    clock = [0.0]
    monkeypatch.setattr(held_out, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def rms(self, stage, theta):
        clock[0] += evaluation_time
        self._stage = stage
        return 1.0

    monkeypatch.setattr(HeldOutMonitor, "_rms", rms)
    monitor, evaluated, theta = HeldOutMonitor(task.problem, task.stages), [], np.zeros(2)
    for stage in range(2):
        evaluated.append([])
        for step in range(1, steps + 1):
            clock[0] += step_time
            now = Progress(stage, 2, step, steps, 1.0, 1.0, theta, clock[0], step == steps)
            if monitor.evaluate(now) is not None:
                evaluated[stage].append(step)
    return evaluated, sum(map(len, evaluated)) * evaluation_time / clock[0]


def test_a_short_fit_is_evaluated_in_every_stage(tmp_path, monkeypatch):
    evaluated, share = evaluations(arm_task(tmp_path), monkeypatch, steps=40, step_time=0.02, evaluation_time=0.03)
    for steps in evaluated:
        assert steps[0] == 1 and steps[-1] == 40 and len(steps) >= 5
    assert share < MAX_TIME_SHARE_AT_POWERS_OF_TWO


@pytest.mark.parametrize("evaluation_time", [0.001, 0.01, 0.1])
def test_evaluation_takes_a_bounded_share_of_the_time(evaluation_time, tmp_path, monkeypatch):
    evaluated, share = evaluations(
        arm_task(tmp_path), monkeypatch, steps=500, step_time=0.01, evaluation_time=evaluation_time
    )
    assert all(len(steps) >= 5 for steps in evaluated) and share < MAX_TIME_SHARE_AT_POWERS_OF_TWO


def test_the_last_step_of_a_stage_is_always_evaluated(tmp_path, monkeypatch):
    evaluated, _ = evaluations(arm_task(tmp_path), monkeypatch, steps=10, step_time=0.01, evaluation_time=1.0)
    assert [steps[-1] for steps in evaluated] == [10, 10]


def test_the_history_has_the_error_at_both_ends_of_every_stage(tmp_path):
    task, run_folder = arm_task(tmp_path), RunFolder(tmp_path / "run")
    run_fit(task, run_folder)
    for stage in range(len(task.stages)):
        errors = [step.held_out_rms for step in History(run_folder.history_file).read() if step.stage == stage]
        assert errors[0] is not None and errors[-1] is not None


def test_nothing_is_evaluated_without_held_out_runs(tmp_path):
    task, run_folder = arm_task(tmp_path, held_out=0), RunFolder(tmp_path / "run")
    run_fit(task, run_folder)
    assert all(step.held_out_rms is None for step in History(run_folder.history_file).read())


def test_evaluation_changes_no_bit_of_a_fit(tmp_path, monkeypatch):
    stages = (
        Stage(window=0.25, solver=solver_without_tolerances(6)),
        Stage(window=0.75, solver=solver_without_tolerances(6)),
    )
    found = {}
    for always in (False, True):
        if always:
            monkeypatch.setattr(HeldOutMonitor, "_is_within_budget", lambda self, progress: True)
        else:
            monkeypatch.setattr(HeldOutMonitor, "evaluate", lambda self, progress: None)
        run_folder = RunFolder(tmp_path / f"run_{always}")
        theta = run_fit(arm_task(tmp_path, stages=stages), run_folder).solution.theta
        steps = History(run_folder.history_file).read()
        assert all((step.held_out_rms is not None) == always for step in steps)
        found[always] = (theta.tobytes(), [(step.stage, step.step, step.cost) for step in steps])
        monkeypatch.undo()
    assert found[False] == found[True]
