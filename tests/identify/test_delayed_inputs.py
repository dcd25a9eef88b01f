"""Fits of networks with delayed inputs: samples at times when these inputs are not yet known are not compared."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.network_scales import signal_scales
from hybridsim.identify.score import score_windows
from hybridsim.identify.solve import solve
from hybridsim.identify.stage import Stage
from hybridsim.params.free import Free
from hybridsim.robots import double_pendulum
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft
from support.fit_problems import build_fit_problem, simulate_recording

DT, LAG = 0.01, 20
CHANNELS = {"q0": "joint.q[joint0]", "q1": "joint.q[joint1]"}


class WeightedSum(eqx.Module):
    """A weighted sum."""

    weights: jnp.ndarray

    def __call__(self, x):
        return (self.weights @ x)[None]


def simulator(*weights: float) -> Simulator:
    """The torque of the first actuator depends on its current and on a delayed command."""
    reads = ["actuator.command[joint0]", f"actuator.command[joint0]@{LAG}"]
    graft = Graft("joint.actuation[joint0]", reads, WeightedSum(np.array(weights)), mode="replace")
    return Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(graft))


@pytest.fixture(scope="module")
def fit_problem():
    rng, true, runs = np.random.default_rng(0), simulator(0.6, 0.4), []
    for k in range(3):
        u = np.convolve(rng.normal(size=320), np.ones(20) / 5.0, mode="valid")[:300]
        commands = {"joint0": u}
        runs.append(
            simulate_recording(true, rng.normal(size=2), steps=300, channels=CHANNELS, commands=commands, name=str(k))
        )
    return build_fit_problem(
        simulator(1.0, 0.0), CHANNELS, [Free("graft[0]")], runs[:2], held_out=runs[2:], commands=["joint0"]
    )


@pytest.mark.parametrize("stage", [Stage(window=0.5), Stage(window=0.5, stride=0.5), Stage()])
def test_unknown_earlier_inputs_do_not_bias_a_fit(fit_problem, stage):
    found = solve(fit_problem, [stage])
    np.testing.assert_allclose(found.theta, [0.6, 0.4], atol=1e-4)
    errors = score_windows(fit_problem, found.theta[None], fit_problem.held_out, 0.5).residual_rms
    assert np.abs(errors).max() < 0.05


def test_windows_must_be_longer_than_the_lag(fit_problem):
    with pytest.raises(HybridsimError, match=r"network inputs are delayed by up to 0\.2 s.* lengthen the windows"):
        solve(fit_problem, [Stage(window=0.2)])


def test_scales_of_delayed_inputs_are_those_of_current_ones(fit_problem):
    (scales,) = signal_scales(fit_problem)
    assert scales.std[0] == scales.std[1] > 0.1
