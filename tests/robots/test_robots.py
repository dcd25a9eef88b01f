"""Built-in robot models."""

import jax
import numpy as np
import pytest

from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.kinematics import frame_pose, kinematics
from hybridsim.io.load import load_model
from hybridsim.robots import (
    BUILT_IN,
    acrobot,
    arm_from_dh,
    double_pendulum,
    n_link_pendulum,
    pusher,
    quadruped,
    swimmer,
)
from hybridsim.robots.arm import DH
from hybridsim.sim.rollout import simulate
from hybridsim.sim.simulator import Simulator
from support.real_models import bullet_file


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_model_can_be_simulated(name):
    sim = Simulator(BUILT_IN[name](), dt=0.001)
    trajectory = simulate(sim, steps=20)
    assert int(trajectory.status) == 0 and np.isfinite(trajectory.q).all()


@pytest.mark.parametrize("contact", ["impulse", "compliant"])
def test_pusher_and_friction_of_the_table(contact):
    """The block comes to rest after v²/(2 μ g); the tip pushes it without penetration, and rotates it off-centre."""
    sim = Simulator(pusher(), contact=contact, dt=0.001)
    assert {name.partition(".")[0] for name in sim.contact.candidates.names} == {"outline|tip", "bottom|table"}
    sliding = simulate(sim, sim.initial_state(qd=[0, 0.5, 0, 0, 0, 0]), steps=300)
    # half a time step at the initial speed is 0.25 mm; compliant contact starts without load
    assert sliding.q[-1, 1] == pytest.approx(0.5**2 / (2 * 0.25 * 9.81), abs=5e-4)
    assert abs(sliding.qd[-1, 1]) < 1e-3
    force = np.tile([4.0, 0.0], (250, 1))
    lift, x, _, _, tip, _ = simulate(sim, inputs=force).q.T
    gap = (x - 0.045) - (tip - 0.1 + 0.00475)
    # the tip impacts at 0.9 m/s; compliant contact carries no more than the weight at a penetration of 2 mm
    max_penetration = 1e-4 if contact == "impulse" else 5e-3
    assert x[-1] > 0.02 and abs(lift).max() < 1e-3 and -max_penetration < gap.min() < 1e-4
    yaw = simulate(sim, sim.initial_state(q=[0, 0, 0, 0, 0, 0.02]), force).q[-1, 3]
    assert yaw < -0.05


def test_double_pendulum_obeys_the_textbook_equations():
    """Lagrangian equations of two thin rods; the angle of the second link is relative to the first."""
    m1, m2, L1, L2, g = 1.3, 0.7, 0.9, 1.1, 9.81
    model = double_pendulum((L1, L2), (m1, m2))
    I1, I2 = model.body.inertia[0, 1], model.body.inertia[1, 1]
    q, qd = np.array([0.7, -1.2]), np.array([1.5, -0.8])
    a1, a2 = L1 / 2, L2 / 2
    c, s = np.cos(q[1]), np.sin(q[1])
    M11 = I1 + I2 + m1 * a1**2 + m2 * (L1**2 + a2**2 + 2 * L1 * a2 * c)
    M12 = I2 + m2 * (a2**2 + L1 * a2 * c)
    M = np.array([[M11, M12], [M12, I2 + m2 * a2**2]])
    h = m2 * L1 * a2 * s * np.array([-2 * qd[0] * qd[1] - qd[1] ** 2, qd[0] ** 2])
    weight = m2 * g * a2 * np.sin(q.sum())
    G = np.array([(m1 * a1 + m2 * L1) * g * np.sin(q[0]) + weight, weight])
    expected = np.linalg.solve(M, -h - G)
    np.testing.assert_allclose(jax.jit(forward_dynamics)(model, q, qd, np.zeros(2)), expected, rtol=1e-12)


def test_quadruped_agrees_with_the_published_description():
    """Legs, masses and limits of the manufacturer's robot description in pybullet_data."""
    model, reference = quadruped(), load_model(bullet_file("a1/a1.urdf"), base="free")
    assert (model.nb, model.nv, model.nu) == (13, 18, 12) == (reference.nb, reference.nv, reference.nu)
    names = {"hip": "hip", "thigh": "upper", "calf": "lower"}
    for leg in ("FR", "FL", "RR", "RL"):
        for part, other in names.items():
            a, b = model.topology.body_index(f"{leg}_{part}"), reference.topology.body_index(f"{leg}_{other}")
            # the file adds a sensor of 1 g to every hip, which the published masses exclude
            exact = part != "hip"
            np.testing.assert_allclose(model.body.mass[a], reference.body.mass[b], rtol=1e-12 if exact else 0.0015)
            np.testing.assert_allclose(model.joint.placement.p[a], reference.joint.placement.p[b], atol=1e-12)
            np.testing.assert_allclose(model.body.com[a], reference.body.com[b], atol=1e-12 if exact else 2e-4)
            tolerance = 1e-12 if exact else 1.1e-4 + 1e-3 * 0.0811**2
            np.testing.assert_allclose(model.body.inertia[a], reference.body.inertia[b], atol=tolerance)
            np.testing.assert_allclose(model.joint.lower[a + 5], reference.joint.lower[b + 5])
            np.testing.assert_allclose(model.joint.effort_limit[a + 5], reference.joint.effort_limit[b + 5])


def test_standing_feet_are_below_the_hips():
    model = quadruped()
    kin = jax.jit(kinematics)(model, model.home, np.zeros(18))
    feet = np.stack([frame_pose(model, kin, f"{leg}_foot").p for leg in ("FR", "FL", "RR", "RL")])
    assert np.ptp(feet[:, 2]) < 1e-12 and 0.0 < feet[0, 2] < 0.1
    assert np.allclose(feet[:2].sum(axis=0)[1], 0.0)


def test_acrobot_is_actuated_at_the_elbow_only():
    assert acrobot().actuator.names == ("elbow",)


@pytest.mark.parametrize("links", [2, 6])
def test_swimmer_has_the_requested_number_of_links(links):
    model = swimmer(links)
    assert model.nv == 3 + links - 1 and model.nu == links - 1
    with pytest.raises(ValueError, match="at least two"):
        swimmer(1)


def test_arm_from_denavit_hartenberg_parameters():
    """Tool pose against the product of the elementary transforms of each row, with a prismatic joint."""
    rows = [DH(0.4, 0.1, 0.3, 0.2), DH(0.3, np.pi / 2, 0.05), DH(0.1, -0.3, 0.2, 0.4, prismatic=True)]
    model = arm_from_dh(rows)
    q = np.array([0.5, -0.7, 0.15])

    def elementary(row, value):
        theta = row.theta if row.prismatic else row.theta + value
        d = row.d + value if row.prismatic else row.d
        ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(row.alpha), np.sin(row.alpha)
        return np.array(
            [
                [ct, -st * ca, st * sa, row.a * ct],
                [st, ct * ca, -ct * sa, row.a * st],
                [0, sa, ca, d],
                [0, 0, 0, 1],
            ]
        )

    expected = np.linalg.multi_dot([elementary(row, value) for row, value in zip(rows, q, strict=True)])
    tool = frame_pose(model, kinematics(model, q, np.zeros(3)), "tool")
    np.testing.assert_allclose(tool.R, expected[:3, :3], atol=1e-14)
    np.testing.assert_allclose(tool.p, expected[:3, 3], atol=1e-14)
    with pytest.raises(ValueError, match="one inertial for each"):
        arm_from_dh(rows, inertials=[])


def test_wrong_number_of_lengths():
    with pytest.raises(ValueError, match="3 links need 3"):
        n_link_pendulum(3, lengths=[1.0])
