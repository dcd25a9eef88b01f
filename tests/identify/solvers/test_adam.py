"""Adam: minibatches, learning rates, and the best point so far."""

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.objective import Point
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.solver import Termination
from hybridsim.identify.stage import Stage
from hybridsim.params.free import Free
from support.fit_problems import TIGHT_BOUNDS, double_pendulum_problem, objective_at_true_states, run_solver


@pytest.fixture(scope="module")
def fit_problem():
    return double_pendulum_problem(noise=1e-3)


def test_every_window_is_drawn_once_per_epoch():
    solver = Adam(batch_size=3, seed=7)
    for epoch in range(3):
        minibatches = [solver.minibatch(4 * epoch + k, 11) for k in range(4)]
        assert [len(minibatch) for minibatch in minibatches] == [3, 3, 3, 2]
        np.testing.assert_array_equal(np.sort(np.concatenate(minibatches)), np.arange(11))
    first = [solver.minibatch(k, 11).tolist() for k in (0, 4, 8)]
    assert first[0] != first[1] != first[2]
    assert first != [Adam(batch_size=3, seed=8).minibatch(k, 11).tolist() for k in (0, 4, 8)]


def test_a_batch_of_all_windows_needs_no_minibatch():
    assert Adam().minibatch(0, 11) is None and Adam(batch_size=11).minibatch(5, 11) is None


def test_the_first_step_is_as_long_as_the_learning_rate(fit_problem):
    objective = objective_at_true_states(fit_problem, Stage(window=0.3, initial_states="measured"))
    solver = Adam(learning_rate=0.01, check_every=1)
    start = solver.init(objective, objective.point([0.5, 0.5, 1.0]))
    state = solver.step(objective, start)
    np.testing.assert_allclose(np.abs(state.internal.theta - start.point.theta), 0.01, rtol=1e-6)
    clipped = Adam(learning_rate=0.01, check_every=1, max_gradient_norm=1e-3)
    # a shortened gradient has the same direction, and Adam's first step does not depend on its length
    again = clipped.step(objective, start)
    np.testing.assert_allclose(again.internal.theta, state.internal.theta, rtol=1e-4)


def test_a_cosine_schedule_ends_with_small_steps(fit_problem):
    objective = objective_at_true_states(fit_problem, Stage(window=0.3, initial_states="measured"))
    last = {}
    for schedule in ("constant", "cosine"):
        solver = Adam(max_steps=30, schedule=schedule, check_every=100)
        state = solver.init(objective, objective.point(fit_problem.space.initial))
        while not solver.is_done(state):
            before, state = state.internal.theta, solver.step(objective, state)
        last[schedule] = np.abs(state.internal.theta - before).max()
    assert last["cosine"] < 0.05 * last["constant"]


def test_the_result_is_the_best_evaluated_point(fit_problem):
    objective = objective_at_true_states(fit_problem, Stage(window=0.3, initial_states="measured"))
    # a learning rate so large that costs rise and fall
    solver = Adam(max_steps=40, learning_rate=0.5, schedule="constant", check_every=4)
    state, costs = solver.init(objective, objective.point(fit_problem.space.initial)), []
    while not solver.is_done(state):
        state = solver.step(objective, state)
        costs.append(state.cost[0])
    assert np.all(np.diff(costs) <= 0.0)
    assert objective.cost(state.point)[0] == state.cost[0] < objective.cost(Point(*state.internal[:3]))[0]


def test_adam_stops_after_evaluations_without_a_decrease(fit_problem):
    objective = objective_at_true_states(fit_problem, Stage(window=0.3, initial_states="measured"))
    solver = Adam(max_steps=500, learning_rate=0.5, schedule="constant", check_every=2, patience=3)
    state = run_solver(solver, objective, objective.point(fit_problem.space.initial))
    assert state.termination[0] == Termination.SMALL_DECREASE and int(state.steps) < 500


def test_bounds_hold_at_every_step():
    bounded_problem = double_pendulum_problem(TIGHT_BOUNDS, noise=1e-3)
    objective, _ = bounded_problem.objective(Stage(window=0.3))
    solver, space = Adam(max_steps=10, learning_rate=1.0), bounded_problem.space
    state = solver.init(objective, objective.point(space.initial))
    while not solver.is_done(state):
        state = solver.step(objective, state)
        assert (state.internal.theta >= space.lower).all() and (state.internal.theta <= space.upper).all()


def test_minibatches_need_independent_windows(fit_problem):
    continuous, _ = fit_problem.objective(Stage(window=0.2, continuity=(1e-2, 1e-1)))
    with pytest.raises(HybridsimError, match="continuity between windows; omit batch_size"):
        Adam(batch_size=2).init(continuous, continuous.point(fit_problem.space.initial))
    delayed_problem = double_pendulum_problem([Free("sensor.delay[*]", bounds=(0, 0.05))])
    objective, _ = delayed_problem.objective(Stage(window=0.2))
    with pytest.raises(HybridsimError, match="free sensor delays; omit batch_size"):
        Adam(batch_size=2).init(objective, objective.point(delayed_problem.space.initial))


@pytest.mark.parametrize(
    "settings", [{"schedule": "linear"}, {"batch_size": 0}, {"check_every": 0}, {"learning_rate": 0.0}], ids=str
)
def test_invalid_settings_are_errors(settings):
    with pytest.raises(HybridsimError, match=r"schedule|batch_size|check_every|learning_rate"):
        Adam(**settings)
