"""Starts of windows: found from far off, window by window, with whatever is known of them."""

import numpy as np
import pytest

from hybridsim import Simulator
from hybridsim.data.recording import Recording
from hybridsim.identify.initial_state_fit import _step, fit_initial_states
from hybridsim.identify.problem import ONE_STEP, Stage
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.params.free import Free
from hybridsim.robots import cube, double_pendulum
from support.fit_problems import DOUBLE, DT, double_pendulum_problem, problem, recorded

WILD = [[2.8, 0.4], [-2.5, 1.0], [3.0, -2.0]]
"""Starts from which a double pendulum tumbles."""


@pytest.fixture(scope="module")
def tumbling():
    """Five seconds of double pendulums without friction that turn over and over."""
    sim = Simulator(double_pendulum(), dt=DT)
    runs = [recorded(sim, q, steps=500, channels=DOUBLE, name=f"run{k}") for k, q in enumerate(WILD)]
    return problem(sim, DOUBLE, [Free("joint.damping[*]", bounds=(0, 1))], runs)


def off(objective, point, seed=0):
    """The point with velocities that are a little wrong."""
    return point._replace(qd=point.qd + 0.05 * np.random.default_rng(seed).standard_normal(point.qd.shape))


def test_the_beginning_first_leads_where_the_whole_does_not(tumbling):
    objective, _ = tumbling.objective(Stage(window=None))
    start = off(objective, objective.point(tumbling.space.initial))
    grown = objective.cost(fit_initial_states(objective, start))[0]
    at_once = objective.cost(fit_initial_states(objective, start, growing=False))[0]
    assert grown < 1e-3 < at_once


def test_a_bad_window_does_not_hold_up_the_others(tumbling):
    good = tumbling.train[0]
    t = good.series["q0"].t
    jerk = Recording.from_arrays("jerk", t, {name: np.sign(np.sin(40.0 * t + k)) for k, name in enumerate(DOUBLE)})
    objective, _ = tumbling.objective(Stage(window=1.0), [good, jerk])
    point = fit_initial_states(objective, off(objective, objective.point(tumbling.space.initial)))
    costs = objective.start_costs(point, (np.zeros(10, dtype=int), np.arange(10)))
    assert costs[:5].max() < 1e-6 and costs[5:].min() > 1.0


def test_it_ends_where_the_solver_of_everything_ends():
    of = double_pendulum_problem(noise=2e-3)
    objective, _ = of.objective(Stage(window=0.3, starts="near", initial_state_std=(5e-3, 5e-2)))
    start = objective.point(of.space.initial)
    solver = LevenbergMarquardt(hold_common=True)
    state = solver.init(objective, start)
    while not solver.is_done(state):
        state = solver.step(objective, state)
    assert objective.cost(fit_initial_states(objective, start)) == pytest.approx(state.cost, rel=1e-6)


def test_several_problems_side_by_side(tumbling):
    objective, _ = tumbling.objective(Stage(window=0.5))
    thetas = tumbling.space.initial + np.array([[0.0], [3.0]])
    both = fit_initial_states(objective, objective.point(thetas))
    for k, theta in enumerate(thetas):
        alone = fit_initial_states(objective, objective.point(theta))
        np.testing.assert_array_equal(both.qd[k], alone.qd[0])


def test_bodies_with_quaternions():
    sim = Simulator(cube(), dt=DT)
    names = ("x", "y", "z", "qw", "qx", "qy", "qz")
    coordinates = sim.model.topology.coordinate_names
    channels = {name: f"joint.q[{coordinate}]" for name, coordinate in zip(names, coordinates, strict=True)}
    q = [0.0, 0.0, 1.0, *(np.array([0.9, 0.1, -0.3, 0.2]) / np.linalg.norm([0.9, 0.1, -0.3, 0.2]))]
    run = recorded(sim, q, [2.0, -1.0, 3.0, 0.1, 0.2, 0.5], steps=80, channels=channels)
    of = problem(sim, channels, [Free("body.mass[*]")], [run])
    objective, _ = of.objective(Stage(window=0.4))
    point = fit_initial_states(objective, off(objective, objective.point(of.space.initial)))
    assert objective.cost(point)[0] < 1e-6


def test_starts_that_are_held_stay(tumbling):
    objective, _ = tumbling.objective(ONE_STEP)
    start = objective.point(tumbling.space.initial)
    assert fit_initial_states(objective, start) is start


def test_a_step_is_found_even_where_rounding_leaves_no_damping():
    D = np.array([[[1.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 4.0]]])
    found = _step(D, np.array([[1.0, 1.0], [2.0, 4.0]]), np.zeros((2, 2)))
    np.testing.assert_allclose(found[1], [-1.0, -1.0], rtol=1e-9)
    np.testing.assert_allclose(D[0] @ found[0], [-1.0, -1.0], rtol=1e-6)
