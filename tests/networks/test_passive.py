"""Networks for joint torques are dissipative, conservative or port-Hamiltonian for any weights."""

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
from hybridsim.networks.passive import (
    INITIAL_FRACTION,
    SQUAREPLUS_ZERO,
    Conservative,
    Dissipative,
    PortHamiltonian,
    squareplus,
)
from hybridsim.robots import double_pendulum, n_link_pendulum
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft
from support.networks import Weights, randomize_weights

N = 3
HIDDEN = {"hidden": (5,)}


def energy(sim, q, qd):
    kin = kinematics(sim.model, q, qd)
    return kinetic_energy(sim.model, kin, qd) + gravity_energy(sim.model, kin)


def energies_of_rollout(sim, state, steps=400):
    trajectory = rollout(sim, state, steps=steps)
    return jax.vmap(lambda q, qd: energy(sim, q, qd))(trajectory.q, trajectory.qd), trajectory


@given(weights=Weights, seed=st.integers(0, 100))
def test_dissipation_never_adds_power(weights, seed):
    x = 10.0 * np.random.default_rng(seed).normal(size=2 * N)
    net = randomize_weights(Dissipative(N, N, **HIDDEN), weights)
    v = x[N:]
    assert v @ np.asarray(net(x)) <= 1e-12 * np.abs(net(x)).max() * np.abs(v).max()
    D = np.asarray(net.damping(x[:N]))
    np.testing.assert_array_equal(D, D.T)
    assert np.linalg.eigvalsh(D).min() > -1e-12 * np.abs(D).max()


def test_dissipation_without_context_is_constant():
    net = Dissipative(0, 2, damping_scale=4.0)
    assert np.asarray(net(np.array([1.0, -2.0]))) == pytest.approx(4.0 * INITIAL_FRACTION * np.array([-1.0, 2.0]))
    assert sum(x.size for x in jax.tree.leaves(eqx.filter(net, eqx.is_array))) == 3 + 1


@given(weights=Weights, seed=st.integers(0, 100))
def test_conservative_torques_do_no_work_around_a_loop(weights, seed):
    """The Jacobian of a gradient is symmetric."""
    q = np.random.default_rng(seed).normal(size=N)
    net = randomize_weights(Conservative(N, **HIDDEN), weights)
    J = np.asarray(jax.jacfwd(net)(q))
    np.testing.assert_allclose(J, J.T, rtol=0, atol=1e-12 * max(np.abs(J).max(), 1.0))
    np.testing.assert_allclose(net(q), -jax.grad(net.potential)(q), rtol=1e-12)


@given(weights=Weights, seed=st.integers(0, 100))
def test_power_balance_of_a_port_hamiltonian(weights, seed):
    rng = np.random.default_rng(seed)
    net = randomize_weights(PortHamiltonian(N, ports=2, **HIDDEN), weights)
    q, v, u = rng.normal(size=N), rng.normal(size=N), rng.normal(size=2)
    power = v @ np.asarray(net(np.concatenate([q, v, u])))
    stored = jax.jvp(net.conservative.potential, (q,), (v,))[1]
    dissipated = v @ np.asarray(net.dissipative.damping(q)) @ v
    supplied = v @ (np.asarray(net.port(q)).reshape(N, 2) @ u)
    assert dissipated >= 0.0
    balance = float(supplied - stored - dissipated)
    assert power == pytest.approx(balance, rel=1e-9, abs=1e-9 * (1.0 + abs(dissipated)))
    J = np.asarray(net.interconnection(q))
    np.testing.assert_array_equal(J, -J.T)


def test_a_port_is_optional():
    net = PortHamiltonian(1, **HIDDEN)
    assert net(np.array([0.4, 2.0])).shape == (1,)


