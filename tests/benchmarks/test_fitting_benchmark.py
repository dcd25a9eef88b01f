"""Fitting benchmark: evaluation of synthetic attempts, and both simulators on the recorded double pendulum."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.fitting_attempts import COLD, DISK, RUNNING, Attempt, FitLog
from benchmarks.fitting_problem import PATH, TASKS, WINDOWS, MissingData, build_problem, load, scaled_values
from benchmarks.fitting_targets import evaluate, lowest_cost, standings, time_to_cost

from benchmarks import fitting, ours_fitting

ROOT = Path(__file__).parents[2]
CONSTANTS = [0.09, 0.14, 0.11, 0.12, 0.17, 4e-4, 1.3e-3, 2e-4, 1e-5, 9.81]


def attempt(program, trace, process=RUNNING, task="fixed", method="some"):
    return Attempt(program, "1.0", task, method, process, trace, trace[-1][0] + 1.0, 10, 0, [0.0])


ATTEMPTS = [
    attempt("hybridsim", [(0.02, 90.0), (0.04, 50.00001), (0.05, 50.0)]),
    attempt("hybridsim", [(0.03, 90.0), (0.06, 50.0)]),
    attempt("hybridsim", [(0.03, 90.0), (0.05, 50.0)]),
    attempt("hybridsim", [(0.8, 90.0), (1.0, 50.0)], COLD),
    attempt("hybridsim", [(0.4, 90.0), (0.5, 50.0)], DISK),
    attempt("scipy", [(1.0, 90.0), (2.0, 50.00001)]),
    attempt("mujoco.sysid", [(1.0, 90.0), (1.5, 50.00002), (3.0, 50.0)]),
    attempt("mujoco.sysid", [(1.0, 90.0), (1.2, 50.1)], method="another"),
    attempt("scipy", [(1.5, 90.0), (2.5, 50.0)], COLD),
]


def test_time_is_that_until_the_lowest_cost_is_reached():
    assert lowest_cost(ATTEMPTS, "fixed") == 50.0
    assert time_to_cost(ATTEMPTS[0], 50.0) == 0.04  # 2e-7 above
    assert time_to_cost(ATTEMPTS[7], 50.0) == np.inf
    assert [s.time for s in standings(ATTEMPTS) if (s.program, s.process) == ("hybridsim", RUNNING)] == [0.05]


def test_targets_compare_with_the_faster_peer():
    results = {t["target"]: t for t in evaluate(ATTEMPTS)}
    warm = results["initial states fixed, 1 ms: faster than the faster peer, warm"]
    assert warm["measured"] == pytest.approx(1.5 / 0.05) and warm["met"] is True
    cold = results["initial states fixed, 1 ms: faster than the faster peer, cold, everything in new processes"]
    assert cold["measured"] == pytest.approx(2.5) and cold["met"] is False
    disk = results["initial states fixed, 1 ms: faster than the faster peer, new process with kernels on disk"]
    assert disk["measured"] == pytest.approx(5.0)
    assert results["initial states fixed, 1 ms: excess over the lowest cost"]["met"] is True
    assert results["initial states free, 1 ms: faster than the faster peer, warm"]["measured"] is None


def test_a_worse_optimum_misses_the_target():
    worse = [attempt("hybridsim", [(0.1, 50.1)]), attempt("scipy", [(2.0, 50.0)])]
    (target,) = (t for t in evaluate(worse) if t["target"] == "initial states fixed, 1 ms: excess over the lowest cost")
    assert target["measured"] == pytest.approx(0.002) and target["met"] is False


def test_targets_are_not_evaluated_without_peers():
    ours = [a for a in ATTEMPTS if a.program == "hybridsim"]
    assert {t["met"] for t in evaluate(ours)} == {None} == {t["met"] for t in evaluate([])}


def test_only_decreasing_costs_are_logged():
    log = FitLog()
    for cost in (5.0, 6.0, 4.0, 4.0):
        log.record(cost)
    assert [cost for _, cost in log.trace] == [5.0, 4.0]


@pytest.mark.parametrize("name", TASKS)
def test_windows_and_initial_states_are_those_of_the_segments(name):
    task = TASKS[name]
    t = 1e-3 * np.arange(2667)
    first = 0.3 * t**3 - 0.2 * t  # a cubic, which smoothing reproduces exactly
    angles = np.stack([np.stack([first + k, 2.0 * first], axis=1) for k in range(6)])
    problem = build_problem(task, angles, CONSTANTS)
    assert problem.values.shape == (WINDOWS * 4, 888 // task.every, 2)  # segments 1 and 5 are held out
    at = problem.steps * task.every
    offset = 0 if task.free_initial_states else task.every
    np.testing.assert_allclose(problem.values[4, 0], [first[at + offset] + 2.0, 2.0 * first[at + offset]], atol=1e-12)
    np.testing.assert_allclose(problem.q0[4], [first[at] + 2.0, first[at] - 2.0], atol=1e-12)
    rate = 0.9 * t[at] ** 2 - 0.2
    np.testing.assert_allclose(problem.qd0[4], [rate, rate], atol=1e-9)
    start, lower, upper, _ = scaled_values(problem.published.free())
    assert (lower < start).all() and (start < upper).all()


def test_missing_recordings_are_named(tmp_path, monkeypatch):
    load.cache_clear()
    monkeypatch.setenv("HYBRIDSIM_DATA", str(tmp_path))
    with pytest.raises(MissingData, match=r"segments\.npz does not exist; set HYBRIDSIM_DATA"):
        load("fixed")


def test_help_names_the_options():
    command = [sys.executable, "-m", "benchmarks.fitting", "--help"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for word in ("--quick", "--only", "--tasks", "--rounds", "--json", "HYBRIDSIM_DATA=~/data", "mujoco.sysid"):
        assert word in completed.stdout


@pytest.fixture(scope="module")
def recorded_problem():
    """The problem of a few windows of the recordings, with steps of 2 ms."""
    pytest.importorskip("mujoco")
    try:
        problem = load("coarse")
    except MissingData as error:
        pytest.skip(f"{PATH}: {error}")
    return problem


def test_hybridsim_has_the_common_initial_values(recorded_problem):
    ours, stage = ours_fitting.problem(recorded_problem)
    _, guess = ours.objective(stage)
    np.testing.assert_allclose(guess.q, recorded_problem.q0, atol=1e-12)
    np.testing.assert_allclose(guess.qd, recorded_problem.qd0, atol=1e-9)
    start, lower, upper, _ = scaled_values(recorded_problem.published.free())
    for mine, theirs in ((ours.space.initial, start), (ours.space.lower, lower), (ours.space.upper, upper)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_both_simulators_have_the_same_initial_residuals(recorded_problem):
    assert recorded_problem.task is TASKS["coarse"]
    assert fitting.agreement("coarse") < 1e-9


def test_the_toolbox_has_the_same_initial_residuals(recorded_problem):
    pytest.importorskip("tabulate", reason="mujoco[sysid] is not installed")
    pytest.importorskip("colorama", reason="mujoco[sysid] is not installed")
    from benchmarks.peers.mujoco_pendulum import Simulations
    from benchmarks.peers.mujoco_sysid import Toolbox

    toolbox = Toolbox(recorded_problem, FitLog())
    parameters = toolbox.parameters()
    x = parameters.as_vector()
    values = np.array([f.initial for f in recorded_problem.published.free()])
    two = np.stack([x, 1.001 * x], axis=1)
    expected = Simulations(recorded_problem).residuals([values, 1.001 * values])
    for residuals in (toolbox.as_documented(), toolbox.together()):
        np.testing.assert_allclose(residuals(x, parameters)[0][0], expected[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(residuals(two, parameters)[0][0], expected.T, rtol=1e-9, atol=1e-9)
