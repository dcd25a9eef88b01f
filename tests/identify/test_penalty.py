"""Sparsity penalties: their values, minima and effect on fits."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.optimize import minimize

from hybridsim.core.errors import HybridsimError
from hybridsim.identify import penalty as penalty_module
from hybridsim.identify.penalty import (
    GroupSparsity,
    Penalty,
    Sparsity,
    l2_weights,
    solve_penalized_qp,
    sparsity_penalty,
)
from hybridsim.identify.solve import solve
from hybridsim.identify.solvers import box_qp, levenberg_marquardt
from hybridsim.identify.solvers.box_qp import solve_box_qp
from hybridsim.identify.solvers.solver import Termination
from hybridsim.identify.stage import Stage
from hybridsim.identify.theta_layout import ThetaLayout
from hybridsim.networks.friction import JointFriction
from hybridsim.networks.mlp import MLP
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft
from support.fit_problems import DT, pendulum_problem

N = 6
NESTED = ((np.array([0, 1]), 0.7), (np.array([2, 3]), 0.3), (np.array([0, 1, 2, 3]), 0.4))
UNBOUNDED = np.full((1, N), np.inf)


class LawWithoutLayers(eqx.Module):
    """A force law without layers."""

    rates: np.ndarray | jax.Array

    def __call__(self, x):
        return -(self.rates @ x)[None]


def quadratic(seed):
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(12, N))
    return (J.T @ J)[None], rng.normal(scale=3.0, size=(1, N)), rng.normal(size=(1, N))


def test_penalties_are_weighted_norms():
    penalty = Penalty(np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.0]), NESTED)
    theta = np.array([3.0, 4.0, 0.0, 0.0, -1.5, 9.0])
    assert penalty(theta) == pytest.approx(0.7 * 5.0 + 0.4 * 5.0 + 2.0 * 1.5)


@pytest.mark.parametrize("seed", range(6))
def test_the_proximal_map_agrees_with_a_general_minimizer(seed):
    rng = np.random.default_rng(seed)
    x, step = rng.normal(size=N), np.full(N, 0.8)
    penalty = Penalty(np.array([0.1, 0.2, 0.0, 0.0, 0.5, 0.0]), NESTED)
    y = penalty.proximal_map(x, step)

    def cost(y):
        return 0.5 * np.sum(np.square(y - x) / step) + penalty(y)

    reference = minimize(cost, y + 1e-3 * rng.normal(size=N), method="Powell", options={"xtol": 1e-10, "ftol": 1e-14})
    assert cost(y) <= reference.fun + 1e-9


@pytest.mark.parametrize("weight", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_satisfies_the_optimality_conditions(seed, weight):
    """Where a group is zero, the quadratic's gradient is within its dual ball; elsewhere the penalty's cancels it."""
    A, a, theta = quadratic(seed)
    groups = ((np.array([0, 1]), weight), (np.array([2, 3, 4]), weight))
    penalty = Penalty(np.array([0.0, 0.0, 0.0, 0.0, 0.0, weight]), groups)
    step = solve_penalized_qp(A, a, -UNBOUNDED, UNBOUNDED, theta, penalty).x[0]
    found, gradient = theta[0] + step, a[0] + A[0] @ step
    for which, w in (*groups, (np.array([5]), weight)):
        size = np.linalg.norm(found[which])
        if size == 0.0:
            assert np.linalg.norm(gradient[which]) <= w * (1.0 + 1e-6)
        else:
            np.testing.assert_allclose(gradient[which], -w * found[which] / size, rtol=0, atol=1e-6 * w)


def test_a_strong_penalty_leaves_exact_zeros_and_a_weak_one_none():
    A, a, theta = quadratic(0)
    for weight, zeros in ((1e3, N), (1e-6, 0)):
        penalty = Penalty(np.full(N, weight), ())
        found = theta + solve_penalized_qp(A, a, -UNBOUNDED, UNBOUNDED, theta, penalty).x
        assert np.count_nonzero(found == 0.0) == zeros


def test_bounds_hold_with_a_penalty():
    A, a, theta = quadratic(1)
    lower, upper = np.full((1, N), -0.1), np.full((1, N), 0.1)
    lower[0, 2] = upper[0, 2] = 0.0
    step = solve_penalized_qp(A, a, lower, upper, theta, Penalty(np.full(N, 0.3), ())).x
    assert np.all(step >= lower - 1e-15) and np.all(step <= upper + 1e-15) and step[0, 2] == 0.0


def test_groups_and_bounds_together_have_one_minimum():
    """½|y − (3, 1)|² + 1.5 |y| within ±1: the first entry is at its bound, which affects the second."""
    A, theta = np.eye(2)[None], np.zeros((1, 2))
    penalty = Penalty(np.zeros(2), ((np.array([0, 1]), 1.5),))
    found = solve_penalized_qp(A, np.array([[-3.0, -1.0]]), -np.ones((1, 2)), np.ones((1, 2)), theta, penalty).x[0]
    second = found[1]
    assert found[0] == 1.0
    assert second - 1.0 + 1.5 * second / np.hypot(1.0, second) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_no_step_within_bounds_is_better(seed):
    A, a, theta = quadratic(seed)
    rng = np.random.default_rng(seed)
    lower, upper = np.full((1, N), -0.3), np.full((1, N), 0.2)
    penalty = Penalty(np.full(N, 0.1), NESTED)
    step = solve_penalized_qp(A, a, lower, upper, theta, penalty).x[0]

    def cost(x):
        return a[0] @ x + 0.5 * x @ A[0] @ x + penalty(theta[0] + x)

    for size in (1e-3, 1e-2, 0.1):
        for _ in range(200):
            assert cost(step) <= cost(np.clip(step + size * rng.normal(size=N), lower[0], upper[0])) + 1e-9


def test_a_penalized_minimum_that_is_not_reached_is_reported(monkeypatch):
    A, a, theta = quadratic(0)
    arguments = (A, a, -UNBOUNDED, UNBOUNDED, theta, Penalty(np.full(N, 0.1), NESTED))
    assert solve_penalized_qp(*arguments).has_converged.tolist() == [True]
    monkeypatch.setattr(penalty_module, "MAX_ITERATIONS", 2)
    assert solve_penalized_qp(*arguments).has_converged.tolist() == [False]
    with np.errstate(all="ignore"):
        overflow = solve_penalized_qp(A, np.full((1, N), 1e308), *arguments[2:])
    assert overflow.has_converged.tolist() == [False]


def test_a_bounded_minimum_that_is_not_reached_is_reported(monkeypatch):
    """Without releases, an entry that a clamped one has pushed to its bound stays there."""
    rng = np.random.default_rng(0)
    J, a = rng.normal(size=(200, 8, N)), rng.normal(size=(200, N))
    A, lower, upper = J.transpose(0, 2, 1) @ J, np.full((200, N), -0.05), np.full((200, N), 0.05)
    exact = solve_box_qp(A, a, lower, upper)
    assert exact.has_converged.all()
    monkeypatch.setattr(box_qp, "MAX_RELEASES", 0)
    limited = solve_box_qp(A, a, lower, upper)
    # the flag is false exactly where the minimum was missed
    np.testing.assert_array_equal(limited.has_converged, (limited.x == exact.x).all(axis=1))
    assert 0 < np.count_nonzero(~limited.has_converged) < 200
    none = solve_box_qp(np.zeros((2, 0, 0)), *(np.zeros((2, 0)),) * 3)
    assert none.x.shape == (2, 0) and none.has_converged.all()


def test_groups_that_overlap_without_being_nested_are_errors(two_network_space):
    layout = ThetaLayout(two_network_space, ["run"])
    crossing = tuple(k for k, name in enumerate(layout.names) if ".weights[0][0," in name)
    with pytest.raises(HybridsimError, match="overlap without being nested"):
        sparsity_penalty(layout, GroupSparsity(inputs=1.0, groups=((crossing, 1.0),)))


@pytest.fixture(scope="module")
def two_network_space():
    fit_problem = pendulum_problem()
    grafts = [Graft("joint.tau", ["joint.q", "joint.qd"], MLP(2, 1, hidden=(3,))) for _ in range(2)]
    sim = Simulator(fit_problem.setup.sim.model, dt=DT, blueprint=Blueprint(*grafts))
    setup = Setup(sim, fit_problem.setup.sensors)
    return ParameterSpace(setup, [Free("joint.damping[*]", l1=0.5), Free("graft[*]")])


def test_columns_and_networks_are_groups(two_network_space):
    layout = ThetaLayout(two_network_space, ["run"])
    penalty = sparsity_penalty(layout, GroupSparsity(inputs=2.0, grafts=3.0, groups=(((0,), 7.0),)))
    assert [weight for _, weight in penalty.groups] == [7.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0]
    assert penalty.groups[0][0].tolist() == [0]
    column = [layout.names[k] for k in penalty.groups[2][0]]
    assert column == [f"graft[0].weights[0][{k},1]" for k in range(3)]
    assert len(penalty.groups[-1][0]) == 3 * 2 + 3 + 3 + 1
    assert penalty.l1[layout.names.index("joint.damping[joint0]")] == 0.5 == penalty.l1.sum()


def test_the_neuralsim_penalty_on_first_and_upper_layers(two_network_space):
    layout = ThetaLayout(two_network_space, ["run"])
    sparsity = Sparsity(first_layer=0.2, l2=0.3)
    penalty, squares = sparsity_penalty(layout, sparsity), l2_weights(layout, sparsity)
    for k, name in enumerate(layout.names):
        is_first, is_weight = ".weights[0]" in name, name.startswith("graft")
        assert penalty.l1[k] == (0.2 if is_first else 0.0 if is_weight else 0.5)
        assert squares[k] == (0.3 if is_weight and not is_first else 0.0)


def network_layout(net):
    fit_problem = pendulum_problem()
    graft = Graft("joint.tau", ["joint.q", "joint.qd"], net)
    sim = Simulator(fit_problem.setup.sim.model, dt=DT, blueprint=Blueprint(graft))
    return ThetaLayout(ParameterSpace(Setup(sim, fit_problem.setup.sensors), [Free("graft[*]")]), ["run"])


def test_inputs_of_an_equinox_mlp_are_penalized():
    layout = network_layout(eqx.nn.MLP(2, 1, 3, 1, key=jax.random.key(0)))
    penalty = sparsity_penalty(layout, Sparsity(inputs=2.0))
    columns = [[layout.names[k] for k in which] for which, _ in penalty.groups]
    assert columns == [[f"graft[0].layers[0].weight[{k},{j}]" for k in range(3)] for j in range(2)]


def test_per_run_weights_are_penalized():
    fit_problem = pendulum_problem()
    graft = Graft("joint.tau", ["joint.q", "joint.qd"], MLP(2, 1, hidden=(3,)))
    setup = Setup(Simulator(fit_problem.setup.sim.model, dt=DT, blueprint=Blueprint(graft)), fit_problem.setup.sensors)
    layout = ThetaLayout(ParameterSpace(setup, [Free("graft[*]", per="run")]), ["one", "two"])
    sparsity = Sparsity(inputs=2.0, grafts=3.0, l2=0.5)
    assert [weight for _, weight in sparsity_penalty(layout, sparsity).groups] == [2.0] * 4 + [3.0] * 2
    assert l2_weights(layout, sparsity).sum() == 2 * 0.5 * (3 + 3 + 1)


@pytest.mark.parametrize("kind", ["inputs", "first_layer", "l2"])
def test_penalties_on_layers_that_do_not_exist_are_errors(kind):
    layout = network_layout(JointFriction(1))
    sparsity_penalty(layout, Sparsity(**{kind: 1.0}))
    layout = network_layout(LawWithoutLayers(np.zeros(2)))
    with pytest.raises(HybridsimError, match=rf"Sparsity\({kind}=…\) has no effect.*grafts="):
        sparsity_penalty(layout, Sparsity(**{kind: 1.0}))
    assert len(sparsity_penalty(layout, Sparsity(grafts=1.0)).groups) == 1


@pytest.mark.parametrize("kind", ["inputs", "grafts", "first_layer", "l2"])
def test_penalties_on_networks_are_errors_if_none_is_free(kind):
    with pytest.raises(HybridsimError, match="no parameter of a network is free"):
        sparsity_penalty(pendulum_problem().layout(), Sparsity(**{kind: 1.0}))


def test_a_named_group_is_penalized_as_a_whole():
    free_parameters = [Free(f"joint.{name}[*]", l1=0.5, group="losses") for name in ("damping", "friction")]
    fit_problem = pendulum_problem(free_parameters)
    penalty = sparsity_penalty(fit_problem.layout(), Sparsity())
    assert not penalty.l1.any()
    ((which, weight),) = penalty.groups
    assert which.tolist() == [0, 1] and weight == 0.5


def test_a_fit_sets_unneeded_parameters_to_zero():
    """Noise causes a small lateral gravity in the estimate, which a penalty sets to exactly zero."""
    free_parameters = [Free("joint.damping[*]", bounds=(0, 1), initial=0.05), Free("gravity.x", initial=0.2, scale=1.0)]
    unpenalized = pendulum_problem(free_parameters, damping=0.1, noise=1e-3)
    penalized = pendulum_problem([free_parameters[0], replace(free_parameters[1], l1=300.0)], damping=0.1, noise=1e-3)
    stage = Stage(window=0.5)
    dense, sparse = (each.space.values(solve(each, [stage]).theta) for each in (unpenalized, penalized))
    assert 1e-6 < abs(dense["gravity.x"]) < 0.05
    assert sparse["gravity.x"] == 0.0
    assert sparse["joint.damping[joint0]"] == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("l1", [0.0, 300.0])
def test_a_fit_that_ends_with_an_inaccurate_step_has_not_converged(l1, monkeypatch):
    """The flag of the subproblem decides on the termination only, not on the estimate."""
    free_parameters = [Free("joint.damping[*]", bounds=(0, 1), initial=0.05, l1=l1)]
    fit_problem = pendulum_problem(free_parameters, damping=0.1, noise=1e-3)
    stage = Stage(window=0.5)
    exact = solve(fit_problem, [stage])
    assert exact.has_converged and exact.terminations[0] is not Termination.INACCURATE_STEP
    name = "solve_penalized_qp" if l1 else "solve_box_qp"
    solve_qp = getattr(levenberg_marquardt, name)
    monkeypatch.setattr(
        levenberg_marquardt,
        name,
        lambda *args, **options: solve_qp(*args, **options)._replace(has_converged=np.zeros(1, bool)),
    )
    inexact = solve(fit_problem, [stage])
    assert inexact.terminations == (Termination.INACCURATE_STEP,) and not inexact.has_converged
    np.testing.assert_array_equal(inexact.theta, exact.theta)