@pytest.mark.parametrize("seed", [0, 1])
def test_energy_of_a_rollout_with_a_conservative_network_is_conserved(seed):
    net = randomize_weights(Conservative(2, **HIDDEN), (seed, 2.0))
    blueprint = Blueprint(Graft("joint.tau", ["joint.q"], net))
    sim = Simulator(double_pendulum(), dt=1e-3, integrator="rk4", blueprint=blueprint)
    plain, trajectory = energies_of_rollout(sim, sim.initial_state([1.0, 0.5], [0.3, -0.2]))
    total = plain + jax.vmap(net.potential)(trajectory.q)
    assert np.ptp(plain) > 1e-2
    np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", [0, 1])
def test_energy_of_a_rollout_with_dissipation_decreases(seed):
    net = randomize_weights(Dissipative(2, 2, **HIDDEN), (seed, 1.0))
    blueprint = Blueprint(Graft("joint.tau", ["joint.q", "joint.qd"], net))
    sim = Simulator(double_pendulum(), dt=1e-3, integrator="rk4", blueprint=blueprint)
    total, _ = energies_of_rollout(sim, sim.initial_state([1.0, 0.5], [0.3, -0.2]))
    assert np.diff(total).max() < 1e-9 and total[-1] < total[0] - 1e-3


@pytest.mark.parametrize("seed", [0, 1])
def test_energy_with_a_residual_lagrangian_is_conserved(seed):
    net = randomize_weights(Lagrangian(3, inertia_scale=0.5, **HIDDEN), (seed, 1.0))
    graft = Graft("joint.qdd", ["joint.q", "joint.qd", "joint.qdd", "joint.mass_matrix"], net, mode="replace")
    sim = Simulator(n_link_pendulum(3), dt=1e-3, integrator="rk4", blueprint=Blueprint(graft))
    plain, trajectory = energies_of_rollout(sim, sim.initial_state([1.0, 0.5, -0.4], [0.3, -0.2, 1.0]))
    total = plain + jax.vmap(net.energy)(trajectory.q, trajectory.qd)
    assert np.ptp(plain) > 1e-2
    np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-7)


def test_a_constant_diagonal_residual_inertia_is_an_armature():
    model = double_pendulum()
    net = Lagrangian(2, hidden=(), inertia_scale=0.3 / INITIAL_FRACTION)
    graft = Graft("joint.qdd", ["joint.q", "joint.qd", "joint.qdd", "joint.mass_matrix"], net, mode="replace")
    heavy = eqx.tree_at(lambda m: m.joint.armature, model, np.asarray(model.joint.armature) + 0.3)
    state = Simulator(model).initial_state([1.0, 0.5], [0.3, -0.2])
    one = rollout(Simulator(heavy), state, steps=50)
    other = rollout(Simulator(model, blueprint=Blueprint(graft)), state, steps=50)
    np.testing.assert_allclose(other.q, one.q, rtol=0, atol=1e-12)


def test_initial_outputs_are_small_with_nonzero_gradients():
    x = np.array([0.3, -0.2, 0.5, 1.0])
    for net, inputs in ((Dissipative(2, 2), x), (Conservative(2), x[:2]), (PortHamiltonian(2), x)):
        assert np.abs(np.asarray(net(inputs))).max() <= 2.0 * INITIAL_FRACTION
        gradient = eqx.filter_grad(lambda net, inputs=inputs: jnp.sum(net(inputs)))(net)
        assert max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(gradient)) > 1e-5


@given(x=st.floats(-1e15, 1e15))
def test_squareplus_is_nonnegative_despite_rounding(x):
    for at_zero in (INITIAL_FRACTION, np.sqrt(INITIAL_FRACTION)):
        value = float(squareplus(np.asarray(x), at_zero))
        assert max(x, 0.0) <= value <= max(x, 0.0) + at_zero
    assert float(squareplus(np.zeros(()))) == INITIAL_FRACTION
    assert float(jax.grad(squareplus)(jnp.zeros(()))) == 0.5
    assert float(squareplus(np.asarray(SQUAREPLUS_ZERO))) == 0.0
