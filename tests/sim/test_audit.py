"""Energy audit: energy injected and removed by grafts matches the energy change of the mechanism."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.dynamics.energy import gravity_energy, kinetic_energy
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.networks.drag import RodDrag
from hybridsim.networks.friction import ConeFriction, JointFriction
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Conservative, Dissipative
from hybridsim.robots import cube, double_pendulum
from hybridsim.sim.audit import audit, graft_powers
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs
from hybridsim.sim.step import step
from hybridsim.taps.blueprint import Blueprint, Graft
from support.networks import constant_network, randomize_weights

STEPS, DT = 300, 1e-3
INITIAL_STATE = ([1.0, 0.5], [0.3, -0.2])


def zero_commands(model, steps=STEPS):
    return Inputs(np.zeros((steps, model.nu)))


def energy_change(sim, initial_state, steps=STEPS):
    """Final minus initial mechanical energy [J]."""
    trajectory = rollout(sim, initial_state, steps=steps)
    energies = []
    for k in (0, -1):
        kin = kinematics(sim.model, trajectory.q[k], trajectory.qd[k])
        energies.append(float(kinetic_energy(sim.model, kin, trajectory.qd[k]) + gravity_energy(sim.model, kin)))
    return energies[1] - energies[0]


GRAFTS = {
    "torque": Graft("joint.tau", ["joint.q", "joint.qd"], randomize_weights(MLP(4, 2, hidden=(4,)), (1, 0.5))),
    "wrench": Graft(
        "body.external_wrench[link1]", ["body.twist[link1]"], randomize_weights(MLP(6, 6, hidden=(4,)), (2, 0.3))
    ),
    "bias": Graft("body.bias_wrench[link1].force", ["joint.q"], randomize_weights(MLP(2, 3, hidden=(4,)), (2, 0.3))),
    "acceleration": Graft("joint.qdd", ["joint.q"], randomize_weights(MLP(2, 2, hidden=(4,)), (3, 0.5))),
    "velocity": Graft(
        "step.qd_next", ["joint.q"], randomize_weights(MLP(2, 2, hidden=(4,), output_scale=1e-3), (4, 0.5))
    ),
    "command": Graft("actuator.command", ["joint.q"], randomize_weights(MLP(2, 2, hidden=(4,)), (5, 0.5))),
    "passive torque": Graft(
        "joint.passive[joint0]", ["joint.q[joint0]"], randomize_weights(MLP(1, 1, hidden=(4,)), (6, 0.5))
    ),
}


@pytest.mark.parametrize("kind", GRAFTS)
def test_net_energy_of_a_graft_is_the_energy_change_of_the_mechanism(kind):
    """In a mechanism without losses."""
    blueprint = Blueprint(GRAFTS[kind])
    sim = Simulator(double_pendulum(), dt=DT, integrator="rk4", blueprint=blueprint)
    initial_state = sim.initial_state(*INITIAL_STATE)
    result = audit(sim, initial_state, zero_commands(sim.model))
    change = energy_change(sim, initial_state)
    assert abs(change) > 1e-3
    assert float(result.injected[0] - result.removed[0]) == pytest.approx(change, rel=2e-3, abs=2e-5)


def test_several_grafts_are_audited_separately():
    grafts = [GRAFTS["torque"], GRAFTS["wrench"], GRAFTS["acceleration"]]
    sim = Simulator(double_pendulum(), dt=DT, integrator="rk4", blueprint=Blueprint(*grafts))
    initial_state = sim.initial_state(*INITIAL_STATE)
    result = audit(sim, initial_state, zero_commands(sim.model))
    assert result.power.shape == (STEPS + 1, 3)
    assert float(jnp.sum(result.injected - result.removed)) == pytest.approx(
        energy_change(sim, initial_state), rel=2e-3
    )


def test_power_of_a_constant_torque():
    sim = Simulator(
        double_pendulum(), blueprint=Blueprint(Graft("joint.tau", ["step.time"], constant_network(0.7, -0.4)))
    )
    state = sim.initial_state(*INITIAL_STATE)
    assert float(graft_powers(sim, state, Inputs(np.zeros(2)))[0]) == pytest.approx(0.7 * 0.3 + 0.4 * 0.2)


PASSIVE = {
    "dissipative": Graft(
        "joint.tau", ["joint.q", "joint.qd"], randomize_weights(Dissipative(2, 2, hidden=(4,)), (1, 1.0))
    ),
    "friction": Graft(
        "joint.tau", ["joint.q", "joint.qd"], randomize_weights(JointFriction(1, hidden=(4,)), (1, 1.0)), per="element"
    ),
    "drag": Graft("body.external_wrench[link1]", ["body.twist[link1]"], RodDrag((0, 0, 0), (0, 0, -1), quadratic=0.3)),
}


@pytest.mark.parametrize("kind", PASSIVE)
def test_passive_grafts_inject_nothing(kind):
    sim = Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(PASSIVE[kind]))
    result = audit(sim, sim.initial_state(*INITIAL_STATE), zero_commands(sim.model))
    assert float(result.removed[0]) > 1e-4
    assert float(result.injected[0]) <= 1e-15 * float(result.removed[0])


@pytest.mark.parametrize("net", ["conservative", "lagrangian"])
def test_energy_removed_by_conservative_networks_is_stored(net):
    conservative = randomize_weights(Conservative(2, hidden=(4,)), (3, 1.0))
    lagrangian = randomize_weights(Lagrangian(2, hidden=(4,), inertia_scale=0.2), (3, 0.5))
    reads = ["joint.q", "joint.qd", "joint.qdd", "joint.mass_matrix"]
    graft = {
        "conservative": Graft("joint.tau", ["joint.q"], conservative),
        "lagrangian": Graft("joint.qdd", reads, lagrangian, mode="replace"),
    }[net]
    stored = {
        "conservative": lambda q, qd: conservative.potential(q),
        "lagrangian": lagrangian.energy,
    }[net]
    sim = Simulator(double_pendulum(), dt=DT, integrator="rk4", blueprint=Blueprint(graft))
    initial_state = sim.initial_state(*INITIAL_STATE)
    result, trajectory = audit(sim, initial_state, zero_commands(sim.model)), rollout(sim, initial_state, steps=STEPS)
    change = float(stored(trajectory.q[-1], trajectory.qd[-1]) - stored(trajectory.q[0], trajectory.qd[0]))
    assert float(result.removed[0] - result.injected[0]) == pytest.approx(change, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("friction", [0.0, 0.8])
def test_contact_friction_only_removes_energy(friction):
    inputs = ["contact.normal_force", "contact.slip_velocity"]
    net = randomize_weights(ConeFriction(friction=0.5, hidden=(5,)), (1, 0.5))
    graft = Graft("contact.friction_force", inputs, net, mode="replace", per="element")
    model = cube()
    sim = Simulator(model, dt=DT, contact=CompliantContact(friction=friction), blueprint=Blueprint(graft))
    result = audit(sim, sim.initial_state(model.home, [0, 0, 0, 2.0, 0, 0]), zero_commands(model, 300))
    assert float(result.removed[0]) > 1e-3 and float(result.injected[0]) <= 1e-12


def test_grafts_without_effect_have_no_power():
    """A network on the contact friction of a cube in free flight."""
    graft = Graft("contact.friction_force", ["contact.slip_velocity"], lambda v: 0.0 * v + 1.0, per="element")
    model = cube()
    sim = Simulator(model, dt=DT, contact=CompliantContact(), blueprint=Blueprint(graft))
    home = np.array(model.home)
    home[list(model.topology.coordinate_names).index("root.z")] += 5.0
    result = audit(sim, sim.initial_state(home, [0, 0, 0, 2.0, 0, 0]), zero_commands(model, 20))
    assert float(result.injected[0]) == 0.0 == float(result.removed[0])


def test_power_of_impulses_is_the_energy_difference_after_a_step():
    """Larger impulses throw a falling cube up again."""
    graft = Graft(
        "contact.normal_force", ["contact.normal_force"], lambda n: 0.0 * n + 0.3, mode="scale", per="element"
    )
    model = cube()
    sim = Simulator(model, dt=DT, contact=ImpulseContact(), blueprint=Blueprint(graft))
    on_the_ground = np.array(model.home)
    on_the_ground[list(model.topology.coordinate_names).index("root.z")] = 0.05
    state = sim.initial_state(on_the_ground, [0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
    power = float(graft_powers(sim, state, Inputs(np.zeros(model.nu)))[0])
    plain = Simulator(model, dt=DT, contact=ImpulseContact())
    v_grafted, v_plain = (float(step(one, state).qd[5]) for one in (sim, plain))
    assert v_grafted > 0.2 > abs(v_plain)  # it bounces instead of resting on the ground
    mass = float(np.sum(model.body.mass))
    work = 0.5 * mass * (v_grafted**2 - v_plain**2) + 9.81 * mass * DT * (v_grafted - v_plain)
    assert power * DT == pytest.approx(work, rel=0.01)


def test_a_time_step_that_is_too_long_shows_as_energy_change():
    net = eqx.tree_at(lambda d: d.net.values, Dissipative(0, 2), np.array([4.9, 4.9, 0.0]))
    graft = Graft("joint.tau", "joint.qd", net)
    sim = Simulator(double_pendulum(), dt=0.01, blueprint=Blueprint(graft))
    result = audit(sim, sim.initial_state([0.5, 0.2], [1.0, -1.0]), zero_commands(sim.model, 12))
    assert float(result.injected[0]) == 0.0 and float(result.energy_change) > 1.0


def test_a_batch_of_trajectories():
    sim = Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(PASSIVE["dissipative"]))
    initial_states = jax.vmap(lambda q: sim.initial_state(q))(np.array([[0.5, 0.1], [1.0, 0.2]]))
    batch = jax.vmap(lambda state: audit(sim, state, zero_commands(sim.model, 20)))(initial_states)
    single = audit(sim, sim.initial_state([1.0, 0.2]), zero_commands(sim.model, 20))
    np.testing.assert_allclose(batch.removed[1], single.removed, rtol=1e-9)
