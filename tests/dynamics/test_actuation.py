"""Actuators: each stage does what its name says."""

import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.dynamics.actuation import (
    Actuation,
    FirstOrderLag,
    ModelLaw,
    Motor,
    PDServo,
    Saturation,
    SeriesElastic,
    TorqueSpeedLimit,
    TransportDelay,
)
from hybridsim.model.builder import ModelBuilder
from hybridsim.models import pendulum
from hybridsim.sim.rollout import simulate
from hybridsim.sim.simulator import Simulator

MODEL = pendulum()
REST = Motor(jnp.zeros(1), jnp.zeros(1))


def _driven(**actuator):
    builder = ModelBuilder("driven", gravity=(0, 0, 0))
    builder.add_body("rotor", joint="axle", axis=(0, 0, 1), mass=1.0, inertia=(0.5, 0.5, 0.5), effort_limit=30.0)
    return builder.add_actuator("axle", **actuator).build()


def _torque(model, u, q=0.0, qd=0.0, actuation=None):
    actuation = actuation or Actuation()
    memory = actuation.initial(model)
    return float(actuation.torques(model, np.array([q]), np.array([qd]), np.array([u]), memory, np.asarray(0.01))[0])


def test_direct_geared_and_limited():
    assert _torque(_driven(), 2.0) == 2.0
    assert _torque(_driven(gear=5.0), 2.0) == 10.0
    assert _torque(_driven(control_range=(-1.0, 1.0)), 2.0) == 1.0
    assert _torque(_driven(gear=5.0, force_range=(-1.5, 1.5)), 2.0) == 7.5
    assert _torque(_driven(gear=100.0), 2.0) == 30.0, "the joint's effort limit comes last"


def test_affine_law_sees_the_actuator_side_of_the_gear():
    model = _driven(gear=2.0, gain=10.0, bias=(1.0, -10.0, -0.5))
    # length 2·0.3, speed 2·0.4
    assert _torque(model, 0.7, 0.3, 0.4) == pytest.approx(2.0 * (7.0 + 1.0 - 6.0 - 0.4))


def test_servo_and_saturation():
    assert _torque(_driven(), 1.0, 0.25, 2.0, Actuation(PDServo(8.0, 0.5))) == pytest.approx(5.0)
    assert _torque(_driven(), 1.0, 0.25, 2.0, Actuation(PDServo(8.0, 0.5), Saturation(3.0))) == 3.0


@pytest.mark.parametrize(
    ("speed", "signal", "expected"), [(0, 9, 4), (5, 9, 2), (10, 9, 0), (15, 9, 0), (5, -9, -4), (-5, -9, -2)]
)
def test_torque_speed_line(speed, signal, expected):
    limit = TorqueSpeedLimit(4.0, 10.0)
    motor = Motor(jnp.zeros(1), jnp.array([float(speed)]))
    assert float(limit.output(MODEL, jnp.array([float(signal)]), motor, None, 0.01)[0]) == pytest.approx(expected)


def test_lag_follows_the_exact_exponential():
    lag, memory = FirstOrderLag(0.05), np.zeros(1)
    for _ in range(10):
        memory = lag.advance(MODEL, jnp.ones(1), REST, memory, jnp.asarray(0.01))
    np.testing.assert_allclose(
        lag.output(MODEL, jnp.ones(1), REST, memory, 0.01), 1.0 - np.exp(-0.1 / 0.05), rtol=1e-12
    )


@pytest.mark.parametrize(("delay", "expected"), [(0.0, 5.0), (0.01, 4.0), (0.025, 2.5), (0.03, 2.0), (1.0, 1.0)])
def test_delay_interpolates_between_samples(delay, expected):
    stage = TransportDelay(delay, samples=4)
    memory = stage.initial(1)
    for value in (1.0, 2.0, 3.0, 4.0):
        memory = stage.advance(MODEL, jnp.array([value]), REST, memory, 0.01)
    assert float(stage.output(MODEL, jnp.array([5.0]), REST, memory, 0.01)[0]) == pytest.approx(expected)


def test_delay_acts_in_a_simulation():
    """A pulse of torque after a delay of three steps: the joint starts three steps later."""
    model = _driven()
    commands = np.zeros((8, 1))
    commands[0] = 1.0
    run = simulate(
        Simulator(model, actuation=Actuation(TransportDelay(0.03, samples=5), ModelLaw()), dt=0.01),
        inputs=commands,
    )
    moving = np.flatnonzero(np.abs(run.qd[:, 0]) > 1e-12)
    assert moving[0] == 4


def test_series_elastic_motor_settles_at_the_commanded_torque():
    """Locked by a stiff joint spring, the spring of the actuator carries the whole motor torque."""
    builder = ModelBuilder("sea", gravity=(0, 0, 0))
    builder.add_body("load", joint="axle", mass=1.0, inertia=(0.5, 0.5, 0.5), stiffness=50.0, damping=5.0)
    spring = SeriesElastic(stiffness=200.0, damping=4.0, rotor_inertia=0.05)
    sim = Simulator(builder.build(), actuation=Actuation(spring), dt=0.002)
    run = simulate(sim, inputs=np.full((5000, 1), 3.0))
    np.testing.assert_allclose(run.q[-1], 3.0 / 50.0, rtol=1e-4)
    rotor = run.final.aux["actuation"][0][0]
    np.testing.assert_allclose(rotor - run.q[-1], 3.0 / 200.0, rtol=1e-4)


def test_memory_advances_once_per_step_in_rk4():
    lagged = Actuation(FirstOrderLag(0.05), ModelLaw())
    final = {}
    for integrator in ("euler", "rk4"):
        sim = Simulator(_driven(), actuation=lagged, dt=0.01, integrator=integrator)
        final[integrator] = simulate(sim, inputs=np.ones((5, 1))).final.aux["actuation"][0]
    np.testing.assert_array_equal(final["euler"], final["rk4"])
