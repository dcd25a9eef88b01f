"""Wiring of passive networks: inputs must be power-conjugate to the outputs."""

import pytest

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.core.errors import TapError
from hybridsim.networks.drag import RodDrag
from hybridsim.networks.friction import ConeFriction, JointFriction
from hybridsim.networks.internal_force import InternalForce
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.passive import Conservative, Dissipative, PortHamiltonian
from hybridsim.robots import cube, double_pendulum
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft

STATE = ["joint.q", "joint.qd"]
PAIR_INPUTS = ["body.pose[link0,link1]", "body.twist[link0,link1]"]
NOT_PASSIVE = {
    "other order": Graft("joint.tau", ["joint.qd", "joint.q"], Dissipative(2, 2)),
    "other joints": Graft("joint.tau", "joint.qd[joint1,joint0]", Dissipative(0, 2)),
    "past velocities": Graft("joint.tau", "joint.qd@1", Dissipative(0, 2)),
    "scaled": Graft("joint.tau", STATE, Dissipative(2, 2), mode="scale"),
    "coordinates of other joints": Graft("joint.tau", "joint.q[joint1,joint0]", Conservative(2)),
    "a force of coordinates": Graft("body.external_wrench[link0].force.x", "joint.q[joint0]", Conservative(1)),
    "velocities first": Graft("joint.tau", ["joint.qd", "joint.q"], PortHamiltonian(2)),
    "friction by the wrong joint": Graft("joint.tau[joint0]", "joint.qd[joint1]", JointFriction()),
    "added accelerations": Graft("joint.qdd", [*STATE, "joint.qdd", "joint.mass_matrix"], Lagrangian(2)),
    "a twist of another body": Graft("body.external_wrench[link0]", "body.twist[link1]", RodDrag((0, 0, 0), (0, 0, 1))),
    "bodies the other way round": Graft("body.external_wrench[link1,link0]", PAIR_INPUTS, InternalForce()),
}


@pytest.mark.parametrize("case", NOT_PASSIVE)
def test_a_wiring_that_is_not_passive_is_refused(case):
    with pytest.raises(TapError, match=r"must read|is valid only with mode"):
        Simulator(double_pendulum(), blueprint=Blueprint(NOT_PASSIVE[case]))


PASSIVE = {
    "one for all": Graft("joint.tau", STATE, Dissipative(2, 2)),
    "one for each": Graft("joint.tau", STATE, Dissipative(1, 1), per="element"),
    "of another force": Graft("joint.passive", "joint.qd", Dissipative(0, 2)),
    "parts of a wrench": Graft(
        ["body.external_wrench[link1].torque.y", "body.external_wrench[link1].force.x"],
        ["step.time", "body.twist[link1].omega.y", "body.twist[link1].v.x"],
        Dissipative(1, 2),
    ),
    "with a port": Graft("joint.tau", [*STATE, "actuator.command"], PortHamiltonian(2, ports=2)),
    "friction": Graft("joint.tau", STATE, JointFriction(1), per="element"),
    "between bodies": Graft("body.external_wrench[link0,link1]", PAIR_INPUTS, InternalForce()),
}


@pytest.mark.parametrize("case", PASSIVE)
def test_a_passive_wiring_is_accepted(case):
    Simulator(double_pendulum(), blueprint=Blueprint(PASSIVE[case]))


def test_contact_friction_must_replace_that_of_the_engine():
    reads = ["contact.normal_force", "contact.slip_velocity"]
    model = cube()
    net = ConeFriction()
    Simulator(
        model,
        contact=CompliantContact(),
        blueprint=Blueprint(Graft("contact.friction_force", reads, net, mode="replace", per="element")),
    )
    for graft in (
        Graft("contact.friction_force", reads, net, per="element"),
        Graft("contact.friction_force", reads[::-1], net, mode="replace", per="element"),
    ):
        with pytest.raises(TapError, match=r"must read|is valid only with mode"):
            Simulator(model, contact=CompliantContact(), blueprint=Blueprint(graft))
