"""Fits and scores use a single BLAS thread, which leaves the cores to the simulation."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hybridsim.identify import score
from hybridsim.identify.score import score_predictions, score_windows
from hybridsim.identify.solve import solve
from hybridsim.identify.stage import Stage
from support.fit_problems import pendulum_problem


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.usefixtures("two_threads")
def test_a_fit_uses_one_thread_for_linear_algebra(monkeypatch):
    fit_problem, seen = pendulum_problem(), []
    theta = solve(fit_problem, [Stage(window=0.3)], callback=lambda progress: seen.append(threads())).theta
    simulate = score._simulate
    monkeypatch.setattr(score, "_simulate", lambda *a: seen.append(threads()) or simulate(*a))
    score_windows(fit_problem, theta, fit_problem.train, 0.3)
    score_predictions(fit_problem, theta, fit_problem.train, initialization_time=0.1, horizon=0.2)
    assert len(seen) >= 3 and all(one == {1} for one in seen)
    assert threads() == {2}
