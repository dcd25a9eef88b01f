"""Fits: bit-identical results after interruptions, calls of the callback, and errors of invalid problems."""

from itertools import pairwise

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.solve import solve
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.solvers.registry import SOLVERS as REGISTERED
from hybridsim.identify.stage import Stage
from hybridsim.params.free import Free
from support.fit_problems import CopyingCheckpointStore, double_pendulum_problem, pendulum_problem

SOLVERS = {
    **{name: solver(max_steps=25) for name, solver in REGISTERED.items()},  # type: ignore[call-arg]
    "lm": LevenbergMarquardt(max_steps=6),
    "lbfgs": LBFGS(max_steps=25, memory=4),
    "adam": Adam(max_steps=23, batch_size=2, check_every=5, seed=3),
    "adam, constant": Adam(max_steps=12, schedule="constant", check_every=5, max_gradient_norm=10.0),
}


@pytest.fixture(scope="module")
def fit_problem():
    return double_pendulum_problem(noise=1e-3)


def stages(solver):
    return [Stage(window=0.2, solver=solver), Stage(window=0.3, initial_states="prior", solver=solver)]


def stop_after(calls: int):
    """Stop request after a number of calls."""
    count = iter(range(10**9))
    return lambda: next(count) >= calls


@pytest.mark.parametrize("name", SOLVERS)
def test_a_resumed_fit_is_bit_identical(fit_problem, name):
    two_stages = stages(SOLVERS[name])
    uninterrupted = solve(fit_problem, two_stages, checkpoint_store=(counting := CopyingCheckpointStore()))
    assert not uninterrupted.stopped and len(uninterrupted.terminations) == 2
    for k in {1, 4, counting.save_count // 2, counting.save_count - 2}:
        store = CopyingCheckpointStore()
        part = solve(fit_problem, two_stages, checkpoint_store=store, stop=stop_after(k))
        assert part.stopped and store.save_count <= k
        whole = solve(fit_problem, two_stages, checkpoint_store=CopyingCheckpointStore(store.load_newest()))
        np.testing.assert_array_equal(whole.theta, uninterrupted.theta)
        np.testing.assert_array_equal(whole.state.point.qd, uninterrupted.state.point.qd)
        assert whole.costs[-1] == uninterrupted.costs[-1] and whole.terminations[-1] == uninterrupted.terminations[-1]


def test_a_fit_interrupted_after_every_step_gives_the_same_result(fit_problem):
    two_stages = stages(LevenbergMarquardt())
    uninterrupted = solve(fit_problem, two_stages)
    store = CopyingCheckpointStore()
    while (part := solve(fit_problem, two_stages, checkpoint_store=store, stop=stop_after(1))).stopped:
        pass
    np.testing.assert_array_equal(part.theta, uninterrupted.theta)


def test_the_callback_is_called_after_every_step(fit_problem):
    seen = []
    result = solve(fit_problem, [Stage(window=0.2)], callback=seen.append)
    assert [progress.step for progress in seen] == list(range(1, len(seen) + 1))
    assert all(later.cost <= sooner.cost for sooner, later in pairwise(seen))
    assert seen[-1].normalized_cost == pytest.approx(1.0, abs=0.1) and result.has_converged
    np.testing.assert_array_equal(seen[-1].theta, result.theta)


def test_diverging_initial_values_are_an_error_that_says_where():
    diverging_problem = pendulum_problem([Free("joint.damping[*]")])
    diverging_problem.space.initial = np.array([1e7])
    with pytest.raises(HybridsimError, match=r"diverges at the initial values in \d+ of \d+ windows, the first at"):
        solve(diverging_problem, [Stage(window=0.2)])


def test_a_fit_without_stages_is_an_error(fit_problem):
    with pytest.raises(HybridsimError, match="at least one stage"):
        solve(fit_problem, [])
