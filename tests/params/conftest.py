"""Setups in which every entry of the catalogue exists and has an effect."""

import equinox as eqx
import numpy as np
import pytest

from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.dynamics.actuation import Actuation, AffineActuator, FirstOrderLag, ForceRange, PDServo, TransportDelay
from hybridsim.model.builder import ModelBuilder
from hybridsim.networks.mlp import MLP
from hybridsim.params.setup import Setup
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft

JOINT = {
    "armature": 0.02,
    "stiffness": 3.0,
    "rest": 0.1,
    "damping": 0.2,
    "friction": 0.1,
    "stribeck_friction": 0.05,
    "stribeck_velocity": 0.5,
    "friction_width": 0.3,
    "lower": -0.3,
    "upper": 0.3,
    "limit_stiffness": 50.0,
    "limit_damping": 2.0,
    "effort_limit": 2.0,
}


def _arm() -> ModelBuilder:
    robot = ModelBuilder("arm", gravity=(0.3, 0.2, -9.8), timestep=0.002)
    robot.add_body(
        "upper", joint="shoulder", at=(0.1, 0.05, 0.2), rpy=(0.2, 0.1, 0.3), axis=(0.48, 0.6, 0.64), mass=1.5,
        com=(0.05, 0.04, -0.3), inertia=(0.04, 0.05, 0.02, 0.003, 0.002, -0.001), anchor=(0.01, 0.02, 0.03), **JOINT
    )  # fmt: skip
    robot.add_body(
        "cart", parent="upper", joint="rail", kind="prismatic", at=(0.02, 0.03, -0.2), axis=(0.8, 0, 0.6), mass=2.0,
        com=(0.1, 0.02, 0.03), inertia=(0.05, 0.06, 0.07, 0.001, 0.002, 0.003), **JOINT
    )  # fmt: skip
    robot.add_body(
        "lower", parent="cart", joint="elbow", at=(0.02, 0.01, -0.5), axis=(0.8, 0.48, 0.36), mass=0.8,
        com=(0.02, 0.03, -0.2), inertia=(0.03, 0.035, 0.01, 0.001, 0.001, 0.002), anchor=(0.01, -0.02, 0.02),
        mimic="shoulder", mimic_ratio=-2.0, mimic_offset=0.1, **JOINT
    )  # fmt: skip
    robot.add_frame("tip", "lower", at=(0.01, 0.02, -0.4), rpy=(0.1, 0.2, 0.3))
    ranges = {"command_range": (-1.0, 1.0), "force_range": (-1.5, 1.5)}
    robot.add_actuator("rail", name="push", gear=1.1, gain=2.0, bias=(0.1, -0.2, -0.3), **ranges)
    robot.add_actuator("shoulder", name="turn", gear=3.0, gain=2.0, bias=(0.1, -0.2, -0.3), **ranges)
    return robot


@pytest.fixture(scope="session")
def arm() -> Setup:
    """An arm with a slider and a mimic joint, with springs, friction, limits and actuators."""
    net = MLP(2, 1, hidden=(3,), seed=1)
    grafts = Blueprint(Graft("joint.tau[rail]", ["joint.q[rail]", "joint.qd[rail]"], net))
    sim = Simulator(_arm().build(), blueprint=grafts, backend="xla")
    channels = {"slide": "joint.q[rail]"} | {axis: f"frame.position[tip].{axis}" for axis in "xyz"}
    return Setup(sim, Sensors.from_addresses(sim, channels, gain=2.0, bias=0.5, delay=0.01))


@pytest.fixture(scope="session")
def arm_with_actuation(arm) -> Setup:
    """The same arm with delayed and lagging actuation."""
    lag = FirstOrderLag([0.01, 0.02])
    stages = Actuation(TransportDelay(0.003, samples=8), PDServo(5.0, [0.1, 0.2]), lag, AffineActuator(), ForceRange())
    return Setup(Simulator(arm.sim.model, actuation=stages, backend="xla"), arm.sensors)


def _ball() -> ModelBuilder:
    robot = ModelBuilder("ball").declare_unactuated()
    surface = {"friction": 0.6, "restitution": 0.3, "recovery_time": 0.03, "softness": 0.2}
    surface |= {"stiffness": 2e4, "damping": 300.0}
    home = (0.0, 0.0, 0.0995, 1.0, 0.0, 0.0, 0.0)
    robot.add_body("ball", joint="root", kind="free", mass=1.0, inertia=(0.01, 0.012, 0.015), home=home)
    robot.add_geom("ball", "sphere", (0.1,), name="hull", at=(0.01, 0.02, 0.0), **surface)
    robot.add_geom("world", "plane", (), name="floor", **surface)
    return robot


@pytest.fixture(scope="session")
def ball_model():
    """A sphere that rests on a floor with slight penetration."""
    return _ball().build()


@pytest.fixture(scope="session")
def impulse_ball(ball_model) -> Setup:
    """The sphere with impulse contact."""
    sim = Simulator(ball_model, contact=ImpulseContact(cfm=0.01, sweeps=1), backend="xla")
    return Setup(sim, Sensors.from_addresses(sim, {"height": "joint.q[root.z]"}))


@pytest.fixture(scope="session")
def compliant_ball(ball_model) -> Setup:
    """The sphere with compliant contact, whose parameters come from the surfaces."""
    model = eqx.tree_at(lambda m: m.geometry.restitution, ball_model, np.zeros(2))  # compliant contact has none
    sim = Simulator(model, contact="compliant", backend="xla")
    return Setup(sim, Sensors.from_addresses(sim, {"height": "joint.q[root.z]"}))
