"""Every solver on every kind of problem: its answer, why it stops, and that problems do not see each other."""

import numpy as np
import pytest

from hybridsim import Simulator
from hybridsim.identify.objective import Point
from hybridsim.identify.problem import Stage
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.solvers.solver import Termination
from hybridsim.networks.mlp import MLP
from hybridsim.params.free import Free
from hybridsim.robots import double_pendulum
from hybridsim.taps.blueprint import Blueprint, Graft
from support.fit_problems import (
    DOUBLE,
    DOUBLE_STARTS,
    DT,
    NARROW,
    double_pendulum_problem,
    exactly_started,
    pendulum_problem,
    problem,
    recorded,
    solved,
)

SOLVERS = {
    "lm": LevenbergMarquardt(),
    "lbfgs": LBFGS(),
    "adam": Adam(max_steps=400, learning_rate=0.03, batch=2),
}
WITHIN = {"lm": 1e-8, "lbfgs": 1e-6, "adam": 2e-2}
"""Relative errors of parameters from data without noise; Adam only comes near."""
STARTS = {"lm": "free", "lbfgs": "free", "adam": "measured"}
"""What they are good at: gradient descent takes long to tell parameters from starts."""


@pytest.fixture(params=SOLVERS)
def solver(request):
    return SOLVERS[request.param]


@pytest.fixture(scope="module")
def one_link():
    return pendulum_problem()


@pytest.fixture(scope="module")
def two_links():
    return double_pendulum_problem()


@pytest.fixture(scope="module")
def grafted():
    """Two joints whose damping nobody knows of, and a network of their velocities that learns it."""
    true = Simulator(double_pendulum(damping=0.1), dt=DT)
    runs = [recorded(true, q, steps=60, channels=DOUBLE, name=f"run{k}") for k, q in enumerate(DOUBLE_STARTS)]
    graft = Graft("joint.tau", ["joint.qd"], MLP(1, 1, hidden=(3,), seed=1), per="element")
    sim = Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(graft))
    return problem(sim, DOUBLE, [Free("graft[0]")], runs)


def test_the_damping_of_a_pendulum(one_link, solver):
    objective = exactly_started(one_link, Stage(window=0.4, starts=STARTS[solver.name]))
    state = solved(solver, objective, objective.point(one_link.space.initial))
    found = one_link.space.values(state.point.theta[0])
    assert found["joint.damping[joint0]"] == pytest.approx(0.1, rel=WITHIN[solver.name])


def test_damping_and_mass_of_a_double_pendulum(two_links, solver):
    objective = exactly_started(two_links, Stage(window=0.3, starts=STARTS[solver.name]))
    state = solved(solver, objective, objective.point(two_links.space.initial))
    found = list(two_links.space.values(state.point.theta[0]).values())
    # damping is hard to see within 0.3 s: it counts by the share of its bounds
    np.testing.assert_allclose(found, [0.05, 0.02, 0.7], rtol=WITHIN[solver.name], atol=WITHIN[solver.name])


def test_a_grafted_network(grafted, solver):
    objective, _ = grafted.objective(Stage(window=0.3, starts="near"))
    state = solved(solver, objective, objective.point(grafted.space.initial), most=200)
    before = objective.cost(objective.point(grafted.space.initial))
    assert state.cost[0] < 0.03 * before[0]
    np.testing.assert_allclose(state.cost, objective.cost(state.point), rtol=1e-9)


def test_the_answer_stays_within_bounds_and_is_best_there(solver):
    bounded = double_pendulum_problem(NARROW)
    objective = exactly_started(bounded, Stage(window=0.3, starts="measured"))
    theta = solved(solver, objective, objective.point(bounded.space.initial)).point.theta
    space = bounded.space
    # the damping of the second joint is below its bounds, and that of the first one makes up for it
    np.testing.assert_array_equal(theta[0, :2], space.lower[:2])
    slopes = objective.gradient(objective.point(theta)).theta[0]
    curvature = np.sqrt(np.diagonal(objective.normal_equations(objective.point(theta))[1].A[0]))
    assert (slopes[:2] > 0.0).all()
    assert np.abs(slopes[2] / curvature[2]) < WITHIN[solver.name] * curvature[2] * theta[0, 2]


