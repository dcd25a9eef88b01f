"""Every solver on every kind of problem: its minimum, its termination, and independence of problems."""

import numpy as np
import pytest

from hybridsim import Simulator
from hybridsim.core.errors import SpecificationError
from hybridsim.identify.objective import Point
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.solvers.registry import SOLVERS as REGISTERED
from hybridsim.identify.solvers.solver import Termination
from hybridsim.identify.stage import Stage
from hybridsim.networks.mlp import MLP
from hybridsim.params.free import Free
from hybridsim.robots import double_pendulum
from hybridsim.taps.blueprint import Blueprint, Graft
from support.fit_problems import (
    DOUBLE_PENDULUM_CHANNELS,
    DT,
    INITIAL_COORDINATES,
    TIGHT_BOUNDS,
    build_fit_problem,
    double_pendulum_problem,
    objective_at_true_states,
    pendulum_problem,
    run_solver,
    simulate_recording,
)

SOLVERS = {name: solver() for name, solver in REGISTERED.items()}
SOLVERS |= {"adam": Adam(max_steps=400, learning_rate=0.03, batch_size=2)}
TOLERANCE = dict.fromkeys(SOLVERS, 1e-6) | {"lm": 1e-8, "adam": 2e-2}
"""Relative errors of parameters from data without noise; Adam converges slowly."""
INITIAL_STATES = dict.fromkeys(SOLVERS, "free") | {"adam": "measured"}
"""Gradient descent takes many steps to separate parameters from initial states."""


@pytest.fixture(params=SOLVERS)
def solver(request):
    return SOLVERS[request.param]


@pytest.fixture(scope="module")
def one_link_problem():
    return pendulum_problem()


@pytest.fixture(scope="module")
def two_link_problem():
    return double_pendulum_problem()


@pytest.fixture(scope="module")
def grafted_problem():
    """Problem of two joints with unmodelled damping, and a network of their velocities that learns it."""
    true = Simulator(double_pendulum(damping=0.1), dt=DT)
    runs = [
        simulate_recording(true, q, steps=60, channels=DOUBLE_PENDULUM_CHANNELS, name=f"run{k}")
        for k, q in enumerate(INITIAL_COORDINATES)
    ]
    graft = Graft("joint.tau", ["joint.qd"], MLP(1, 1, hidden=(3,), seed=1), per="element")
    sim = Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(graft))
    return build_fit_problem(sim, DOUBLE_PENDULUM_CHANNELS, [Free("graft[0]")], runs)


def test_the_damping_of_a_pendulum(one_link_problem, solver):
    stage = Stage(window=0.4, initial_states=INITIAL_STATES[solver.name])
    objective = objective_at_true_states(one_link_problem, stage)
    state = run_solver(solver, objective, objective.point(one_link_problem.space.initial))
    found = one_link_problem.space.values(state.point.theta[0])
    assert found["joint.damping[joint0]"] == pytest.approx(0.1, rel=TOLERANCE[solver.name])


def test_damping_and_mass_of_a_double_pendulum(two_link_problem, solver):
    stage = Stage(window=0.3, initial_states=INITIAL_STATES[solver.name])
    objective = objective_at_true_states(two_link_problem, stage)
    state = run_solver(solver, objective, objective.point(two_link_problem.space.initial))
    found = list(two_link_problem.space.values(state.point.theta[0]).values())
    # damping is weakly identifiable within 0.3 s: its error is relative to the bounds
    np.testing.assert_allclose(found, [0.05, 0.02, 0.7], rtol=TOLERANCE[solver.name], atol=TOLERANCE[solver.name])


def test_a_grafted_network(grafted_problem, solver):
    objective, _ = grafted_problem.objective(Stage(window=0.3, initial_states="prior"))
    state = run_solver(solver, objective, objective.point(grafted_problem.space.initial), max_steps=200)
    before = objective.cost(objective.point(grafted_problem.space.initial))
    assert state.cost[0] < 0.03 * before[0]
    np.testing.assert_allclose(state.cost, objective.cost(state.point), rtol=1e-9)


def test_the_result_is_the_minimum_within_the_bounds(solver):
    bounded_problem = double_pendulum_problem(TIGHT_BOUNDS)
    objective = objective_at_true_states(bounded_problem, Stage(window=0.3, initial_states="measured"))
    theta = run_solver(solver, objective, objective.point(bounded_problem.space.initial)).point.theta
    space = bounded_problem.space
    # the true damping of the second joint is below its bounds, and that of the first one compensates
    np.testing.assert_array_equal(theta[0, :2], space.lower[:2])
    gradient = objective.gradient(objective.point(theta)).theta[0]
    curvature = np.sqrt(np.diagonal(objective.normal_equations(objective.point(theta))[1].A[0]))
    assert (gradient[:2] > 0.0).all()
    assert np.abs(gradient[2] / curvature[2]) < TOLERANCE[solver.name] * curvature[2] * theta[0, 2]


