"""L-BFGS against SciPy's: a minimum no higher, with about as many evaluations."""

import numpy as np
import pytest
from scipy.optimize import minimize

from hybridsim.identify.solvers.lbfgs import LBFGS, CurvaturePairs, _two_loop_recursion
from hybridsim.identify.solvers.unknowns import Unknowns
from hybridsim.identify.stage import Stage
from support.fit_problems import TIGHT_BOUNDS, double_pendulum_problem, pendulum_problem, run_solver

CASES = {
    "one link": (pendulum_problem, {}, Stage(window=0.4)),
    "two links": (double_pendulum_problem, {}, Stage(window=0.3)),
    "two links, robust": (double_pendulum_problem, {}, Stage(window=0.3, loss="huber", loss_scale=2.0)),
    "two links, fixed initial states": (double_pendulum_problem, {}, Stage(window=0.3, initial_states="measured")),
    "two links, bounds": (double_pendulum_problem, {"free_parameters": TIGHT_BOUNDS}, Stage(window=0.3)),
}


@pytest.mark.parametrize("case", CASES)
def test_no_worse_than_scipy(case):
    make, settings, stage = CASES[case]
    fit_problem = make(noise=1e-3, **settings)
    objective, _ = fit_problem.objective(stage)
    point = objective.point(fit_problem.space.initial)
    ours = run_solver(LBFGS(), objective, point)
    unknowns = Unknowns(objective)
    evaluations = 0

    def function(x):
        nonlocal evaluations
        evaluations += 1
        gradient = objective.gradient(unknowns.retract(point, (x * unknowns.standard_errors)[None]))
        scaled = unknowns.concatenate(gradient.theta, gradient.initial_states) * unknowns.standard_errors
        return gradient.cost[0], scaled[0]

    bounds = [np.asarray(x[0]) / unknowns.standard_errors for x in unknowns.step_bounds(point)]
    settings = {"maxcor": 10, "ftol": 1e-10, "gtol": 1e-9, "maxiter": 1000, "maxfun": 1000}
    theirs = minimize(
        function,
        np.zeros(unknowns.size),
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack(bounds, axis=1),
        options=settings,
    )
    assert ours.cost[0] <= theirs.fun * (1.0 + 1e-6)
    # the number of evaluations varies by about this much on such rough objectives
    assert int(ours.steps) <= 1.6 * evaluations + 10


def test_costs_never_rise():
    fit_problem = double_pendulum_problem()
    objective, _ = fit_problem.objective(Stage(window=0.3))
    solver, costs = LBFGS(), []
    state = solver.init(objective, objective.point(fit_problem.space.initial))
    while not solver.is_done(state):
        state = solver.step(objective, state)
        costs.append(state.cost[0])
    assert np.all(np.diff(costs) <= 0.0) and len(costs) > 10


def test_the_two_loop_recursion_is_the_inverse_hessian_of_a_quadratic_function():
    # exact with as many conjugate pairs as there are unknowns
    random = np.random.default_rng(0)
    factor = random.normal(size=(4, 4))
    hessian = factor @ factor.T + np.eye(4)
    vectors = np.linalg.eigh(hessian)[1].T  # conjugate directions
    memory = CurvaturePairs(vectors[None], (vectors @ hessian)[None])
    gradient = random.normal(size=(1, 4))
    direction = _two_loop_recursion(gradient, memory, np.ones((1, 4), dtype=bool))
    np.testing.assert_allclose(direction[0], np.linalg.solve(hessian, gradient[0]), rtol=1e-10)
    padded = CurvaturePairs(*(np.concatenate([np.zeros((1, 3, 4)), x], axis=1) for x in memory))
    np.testing.assert_allclose(
        _two_loop_recursion(gradient, padded, np.ones((1, 4), dtype=bool)), direction, rtol=1e-13
    )


def test_without_memory_the_direction_is_the_gradient():
    memory = CurvaturePairs(np.zeros((1, 3, 4)), np.zeros((1, 3, 4)))
    gradient = np.array([[1.0, -2.0, 3.0, 0.0]])
    np.testing.assert_array_equal(_two_loop_recursion(gradient, memory, np.ones((1, 4), dtype=bool)), gradient)
