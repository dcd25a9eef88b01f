"""Native code and XLA give the same readings, derivatives, gradients and estimates."""

import numpy as np
import pytest

from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from support.fit_problems import double_pendulum_problem, run_solver

TOLERANCES = {"rtol": 1e-9, "atol": 1e-9}
"""Both are double precision, and 20 steps do not amplify rounding much."""


@pytest.fixture(scope="module")
def objectives():
    """The same objective with native code and with XLA."""
    pair = [
        double_pendulum_problem(backend=backend, noise=1e-3).objective(Stage(window=0.2))[0]
        for backend in ("native", "xla")
    ]
    assert not pair[0].simulator.uses_xla and pair[1].simulator.uses_xla
    return pair


@pytest.fixture(scope="module")
def point(objectives):
    """Far from the guess, so that residuals are large."""
    random = np.random.default_rng(0)
    guess = objectives[0].point(objectives[0].simulator.space.initial)
    return objectives[0].retract(guess, random.uniform(0, 0.1, (1, 3)), 0.1 * random.standard_normal((1, 9, 4)))


def test_readings(objectives, point):
    (native, ok), (xla, ok_too) = (objective.sampled_readings(point) for objective in objectives)
    assert native.shape == (1, 9, 40) and ok.all() and ok_too.all()
    np.testing.assert_allclose(native, xla, **TOLERANCES)


def test_derivatives(objectives, point):
    (native_cost, native), (xla_cost, xla) = (objective.normal_equations(point) for objective in objectives)
    np.testing.assert_allclose(native_cost, xla_cost, rtol=1e-9)
    for one, other in zip(native[:5], xla[:5], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8 * np.abs(other).max())


def test_gradients(objectives, point):
    native, xla = (objective.gradient(point) for objective in objectives)
    for one, other in zip(native, xla, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8 * np.abs(other).max())


def test_estimates(objectives):
    found = [run_solver(LevenbergMarquardt(), one, one.point(one.simulator.space.initial)) for one in objectives]
    native, xla = (list(objectives[0].simulator.space.values(state.point.theta[0]).values()) for state in found)
    np.testing.assert_allclose(native, xla, rtol=1e-6)
