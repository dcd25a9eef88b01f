"""Scores: nothing is wrong with the truth, and more with what is farther from it."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim.data.derivative import derivative
from hybridsim.data.recording import Recording
from hybridsim.identify.score import Score, score_predictions, score_windows
from hybridsim.params.free import Free
from support.fit_problems import double_pendulum_problem, problem

TRUTH = np.array([0.05, 0.02, 0.7])


@pytest.fixture(scope="module")
def links():
    return double_pendulum_problem()


def told(of, theta, window) -> Score:
    return score_windows(of, theta, of.train, window).scores[0]


def theta_of(links, values) -> np.ndarray:
    """θ is in units of its own."""
    unit = [links.space.values(np.eye(3)[k])[name] for k, name in enumerate(links.space.names)]
    return np.asarray(values) / unit


@pytest.mark.parametrize(
    "score",
    [
        lambda of, theta: told(of, theta, 0.3),
        lambda of, theta: told(of, theta, None),
        lambda of, theta: score_predictions(of, theta, of.train, before=0.1, after=0.2).scores[0],
    ],
    ids=["explained", "explained whole", "predicted"],
)
def test_the_truth_has_no_error_and_errors_grow(links, score):
    scores = [score(links, theta_of(links, TRUTH * (1.0 + off))) for off in (0.0, 0.05, 0.2)]
    assert scores[0].worst < 1e-8 and not any(one.diverged for one in scores)
    assert scores[0].median < scores[1].median < scores[2].median
    assert scores[1].worst > 1e-5


def test_a_prediction_is_harder_than_an_explanation(links):
    theta = theta_of(links, TRUTH * 1.2)
    after = score_predictions(links, theta, links.train, before=0.1, after=0.2).scores[0]
    assert after.mean > 2.0 * told(links, theta, 0.3).mean


def test_noise_is_what_is_left_of_the_truth():
    noisy = double_pendulum_problem(noise=2e-3)
    found = told(noisy, theta_of(noisy, TRUTH), None)
    # three runs of 122 numbers, four of which the start of each takes away
    assert found.mean == pytest.approx(2e-3, rel=0.1)
    assert set(found.by_channel) == {"q0", "q1"} and found.by_channel["q0"] == pytest.approx(2e-3, rel=0.2)


def test_values_outside_of_the_bounds_of_a_fit_are_scored_as_they_are(links):
    inside = told(links, links.space.upper, 0.3)
    outside = told(links, 1.5 * links.space.upper, 0.3)
    assert outside.mean > 1.05 * inside.mean


def test_windows_that_diverge_are_counted(links):
    found = told(links, theta_of(links, [1e7, 1e7, 0.7]), 0.3)
    assert found.diverged == 6 and found.rms.shape == (0, 2)


def test_a_window_that_diverges_does_not_keep_others_from_being_fitted(links):
    t = links.train[0].series["q0"].t
    broken = Recording.from_arrays("broken", t, {"q0": 1e11 + t, "q1": t})
    found = score_windows(links, theta_of(links, TRUTH), [*links.train, broken], 0.3).scores[0]
    assert found.diverged == 2 and len(found.rms) == 6 and found.of_windows.max() < 1e-8
    # a model that breaks down where it is difficult must not look better for it
    assert found.worst == np.inf


def test_summaries():
    score = Score(("a", "b"), np.array([[3.0, 4.0], [np.nan, 1.0], [0.0, 0.0]]), 0)
    np.testing.assert_allclose(score.of_windows, [np.sqrt(12.5), 1.0, 0.0])
    assert (score.median, score.worst) == (1.0, pytest.approx(np.sqrt(12.5)))
    assert score.by_channel == pytest.approx({"a": np.sqrt(4.5), "b": np.sqrt(17.0 / 3.0)})


def test_estimated_velocities_do_not_tell_predictions_what_comes():
    of = double_pendulum_problem()
    channels = {"q0": "joint.q[joint0]", "q1": "joint.q[joint1]", "rate": "joint.qd[joint0]"}

    def estimated(run: Recording, jump: float) -> Recording:
        t = run.series["q0"].t
        columns = {name: run.series[name].values + jump * (t > 0.1 + 1e-6) for name in ("q0", "q1")}
        found = Recording.from_arrays(run.name, t, columns)
        rate = replace(derivative(found.series["q0"], window=9), name="rate")
        return replace(found, series={**found.series, "rate": rate})

    rows = []
    for jump in (0.0, 0.3):
        runs = [estimated(of.train[0], jump)]
        both = problem(of.setup.sim, channels, [Free("joint.damping[*]", bounds=(0, 1))], runs)
        rows.append(score_predictions(both, both.space.initial, runs, before=0.1, after=0.2).point)
    # the first window sees nothing of the jump; only where its solver began may differ
    np.testing.assert_allclose(rows[0].qd[0, 0], rows[1].qd[0, 0], atol=1e-6)
