"""A quadruped with position servos, dropped from 5 cm, lands and stands still for ten seconds."""

import numpy as np
import pytest

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.dynamics.actuation import Actuation, PDServo
from hybridsim.robots.quadruped import STANDING, quadruped
from hybridsim.sim.rollout import failure_message, simulate
from hybridsim.sim.simulator import Simulator
from support.slow import slow

FEET = ("*_foot*|ground",)
DT = 1e-3
LINK, FOOT = 0.2, 0.02
"""Length of thigh and calf, radius of a foot [m]."""
STANDING_HEIGHT = 2.0 * LINK * np.cos(STANDING[1]) + FOOT
"""Height of the trunk with the legs as commanded and the feet on the ground [m]."""


@pytest.mark.parametrize(
    "contact",
    [
        ImpulseContact(only=FEET),
        CompliantContact(only=FEET),
        slow(ImpulseContact(only=FEET, sweeps=2)),
        slow(ImpulseContact(only=FEET, sweeps=1)),
        slow(ImpulseContact(only=FEET, cone="circular")),
    ],
    ids=["impulse", "compliant", "2 sweeps", "1 sweep", "circular cone"],
)
def test_a_dropped_quadruped_stands_still(contact):
    model = quadruped()
    sim = Simulator(model, contact=contact, dt=DT, actuation=Actuation(PDServo(100.0, 2.0)))
    start = model.home.copy()
    start[2] = STANDING_HEIGHT + 0.05
    commands = np.tile(np.tile(STANDING, 4), (10_000, 1))
    trajectory = simulate(sim, sim.initial_state(q=start), commands)
    assert not failure_message(sim, trajectory)

    q, qd = trajectory.q, trajectory.qd
    before = round(np.sqrt(2.0 * 0.05 / 9.81) / DT) - 2
    fallen = STANDING_HEIGHT + 0.05 - 0.5 * 9.81 * (np.arange(before) * DT) * (np.arange(before) + 1) * DT
    np.testing.assert_allclose(q[:before, 2], fallen, atol=1e-4)  # free fall; servos move the legs

    # knees yield under the weight and move the trunk backwards, and compliant feet penetrate
    landed = q[2000:]
    assert landed[:, 2].min() > STANDING_HEIGHT - 0.012 and landed[:, 2].max() < STANDING_HEIGHT
    assert np.abs(landed[:, :2]).max() < 0.02
    assert np.degrees(2.0 * np.linalg.norm(landed[:, 4:7], axis=1)).max() < 1.0
    # settling is below 1 mm after two seconds, complete after five
    assert np.abs(landed - q[-1]).max() < 1e-3
    assert np.abs(q[5000:] - q[-1]).max() < 1e-5
    assert np.abs(qd[5000:]).max() < 1e-4


@pytest.mark.slow
def test_all_shapes_of_a_quadruped_against_the_ground_in_native_code():
    """56 contacts: too many to unroll the sweeps."""
    sim = Simulator(quadruped(), contact="impulse", dt=DT, backend="native", actuation=Actuation(PDServo(100.0, 2.0)))
    assert sim.contact.candidates.nc == 56
    trajectory = simulate(sim, inputs=np.tile(np.tile(STANDING, 4), (300, 1)))
    assert not failure_message(sim, trajectory)
    # only the feet are in contact
    feet_only = Simulator(sim.model, contact=ImpulseContact(only=FEET), dt=DT, actuation=sim.actuation)
    np.testing.assert_allclose(
        trajectory.q, simulate(feet_only, inputs=np.tile(np.tile(STANDING, 4), (300, 1))).q, atol=1e-9
    )
