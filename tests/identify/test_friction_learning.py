"""Friction laws of a double pendulum are learned from angle measurements, through rollouts."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.identify.problem import FitProblem
from hybridsim.identify.score import score_windows
from hybridsim.identify.solve import solve
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from hybridsim.networks.mlp import MLP
from hybridsim.params.free import Free
from hybridsim.robots import double_pendulum
from hybridsim.sim.rollout import simulate
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft
from support.fit_problems import DOUBLE_PENDULUM_CHANNELS, NOISE, build_fit_problem, simulate_recording
from support.slow import slow

DT = 0.005
READS = ["joint.q", "joint.qd"]


def viscous(q, v):
    return -0.15 * v


def stribeck(q, v):
    return -(0.1 + 0.15 * jnp.exp(-jnp.square(v))) * jnp.tanh(v / 0.3) - 0.05 * v


def position_dependent(q, v):
    return -(0.15 + 0.1 * jnp.sin(2.0 * q)) * v


class Law(eqx.Module):
    """A friction law as a graft."""

    law: object = eqx.field(static=True)

    def __call__(self, x):
        return self.law(x[0], x[1])[None]


def friction_simulator(net):
    graft = Graft("joint.tau", READS, net, per="element")
    return Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(graft))


def fit_friction_law(law, noise):
    """Problem, fitted θ, and the true simulator."""
    true, rng = friction_simulator(Law(law)), np.random.default_rng(0)
    common = {"steps": 400, "channels": DOUBLE_PENDULUM_CHANNELS, "noise": noise}
    runs = tuple(
        simulate_recording(true, rng.uniform(-1.5, 1.5, 2), rng.normal(size=2), seed=k, name=str(k), **common)
        for k in range(14)
    )
    fresh = friction_simulator(MLP(2, 1, hidden=(8,), input_scale=[1.5, 4.0], output_scale=0.5))
    fit_problem = build_fit_problem(fresh, DOUBLE_PENDULUM_CHANNELS, [Free("graft[*]")], runs)
    fit_problem = FitProblem(fit_problem.setup, fit_problem.space, fit_problem.channel_roles, runs[:10], runs[10:])
    stages = [Stage(window=w, solver=LevenbergMarquardt(max_steps=n)) for w, n in ((0.25, 100), (1.0, 200), (2.0, 200))]
    return fit_problem, solve(fit_problem, stages).theta, true


@pytest.mark.parametrize("law", [viscous, slow(stribeck), slow(position_dependent)])
def test_predictions_from_held_out_initial_states_improve_a_hundredfold(law):
    fit_problem, theta, true = fit_friction_law(law, noise=0.0)
    setup, space = fit_problem.setup, fit_problem.space
    sims = (true, space.put(setup, space.initial).sim, space.put(setup, theta).sim)
    errors = []
    for k in range(4):
        q = np.random.default_rng(100 + k).uniform(-1.5, 1.5, 2)
        real, initial, fitted = (simulate(sim, sim.initial_state(q), steps=400).q for sim in sims)
        errors.append([np.mean(np.square(initial - real)), np.mean(np.square(fitted - real))])
    before, after = np.sqrt(np.mean(errors, axis=0))
    assert after < 0.01 * before


@pytest.mark.slow
@pytest.mark.parametrize("law", [viscous, stribeck, position_dependent])
def test_residuals_are_those_of_the_noise(law):
    fit_problem, theta, _ = fit_friction_law(law, noise=NOISE)
    (errors,) = score_windows(fit_problem, theta, fit_problem.held_out, 2.0).residual_rms
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, abs=0.03)
