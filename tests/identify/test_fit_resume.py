"""A fit that was stopped and goes on is the fit that was not, bit for bit."""

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
from support.fit_problems import CopyingKeeper, double_pendulum_problem, pendulum_problem

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
    return [Stage(window=0.2, solver=solver), Stage(window=0.3, starts="near", solver=solver)]


def stopped_after(steps: int):
    """Says stop when it has been asked that often."""
    asked = iter(range(10**9))
    return lambda: next(asked) >= steps


@pytest.mark.parametrize("name", SOLVERS)
def test_a_fit_goes_on_to_the_same_bits(links, name):
    both = stages(SOLVERS[name])
    undisturbed = fit(links, both, keeper=(counting := CopyingKeeper()))
    assert not undisturbed.stopped and len(undisturbed.verdicts) == 2
    for k in {1, 4, counting.saved // 2, counting.saved - 2}:
        keeper = CopyingKeeper()
        part = fit(links, both, keeper=keeper, stop=stopped_after(k))
        assert part.stopped and keeper.saved <= k
        whole = fit(links, both, keeper=CopyingKeeper(keeper.newest()))
        np.testing.assert_array_equal(whole.theta, undisturbed.theta)
        np.testing.assert_array_equal(whole.state.point.qd, undisturbed.state.point.qd)
        assert whole.costs[-1] == undisturbed.costs[-1] and whole.verdicts[-1] == undisturbed.verdicts[-1]


def test_a_fit_that_is_interrupted_after_every_step_still_ends_the_same(links):
    both = stages(LevenbergMarquardt())
    undisturbed = fit(links, both)
    keeper = CopyingKeeper()
    while (part := fit(links, both, keeper=keeper, stop=stopped_after(1))).stopped:
        pass
    np.testing.assert_array_equal(part.theta, undisturbed.theta)


def test_whoever_watches_is_told_about_every_step(links):
    seen = []
    fitted = fit(links, [Stage(window=0.2)], watch=seen.append)
    assert [progress.step for progress in seen] == list(range(1, len(seen) + 1))
    assert all(later.cost <= sooner.cost for sooner, later in pairwise(seen))
    assert seen[-1].rms == pytest.approx(1.0, abs=0.1) and fitted.converged
    np.testing.assert_array_equal(seen[-1].theta, fitted.theta)


def test_a_start_that_diverges_is_an_error_that_says_where():
    wild = pendulum_problem([Free("joint.damping[*]")])
    wild.space.initial = np.array([1e7])
    with pytest.raises(
        HybridsimError, match=r"diverges at the starting values in \d+ of \d+ windows, the first one at"
    ):
        fit(wild, [Stage(window=0.2)])


def test_a_fit_without_stages_is_an_error(links):
    with pytest.raises(HybridsimError, match="at least one stage"):
        fit(links, [])
