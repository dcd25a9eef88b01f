"""Networks with lagged inputs: the history is part of the state, equal on both back-ends, and differentiable."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import TapError
from hybridsim.networks.mlp import MLP
from hybridsim.networks.prune import input_addresses
from hybridsim.robots import cube, double_pendulum
from hybridsim.sim.choices import INTEGRATORS
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.step import observe, step
from hybridsim.taps.blueprint import Blueprint, Graft
from support.networks import randomize_weights

INITIAL_STATE = ([1.0, 0.5], [0.3, -0.2])


def identity(x):
    return x


def test_lagged_values_are_those_of_earlier_steps():
    reads = ["joint.qd[joint0]@1", "joint.qd[joint0]@3"]
    graft = Graft("actuator.command", reads, identity, mode="replace")
    sim = Simulator(double_pendulum(), blueprint=Blueprint(graft))
    state, velocities, commands = sim.initial_state(*INITIAL_STATE), [], []
    for _ in range(6):
        velocities.append(float(state.qd[0]))
        commands.append(np.asarray(observe(sim, state)["actuator.command"]))
        state = step(sim, state)
    for k in range(6):
        expected = [velocities[k - lag] if k >= lag else velocities[k] for lag in (1, 3)]
        np.testing.assert_allclose(commands[k], expected, rtol=1e-15)


def test_states_of_other_simulators_are_refused():
    model = double_pendulum()
    plain = Simulator(model)
    lagged = Simulator(model, blueprint=Blueprint(Graft("joint.tau", "joint.qd@1", MLP(2, 2))))
    short, long = "actuation", "actuation, history"
    for sim, other, keys, expected in ((lagged, plain, short, long), (plain, lagged, long, short)):
        message = rf"^state\.aux has keys {keys}; this simulator expects {expected}: create the state with "
        for function in (step, lambda sim, state: simulate(sim, state, steps=2)):
            with pytest.raises(ValueError, match=message):
                function(sim, other.initial_state(*INITIAL_STATE))


def test_quantities_computed_after_the_graft_can_be_read_with_a_lag():
    """Accelerations of the previous step as input of torques."""
    graft = Graft("joint.tau", "joint.qdd @ 1", lambda x: 0.1 * x)
    sim = Simulator(double_pendulum(), blueprint=Blueprint(graft))
    first = sim.initial_state(*INITIAL_STATE)
    assert np.all(np.asarray(observe(sim, first)["joint.tau"]) == 0.0)
    second = step(sim, first)
    before = observe(sim, first)["joint.qdd"]
    np.testing.assert_allclose(observe(sim, second)["joint.tau"], 0.1 * before, rtol=1e-14)


def lagged_simulator(integrator="euler", backend="native"):
    net = randomize_weights(MLP(6, 2, hidden=(4,)), (1, 0.3))
    graft = Graft("joint.tau", ["joint.q", "joint.qd@1", "joint.tau@2"], net)
    return Simulator(double_pendulum(), dt=0.01, blueprint=Blueprint(graft), integrator=integrator, backend=backend)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_native_and_xla_agree(integrator):
    one, other = (lagged_simulator(integrator, backend) for backend in ("native", "xla"))
    a, b = (simulate(sim, sim.initial_state(*INITIAL_STATE), steps=50) for sim in (one, other))
    np.testing.assert_allclose(a.q, b.q, rtol=1e-10)
    plain = Simulator(double_pendulum(), dt=0.01, integrator=integrator)
    assert np.abs(simulate(plain, plain.initial_state(*INITIAL_STATE), steps=50).q - a.q).max() > 1e-3


def test_a_rollout_continues_from_the_final_state_of_another():
    sim = lagged_simulator()
    whole = rollout(sim, sim.initial_state(*INITIAL_STATE), steps=20)
    half = rollout(sim, sim.initial_state(*INITIAL_STATE), steps=9)
    second = rollout(sim, half.final, steps=11)
    np.testing.assert_allclose(second.q[-1], whole.q[-1], rtol=1e-13)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_gradients_through_lagged_inputs(backend):
    sim = lagged_simulator(backend=backend)
    initial_state = sim.initial_state(*INITIAL_STATE)

    def end(weight):
        other = eqx.tree_at(lambda s: s.blueprint.grafts[0].net.weights[0], sim, weight)
        return jnp.sum(rollout(other, initial_state, steps=15).q[-1] ** 2)

    weight = jnp.asarray(sim.blueprint.grafts[0].net.weights[0])
    gradient, direction = jax.grad(end)(weight), np.random.default_rng(0).normal(size=weight.shape)
    h = 1e-6
    difference = (end(weight + h * direction) - end(weight - h * direction)) / (2 * h)
    assert float(jnp.sum(gradient * direction)) == pytest.approx(float(difference), rel=1e-6)


def test_lagged_addresses_are_listed_and_checked():
    graft = Graft("joint.tau", ["joint.qd@1", "body.twist[link1].v.x@2"], MLP(3, 2))
    sim = Simulator(double_pendulum(), blueprint=Blueprint(graft))
    (bound,) = sim.bound_blueprint().grafts
    assert input_addresses(bound) == ["joint.qd[joint0]@1", "joint.qd[joint1]@1", "body.twist[link1].v.x@2"]
    assert sim.initial_state().aux["history"]["joint.qd"].shape == (1, 2, 1)
    assert sim.initial_state().aux["history"]["body.twist"].shape == (2, 2, 6)
    assert "history" not in Simulator(double_pendulum()).initial_state().aux
    with pytest.raises(TapError, match="an output cannot have a lag"):
        Simulator(double_pendulum(), blueprint=Blueprint(Graft("joint.tau@1", "joint.qd", MLP(2, 2))))
    with pytest.raises(TapError, match="the lag must be at most 1000 steps"):
        Simulator(double_pendulum(), blueprint=Blueprint(Graft("joint.tau", "joint.qd@5000", MLP(2, 2))))
    with pytest.raises(TapError, match="a sensor cannot read lagged values"):
        Sensors.from_addresses(sim, {"late": "joint.q[joint0]@1"})


def test_a_missing_lagged_user_input_is_explained():
    graft = Graft("joint.tau[joint0]", "input.wind@1", MLP(1, 1))
    sim = Simulator(double_pendulum(), blueprint=Blueprint(graft, inputs={"wind": 1}))
    with pytest.raises(TapError, match=r"the step has no value of 'input\.wind', but a graft reads its lagged values"):
        step(sim, sim.initial_state())


def test_quantities_without_rows_cannot_be_read():
    with pytest.raises(TapError, match="the model has no actuator"):
        Simulator(cube(), blueprint=Blueprint(Graft("joint.tau", "actuator.command", MLP(0, 6))))