def test_problems_side_by_side_are_each_alone_bit_for_bit(two_links, solver):
    objective, _ = two_links.objective(Stage(window=0.3))
    random = np.random.default_rng(5)
    thetas = two_links.space.initial + np.abs(0.2 * random.standard_normal((4, 3)))
    together = solved(solver, objective, objective.point(thetas), most=40)
    for p in range(4):
        alone = solved(solver, objective, objective.point(thetas[p]), most=40)
        assert alone.cost[0] == together.cost[p] and alone.verdict[0] == together.verdict[p]
        for one, every in zip(alone.point, together.point, strict=True):
            np.testing.assert_array_equal(one[0], every[p])


def test_a_diverging_problem_does_not_disturb_the_others(solver):
    wild = pendulum_problem([Free("joint.damping[*]")])
    objective, _ = wild.objective(Stage(window=0.4))
    start = np.array([[0.5], [1e6]])
    state = solved(solver, objective, objective.point(start), most=5)
    assert state.verdict[1] == Termination.DIVERGED and state.point.theta[1, 0] == 1e6
    alone = solved(solver, objective, objective.point(start[:1]), most=5)
    assert alone.cost[0] == state.cost[0]


def test_out_of_steps(two_links):
    objective, _ = two_links.objective(Stage(window=0.3))
    for solver in (LevenbergMarquardt(max_steps=2), LBFGS(max_steps=2), Adam(max_steps=2)):
        state = solved(solver, objective, objective.point(two_links.space.initial))
        assert state.verdict[0] == Termination.OUT_OF_STEPS and int(state.steps) == 2


@pytest.mark.parametrize("solver", [LevenbergMarquardt(), LBFGS()], ids=["lm", "lbfgs"])
def test_flat_where_a_bound_holds_back(solver):
    held = pendulum_problem([Free("joint.damping[*]", bounds=(0.2, 1), initial=0.2)])
    objective, _ = held.objective(Stage(window=0.4, starts="measured"))
    state = solver.init(objective, objective.point(held.space.initial))
    assert state.verdict[0] == Termination.FLAT and Termination.FLAT.converged


@pytest.mark.parametrize("solver", [LevenbergMarquardt(), LBFGS()], ids=["lm", "lbfgs"])
def test_stuck_where_no_step_gains_anything(one_link, solver, monkeypatch):
    objective, _ = one_link.objective(Stage(window=0.4))
    state = solver.init(objective, objective.point(one_link.space.initial))
    cost, slopes = objective.cost, objective.gradient
    monkeypatch.setattr(objective, "cost", lambda point: cost(point) + 1e9)
    monkeypatch.setattr(objective, "gradient", lambda point: (found := slopes(point))._replace(cost=found.cost + 1e9))
    while not solver.is_done(state):
        state = solver.step(objective, state)
    assert state.verdict[0] == Termination.STUCK and not Termination.STUCK.converged
    assert (state.point.theta[0] == one_link.space.initial).all()


def test_a_search_turns_back_where_the_simulation_diverges(one_link, monkeypatch):
    # beyond a damping of 0.15 everything diverges: the way to 0.1 leads past it or not, but never over it
    objective = exactly_started(one_link, Stage(window=0.4, starts="measured"))
    cost, slopes = objective.cost, objective.gradient
    most = 1.5 * one_link.space.upper[0] * 0.1
    monkeypatch.setattr(objective, "cost", lambda p: np.where(p.theta[:, 0] > most, np.inf, cost(p)))

    def broken(point: Point, which=None):
        found = slopes(point, which)
        bad = point.theta[:, 0] > most
        return found._replace(cost=np.where(bad, np.inf, found.cost), theta=np.where(bad[:, None], np.nan, found.theta))

    monkeypatch.setattr(objective, "gradient", broken)
    for solver in SOLVERS.values():
        state = solved(solver, objective, objective.point(one_link.space.initial))
        found = one_link.space.values(state.point.theta[0])["joint.damping[joint0]"]
        assert found == pytest.approx(0.1, rel=WITHIN[solver.name])


def test_every_verdict_has_words():
    assert all(verdict.words for verdict in Termination)
