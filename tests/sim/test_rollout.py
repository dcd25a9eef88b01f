"""Rollouts: shapes, inputs, divergence, batches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.result import Status
from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.actuation import Actuation
from hybridsim.dynamics.rnea import inverse_dynamics
from hybridsim.robots import cartpole, double_pendulum, pendulum
from hybridsim.sim.rollout import failure_message, rollout, simulate
from hybridsim.sim.rollout_xla import MAX_STORED_STEPS
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, difference, retract
from hybridsim.sim.step import step


@pytest.fixture(scope="module")
def sim():
    return Simulator(cartpole(), dt=0.01)


def test_rollout_is_a_chain_of_steps(sim):
    commands = np.linspace(-1.0, 1.0, 4)[:, None]
    trajectory = simulate(sim, sim.initial_state([0.0, 0.3]), commands)
    state = sim.initial_state([0.0, 0.3])
    compiled = eqx.filter_jit(step)
    for k, u in enumerate(commands):
        np.testing.assert_allclose(trajectory.q[k], state.q, rtol=1e-13, atol=1e-15)
        state = compiled(sim, state, u)
    np.testing.assert_allclose(trajectory.q[-1], state.q, rtol=1e-13)
    np.testing.assert_allclose(trajectory.t, 0.01 * np.arange(5))
    np.testing.assert_allclose(trajectory.final.qd, state.qd, rtol=1e-13)
    assert trajectory.q.shape == (5, 2) and int(trajectory.status) == Status.OK


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_long_rollouts_in_blocks_equal_consecutive_short_rollouts(backend):
    sim = Simulator(pendulum(), dt=0.001, backend=backend)
    initial_state = sim.initial_state([1.0])
    steps = MAX_STORED_STEPS + 3
    whole = simulate(sim, initial_state, steps=steps)
    first = simulate(sim, initial_state, steps=MAX_STORED_STEPS)
    second = simulate(sim, first.final, steps=3)
    np.testing.assert_allclose(whole.q[-1], second.q[-1], rtol=1e-12)
    assert whole.q.shape == (steps + 1, 1)


def test_divergence_is_a_status_with_step_and_joint_and_never_nan():
    model = double_pendulum(damping=1e4)
    sim = Simulator(model, dt=0.01)
    trajectory = simulate(sim, sim.initial_state([1.0, 0.5], [1.0, 1.0]), steps=60)
    assert int(trajectory.status) == Status.DIVERGED
    failed = int(trajectory.failed_step)
    assert 0 < failed < 60
    assert np.isfinite(trajectory.q).all() and np.isfinite(trajectory.qd).all()
    assert (trajectory.q[failed:] == trajectory.q[failed]).all(), "rows after the failure repeat the last valid one"
    text = failure_message(sim, trajectory)
    assert f"step {failed}" in text and "joint" in text and "implicit" in text
    healthy = simulate(Simulator(model, dt=0.01, integrator="implicit"), steps=2)
    assert failure_message(sim, healthy) == ""


def test_only_the_diverged_row_of_a_batch_is_frozen_and_gradients_stay_finite():
    model = pendulum()
    sim = Simulator(model, dt=0.01)
    state = sim.initial_state([1.0], [1.0])

    def final(damping):
        changed = eqx.tree_at(lambda s: s.model.joint.damping, sim, damping)
        trajectory = rollout(changed, state, steps=60)
        return jnp.sum(trajectory.q[-1]), trajectory.status

    damping = jnp.array([[0.1], [1e4], [0.2]])
    gradient, status = jax.jit(jax.vmap(jax.grad(final, has_aux=True)))(damping)
    assert status.tolist() == [Status.OK, Status.DIVERGED, Status.OK]
    assert np.isfinite(gradient).all()
    single, _ = jax.jit(jax.grad(final, has_aux=True))(damping[2])
    np.testing.assert_allclose(gradient[2], single, rtol=1e-10)


def test_wrench_in_world_axes_accelerates_by_newton():
    from hybridsim.robots import cube

    model = cube(mass=2.0)
    sim = Simulator(model, dt=0.01)
    rotated = np.r_[0, 0, 1, np.cos(0.3), 0, np.sin(0.3), 0]
    wrench = np.zeros((1, 1, 6))
    wrench[0, 0, 3:] = [4.0, 0.0, 2.0 * 9.81]
    final = simulate(sim, sim.initial_state(rotated), Inputs(np.zeros((1, 0)), wrench)).q[-1]
    np.testing.assert_allclose(final[:3] - rotated[:3], [2.0 * 0.01**2, 0.0, 0.0], atol=1e-15)


def test_tangent_space_of_states(sim):
    state = sim.initial_state([0.1, 0.2], [0.3, 0.4])
    delta = np.array([0.01, -0.02, 0.03, -0.04])
    np.testing.assert_allclose(difference(sim.model, state, retract(sim.model, state, delta)), delta, atol=1e-15)


def test_wrong_shapes_are_explained(sim):
    model, state = sim.model, sim.initial_state()
    with pytest.raises(ValueError, match=r"q has shape \(3,\); model 'cartpole' expects shape \(2,\): slider, hinge"):
        forward_dynamics(model, np.zeros(3), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="tau has shape"):
        forward_dynamics(model, [0.0, 0.1], [0.0, 0.0], [1.0])
    with pytest.raises(ValueError, match="qdd has shape"):
        inverse_dynamics(model, [0.0, 0.1], [0.0, 0.0], np.zeros((2, 1)))
    with pytest.raises(ValueError, match="the command has shape"):
        step(sim, state, np.zeros(2))
    with pytest.raises(ValueError, match="wrenches have shape"):
        step(sim, state, Inputs(np.zeros(1), np.zeros((1, 6))))
    assert np.isfinite(forward_dynamics(model, [0.0, 0.1], [0.0, 0.0], [1.0, 0.0])).all(), "lists are accepted"


def test_initial_states_are_checked(sim):
    from hybridsim.dynamics.actuation import AffineActuator, FirstOrderLag
    from hybridsim.robots import cube

    floating = Simulator(cube())
    rotated = floating.initial_state([0, 0, 1, 0.9, 0, 0, 0.9])
    np.testing.assert_allclose(rotated.q[3:], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], rtol=1e-15)
    with pytest.raises(ValueError, match=r"quaternion .* has length 0"):
        floating.initial_state(np.zeros(7))
    with pytest.raises(ValueError, match=r"joint 'hinge' are .*nan"):
        sim.initial_state([0.0, np.nan])
    with pytest.raises(ValueError, match=r"3 actuator stages; this simulator has 2 stages: create the state with"):
        step(Simulator(sim.model, actuation=Actuation(FirstOrderLag(0.1), AffineActuator())), sim.initial_state())


def test_wrong_inputs_are_explained(sim):
    with pytest.raises(ValueError, match="number of steps"):
        simulate(sim)
    with pytest.raises(ValueError, match="1 actuators"):
        simulate(sim, inputs=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="rows"):
        simulate(sim, inputs=np.zeros((3, 1)), steps=4)
    with pytest.raises(ValueError, match="2 coordinates"):
        sim.initial_state([1.0])
    with pytest.raises(ValueError, match="unknown integrator"):
        Simulator(sim.model, integrator="verlet")
