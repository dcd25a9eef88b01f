"""Networks that look back are not judged where they cannot know what came before."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.fit import fit
from hybridsim.identify.network_scales import signal_scales
from hybridsim.identify.problem import Stage
from hybridsim.identify.score import score_windows
from hybridsim.params.free import Free
from hybridsim.robots import double_pendulum
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft
from support.fit_problems import problem, recorded

DT, BACK = 0.01, 20
CHANNELS = {"q0": "joint.q[joint0]", "q1": "joint.q[joint1]"}


class Weighted(eqx.Module):
    """A sum with weights."""

    weights: jnp.ndarray

    def __call__(self, x):
        return (self.weights @ x)[None]


def simulator(*weights: float) -> Simulator:
    """The first actuator pushes by what it is told, and by what it was told before."""
    reads = ["actuator.command[joint0]", f"actuator.command[joint0]@{BACK}"]
    graft = Graft("joint.actuation[joint0]", reads, Weighted(np.array(weights)), mode="replace")
    return Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(graft))


@pytest.fixture(scope="module")
def of():
    rng, true, runs = np.random.default_rng(0), simulator(0.6, 0.4), []
    for k in range(3):
        u = np.convolve(rng.normal(size=320), np.ones(20) / 5.0, mode="valid")[:300]
        drives = {"joint0": u}
        runs.append(recorded(true, rng.normal(size=2), steps=300, channels=CHANNELS, drives=drives, name=str(k)))
    return problem(simulator(1.0, 0.0), CHANNELS, [Free("graft[0]")], runs[:2], held_out=runs[2:], commands=["joint0"])


@pytest.mark.parametrize("stage", [Stage(window=0.5), Stage(window=0.5, stride=0.5), Stage()])
def test_what_was_before_a_window_is_not_missed(of, stage):
    found = fit(of, [stage])
    np.testing.assert_allclose(found.theta, [0.6, 0.4], atol=1e-4)
    errors = score_windows(of, found.theta[None], of.held_out, 0.5).errors
    assert np.abs(errors).max() < 0.05


def test_windows_must_be_longer_than_what_is_looked_back(of):
    with pytest.raises(HybridsimError, match="tell nothing of what they do"):
        fit(of, [Stage(window=0.2)])


def test_sizes_of_the_past_are_those_of_the_present(of):
    (sizes,) = signal_scales(of)
    assert sizes.deviation[0] == sizes.deviation[1] > 0.1
