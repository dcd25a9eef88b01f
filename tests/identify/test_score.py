"""Scores: zero for the true parameters, and increasing with their error."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.data.derivative import derivative
from hybridsim.data.run import Run
from hybridsim.identify import score as score_module
from hybridsim.identify.initial_state_fit import fit_initial_states
from hybridsim.identify.score import Score, calibrate, score_predictions, score_windows
from hybridsim.identify.stage import Stage
from hybridsim.params.free import Free
from support.fit_problems import build_fit_problem, double_pendulum_problem

TRUE_VALUES = np.array([0.05, 0.02, 0.7])


@pytest.fixture(scope="module")
def fit_problem():
    return double_pendulum_problem()


def score_of(fit_problem, theta, window) -> Score:
    return score_windows(fit_problem, theta, fit_problem.train, window).scores[0]


def theta_of(fit_problem, values) -> np.ndarray:
    """θ from parameter values."""
    unit = [fit_problem.space.values(np.eye(3)[k])[name] for k, name in enumerate(fit_problem.space.names)]
    return np.asarray(values) / unit


@pytest.mark.parametrize(
    "score",
    [
        lambda problem, theta: score_of(problem, theta, 0.3),
        lambda problem, theta: score_of(problem, theta, None),
        lambda problem, theta: score_predictions(
            problem, theta, problem.train, initialization_time=0.1, horizon=0.2
        ).scores[0],
    ],
    ids=["reconstructed", "reconstructed whole", "predicted"],
)
def test_the_true_parameters_have_no_error_and_errors_increase(fit_problem, score):
    scores = [score(fit_problem, theta_of(fit_problem, TRUE_VALUES * (1.0 + off))) for off in (0.0, 0.05, 0.2)]
    assert scores[0].worst < 1e-8 and not any(one.diverged_count for one in scores)
    assert scores[0].median < scores[1].median < scores[2].median
    assert scores[1].worst > 1e-5


def test_predictions_have_larger_errors_than_fitted_windows(fit_problem):
    theta = theta_of(fit_problem, TRUE_VALUES * 1.2)
    after = score_predictions(fit_problem, theta, fit_problem.train, initialization_time=0.1, horizon=0.2).scores[0]
    assert after.mean > 2.0 * score_of(fit_problem, theta, 0.3).mean


def test_errors_of_the_true_parameters_are_the_noise():
    noisy_problem = double_pendulum_problem(noise=2e-3)
    found = score_of(noisy_problem, theta_of(noisy_problem, TRUE_VALUES), None)
    # three runs of 122 samples, minus four degrees of freedom of each initial state
    assert found.mean == pytest.approx(2e-3, rel=0.1)
    assert set(found.channel_rms) == {"q0", "q1"} and found.channel_rms["q0"] == pytest.approx(2e-3, rel=0.2)


def test_values_outside_of_the_bounds_are_scored_without_clipping(fit_problem):
    inside = score_of(fit_problem, fit_problem.space.upper, 0.3)
    outside = score_of(fit_problem, 1.5 * fit_problem.space.upper, 0.3)
    assert outside.mean > 1.05 * inside.mean


def test_windows_that_diverge_are_counted(fit_problem):
    found = score_of(fit_problem, theta_of(fit_problem, [1e7, 1e7, 0.7]), 0.3)
    assert found.diverged_count == 6 and found.rms.shape == (0, 2)


def test_a_diverging_window_does_not_affect_the_others(fit_problem):
    t = fit_problem.train[0].series["q0"].t
    broken = Run.from_arrays("broken", t, {"q0": 1e11 + t, "q1": t})
    found = score_windows(fit_problem, theta_of(fit_problem, TRUE_VALUES), [*fit_problem.train, broken], 0.3).scores[0]
    assert found.diverged_count == 2 and len(found.rms) == 6 and found.window_rms.max() < 1e-8
    # divergence must not improve a score
    assert found.worst == np.inf


def test_windows_whose_initial_states_did_not_converge_are_counted(fit_problem, monkeypatch):
    theta, limited = theta_of(fit_problem, TRUE_VALUES * 1.2), partial(fit_initial_states, max_steps=1)
    arguments = {"initialization_time": 0.1, "horizon": 0.2}

    def unconverged_counts():
        scores = (
            score_windows(fit_problem, theta, fit_problem.train, 0.3),
            score_predictions(fit_problem, theta, fit_problem.train, **arguments),
        )
        return [one.scores[0].unconverged_count for one in scores]

    assert unconverged_counts() == [0, 0]
    monkeypatch.setattr(score_module, "fit_initial_states", lambda objective, point, **_: limited(objective, point))
    assert unconverged_counts() == [6, 6]


def test_per_run_parameters_that_did_not_converge_count_for_all_windows():
    sensor_bias = Free("sensor.bias[*]", per="run", scale=0.01)
    noisy_problem = double_pendulum_problem([Free("joint.damping[*]", bounds=(0, 1)), sensor_bias], noise=2e-3)
    objective, _ = noisy_problem.objective(Stage(window=0.3))
    start = objective.point(noisy_problem.space.initial)
    assert calibrate(objective, start).has_converged.all()
    limited = calibrate(objective, start, max_steps=1)
    assert limited.has_converged.shape == start.q.shape[:2] and not limited.has_converged.any()


def test_summaries():
    score = Score(("a", "b"), np.array([[3.0, 4.0], [np.nan, 1.0], [0.0, 0.0]]), 0, 0)
    np.testing.assert_allclose(score.window_rms, [np.sqrt(12.5), 1.0, 0.0])
    assert (score.median, score.worst) == (1.0, pytest.approx(np.sqrt(12.5)))
    assert score.channel_rms == pytest.approx({"a": np.sqrt(4.5), "b": np.sqrt(17.0 / 3.0)})


def test_estimated_velocities_do_not_leak_later_samples_into_predictions():
    fit_problem = double_pendulum_problem()
    channels = {"q0": "joint.q[joint0]", "q1": "joint.q[joint1]", "rate": "joint.qd[joint0]"}

    def with_estimated_rate(run: Run, jump: float) -> Run:
        t = run.series["q0"].t
        columns = {name: run.series[name].values + jump * (t > 0.1 + 1e-6) for name in ("q0", "q1")}
        found = Run.from_arrays(run.name, t, columns)
        rate = replace(derivative(found.series["q0"], filter_window=9), name="rate")
        return replace(found, series={**found.series, "rate": rate})

    rows = []
    for jump in (0.0, 0.3):
        runs = [with_estimated_rate(fit_problem.train[0], jump)]
        problem_with_rate = build_fit_problem(
            fit_problem.setup.sim, channels, [Free("joint.damping[*]", bounds=(0, 1))], runs
        )
        theta = problem_with_rate.space.initial
        rows.append(score_predictions(problem_with_rate, theta, runs, initialization_time=0.1, horizon=0.2).point)
    # the first window must not depend on the jump, except through the solver's initial guess
    np.testing.assert_allclose(rows[0].qd[0, 0], rows[1].qd[0, 0], atol=1e-6)


def test_predictions_are_scored_after_the_interval_of_the_initial_state(fit_problem):
    thetas = np.stack([fit_problem.space.initial, theta_of(fit_problem, TRUE_VALUES)])
    found = score_predictions(fit_problem, thetas, fit_problem.train, initialization_time=0.2, horizon=0.3)
    w = found.objective.windows
    times = w.time_in_steps * w.dt
    assert times[w.weight > 0.0].min() > 0.2 and np.all(found.residual_rms[1] < found.residual_rms[0])
    with pytest.raises(HybridsimError, match=r"no run is long enough to predict 1 s from the preceding 2 s"):
        score_predictions(fit_problem, thetas, fit_problem.train, initialization_time=2.0, horizon=1.0)
