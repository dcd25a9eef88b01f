"""Sensors: readings of channels, and errors of invalid ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim import Simulator
from hybridsim.core.errors import TapError
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.robots import cartpole, cube, double_pendulum
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.state import Inputs
from hybridsim.sim.step import observe

Q, QD = [0.3, -0.8], [1.5, -0.4]


@pytest.fixture(scope="module")
def sim():
    return Simulator(double_pendulum())


@pytest.fixture(scope="module")
def state(sim):
    return sim.initial_state(Q, QD)


def read(sim, state, channels, **settings) -> np.ndarray:
    sensors = Sensors.from_addresses(sim, channels, **settings)
    # compiled as a whole, which is far faster than dispatching single operations
    return np.asarray(jax.jit(lambda: sensors.read(sim, state, Inputs(np.zeros(sim.model.nu))))())


def test_coordinates_and_velocities_in_any_order(sim, state):
    channels = {"v1": "joint.qd[joint1]", "q0": "joint.q[joint0]", "v0": "joint.qd[joint0]"}
    np.testing.assert_array_equal(read(sim, state, channels), [QD[1], Q[0], QD[0]])


def test_sums_and_differences(sim, state):
    channels = {"absolute": "joint.q[joint0] + joint.q[joint1]", "minus": "joint.qd[joint1] - joint.q[joint0]"}
    np.testing.assert_allclose(read(sim, state, channels), [Q[0] + Q[1], QD[1] - Q[0]], rtol=1e-15)


def test_gain_and_bias(sim, state):
    found = read(sim, state, {"a": "joint.q[joint0]", "b": "joint.q[joint1]"}, gain=[2.0, 500.0], bias=[0.5, -3.0])
    np.testing.assert_allclose(found, [2.0 * Q[0] + 0.5, 500.0 * Q[1] - 3.0], rtol=1e-15)


def test_positions_of_frames(sim, state):
    # hanging links of one metre, rotated about y
    tip = [-np.sin(Q[0]) - np.sin(Q[0] + Q[1]), 0.0, -np.cos(Q[0]) - np.cos(Q[0] + Q[1])]
    found = read(sim, state, {axis: f"frame.position[tip].{axis}" for axis in "xyz"})
    np.testing.assert_allclose(found, tip, atol=1e-14)


def test_poses_and_twists_of_bodies(sim, state):
    found = read(sim, state, {"turn": "body.twist[link1].omega.y", "z": "body.pose[link1].p.z"})
    kin = jax.jit(lambda: kinematics(sim.model, state.q, state.qd))()
    np.testing.assert_allclose(found, [kin.V_WB_B[1, 1], kin.X_WB.p[1, 2]], rtol=1e-14)


def test_accelerations_together_with_other_quantities(state):
    sim = Simulator(double_pendulum(damping=0.3))
    channels = {"acceleration": "joint.qdd[joint1]", "q": "joint.q[joint0]", "tip": "frame.position[tip].x"}
    found, observed = read(sim, state, channels), jax.jit(lambda: observe(sim, state))()
    np.testing.assert_allclose(found[:2], [observed["joint.qdd"][1], Q[0]], rtol=1e-14)
    assert found[2] == pytest.approx(-np.sin(Q[0]) - np.sin(Q[0] + Q[1]))


def test_a_function_measures_further_channels(sim, state):
    def energy(sim, state, inputs):
        return jnp.sum(state.qd**2)[None]

    found = read(sim, state, {"q": "joint.q[joint1]"}, function=energy, function_names=["speed²"], gain=[1.0, 0.5])
    np.testing.assert_allclose(found, [Q[1], 0.5 * (1.5**2 + 0.4**2)], rtol=1e-15)


def test_a_function_with_the_wrong_number_of_values_is_an_error(sim, state):
    with pytest.raises(TapError, match="sensors return 3 values for 2 channels"):
        read(sim, state, {"q": "joint.q[joint1]"}, function=lambda *arguments: jnp.zeros(2), function_names=["one"])


@pytest.mark.parametrize(
    ("channels", "words"),
    [
        ({}, "at least one channel"),
        ({"q": "joint.q"}, r"'joint.q' selects 2 scalars \(rows: joint0, joint1\); select one row$"),
        ({"v": "body.twist[link1]"}, r"selects 6 scalars \(rows: link1\); select one row and one component$"),
        ({"q": "joint.q[elbow]"}, "elbow"),
        ({"q": "joint.position[joint0]"}, "joint.position"),
        ({"tip": "frame.position[tipp].x"}, r"no frame or site is named 'tipp'; did you mean 'tip'\?"),
        ({"tip": "frame.position[tip]"}, r"write frame.position\[NAME\].x"),
        ({"q": "step.q_next[joint0]"}, "measure joint.q or joint.qd instead"),
        ({"q": "joint.q[joint0] + joint.q"}, "selects 2"),
    ],
)
def test_unreadable_quantities_are_errors_with_names(sim, channels, words):
    with pytest.raises(TapError, match=words):
        Sensors.from_addresses(sim, channels)


def test_functions_require_unique_names(sim):
    with pytest.raises(TapError, match="function and function_names must be given together"):
        Sensors.from_addresses(sim, {"q": "joint.q[joint0]"}, function=lambda *arguments: jnp.zeros(1))
    with pytest.raises(TapError, match="two channels are named 'q'"):
        Sensors.from_addresses(
            sim, {"q": "joint.q[joint0]"}, function=lambda *arguments: jnp.zeros(1), function_names=["q"]
        )


def test_coordinates_of_a_free_body_and_a_slider():
    free_cube = Simulator(cube())
    state = free_cube.initial_state([1, 2, 3, 0.5, 0.5, 0.5, 0.5], [0.1, 0.2, 0.3, 4, 5, 6])
    found = read(free_cube, state, {"z": "joint.q[root.z]", "qx": "joint.q[root.qx]", "vy": "joint.qd[root.vy]"})
    np.testing.assert_allclose(found, [3.0, 0.5, 5.0], rtol=1e-15)
    cart = Simulator(cartpole())
    assert read(cart, cart.initial_state([0.4, 0.1]), {"x": "joint.q[slider]"}) == pytest.approx(0.4)
