"""Forces between two bodies conserve momentum and are passive for any weights."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.dynamics.energy import kinetic_energy, momentum
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.model.builder import ModelBuilder
from hybridsim.networks.internal_force import InternalForce
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.spatial.rotation import matrix_from_rotation_vector
from hybridsim.taps.blueprint import Blueprint, Graft
from support.networks import Weights, randomize_weights

POINTS = ((0.1, 0.0, 0.05), (0.0, -0.2, 0.0))


def two_bodies():
    builder = ModelBuilder("two", gravity=(0.0, 0.0, 0.0))
    builder.add_body("first", joint="a", kind="free", mass=2.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.25))
    builder.add_body("second", joint="b", kind="free", mass=0.7, inertia=(0.02, 0.03, 0.04))
    return builder.build()


def simulator(net, **options):
    pair = "[first,second]"
    graft = Graft(f"body.external_wrench{pair}", [f"body.pose{pair}", f"body.twist{pair}"], net)
    return Simulator(two_bodies(), blueprint=Blueprint(graft), **options)


@given(weights=Weights, seed=st.integers(0, 100))
def test_wrenches_are_equal_and_opposite(weights, seed):
    x = np.random.default_rng(seed).normal(size=24)
    net = randomize_weights(InternalForce(*POINTS, hidden=(4,), damping_scale=1.0), weights)
    wrenches = np.asarray(net(x)).reshape(2, 6)
    poses = x[:12].reshape(2, 6)
    R = [np.asarray(matrix_from_rotation_vector(pose[3:])) for pose in poses]
    forces = [R[k] @ wrenches[k, 3:] for k in range(2)]
    torques = [R[k] @ wrenches[k, :3] + np.cross(poses[k, :3], forces[k]) for k in range(2)]
    size = 1.0 + np.abs(wrenches).max()
    np.testing.assert_allclose(forces[0] + forces[1], 0.0, atol=1e-12 * size)
    np.testing.assert_allclose(torques[0] + torques[1], 0.0, atol=1e-11 * size)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_momentum_of_a_rollout_is_conserved(backend):
    net = randomize_weights(InternalForce(*POINTS, hidden=(4,), damping_scale=1.0), (2, 3.0))
    sim = simulator(net, dt=1e-3, integrator="rk4", backend=backend)
    rng = np.random.default_rng(0)
    model = sim.model
    apart = model.home + np.r_[np.zeros(7), 0.5, 0.2, 0.1, np.zeros(4)]
    initial_state = sim.initial_state(apart, rng.normal(size=12))
    trajectory = rollout(sim, initial_state, steps=300)
    momenta = jax.vmap(lambda q, qd: momentum(model, kinematics(model, q, qd)))(trajectory.q, trajectory.qd)
    kinetic = jax.vmap(lambda q, qd: kinetic_energy(model, kinematics(model, q, qd), qd))(trajectory.q, trajectory.qd)
    assert np.ptp(kinetic) > 1e-2
    np.testing.assert_allclose(momenta, np.broadcast_to(momenta[0], momenta.shape), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("damping", "dissipates"), [(0.0, False), (2.0, True)])
def test_energy_is_conserved_or_dissipated(damping, dissipates):
    net = randomize_weights(InternalForce(*POINTS, hidden=(4,), damping_scale=damping), (5, 3.0))
    sim = simulator(net, dt=1e-3, integrator="rk4")
    model = sim.model
    q = model.home + np.r_[np.zeros(7), 0.5, 0.2, 0.1, np.zeros(4)]
    trajectory = rollout(sim, sim.initial_state(q, np.random.default_rng(1).normal(size=12)), steps=400)
    kinetic = jax.vmap(lambda q, qd: kinetic_energy(model, kinematics(model, q, qd), qd))(trajectory.q, trajectory.qd)

    def distance(q):
        X = kinematics(model, q, np.zeros(12)).X_WB
        ends = [X.p[k] + X.R[k] @ np.array(POINTS[k]) for k in range(2)]
        return np.linalg.norm(ends[0] - ends[1])

    total = np.array(
        [float(k + net.potential(np.asarray(distance(q)))) for k, q in zip(kinetic, trajectory.q, strict=True)]
    )
    assert np.diff(total).max() < 1e-7
    assert bool(total[-1] < total[0] - 1e-3) is dissipates
    if not dissipates:
        np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-6)
