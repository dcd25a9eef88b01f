"""Scores: zero for the true parameters, and increasing with their error."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim.data.derivative import derivative
from hybridsim.data.recording import Recording
from hybridsim.identify.score import Score, score_predictions, score_windows
from hybridsim.params.free import Free
from support.fit_problems import double_pendulum_problem, problem

TRUE_VALUES = np.array([0.05, 0.02, 0.7])


@pytest.fixture(scope="module")
def links():
    return double_pendulum_problem()


def score_of(of, theta, window) -> Score:
    return score_windows(of, theta, of.train, window).scores[0]


def theta_of(links, values) -> np.ndarray:
    """θ from parameter values."""
    unit = [links.space.values(np.eye(3)[k])[name] for k, name in enumerate(links.space.names)]
    return np.asarray(values) / unit


@pytest.mark.parametrize(
    "score",
    [
        lambda of, theta: score_of(of, theta, 0.3),
        lambda of, theta: score_of(of, theta, None),
        lambda of, theta: score_predictions(of, theta, of.train, history=0.1, horizon=0.2).scores[0],
    ],
    ids=["explained", "explained whole", "predicted"],
)
def test_the_true_parameters_have_no_error_and_errors_increase(links, score):
    scores = [score(links, theta_of(links, TRUE_VALUES * (1.0 + off))) for off in (0.0, 0.05, 0.2)]
    assert scores[0].worst < 1e-8 and not any(one.diverged for one in scores)
    assert scores[0].median < scores[1].median < scores[2].median
    assert scores[1].worst > 1e-5


def test_predictions_have_larger_errors_than_fitted_windows(links):
    theta = theta_of(links, TRUE_VALUES * 1.2)
    after = score_predictions(links, theta, links.train, history=0.1, horizon=0.2).scores[0]
    assert after.mean > 2.0 * score_of(links, theta, 0.3).mean


def test_errors_of_the_true_parameters_are_the_noise():
    noisy = double_pendulum_problem(noise=2e-3)
    found = score_of(noisy, theta_of(noisy, TRUE_VALUES), None)
    # three runs of 122 samples, minus four degrees of freedom of each initial state
    assert found.mean == pytest.approx(2e-3, rel=0.1)
    assert set(found.channel_rms) == {"q0", "q1"} and found.channel_rms["q0"] == pytest.approx(2e-3, rel=0.2)


def test_values_outside_of_the_bounds_are_scored_without_clipping(links):
    inside = score_of(links, links.space.upper, 0.3)
    outside = score_of(links, 1.5 * links.space.upper, 0.3)
    assert outside.mean > 1.05 * inside.mean


def test_windows_that_diverge_are_counted(links):
    found = score_of(links, theta_of(links, [1e7, 1e7, 0.7]), 0.3)
    assert found.diverged == 6 and found.rms.shape == (0, 2)


def test_a_diverging_window_does_not_affect_the_others(links):
    t = links.train[0].series["q0"].t
    broken = Recording.from_arrays("broken", t, {"q0": 1e11 + t, "q1": t})
    found = score_windows(links, theta_of(links, TRUE_VALUES), [*links.train, broken], 0.3).scores[0]
    assert found.diverged == 2 and len(found.rms) == 6 and found.window_rms.max() < 1e-8
    # divergence must not improve a score
    assert found.worst == np.inf


def test_summaries():
    score = Score(("a", "b"), np.array([[3.0, 4.0], [np.nan, 1.0], [0.0, 0.0]]), 0)
    np.testing.assert_allclose(score.window_rms, [np.sqrt(12.5), 1.0, 0.0])
    assert (score.median, score.worst) == (1.0, pytest.approx(np.sqrt(12.5)))
    assert score.channel_rms == pytest.approx({"a": np.sqrt(4.5), "b": np.sqrt(17.0 / 3.0)})


def test_estimated_velocities_do_not_leak_later_samples_into_predictions():
    of = double_pendulum_problem()
    channels = {"q0": "joint.q[joint0]", "q1": "joint.q[joint1]", "rate": "joint.qd[joint0]"}

    def with_estimated_rate(run: Recording, jump: float) -> Recording:
        t = run.series["q0"].t
        columns = {name: run.series[name].values + jump * (t > 0.1 + 1e-6) for name in ("q0", "q1")}
        found = Recording.from_arrays(run.name, t, columns)
        rate = replace(derivative(found.series["q0"], window=9), name="rate")
        return replace(found, series={**found.series, "rate": rate})

    rows = []
    for jump in (0.0, 0.3):
        runs = [with_estimated_rate(of.train[0], jump)]
        both = problem(of.setup.sim, channels, [Free("joint.damping[*]", bounds=(0, 1))], runs)
        rows.append(score_predictions(both, both.space.initial, runs, history=0.1, horizon=0.2).point)
    # the first window must not depend on the jump, except through the solver's initial guess
    np.testing.assert_allclose(rows[0].qd[0, 0], rows[1].qd[0, 0], atol=1e-6)
