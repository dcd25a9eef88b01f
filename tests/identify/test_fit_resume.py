"""A fit that is stopped and resumed is bit-identical to an uninterrupted one."""

from itertools import pairwise

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.fit import fit
from hybridsim.identify.problem import Stage
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.params.free import Free
from support.fit_problems import CopyingCheckpointStore, double_pendulum_problem, pendulum_problem

SOLVERS = {
    "lm": LevenbergMarquardt(max_steps=6),
    "lbfgs": LBFGS(max_steps=25, memory=4),
    "adam": Adam(max_steps=23, batch=2, check_every=5, seed=3),
    "adam, constant": Adam(max_steps=12, schedule="constant", check_every=5, max_gradient_norm=10.0),
}


@pytest.fixture(scope="module")
def links():
    return double_pendulum_problem(noise=1e-3)


def stages(solver):
    return [Stage(window=0.2, solver=solver), Stage(window=0.3, initial_states="near", solver=solver)]


def stopped_after(steps: int):
    """Stop request after a number of calls."""
    calls = iter(range(10**9))
    return lambda: next(calls) >= steps


@pytest.mark.parametrize("name", SOLVERS)
def test_a_resumed_fit_is_bit_identical(links, name):
    both = stages(SOLVERS[name])
    uninterrupted = fit(links, both, checkpoint_store=(counting := CopyingCheckpointStore()))
    assert not uninterrupted.stopped and len(uninterrupted.terminations) == 2
    for k in {1, 4, counting.saved // 2, counting.saved - 2}:
        store = CopyingCheckpointStore()
        part = fit(links, both, checkpoint_store=store, stop=stopped_after(k))
        assert part.stopped and store.saved <= k
        whole = fit(links, both, checkpoint_store=CopyingCheckpointStore(store.newest()))
        np.testing.assert_array_equal(whole.theta, uninterrupted.theta)
        np.testing.assert_array_equal(whole.state.point.qd, uninterrupted.state.point.qd)
        assert whole.costs[-1] == uninterrupted.costs[-1] and whole.terminations[-1] == uninterrupted.terminations[-1]


def test_a_fit_that_is_interrupted_after_every_step_still_ends_the_same(links):
    both = stages(LevenbergMarquardt())
    uninterrupted = fit(links, both)
    store = CopyingCheckpointStore()
    while (part := fit(links, both, checkpoint_store=store, stop=stopped_after(1))).stopped:
        pass
    np.testing.assert_array_equal(part.theta, uninterrupted.theta)


def test_the_callback_is_called_after_every_step(links):
    seen = []
    fitted = fit(links, [Stage(window=0.2)], callback=seen.append)
    assert [progress.step for progress in seen] == list(range(1, len(seen) + 1))
    assert all(later.cost <= sooner.cost for sooner, later in pairwise(seen))
    assert seen[-1].rms == pytest.approx(1.0, abs=0.1) and fitted.has_converged
    np.testing.assert_array_equal(seen[-1].theta, fitted.theta)


def test_diverging_initial_values_are_an_error_that_says_where():
    wild = pendulum_problem([Free("joint.damping[*]")])
    wild.space.initial = np.array([1e7])
    with pytest.raises(HybridsimError, match=r"diverges at the initial values in \d+ of \d+ windows, the first at"):
        fit(wild, [Stage(window=0.2)])


def test_a_fit_without_stages_is_an_error(links):
    with pytest.raises(HybridsimError, match="at least one stage"):
        fit(links, [])
