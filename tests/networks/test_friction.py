"""Friction by networks: against the motion, the same both ways, and within the cone, whatever the weights."""

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
from support.some_networks import Weights, shaken

HIDDEN = {"hidden": (5,)}
Speeds = st.floats(-1e3, 1e3).filter(lambda v: abs(v) > 1e-6)


@given(weights=Weights, v=Speeds, context=st.floats(-10, 10))
def test_friction_of_a_joint_is_odd_and_against_its_motion(weights, v, context):
    net = shaken(JointFriction(1, **HIDDEN), weights)
    forwards, backwards = (float(net(np.array([context, x]))[0]) for x in (v, -v))
    assert forwards == -backwards
    assert forwards * v <= 0.0
    assert float(net(np.array([context, 0.0]))[0]) == 0.0


def test_fresh_friction_of_a_joint_is_small_and_has_the_width_it_was_given():
    net = JointFriction(width=0.2, friction_scale=5.0)
    fast, at_width = (float(net(np.array([v]))[0]) for v in (100.0, 0.2))
    assert fast == pytest.approx(-5e-3, rel=1e-3)
    assert at_width == pytest.approx(fast / np.sqrt(2.0), rel=1e-4)


def test_joints_share_one_law_of_friction():
    net = shaken(JointFriction(1, **HIDDEN), (3, 1.0))
    graft = Graft("joint.tau", ["joint.q", "joint.qd"], net, per="element")
    sim = Simulator(double_pendulum(), blueprint=Blueprint(graft))
    q, qd = np.array([0.4, 0.4]), np.array([1.5, 1.5])
    tau = observe(sim, sim.initial_state(q, qd))["joint.tau"]
    assert tau[0] == tau[1] == pytest.approx(float(net(np.array([0.4, 1.5]))[0]))


@given(weights=Weights, slip=st.tuples(Speeds, Speeds), normal=st.floats(0.0, 1e4), mu=st.floats(0.01, 2.0))
def test_friction_of_a_contact_stays_within_the_cone(weights, slip, normal, mu):
    net = shaken(ConeFriction(friction=mu, **HIDDEN), weights)
    force = np.asarray(net(np.array([normal, *slip])))
    assert np.linalg.norm(force) <= mu * normal * (1.0 + 1e-12)
    assert force @ slip <= 0.0
    # isotropic: along the slip
    assert force[0] * slip[1] == pytest.approx(force[1] * slip[0], rel=1e-9, abs=1e-300)


def test_nothing_pulls_on_a_contact_that_pulls():
    assert np.all(np.asarray(ConeFriction()(np.array([-3.0, 1.0, 0.0]))) == 0.0)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_sliding_cube_is_held_back_within_the_cone(backend):
    mu, g, dt = 0.5, 9.81, 1e-3
    net = shaken(ConeFriction(friction=mu, **HIDDEN), (1, 0.5))
    inputs = ["contact.normal_force", "contact.slip_velocity"]
    graft = Graft("contact.friction_force", inputs, net, mode="replace", per="element")
    model = cube()
    sim = Simulator(model, dt=dt, contact="compliant", blueprint=Blueprint(graft), backend=backend)
    state = sim.initial_state(model.home, [0, 0, 0, 2.0, 0, 0])
    motion = rollout(sim, state, steps=400)
    speed = np.asarray(motion.qd)[:, 3]
    # at rest by friction alone, and not sooner than the cone allows
    slowed = (speed[0] - speed[-1]) / (400 * dt)
    assert 0.05 * mu * g < slowed < 1.05 * mu * g
    assert np.diff(speed).max() < 0.02
