"""The objective: gradients of every kind of term against finite differences, forward and reverse."""

from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np
import pytest

import hybridsim
from hybridsim import Simulator
from hybridsim.data.run import Run
from hybridsim.identify.objective import Objective, ObjectiveSettings, Point
from hybridsim.identify.stage import ONE_STEP, Stage
from hybridsim.networks.mlp import MLP
from hybridsim.params.free import Free
from hybridsim.robots import cartpole, cube, double_pendulum
from hybridsim.taps.blueprint import Blueprint, Graft
from support.fit_problems import (
    DOUBLE_PENDULUM_CHANNELS,
    DT,
    FREE_BODY_CHANNELS,
    build_fit_problem,
    double_pendulum_problem,
    pendulum_problem,
    simulate_recording,
    with_values,
)
from support.objective_gradient import check_gradient, random_point


def with_uneven_stamps(run: Run, amplitude: float) -> Run:
    """The same values at uneven time stamps."""
    t = np.asarray(run.series["q0"].t)
    late = t + amplitude * DT * (1.0 + np.sin(7.0 * np.arange(len(t))))
    values = {name: series.values for name, series in run.series.items()}
    return Run.from_arrays(run.name, late, values)


@pytest.fixture(scope="module")
def fit_problem():
    return double_pendulum_problem(noise=2e-3)


@pytest.mark.parametrize("loss", ["linear", "huber", "soft_l1", "cauchy"])
def test_losses(fit_problem, loss):
    objective, _ = fit_problem.objective(Stage(window=0.2, loss=loss, loss_scale=2.0))
    check_gradient(objective)


def test_a_robust_loss_gives_large_residuals_less_weight(fit_problem):
    costs = {}
    for loss in ("linear", "huber", "soft_l1", "cauchy"):
        objective, _ = fit_problem.objective(Stage(window=0.2, loss=loss))
        costs[loss] = objective.cost(random_point(objective))[0]
    assert costs["cauchy"] < costs["soft_l1"] < costs["huber"] < costs["linear"]


def test_priors_on_initial_states(fit_problem):
    objective, _ = fit_problem.objective(Stage(window=0.2, initial_states="prior", initial_state_std=(2e-3, 3e-2)))
    check_gradient(objective)


def test_fixed_initial_states(fit_problem):
    objective, _ = fit_problem.objective(Stage(window=0.2, initial_states="measured"))
    assert objective.s == 0
    check_gradient(objective)


def test_continuity(fit_problem):
    objective, _ = fit_problem.objective(Stage(window=0.2, continuity=(2e-3, 3e-2)))
    assert objective.continuity is not None and len(objective.continuity.following) == 6
    check_gradient(objective)


def test_priors_and_penalties():
    free_parameters = [
        Free("joint.damping[*]", bounds=(0, 1), prior=(0.2, 1e-3)),
        Free("body.mass[link1]", bounds=(0.1, 5), l2=3e5),
    ]
    with_them, _ = double_pendulum_problem(free_parameters).objective(Stage(window=0.2))
    without, _ = double_pendulum_problem().objective(Stage(window=0.2))
    check_gradient(with_them)
    point = random_point(without)
    space = with_them.simulator.space
    expected = 0.5 * np.sum(((point.theta[0, :2] - space.prior_mean[:2]) / space.prior_std[:2]) ** 2)
    expected += 0.5 * 3e5 * point.theta[0, 2] ** 2
    np.testing.assert_allclose(with_them.cost(point) - without.cost(point), expected, rtol=1e-9)


def test_stamps_between_time_steps(fit_problem):
    uneven_problem = replace(fit_problem, train=tuple(with_uneven_stamps(run, 0.3) for run in fit_problem.train))
    objective, _ = uneven_problem.objective(Stage(window=0.2))
    assert not np.allclose(objective.windows.time_in_steps, np.round(objective.windows.time_in_steps))
    check_gradient(objective)


def test_free_delays_and_a_free_time_step():
    free_parameters = [
        Free("sensor.delay[*]", bounds=(0, 0.04)),
        Free("dt", bounds=(0.005, 0.02)),
        Free("joint.damping[*]"),
    ]
    objective, _ = double_pendulum_problem(free_parameters, delay=[0.013, 0.021]).objective(Stage(window=0.2))
    assert objective.windows.time_in_steps.min() == 4.0
    # the derivative of the interpolation jumps between stencils; no sample comes near such a time
    check_gradient(objective, random_point(objective, size=0.005))


