"""The energy audit: what grafts bring in and take out is what the mechanism gains and loses."""

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
from support.some_networks import constant, shaken

STEPS, DT = 300, 1e-3
SWING = ([1.0, 0.5], [0.3, -0.2])


def still(model, steps=STEPS):
    return Inputs(np.zeros((steps, model.nu)))


def gained(sim, start, steps=STEPS):
    """Energy at the end minus that at the start [J]."""
    motion = rollout(sim, start, steps=steps)
    energies = []
    for k in (0, -1):
        kin = kinematics(sim.model, motion.q[k], motion.qd[k])
        energies.append(float(kinetic_energy(sim.model, kin, motion.qd[k]) + gravity_energy(sim.model, kin)))
    return energies[1] - energies[0]


GRAFTS = {
    "torque": Graft("joint.tau", ["joint.q", "joint.qd"], shaken(MLP(4, 2, hidden=(4,)), (1, 0.5))),
    "wrench": Graft("body.external_force[link1]", ["body.twist[link1]"], shaken(MLP(6, 6, hidden=(4,)), (2, 0.3))),
    "bias": Graft("body.bias_force[link1].force", ["joint.q"], shaken(MLP(2, 3, hidden=(4,)), (2, 0.3))),
    "acceleration": Graft("joint.qdd", ["joint.q"], shaken(MLP(2, 2, hidden=(4,)), (3, 0.5))),
    "velocity": Graft("step.qd_next", ["joint.q"], shaken(MLP(2, 2, hidden=(4,), output_scale=1e-3), (4, 0.5))),
    "command": Graft("actuator.command", ["joint.q"], shaken(MLP(2, 2, hidden=(4,)), (5, 0.5))),
    "passive torque": Graft("joint.passive[joint0]", ["joint.q[joint0]"], shaken(MLP(1, 1, hidden=(4,)), (6, 0.5))),
}


@pytest.mark.parametrize("kind", GRAFTS)
def test_what_a_graft_brings_is_what_a_mechanism_gains(kind):
    """Without any other losses."""
    blueprint = Blueprint(GRAFTS[kind])
    sim = Simulator(double_pendulum(), dt=DT, integrator="rk4", blueprint=blueprint)
    start = sim.initial_state(*SWING)
    found = audit(sim, start, still(sim.model))
    change = gained(sim, start)
    assert abs(change) > 1e-3
    assert float(found.injected[0] - found.removed[0]) == pytest.approx(change, rel=2e-3, abs=2e-5)


def test_several_grafts_are_told_apart():
    grafts = [GRAFTS["torque"], GRAFTS["wrench"], GRAFTS["acceleration"]]
    sim = Simulator(double_pendulum(), dt=DT, integrator="rk4", blueprint=Blueprint(*grafts))
    start = sim.initial_state(*SWING)
    found = audit(sim, start, still(sim.model))
    assert found.power.shape == (STEPS + 1, 3)
    assert float(jnp.sum(found.injected - found.removed)) == pytest.approx(gained(sim, start), rel=2e-3)


def test_a_known_torque_has_its_known_power():
    sim = Simulator(double_pendulum(), blueprint=Blueprint(Graft("joint.tau", ["step.time"], constant(0.7, -0.4))))
    state = sim.initial_state(*SWING)
    assert float(graft_powers(sim, state, Inputs(np.zeros(2)))[0]) == pytest.approx(0.7 * 0.3 + 0.4 * 0.2)


PASSIVE = {
    "dissipative": Graft("joint.tau", ["joint.q", "joint.qd"], shaken(Dissipative(2, 2, hidden=(4,)), (1, 1.0))),
    "friction": Graft(
        "joint.tau", ["joint.q", "joint.qd"], shaken(JointFriction(1, hidden=(4,)), (1, 1.0)), per="element"
    ),
    "drag": Graft("body.external_force[link1]", ["body.twist[link1]"], RodDrag((0, 0, 0), (0, 0, -1), quadratic=0.3)),
}


