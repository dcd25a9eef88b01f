"""Actuation: stages, chains of stages, and their internal states."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.dynamics.actuation import (
    Actuation,
    ActuatorMotion,
    AffineActuator,
    FirstOrderLag,
    PDServo,
    Saturation,
    SeriesElastic,
    TorqueSpeedLimit,
    TransportDelay,
)
from hybridsim.model.builder import ModelBuilder
from hybridsim.robots import pendulum
from hybridsim.sim.choices import INTEGRATORS
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft

MODEL = pendulum()
REST = ActuatorMotion(jnp.zeros(1), jnp.zeros(1))


def _rotor(**actuator):
    builder = ModelBuilder("rotor", gravity=(0, 0, 0))
    builder.add_body("rotor", joint="axle", axis=(0, 0, 1), mass=1.0, inertia=(0.5, 0.5, 0.5), effort_limit=30.0)
    return builder.add_actuator("axle", **actuator).build()


def _torque(model, u, q=0.0, qd=0.0, actuation=None):
    actuation = actuation or Actuation()
    aux = actuation.initial_state(model, np.array([q]), np.array([qd]))
    return float(actuation.torques(model, np.array([q]), np.array([qd]), np.array([u]), aux, np.asarray(0.01))[0])


def test_torques_of_direct_geared_and_limited_actuators():
    assert _torque(_rotor(), 2.0) == 2.0
    assert _torque(_rotor(gear=5.0), 2.0) == 10.0
    assert _torque(_rotor(command_range=(-1.0, 1.0)), 2.0) == 1.0
    assert _torque(_rotor(gear=5.0, force_range=(-1.5, 1.5)), 2.0) == 7.5
    assert _torque(_rotor(gear=100.0), 2.0) == 30.0, "the joint's effort limit comes last"


def test_affine_law_uses_length_and_speed_on_the_actuator_side_of_the_gear():
    model = _rotor(gear=2.0, gain=10.0, bias=(1.0, -10.0, -0.5))
    # length 2·0.3, speed 2·0.4
    assert _torque(model, 0.7, 0.3, 0.4) == pytest.approx(2.0 * (7.0 + 1.0 - 6.0 - 0.4))


def test_servo_and_saturation():
    assert _torque(_rotor(), 1.0, 0.25, 2.0, Actuation(PDServo(8.0, 0.5))) == pytest.approx(5.0)
    assert _torque(_rotor(), 1.0, 0.25, 2.0, Actuation(PDServo(8.0, 0.5), Saturation(3.0))) == 3.0


@pytest.mark.parametrize(
    ("speed", "signal", "expected"), [(0, 9, 4), (5, 9, 2), (10, 9, 0), (15, 9, 0), (5, -9, -4), (-5, -9, -2)]
)
def test_torque_speed_line(speed, signal, expected):
    limit = TorqueSpeedLimit(4.0, 10.0)
    motion = ActuatorMotion(jnp.zeros(1), jnp.array([float(speed)]))
    assert float(limit.output(MODEL, jnp.array([float(signal)]), motion, None, 0.01)[0]) == pytest.approx(expected)


def test_lag_follows_the_exact_exponential():
    lag, aux = FirstOrderLag(0.05), np.zeros(1)
    for _ in range(10):
        aux = lag.advance(MODEL, jnp.ones(1), REST, aux, jnp.asarray(0.01))
    np.testing.assert_allclose(lag.output(MODEL, jnp.ones(1), REST, aux, 0.01), 1.0 - np.exp(-0.1 / 0.05), rtol=1e-12)


@pytest.mark.parametrize(("delay", "expected"), [(0.0, 5.0), (0.01, 4.0), (0.025, 2.5), (0.03, 2.0), (1.0, 1.0)])
def test_delay_interpolates_between_samples(delay, expected):
    stage = TransportDelay(delay, samples=4)
    aux = stage.initial_state(REST)
    for value in (1.0, 2.0, 3.0, 4.0):
        aux = stage.advance(MODEL, jnp.array([value]), REST, aux, 0.01)
    assert float(stage.output(MODEL, jnp.array([5.0]), REST, aux, 0.01)[0]) == pytest.approx(expected)


def test_delay_acts_in_a_simulation():
    """A torque pulse delayed by three steps: the joint begins to move three steps later."""
    model = _rotor()
    commands = np.zeros((8, 1))
    commands[0] = 1.0
    run = simulate(
        Simulator(model, actuation=Actuation(TransportDelay(0.03, samples=5), AffineActuator()), dt=0.01),
        inputs=commands,
    )
    moving = np.flatnonzero(np.abs(run.qd[:, 0]) > 1e-12)
    assert moving[0] == 4


def test_series_elastic_motor_settles_at_the_commanded_torque():
    """With the joint held by a stiff spring, the spring of the actuator transmits the whole motor torque."""
    builder = ModelBuilder("sea", gravity=(0, 0, 0))
    builder.add_body("load", joint="axle", mass=1.0, inertia=(0.5, 0.5, 0.5), stiffness=50.0, damping=5.0)
    spring = SeriesElastic(stiffness=200.0, damping=4.0, rotor_inertia=0.05)
    sim = Simulator(builder.build(), actuation=Actuation(spring), dt=0.002)
    run = simulate(sim, inputs=np.full((5000, 1), 3.0))
    np.testing.assert_allclose(run.q[-1], 3.0 / 50.0, rtol=1e-4)
    rotor = run.final.aux["actuation"][0][0]
    np.testing.assert_allclose(rotor - run.q[-1], 3.0 / 200.0, rtol=1e-4)


def test_series_elastic_motor_starts_relaxed():
    model = _rotor(gear=3.0)
    sim = Simulator(model, actuation=Actuation(SeriesElastic(200.0, 4.0, 0.05)), dt=0.001)
    run = simulate(sim, sim.initial_state([1.0], [0.5]), steps=10)
    np.testing.assert_allclose(run.qd, 0.5, rtol=1e-9)


@pytest.mark.parametrize("stage", [FirstOrderLag(0.03), TransportDelay(0.02), SeriesElastic(20.0, 1.0, 0.05)])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_graft_on_the_command_equals_a_command(stage, integrator):
    """Internal states of actuators must follow the command after grafts, not the input command."""
    push = Blueprint(Graft("actuator.command", ["step.time"], eqx.Partial(lambda c, x: c + 0.0 * x, jnp.array([5.0]))))
    actuation = Actuation(stage, AffineActuator()) if not isinstance(stage, SeriesElastic) else Actuation(stage)
    grafted = Simulator(_rotor(), actuation=actuation, blueprint=push, dt=0.01, integrator=integrator)
    plain = Simulator(_rotor(), actuation=actuation, dt=0.01, integrator=integrator)
    by_graft = simulate(grafted, inputs=np.zeros((10, 1)))
    by_command = simulate(plain, inputs=np.full((10, 1), 5.0))
    np.testing.assert_allclose(by_graft.q, by_command.q, rtol=1e-12)
    assert abs(by_graft.q[-1, 0]) > 1e-3


def test_parameters_specified_as_python_floats_have_gradients():
    sim = Simulator(_rotor(), actuation=Actuation(PDServo(8.0, 0.5)), dt=0.01)

    def final(sim):
        return rollout(sim, sim.initial_state([0.2]), steps=5).q[-1, 0]

    gradient = eqx.filter_grad(final)(sim)
    assert float(gradient.actuation.stages[0].kp) != 0.0


def test_lag_with_zero_time_constant_has_a_finite_gradient():
    def out(tau):
        return FirstOrderLag(tau).advance(MODEL, jnp.ones(1), REST, jnp.zeros(1), jnp.asarray(0.01))[0]

    assert float(out(0.0)) == 1.0
    assert float(jax.grad(out)(0.0)) == 0.0


def test_delays_beyond_the_buffer_are_refused():
    with pytest.raises(ValueError, match="increase samples of TransportDelay"):
        Simulator(_rotor(), actuation=Actuation(TransportDelay(0.5, samples=4), AffineActuator()), dt=0.01)


def test_negative_delays_are_refused():
    with pytest.raises(ValueError, match=r"must be nonnegative, not -0\.01 s$"):
        Simulator(_rotor(), actuation=Actuation(TransportDelay([-0.01, 0.01]), AffineActuator()), dt=0.01)


def test_internal_states_advance_once_per_step_in_rk4():
    lagged = Actuation(FirstOrderLag(0.05), AffineActuator())
    final = {}
    for integrator in ("euler", "rk4"):
        sim = Simulator(_rotor(), actuation=lagged, dt=0.01, integrator=integrator)
        final[integrator] = simulate(sim, inputs=np.ones((5, 1))).final.aux["actuation"][0]
    np.testing.assert_array_equal(final["euler"], final["rk4"])
