"""Integrators: order of convergence, conservation, stiffness, closed forms."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipk

from hybridsim.dynamics.energy import gravity_energy, kinetic_energy, momentum, spring_energy
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.model.builder import ModelBuilder
from hybridsim.robots import cube, double_pendulum, pendulum
from hybridsim.sim import integrate
from hybridsim.sim.choices import INTEGRATORS
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs
from hybridsim.taps.blueprint import Blueprint, Graft


@eqx.filter_jit
def _trajectory(sim, state, steps):
    return rollout(sim, state, steps=steps)


def _energy(model, q, qd):
    kin = kinematics(model, q, qd)
    return float(kinetic_energy(model, kin, qd) + gravity_energy(model, kin) + spring_energy(model, q))


def test_pendulum_swings_with_its_exact_period():
    """A rod about its end is a pendulum of length 2L/3; the period at amplitude a is 4 K(sin²(a/2)) / ω."""
    amplitude, length = 2.0, 1.0
    omega = np.sqrt(1.5 * 9.81 / length)
    period = 4.0 * ellipk(np.sin(amplitude / 2.0) ** 2) / omega
    # the model's rod is a little thicker than a line
    model = pendulum(length)
    inertia = 0.25 + float(model.body.inertia[0, 1])
    period *= np.sqrt(inertia / (1.0 / 3.0))
    sim = Simulator(model, dt=period / 400, integrator="rk4")
    trajectory = _trajectory(sim, sim.initial_state([amplitude]), 400)
    np.testing.assert_allclose(trajectory.q[-1], [amplitude], rtol=1e-7)


def test_thrown_body_flies_on_a_parabola_while_it_tumbles():
    """The path of the centre of mass does not depend on the rotation, up to rounding, for any time step."""
    model = cube()
    sim = Simulator(model, dt=0.01)
    omega, v_W = np.array([3.0, -8.0, 5.0]), np.array([1.0, 2.0, 4.0])
    state = sim.initial_state(qd=np.r_[omega, v_W])
    steps = 100
    trajectory = _trajectory(sim, state, steps)
    t = 0.01 * np.arange(steps + 1)
    # semi-implicit Euler falls by g dt² n (n + 1) / 2
    fall = 0.5 * 9.81 * t * (t + 0.01)
    expected = model.home[:3] + t[:, None] * v_W - np.outer(fall, [0.0, 0.0, 1.0])
    np.testing.assert_allclose(trajectory.q[:, :3], expected, rtol=0, atol=1e-12)


def test_torque_free_symmetric_body_precesses_as_in_eulers_equations():
    """Body-frame angular velocity of a symmetric top precesses with (I3 - I1)/I1 ω3 about its axis."""
    I1, I3 = 0.2, 0.35
    top = ModelBuilder("top", gravity=(0, 0, 0)).declare_unactuated()
    top.add_body("top", joint="root", kind="free", mass=1.0, inertia=(I1, I1, I3))
    sim = Simulator(top.build(), dt=0.001, integrator="rk4")
    omega = np.array([0.6, 0.0, 4.0])
    trajectory = _trajectory(sim, sim.initial_state(qd=np.r_[omega, 0, 0, 0]), 1000)
    angle = (I3 - I1) / I1 * omega[2] * 1.0
    expected = [0.6 * np.cos(angle), 0.6 * np.sin(angle), 4.0]
    np.testing.assert_allclose(trajectory.qd[-1, :3], expected, atol=1e-10)


ORDERS = {"euler": (1, 0.002), "implicit": (1, 0.002), "rk4": (4, 0.02)}


def _at_time(sim, state, time, steps):
    """State at a time, from a rollout of fixed length, so that it compiles once for all time steps."""
    trajectory = _trajectory(sim, state, steps)
    row = round(time / float(sim.dt))
    return np.asarray(trajectory.q[row]), np.asarray(trajectory.qd[row])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_error_falls_at_the_order_of_the_integrator(integrator):
    """A free, jointed body in three dimensions: quaternions must not spoil the order."""
    order, dt = ORDERS[integrator]
    body = ModelBuilder("jointed", gravity=(0.5, 0.0, -2.0)).declare_unactuated()
    body.add_body("a", joint="root", kind="free", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.25))
    body.add_body(
        "b", parent="a", kind="spherical", at=(0.5, 0, 0), mass=0.7, com=(0, 0.3, 0), inertia=(0.1, 0.2, 0.15)
    )
    qd = np.array([1.0, -0.5, 2.0, 0.3, 0.1, -0.2, 0.5, 1.5, -1.0])
    model = body.build()

    def end(refinement):
        sim = Simulator(model, dt=dt / refinement, integrator=integrator)
        return _at_time(sim, sim.initial_state(qd=qd), 32 * dt, steps=256)[0]

    # differences between successive halvings fall by 2^order; no exact solution is needed
    ends = [end(refinement) for refinement in (1, 2, 4, 8)]
    changes = [np.abs(fine - coarse).max() for coarse, fine in pairwise(ends)]
    observed = np.log2(np.array(changes[:-1]) / np.array(changes[1:]))
    np.testing.assert_allclose(observed, order, atol=0.35)


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("rk4", 4)])
def test_energy_drift_falls_with_the_order(integrator, order):
    model = double_pendulum()
    initial_q = [1.0, 0.5]

    def drift(dt):
        sim = Simulator(model, dt=dt, integrator=integrator)
        q, qd = _at_time(sim, sim.initial_state(initial_q), 1.28, steps=256)
        return abs(_energy(model, q, qd) - _energy(model, np.array(initial_q), np.zeros(2)))

    ratio = np.log2(drift(0.01) / drift(0.005))
    assert ratio > order - 0.4


def test_momentum_of_a_free_chain_is_conserved():
    chain = ModelBuilder("chain", gravity=(0, 0, 0)).declare_unactuated()
    chain.add_body("a", joint="root", kind="free", mass=1.0, inertia=(0.1, 0.2, 0.25))
    chain.add_body("b", parent="a", at=(0.5, 0, 0), axis=(0, 1, 0), mass=0.7, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
    model = chain.build()
    sim = Simulator(model, dt=0.01, integrator="rk4")
    trajectory = _trajectory(sim, sim.initial_state(qd=[1.0, -0.5, 0.4, 0.3, 0.2, 0.1, 2.0]), 100)

    def row_momentum(q, qd):
        return momentum(model, kinematics(model, q, qd))

    h = jax.vmap(row_momentum)(jnp.asarray(trajectory.q), jnp.asarray(trajectory.qd))
    np.testing.assert_allclose(h, np.broadcast_to(h[0], h.shape), atol=1e-7)


def test_implicit_integration_stays_stable_with_stiff_damping():
    """Damping of 1e4 on a light link: explicit steps diverge, implicit steps converge to rest."""
    model = pendulum(damping=1e4)
    state = Simulator(model).initial_state([1.0], [1.0])
    explicit = _trajectory(Simulator(model, dt=0.01), state, 50)
    implicit = _trajectory(Simulator(model, dt=0.01, integrator="implicit"), state, 50)
    assert int(explicit.status) == 1
    assert int(implicit.status) == 0
    assert abs(float(implicit.qd[-1, 0])) < 1e-3
    # it creeps down against the damper at the velocity gravity torque / damping
    np.testing.assert_allclose(implicit.qd[-1, 0], -0.5 * 9.81 * np.sin(1.0) / 1e4, rtol=1e-2)


def test_implicit_integration_includes_the_damping_of_grafts():
    model = pendulum()
    damper = eqx.Partial(lambda c, x: -c * x, jnp.asarray(1e4))
    blueprint = Blueprint(Graft("joint.tau", ["joint.qd"], damper))
    state = Simulator(model).initial_state([1.0], [1.0])
    explicit = _trajectory(Simulator(model, dt=0.01, blueprint=blueprint), state, 50)
    implicit = _trajectory(Simulator(model, dt=0.01, blueprint=blueprint, integrator="implicit"), state, 50)
    assert int(explicit.status) == 1 and int(implicit.status) == 0
    assert abs(float(implicit.qd[-1, 0])) < 1e-3


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_quaternions_stay_unit(integrator):
    sim = Simulator(cube(), dt=0.02, integrator=integrator)
    trajectory = _trajectory(sim, sim.initial_state(qd=[9.0, -7.0, 8.0, 1.0, 0.0, 0.0]), 200)
    np.testing.assert_allclose(np.linalg.norm(trajectory.q[:, 3:], axis=1), 1.0, atol=1e-14)


def test_runge_kutta_without_grafts_traces_the_dynamics_once(monkeypatch):
    sim = Simulator(double_pendulum(), integrator="rk4")
    calls, plain = [], integrate.forward
    monkeypatch.setattr(integrate, "forward", lambda *a: calls.append(1) or plain(*a))
    jax.make_jaxpr(lambda state: integrate.next_state(sim, state, Inputs(np.zeros(sim.model.nu))))(sim.initial_state())
    assert len(calls) == 1
