"""Passive joint forces: springs, friction, limit stops."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.dynamics.passive import passive_torques
from hybridsim.model.builder import ModelBuilder
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator
from hybridsim.spatial.rotation import quaternion_exp


def _joint(kind="revolute", **parameters):
    builder = ModelBuilder("joint", gravity=(0, 0, 0))
    builder.add_body("body", joint="j", kind=kind, mass=1.0, inertia=(0.5, 0.5, 0.5), **parameters)
    return builder.build()


def _torque(model, q, qd):
    return float(passive_torques(model, np.array([q]), np.array([qd]))[0])


def test_spring_and_damper():
    model = _joint(stiffness=4.0, rest=0.5, damping=0.3)
    assert _torque(model, 1.0, 2.0) == pytest.approx(-4.0 * 0.5 - 0.3 * 2.0)


def test_spring_of_a_ball_joint_pulls_along_the_rotation_vector():
    model = _joint("spherical", stiffness=2.0)
    r = np.array([0.3, -0.5, 0.2])
    np.testing.assert_allclose(passive_torques(model, quaternion_exp(r), np.zeros(3)), -2.0 * r, rtol=1e-12)


def test_dry_friction_opposes_motion_and_stribeck_raises_it_near_standstill():
    model = _joint(friction=1.0, stribeck_friction=0.5, stribeck_velocity=0.1, friction_width=0.001)
    assert _torque(model, 0.0, 5.0) == pytest.approx(-1.0)
    assert _torque(model, 0.0, -5.0) == pytest.approx(1.0)
    assert _torque(model, 0.0, 0.1) == pytest.approx(-(1.0 + 0.5 * np.exp(-1.0)))
    assert _torque(model, 0.0, 0.0) == 0.0


def test_friction_stops_a_wheel_after_the_expected_angle():
    """ω²I/(2τ), up to the width of the regularized sign."""
    model = _joint(friction=2.0, friction_width=1e-3)
    sim = Simulator(model, dt=1e-4)
    run = simulate(sim, sim.initial_state(qd=[3.0]), steps=10_000)
    np.testing.assert_allclose(run.q[-1], 3.0**2 * 0.5 / (2 * 2.0), rtol=2e-3)
    assert abs(float(run.qd[-1, 0])) < 1e-3


@pytest.mark.parametrize("integrator", ["euler", "implicit"])
def test_light_links_with_strong_friction_come_to_rest_instead_of_chattering(integrator):
    """Two gram-scale links: at a width of 0.01 rad/s friction would make them oscillate forever."""
    finger, parent = ModelBuilder("finger", gravity=(0, 0, 0)), "world"
    for name in ("proximal", "distal"):
        finger.add_body(
            name,
            parent=parent,
            at=(0.05, 0, 0),
            mass=0.01,
            com=(0.02, 0, 0),
            inertia=(1e-6, 3e-6, 3e-6),
            friction=0.05,
        )
        parent = name
    model = finger.build()
    assert model.joint.friction_width.min() > 1.0
    sim = Simulator(model, integrator=integrator)
    speed = simulate(sim, sim.initial_state(qd=[20.0, -30.0]), steps=300).qd
    late = speed[-50:]
    assert np.abs(late).max() < 0.05
    assert (np.diff(np.sign(late), axis=0) == 0).all(), "the velocity of a joint that comes to rest keeps its sign"
    assert _joint(friction=0.01).joint.friction_width == pytest.approx(0.01), "heavy joints keep a narrow width"


def test_limit_stops_push_back_and_never_pull():
    model = _joint(lower=-1.0, upper=1.0, limit_stiffness=100.0, limit_damping=10.0)
    assert _torque(model, 1.5, 0.0) == pytest.approx(-50.0)
    assert _torque(model, -1.5, 0.0) == pytest.approx(50.0)
    assert _torque(model, 1.5, 1.0) == pytest.approx(-60.0)
    assert _torque(model, 1.005, 1.0) == pytest.approx(-0.5 - 0.5 * 10.0), "the damping ramps up over a centiradian"
    assert _torque(model, 1.01, -100.0) == 0.0, "a stop must not pull a joint that leaves it quickly"
    assert _torque(model, 0.9, 50.0) == 0.0


def test_gradient_through_a_stop():
    """A rollout that rebounds from a limit stop: forward mode against finite differences."""
    model = _joint(lower=-1.0, upper=0.5, limit_stiffness=2000.0, limit_damping=20.0)
    sim = Simulator(model, dt=1e-4)
    state = sim.initial_state(qd=[2.0])

    @jax.jit
    def final(upper):
        changed = eqx.tree_at(lambda s: s.model.joint.upper, sim, upper)
        return rollout(changed, state, steps=4000).q[-1, 0]

    upper = jnp.array([0.5])
    derivative = float(jax.jvp(final, (upper,), (jnp.ones(1),))[1])
    assert float(final(upper)) < 0.5
    numeric = float(final(upper + 0.002) - final(upper - 0.002)) / 0.004
    # the kinks at the ends of the ramp cause an error proportional to dt; that of a discontinuity would not vanish
    assert derivative == pytest.approx(numeric, rel=0.05)


@pytest.mark.parametrize("dt", [0.001, 0.002, 0.005])
def test_a_chain_pressed_against_its_stops_does_not_chatter(dt):
    """The chain swings about its first joint; the two joints at their limits must follow without chatter."""
    chain = ModelBuilder("chain", timestep=dt)
    for i in range(3):
        chain.add_body(
            f"l{i}",
            parent=f"l{i - 1}" if i else "world",
            joint=f"j{i}",
            at=(0, 0, -1.0 if i else 0.0),
            axis=(0, 1, 0),
            mass=1.0,
            com=(0, 0, -0.5),
            inertia=(0.083, 0.083, 0.001),
            lower=-0.2,
            upper=0.2,
        )
    run = simulate(Simulator(chain.build()), inputs=np.tile([0.0, 30.0, 5.0], (round(2.0 / dt), 1)))
    assert int(run.status) == 0
    late = slice(-round(0.5 / dt), None)
    assert np.abs(run.qd[late]).max() < 2.0
    assert np.abs(run.q[late, 1:]).max() < 0.8


def test_a_joint_rebounds_from_its_stop_without_gaining_energy():
    model = _joint(upper=0.5)
    sim = Simulator(model, dt=1e-3)
    run = simulate(sim, sim.initial_state(qd=[2.0]), steps=1000)
    assert 0.5 < run.q.max() < 0.55
    assert abs(float(run.qd[-1, 0])) < 2.0
    assert float(run.q[-1, 0]) < 0.5
