"""Friction networks: opposing the motion, odd in velocity, and within the friction cone, for any weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.networks.friction import ConeFriction, JointFriction
from hybridsim.robots import cube, double_pendulum
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.step import observe
from hybridsim.taps.blueprint import Blueprint, Graft
from support.networks import Weights, randomize_weights

HIDDEN = {"hidden": (5,)}
Velocities = st.floats(-1e3, 1e3).filter(lambda v: abs(v) > 1e-6)


@given(weights=Weights, v=Velocities, context=st.floats(-10, 10))
def test_joint_friction_is_odd_and_opposes_motion(weights, v, context):
    net = randomize_weights(JointFriction(1, **HIDDEN), weights)
    forwards, backwards = (float(net(np.array([context, x]))[0]) for x in (v, -v))
    assert forwards == -backwards
    assert forwards * v <= 0.0
    assert float(net(np.array([context, 0.0]))[0]) == 0.0


def test_initial_joint_friction_is_small_and_has_the_specified_width():
    net = JointFriction(width=0.2, friction_scale=5.0)
    fast, at_width = (float(net(np.array([v]))[0]) for v in (100.0, 0.2))
    assert fast == pytest.approx(-5e-3, rel=1e-3)
    assert at_width == pytest.approx(fast / np.sqrt(2.0), rel=1e-4)


def test_joints_share_one_friction_law():
    net = randomize_weights(JointFriction(1, **HIDDEN), (3, 1.0))
    graft = Graft("joint.tau", ["joint.q", "joint.qd"], net, per="element")
    sim = Simulator(double_pendulum(), blueprint=Blueprint(graft))
    q, qd = np.array([0.4, 0.4]), np.array([1.5, 1.5])
    tau = observe(sim, sim.initial_state(q, qd))["joint.tau"]
    assert tau[0] == tau[1] == pytest.approx(float(net(np.array([0.4, 1.5]))[0]))


@given(weights=Weights, slip=st.tuples(Velocities, Velocities), normal=st.floats(0.0, 1e4), mu=st.floats(0.01, 2.0))
def test_contact_friction_stays_within_the_cone(weights, slip, normal, mu):
    net = randomize_weights(ConeFriction(friction=mu, **HIDDEN), weights)
    force = np.asarray(net(np.array([normal, *slip])))
    assert np.linalg.norm(force) <= mu * normal * (1.0 + 1e-12)
    assert force @ slip <= 0.0
    # isotropic: parallel to the slip
    assert force[0] * slip[1] == pytest.approx(force[1] * slip[0], rel=1e-9, abs=1e-300)


def test_friction_is_zero_at_a_negative_normal_force():
    assert np.all(np.asarray(ConeFriction()(np.array([-3.0, 1.0, 0.0]))) == 0.0)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_deceleration_of_a_sliding_cube_is_within_the_cone(backend):
    mu, g, dt = 0.5, 9.81, 1e-3
    net = randomize_weights(ConeFriction(friction=mu, **HIDDEN), (1, 0.5))
    inputs = ["contact.normal_force", "contact.slip_velocity"]
    graft = Graft("contact.friction_force", inputs, net, mode="replace", per="element")
    model = cube()
    sim = Simulator(model, dt=dt, contact="compliant", blueprint=Blueprint(graft), backend=backend)
    state = sim.initial_state(model.home, [0, 0, 0, 2.0, 0, 0])
    trajectory = rollout(sim, state, steps=400)
    speed = np.asarray(trajectory.qd)[:, 3]
    # decelerated by friction only, at most by μ g
    deceleration = (speed[0] - speed[-1]) / (400 * dt)
    assert 0.05 * mu * g < deceleration < 1.05 * mu * g
    assert np.diff(speed).max() < 0.02