def test_gains_and_biases_of_sensors_and_the_time_step():
    free_parameters = [
        Free("sensor.gain[*]"),
        Free("sensor.bias[q1]"),
        Free("dt", bounds=(0.005, 0.02)),
        Free("joint.damping[*]"),
    ]
    objective, _ = double_pendulum_problem(free_parameters).objective(Stage(window=0.2))
    assert not objective.simulator.has_free_delay
    check_gradient(objective)


@pytest.fixture(scope="module")
def flying_problem():
    """A tumbling free body, measured by motion capture."""
    model = with_values(cube(), lambda m: m.body.inertia, np.array([[6e-4, 8e-4, 7e-4, 1e-5, 0.0, -2e-5]]))
    sim = Simulator(model, dt=DT)
    runs = [
        simulate_recording(
            sim,
            [0, 0, 1, 1, 0, 0, 0],
            [3.0, -2.0, 4.0 * sign, 0.5, 0.2, 1.0],
            steps=60,
            channels=FREE_BODY_CHANNELS,
            name=f"{sign}",
        )
        for sign in (1, -1)
    ]
    free_parameters = [
        Free("body.inertia[cube].xx"),
        Free("body.inertia[cube].xz"),
        Free("body.com[cube].y"),
        Free("gravity.z"),
    ]
    return build_fit_problem(sim, FREE_BODY_CHANNELS, free_parameters, runs)


@pytest.mark.parametrize("stage", ["free", "prior", "continuity"])
def test_a_free_body_with_quaternions(flying_problem, stage):
    more = {"free": {}, "prior": {"initial_states": "prior"}, "continuity": {"continuity": (1e-2, 1e-1)}}[stage]
    objective, _ = flying_problem.objective(Stage(window=0.2, **more))
    check_gradient(objective, random_point(objective, size=0.1))


def test_a_model_with_commands():
    sim, channels = Simulator(cartpole(), dt=DT), {"x": "joint.q[slider]", "angle": "joint.q[hinge]"}
    force = 3.0 * np.sin(np.arange(60) * 0.3)
    run = simulate_recording(sim, [0.1, 0.2], steps=60, channels=channels, commands={"slider": force})
    fit_problem = build_fit_problem(
        sim, channels, [Free("actuator.gain[slider]"), Free("joint.damping[slider]")], [run], commands=["slider"]
    )
    objective, _ = fit_problem.objective(Stage(window=0.2))
    check_gradient(objective)
    whole, _ = fit_problem.objective(Stage())
    exact = Objective(
        whole.simulator, whole.layout, whole.windows, (np.array([[0.1, 0.2]]), np.zeros((1, 2))), whole.settings
    )
    assert exact.cost(exact.point(fit_problem.space.initial)) < 1e-15


def test_a_graft_that_reads_a_user_input():
    net = MLP(2, 1, hidden=(3,), seed=2)
    blueprint = Blueprint(Graft("joint.tau[joint0]", ["input.wind", "joint.qd[joint0]"], net), inputs={"wind": 1})
    sim = Simulator(double_pendulum(), dt=DT, blueprint=blueprint)
    wind = np.cos(np.arange(60) * 0.2)
    run = simulate_recording(sim, [0.5, 0.2], steps=60, channels=DOUBLE_PENDULUM_CHANNELS, user={"wind": wind})
    fit_problem = build_fit_problem(sim, DOUBLE_PENDULUM_CHANNELS, [Free("graft[0]")], [run], user=["wind"])
    objective, _ = fit_problem.objective(Stage(window=0.2))
    assert objective.N == 13
    check_gradient(objective, random_point(objective, size=0.2))