@pytest.mark.parametrize("kind", PASSIVE)
def test_passive_grafts_inject_nothing(kind):
    sim = Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(PASSIVE[kind]))
    found = audit(sim, sim.initial_state(*SWING), still(sim.model))
    assert float(found.removed[0]) > 1e-4
    assert float(found.injected[0]) <= 1e-15 * float(found.removed[0])


@pytest.mark.parametrize("net", ["conservative", "lagrangian"])
def test_what_stores_energy_gives_it_back(net):
    conservative = shaken(Conservative(2, hidden=(4,)), (3, 1.0))
    lagrangian = shaken(Lagrangian(2, hidden=(4,), inertia_scale=0.2), (3, 0.5))
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
    start = sim.initial_state(*SWING)
    found, motion = audit(sim, start, still(sim.model)), rollout(sim, start, steps=STEPS)
    held = float(stored(motion.q[-1], motion.qd[-1]) - stored(motion.q[0], motion.qd[0]))
    assert float(found.removed[0] - found.injected[0]) == pytest.approx(held, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("own", [0.0, 0.8])
def test_friction_of_contacts_only_removes(own):
    inputs = ["contact.normal_force", "contact.slip_velocity"]
    net = shaken(ConeFriction(friction=0.5, hidden=(5,)), (1, 0.5))
    graft = Graft("contact.friction_force", inputs, net, mode="replace", per="element")
    model = cube()
    sim = Simulator(model, dt=DT, contact=CompliantContact(friction=own), blueprint=Blueprint(graft))
    found = audit(sim, sim.initial_state(model.home, [0, 0, 0, 2.0, 0, 0]), still(model, 300))
    assert float(found.removed[0]) > 1e-3 and float(found.injected[0]) <= 1e-12


def test_what_has_no_effect_has_no_power():
    """A network on the friction of a cube high in the air."""
    graft = Graft("contact.friction_force", ["contact.slip_velocity"], lambda v: 0.0 * v + 1.0, per="element")
    model = cube()
    sim = Simulator(model, dt=DT, contact=CompliantContact(), blueprint=Blueprint(graft))
    home = np.array(model.home)
    home[list(model.topology.coordinate_names).index("root.z")] += 5.0
    found = audit(sim, sim.initial_state(home, [0, 0, 0, 2.0, 0, 0]), still(model, 20))
    assert float(found.injected[0]) == 0.0 == float(found.removed[0])


def test_impulses_are_judged_by_the_energy_that_is_left():
    """Stronger impulses throw a cube up again, although it is falling when they begin."""
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
    with_it, without = (float(step(one, state).qd[5]) for one in (sim, plain))
    assert with_it > 0.2 > abs(without)  # it leaves the ground upwards, instead of staying there
    mass = float(np.sum(model.body.mass))
    work = 0.5 * mass * (with_it**2 - without**2) + 9.81 * mass * DT * (with_it - without)
    assert power * DT == pytest.approx(work, rel=0.01)


def test_steps_that_are_too_long_are_shown_by_the_energy_gained():
    net = eqx.tree_at(lambda d: d.net.values, Dissipative(0, 2), np.array([4.9, 4.9, 0.0]))
    graft = Graft("joint.tau", "joint.qd", net)
    sim = Simulator(double_pendulum(), dt=0.01, blueprint=Blueprint(graft))
    found = audit(sim, sim.initial_state([0.5, 0.2], [1.0, -1.0]), still(sim.model, 12))
    assert float(found.injected[0]) == 0.0 and float(found.energy_change) > 1.0


def test_many_motions_at_once():
    sim = Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(PASSIVE["dissipative"]))
    starts = jax.vmap(lambda q: sim.initial_state(q))(np.array([[0.5, 0.1], [1.0, 0.2]]))
    found = jax.vmap(lambda state: audit(sim, state, still(sim.model, 20)))(starts)
    alone = audit(sim, sim.initial_state([1.0, 0.2]), still(sim.model, 20))
    np.testing.assert_allclose(found.removed[1], alone.removed, rtol=1e-9)