def test_parallel_problems_are_bit_identical_to_single_ones(two_link_problem, solver):
    objective, _ = two_link_problem.objective(Stage(window=0.3))
    random = np.random.default_rng(5)
    thetas = two_link_problem.space.initial + np.abs(0.2 * random.standard_normal((4, 3)))
    together = run_solver(solver, objective, objective.point(thetas), max_steps=40)
    for p in range(4):
        alone = run_solver(solver, objective, objective.point(thetas[p]), max_steps=40)
        assert alone.cost[0] == together.cost[p] and alone.termination[0] == together.termination[p]
        for one, every in zip(alone.point, together.point, strict=True):
            np.testing.assert_array_equal(one[0], every[p])


def test_a_diverging_problem_does_not_disturb_the_others(solver):
    diverging_problem = pendulum_problem([Free("joint.damping[*]")])
    objective, _ = diverging_problem.objective(Stage(window=0.4))
    start = np.array([[0.5], [1e6]])
    state = run_solver(solver, objective, objective.point(start), max_steps=5)
    assert state.termination[1] == Termination.DIVERGED and state.point.theta[1, 0] == 1e6
    alone = run_solver(solver, objective, objective.point(start[:1]), max_steps=5)
    assert alone.cost[0] == state.cost[0]


def test_the_termination_is_out_of_steps(two_link_problem):
    objective, _ = two_link_problem.objective(Stage(window=0.3))
    for solver in (LevenbergMarquardt(max_steps=2), LBFGS(max_steps=2), Adam(max_steps=2)):
        state = run_solver(solver, objective, objective.point(two_link_problem.space.initial))
        assert state.termination[0] == Termination.OUT_OF_STEPS and int(state.steps) == 2


@pytest.mark.parametrize("solver", [LevenbergMarquardt(), LBFGS()], ids=["lm", "lbfgs"])
def test_the_termination_is_flat_where_only_a_bound_prevents_a_decrease(solver):
    bounded_problem = pendulum_problem([Free("joint.damping[*]", bounds=(0.2, 1), initial=0.2)])
    objective, _ = bounded_problem.objective(Stage(window=0.4, initial_states="measured"))
    state = solver.init(objective, objective.point(bounded_problem.space.initial))
    assert state.termination[0] == Termination.STATIONARY and Termination.STATIONARY.has_converged


@pytest.mark.parametrize("solver", [LevenbergMarquardt(), LBFGS()], ids=["lm", "lbfgs"])
def test_the_termination_is_stuck_where_no_step_decreases_the_objective(one_link_problem, solver, monkeypatch):
    objective, _ = one_link_problem.objective(Stage(window=0.4))
    state = solver.init(objective, objective.point(one_link_problem.space.initial))
    cost, gradient = objective.cost, objective.gradient
    monkeypatch.setattr(objective, "cost", lambda point: cost(point) + 1e9)
    monkeypatch.setattr(objective, "gradient", lambda point: (found := gradient(point))._replace(cost=found.cost + 1e9))
    while not solver.is_done(state):
        state = solver.step(objective, state)
    assert state.termination[0] == Termination.STUCK and not Termination.STUCK.has_converged
    assert (state.point.theta[0] == one_link_problem.space.initial).all()


def test_steps_into_divergence_are_rejected(one_link_problem, monkeypatch):
    # the objective is infinite beyond a damping of 0.15; the minimum is at 0.1
    objective = objective_at_true_states(one_link_problem, Stage(window=0.4, initial_states="measured"))
    cost, unmodified_gradient = objective.cost, objective.gradient
    limit = 1.5 * one_link_problem.space.upper[0] * 0.1
    monkeypatch.setattr(objective, "cost", lambda p: np.where(p.theta[:, 0] > limit, np.inf, cost(p)))

    def gradient(point: Point, windows=None):
        found = unmodified_gradient(point, windows)
        diverged = point.theta[:, 0] > limit
        return found._replace(
            cost=np.where(diverged, np.inf, found.cost), theta=np.where(diverged[:, None], np.nan, found.theta)
        )

    monkeypatch.setattr(objective, "gradient", gradient)
    for solver in SOLVERS.values():
        state = run_solver(solver, objective, objective.point(one_link_problem.space.initial))
        found = one_link_problem.space.values(state.point.theta[0])["joint.damping[joint0]"]
        assert found == pytest.approx(0.1, rel=TOLERANCE[solver.name])


def test_every_termination_has_a_message():
    assert all(termination.message for termination in Termination)


@pytest.mark.parametrize("name", REGISTERED)
def test_stages_refuse_sparsity_unless_the_solver_supports_kinks(name):
    if REGISTERED[name].supports_kinks:
        assert Stage(solver=name, sparsity={"inputs": 0.1}).sparsity.inputs == 0.1  # type: ignore[arg-type]
    else:
        with pytest.raises(SpecificationError, match=f"not supported by the solver {name}"):
            Stage(solver=name, sparsity={"inputs": 0.1})  # type: ignore[arg-type]
