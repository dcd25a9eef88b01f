"""Networks of joint torques keep their promise, whatever their weights: they dissipate, conserve, or store."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.dynamics.energy import gravity_energy, kinetic_energy
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.passive import FIRST, NONE_AT_ALL, Conservative, Dissipative, PortHamiltonian, not_negative
from hybridsim.robots import double_pendulum, n_link_pendulum
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft
from support.some_networks import Weights, shaken

N = 3
HIDDEN = {"hidden": (5,)}


def energy(sim, q, qd):
    kin = kinematics(sim.model, q, qd)
    return kinetic_energy(sim.model, kin, qd) + gravity_energy(sim.model, kin)


def course_of_energy(sim, state, steps=400):
    motion = rollout(sim, state, steps=steps)
    return jax.vmap(lambda q, qd: energy(sim, q, qd))(motion.q, motion.qd), motion


@given(weights=Weights, seed=st.integers(0, 100))
def test_dissipation_never_adds_power(weights, seed):
    x = 10.0 * np.random.default_rng(seed).normal(size=2 * N)
    net = shaken(Dissipative(N, N, **HIDDEN), weights)
    v = x[N:]
    assert v @ np.asarray(net(x)) <= 1e-12 * np.abs(net(x)).max() * np.abs(v).max()
    D = np.asarray(net.damping(x[:N]))
    np.testing.assert_array_equal(D, D.T)
    assert np.linalg.eigvalsh(D).min() > -1e-12 * np.abs(D).max()


def test_dissipation_that_depends_on_nothing_is_constant():
    net = Dissipative(0, 2, damping_scale=4.0)
    assert np.asarray(net(np.array([1.0, -2.0]))) == pytest.approx(4.0 * FIRST * np.array([-1.0, 2.0]))
    assert sum(x.size for x in jax.tree.leaves(eqx.filter(net, eqx.is_array))) == 3 + 1


@given(weights=Weights, seed=st.integers(0, 100))
def test_conservative_torques_do_no_work_around_a_loop(weights, seed):
    """The Jacobian of a gradient is symmetric."""
    q = np.random.default_rng(seed).normal(size=N)
    net = shaken(Conservative(N, **HIDDEN), weights)
    J = np.asarray(jax.jacfwd(net)(q))
    np.testing.assert_allclose(J, J.T, rtol=0, atol=1e-12 * max(np.abs(J).max(), 1.0))
    np.testing.assert_allclose(net(q), -jax.grad(net.potential)(q), rtol=1e-12)


@given(weights=Weights, seed=st.integers(0, 100))
def test_power_of_a_port_hamiltonian_is_that_of_its_parts(weights, seed):
    rng = np.random.default_rng(seed)
    net = shaken(PortHamiltonian(N, ports=2, **HIDDEN), weights)
    q, v, u = rng.normal(size=N), rng.normal(size=N), rng.normal(size=2)
    power = v @ np.asarray(net(np.concatenate([q, v, u])))
    stored = jax.jvp(net.conservative.potential, (q,), (v,))[1]
    lost = v @ np.asarray(net.dissipative.damping(q)) @ v
    brought = v @ (np.asarray(net.port(q)).reshape(N, 2) @ u)
    assert lost >= 0.0
    assert power == pytest.approx(float(brought - stored - lost), rel=1e-9, abs=1e-9 * (1.0 + abs(lost)))
    J = np.asarray(net.interconnection(q))
    np.testing.assert_array_equal(J, -J.T)


def test_a_port_is_not_needed():
    net = PortHamiltonian(1, **HIDDEN)
    assert net(np.array([0.4, 2.0])).shape == (1,)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_potential_in_a_rollout_gives_back_what_it_takes(seed):
    net = shaken(Conservative(2, **HIDDEN), (seed, 2.0))
    blueprint = Blueprint(Graft("joint.tau", ["joint.q"], net))
    sim = Simulator(double_pendulum(), dt=1e-3, integrator="rk4", blueprint=blueprint)
    plain, motion = course_of_energy(sim, sim.initial_state([1.0, 0.5], [0.3, -0.2]))
    total = plain + jax.vmap(net.potential)(motion.q)
    assert np.ptp(plain) > 1e-2
    np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", [0, 1])
def test_dissipation_in_a_rollout_only_loses(seed):
    net = shaken(Dissipative(2, 2, **HIDDEN), (seed, 1.0))
    blueprint = Blueprint(Graft("joint.tau", ["joint.q", "joint.qd"], net))
    sim = Simulator(double_pendulum(), dt=1e-3, integrator="rk4", blueprint=blueprint)
    found, _ = course_of_energy(sim, sim.initial_state([1.0, 0.5], [0.3, -0.2]))
    assert np.diff(found).max() < 1e-9 and found[-1] < found[0] - 1e-3


@pytest.mark.parametrize("seed", [0, 1])
def test_energy_with_a_residual_lagrangian_is_conserved(seed):
    net = shaken(Lagrangian(3, inertia_scale=0.5, **HIDDEN), (seed, 1.0))
    graft = Graft("joint.qdd", ["joint.q", "joint.qd", "joint.qdd", "joint.mass_matrix"], net, mode="replace")
    sim = Simulator(n_link_pendulum(3), dt=1e-3, integrator="rk4", blueprint=Blueprint(graft))
    plain, motion = course_of_energy(sim, sim.initial_state([1.0, 0.5, -0.4], [0.3, -0.2, 1.0]))
    total = plain + jax.vmap(net.energy)(motion.q, motion.qd)
    assert np.ptp(plain) > 1e-2
    np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-7)


def test_a_residual_inertia_is_an_armature():
    """Where it is constant and diagonal."""
    model = double_pendulum()
    net = Lagrangian(2, hidden=(), inertia_scale=0.3 / FIRST)
    graft = Graft("joint.qdd", ["joint.q", "joint.qd", "joint.qdd", "joint.mass_matrix"], net, mode="replace")
    heavy = eqx.tree_at(lambda m: m.joint.armature, model, np.asarray(model.joint.armature) + 0.3)
    state = Simulator(model).initial_state([1.0, 0.5], [0.3, -0.2])
    one = rollout(Simulator(heavy), state, steps=50)
    other = rollout(Simulator(model, blueprint=Blueprint(graft)), state, steps=50)
    np.testing.assert_allclose(other.q, one.q, rtol=0, atol=1e-12)


def test_fresh_ones_change_next_to_nothing_but_have_slopes():
    x = np.array([0.3, -0.2, 0.5, 1.0])
    for net, inputs in ((Dissipative(2, 2), x), (Conservative(2), x[:2]), (PortHamiltonian(2), x)):
        assert np.abs(np.asarray(net(inputs))).max() <= 2.0 * FIRST
        gradient = eqx.filter_grad(lambda net, inputs=inputs: jnp.sum(net(inputs)))(net)
        assert max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(gradient)) > 1e-5


@given(x=st.floats(-1e15, 1e15))
def test_what_must_not_be_negative_is_not_whatever_is_rounded(x):
    for first in (FIRST, np.sqrt(FIRST)):
        found = float(not_negative(np.asarray(x), first))
        assert max(x, 0.0) <= found <= max(x, 0.0) + first
    assert float(not_negative(np.zeros(()))) == FIRST
    assert float(jax.grad(not_negative)(jnp.zeros(()))) == 0.5
    assert float(not_negative(np.asarray(NONE_AT_ALL))) == 0.0
