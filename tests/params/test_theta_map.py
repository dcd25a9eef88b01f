"""Writing θ into a setup in native code, and cache keys of such programs."""

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim.native.runtime.rollout import Rollout
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import pendulum
from hybridsim.sim.cache_key import cache_key
from hybridsim.sim.guard import guarded_step, initial_carry
from hybridsim.sim.partition import partition_simulator, runtime_cells
from hybridsim.sim.rollout import rollout
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs

STEPS = 5
FREE_PARAMETERS = [
    Free("inertial[link0]"),
    Free("joint.damping[*]", map="log"),
    Free("joint.placement[joint0].rx"),
    Free("joint.axis[joint0].x"),
    Free("gravity.magnitude", map="interval", bounds=(5.0, 15.0)),
    Free("dt"),
]


@pytest.fixture(scope="module")
def setup() -> Setup:
    sim = Simulator(pendulum(damping=0.1), backend="native")
    return Setup(sim, Sensors.from_addresses(sim, {"q": "joint.q[joint0]"}))


@pytest.fixture(scope="module")
def space(setup):
    return ParameterSpace(setup, FREE_PARAMETERS)


class ParameterRollout:
    """A rollout whose step writes θ into the setup."""

    def __init__(self, setup: Setup, space: ParameterSpace):
        known, others = partition_simulator(setup.sim)

        def step(known, theta, carry, inputs):
            sim = space.put(Setup(eqx.combine(known, others), setup.sensors), theta).sim
            return guarded_step(sim, carry, inputs)[0], carry.state.q

        self.carry = initial_carry(initial_state(setup))
        self.rollout = Rollout(
            step, known, space.initial, self.carry, Inputs(np.zeros(1)), runtime_cells=runtime_cells(known)
        )
        self.fixed = self.rollout.layouts.fixed.pack(known)

    def angles_before_last_step(self, theta: np.ndarray) -> np.ndarray:
        """Second to last angle for each row of θ."""
        row = self.rollout.layouts.carry.pack(self.carry)
        inputs = np.tile(row, (len(theta), 1)), np.zeros((len(theta), STEPS, 1))
        return self.rollout.forward(self.fixed, theta, *inputs).outputs[:, -1, 0]


def initial_state(setup: Setup):
    return setup.sim.initial_state([0.5], [0.3])


def test_theta_can_be_a_parameter_of_a_kernel_and_of_a_rollout(setup, space):
    native, theta = ParameterRollout(setup, space), space.initial + 0.1

    def end(theta):
        return rollout(space.put(setup, theta).sim, initial_state(setup), steps=STEPS).q[-2, 0]

    direction = np.linspace(0.5, 1.0, space.size)
    value, tangent = jax.jvp(jax.jit(end), (theta,), (direction,))
    np.testing.assert_allclose(value, native.angles_before_last_step(theta[None])[0], rtol=1e-14)
    step = 1e-5 * np.eye(space.size)
    finite_differences = (
        native.angles_before_last_step(theta + step) - native.angles_before_last_step(theta - step)
    ) / 2e-5
    # a difference loses half of the digits
    np.testing.assert_allclose(tangent, finite_differences @ direction, rtol=1e-6)
    assert (np.abs(finite_differences) > 1e-8).sum() > 10, "nearly all of these parameters move the pendulum"


def test_equal_spaces_share_a_cache_key_and_others_do_not(setup, space):

    def key(space: ParameterSpace) -> str | None:
        return cache_key(jax.tree.structure(setup), [space.theta_map])

    again = ParameterSpace(setup, FREE_PARAMETERS)
    assert again.theta_map == space.theta_map and hash(again.theta_map) == hash(space.theta_map)
    assert key(again) == key(space) is not None
    for other in (
        FREE_PARAMETERS[1:],
        [*FREE_PARAMETERS[:1], Free("joint.damping[*]"), *FREE_PARAMETERS[2:]],
        FREE_PARAMETERS[::-1],
    ):
        assert key(ParameterSpace(setup, other)) not in (None, key(space))


def test_bounds_and_priors_are_not_part_of_the_program(setup):
    one = ParameterSpace(setup, [Free("joint.damping[*]", prior=(0.1, 0.5))])
    other = ParameterSpace(setup, [Free("joint.damping[*]", bounds=(0.0, 9.0), l2=1.0)])
    assert one.theta_map == other.theta_map
