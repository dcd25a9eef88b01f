"""Fit of initial states: convergence from poor guesses, window by window, with priors."""

import numpy as np
import pytest

from hybridsim import Simulator
from hybridsim.data.run import Run
from hybridsim.identify.initial_state_fit import _step, fit_initial_states
from hybridsim.identify.solvers.levenberg_marquardt import CalibrationSolver
from hybridsim.identify.stage import ONE_STEP, Stage
from hybridsim.params.free import Free
from hybridsim.robots import cube, double_pendulum
from support.fit_problems import (
    DOUBLE_PENDULUM_CHANNELS,
    DT,
    build_fit_problem,
    double_pendulum_problem,
    simulate_recording,
)

WILD = [[2.8, 0.4], [-2.5, 1.0], [3.0, -2.0]]
"""Initial positions from which a double pendulum tumbles."""


@pytest.fixture(scope="module")
def tumbling_problem():
    """Problem of frictionless double pendulums that turn over and over for five seconds."""
    sim = Simulator(double_pendulum(), dt=DT)
    runs = [
        simulate_recording(sim, q, steps=500, channels=DOUBLE_PENDULUM_CHANNELS, name=f"run{k}")
        for k, q in enumerate(WILD)
    ]
    return build_fit_problem(sim, DOUBLE_PENDULUM_CHANNELS, [Free("joint.damping[*]", bounds=(0, 1))], runs)


def perturb(point, seed=0):
    """Perturb the velocities of a point."""
    return point._replace(qd=point.qd + 0.05 * np.random.default_rng(seed).standard_normal(point.qd.shape))


def test_growing_horizons_converge_where_whole_windows_do_not(tumbling_problem):
    objective, _ = tumbling_problem.objective(Stage(window=None))
    start = perturb(objective.point(tumbling_problem.space.initial))
    growing = objective.cost(fit_initial_states(objective, start).point)[0]
    whole = objective.cost(fit_initial_states(objective, start, growing=False).point)[0]
    assert growing < 1e-3 < whole


def test_windows_that_do_not_converge_are_reported(tumbling_problem):
    objective, _ = tumbling_problem.objective(Stage(window=None))
    start = perturb(objective.point(tumbling_problem.space.initial))
    # exact solutions, whose cost is rounding error, count as converged
    assert fit_initial_states(objective, start).has_converged.all()
    assert not fit_initial_states(objective, start, growing=False).has_converged.any()
    short, _ = tumbling_problem.objective(Stage(window=0.5))
    limited = fit_initial_states(short, perturb(short.point(tumbling_problem.space.initial)), max_steps=2)
    assert limited.has_converged.shape == (1, 30) and not limited.has_converged.any()


def test_a_difficult_window_does_not_affect_the_others(tumbling_problem):
    good = tumbling_problem.train[0]
    t = good.series["q0"].t
    jerk = Run.from_arrays(
        "jerk", t, {name: np.sign(np.sin(40.0 * t + k)) for k, name in enumerate(DOUBLE_PENDULUM_CHANNELS)}
    )
    objective, _ = tumbling_problem.objective(Stage(window=1.0), [good, jerk])
    point = fit_initial_states(objective, perturb(objective.point(tumbling_problem.space.initial))).point
    costs = objective.initial_state_costs(point, (np.zeros(10, dtype=int), np.arange(10)))
    assert costs[:5].max() < 1e-6 and costs[5:].min() > 1.0


def test_the_minimum_is_that_of_levenberg_marquardt():
    fit_problem = double_pendulum_problem(noise=2e-3)
    objective, _ = fit_problem.objective(Stage(window=0.3, initial_states="prior", initial_state_std=(5e-3, 5e-2)))
    start = objective.point(fit_problem.space.initial)
    solver = CalibrationSolver()
    state = solver.init(objective, start)
    while not solver.is_done(state):
        state = solver.step(objective, state)
    assert objective.cost(fit_initial_states(objective, start).point) == pytest.approx(state.cost, rel=1e-6)


def test_parallel_problems_are_bit_identical_to_single_ones(tumbling_problem):
    objective, _ = tumbling_problem.objective(Stage(window=0.5))
    thetas = tumbling_problem.space.initial + np.array([[0.0], [3.0]])
    both = fit_initial_states(objective, objective.point(thetas)).point
    for k, theta in enumerate(thetas):
        alone = fit_initial_states(objective, objective.point(theta)).point
        np.testing.assert_array_equal(both.qd[k], alone.qd[0])


def test_bodies_with_quaternions():
    sim = Simulator(cube(), dt=DT)
    names = ("x", "y", "z", "qw", "qx", "qy", "qz")
    coordinates = sim.model.topology.coordinate_names
    channels = {name: f"joint.q[{coordinate}]" for name, coordinate in zip(names, coordinates, strict=True)}
    q = [0.0, 0.0, 1.0, *(np.array([0.9, 0.1, -0.3, 0.2]) / np.linalg.norm([0.9, 0.1, -0.3, 0.2]))]
    run = simulate_recording(sim, q, [2.0, -1.0, 3.0, 0.1, 0.2, 0.5], steps=80, channels=channels)
    fit_problem = build_fit_problem(sim, channels, [Free("body.mass[*]")], [run])
    objective, _ = fit_problem.objective(Stage(window=0.4))
    point = fit_initial_states(objective, perturb(objective.point(fit_problem.space.initial))).point
    assert objective.cost(point)[0] < 1e-6


def test_fixed_initial_states_remain_unchanged(tumbling_problem):
    objective, _ = tumbling_problem.objective(ONE_STEP)
    start = objective.point(tumbling_problem.space.initial)
    assert fit_initial_states(objective, start).point is start


def test_a_step_of_a_singular_system():
    D = np.array([[[1.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 4.0]]])
    found = _step(D, np.array([[1.0, 1.0], [2.0, 4.0]]), np.zeros((2, 2)))
    np.testing.assert_allclose(found[1], [-1.0, -1.0], rtol=1e-9)
    np.testing.assert_allclose(D[0] @ found[0], [-1.0, -1.0], rtol=1e-6)