def test_the_one_step_prediction_loss():
    # ½ Σ_t |f(s_{t-1}) − s*_t|², with positions and velocities measured and a noise of one
    channels = DOUBLE_PENDULUM_CHANNELS | {"v0": "joint.qd[joint0]", "v1": "joint.qd[joint1]"}
    true = Simulator(double_pendulum(damping=0.1), dt=DT)
    runs = [
        simulate_recording(true, q, steps=25, channels=channels, noise=1e-2, seed=k, name=f"run{k}")
        for k, q in enumerate(([1, 0], [0, 2]))
    ]
    fit_problem = build_fit_problem(
        Simulator(double_pendulum(), dt=DT), channels, [Free("joint.damping[*]")], runs, noise=1.0
    )
    objective, guess = fit_problem.objective(ONE_STEP)
    theta = np.array([0.3, 0.05])
    sim = fit_problem.space.put(fit_problem.setup, theta).sim
    after = jax.jit(lambda q, qd: hybridsim.step(sim, sim.initial_state(q, qd)))
    total = 0.0
    for run in runs:
        rows = np.stack([run.series[c].values for c in channels], axis=1)
        for here, following in pairwise(rows):
            reached = after(here[:2], here[2:])
            total += np.sum((np.concatenate([reached.q, reached.qd]) - following) ** 2)
    np.testing.assert_allclose(objective.cost(objective.point(theta)), 0.5 * total, rtol=1e-10)
    assert objective.windows.count == 50 and objective.s == 0 and guess.unmeasured == ()


def test_a_diverging_problem_has_infinite_cost_and_others_are_unaffected():
    objective, _ = pendulum_problem([Free("joint.damping[*]")]).objective(Stage(window=0.4))
    points = objective.point(np.array([[1.0], [1e5]]))
    cost, equations = objective.normal_equations(points)
    assert np.isfinite(cost[0]) and np.isinf(cost[1])
    np.testing.assert_array_equal(np.isinf(objective.cost(points)), [False, True])
    alone_cost, alone = objective.normal_equations(points.select([0]))
    assert alone_cost[0] == cost[0] and (alone.a[0] == equations.a[0]).all()


def test_parallel_problems_are_bit_identical_to_single_ones(fit_problem):
    for stage in (Stage(window=0.2), Stage(window=0.2, continuity=(1e-2, 1e-1))):
        objective, _ = fit_problem.objective(stage)
        points = [random_point(objective, seed) for seed in range(5)]
        together = Point(*(np.concatenate(x) for x in zip(*points, strict=True)))
        all_costs, all_equations = objective.normal_equations(together)
        all_gradients, all_plain = objective.gradient(together), objective.cost(together)
        for p, point in enumerate(points):
            cost, equations = objective.normal_equations(point)
            gradient = objective.gradient(point)
            assert cost[0] == all_costs[p] and objective.cost(point)[0] == all_plain[p]
            for one, every in (*zip(equations, all_equations, strict=True), *zip(gradient, all_gradients, strict=True)):
                if one is not None:
                    np.testing.assert_array_equal(one[0], every[p])


def test_results_do_not_depend_on_batches(fit_problem, monkeypatch):
    objective, _ = fit_problem.objective(Stage(window=0.2))
    point = random_point(objective)
    cost, equations = objective.normal_equations(point)
    monkeypatch.setattr("hybridsim.identify.objective.MAX_BATCH_BYTES", 6000)
    assert len(list(objective._batches(point, directions=objective.N + objective.s))) > 3
    grouped_cost, grouped = objective.normal_equations(point)
    assert cost[0] == grouped_cost[0]
    np.testing.assert_array_equal(equations.a, grouped.a)
    np.testing.assert_array_equal(equations.D, grouped.D)


def test_minibatches_are_unbiased(fit_problem):
    objective, _ = fit_problem.objective(Stage(window=0.2, initial_states="measured"))
    point = random_point(objective)
    W = objective.windows.count
    parts = [objective.gradient(point, np.array([w])) for w in range(W)]
    whole = objective.gradient(point)
    np.testing.assert_allclose(np.mean([part.cost for part in parts]), whole.cost[0], rtol=1e-12)
    np.testing.assert_allclose(np.mean([part.theta[0] for part in parts], axis=0), whole.theta[0], rtol=1e-9)


def test_continuity_requires_states():
    fit_problem = double_pendulum_problem()
    free, guess = fit_problem.objective(Stage(window=0.2))
    with pytest.raises(ValueError, match="states"):
        Objective(free.simulator, free.layout, free.windows, guess[:2], ObjectiveSettings(continuity_std=np.ones(4)))
