"""Falling bodies that come to rest, against MuJoCo on the same MJCF text.

Before contact, both engines take the same semi-implicit Euler steps and differ by rounding only. In contact they use
different models, so only the final poses at rest are compared.

- MuJoCo's contacts are springs and dampers in acceleration space, critically damped by default. They act from the
  first penetration on, an impact takes about 20 ms, and the penetration at rest is a few hundredths of a millimetre.
  Friction creeps under a constant tangential load: the pendulum in these tests keeps moving at 0.8 mrad/s.
- Impulse contact prevents penetration within a step, so it acts one step before MuJoCo's. The approach speed of an
  impact vanishes within two steps, and there is no creep.
- Compliant contact carries the weight of a body at a penetration of 1 mm, less with several contact points; it has some
  restitution, and creeps like MuJoCo's.
- Final positions of bodies that slide or rock after an impact thus differ by a few millimetres between the models.
"""

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.dynamics.kinematics import kinematics
from hybridsim.io.load import load_model
from hybridsim.sim.rollout import failure_message, simulate
from hybridsim.sim.simulator import Simulator
from support.mjcf_files import write
from support.mujoco_twin import MujocoState

OPTION = '<option timestep="0.001" integrator="Euler" gravity="0 0 -9.81"><flag eulerdamp="disable"/></option>'
# falling bodies collide with the floor only
FLOOR = '<geom name="floor" type="plane" size="0 0 1" friction="0.6 0 0" contype="2" conaffinity="1"/>'
SURFACE = 'friction="0.6 0 0" contype="1" conaffinity="2"'
ROUNDING = 1e-13
"""Rounding errors of 1e-16 per step of coordinates of order one, accumulated over several hundred steps."""
MAX_REST_SPEED = 0.01
"""Maximum speed [m/s and rad/s] at rest: larger than creep, smaller than sliding or rocking."""


def scene(bodies: str) -> str:
    return f"<mujoco>{OPTION}<worldbody>{FLOOR}{bodies}</worldbody></mujoco>"


def falling_body_mjcf(geom: str, height: float, euler: str) -> str:
    return scene(
        f'<body name="body" pos="0 0 {height}" euler="{euler}"><freejoint name="root"/>'
        f'<geom {geom} mass="1" {SURFACE}/></body>'
    )


def five_link_pendulum_mjcf() -> str:
    """Horizontal chain of five 0.5 m links on a hinge at 1 m, each with a ball of 1 kg and 0.15 m radius at its end.

    The hinges are damped, as the undamped chain is chaotic and its final pose depends on the contact model.
    """
    links = [
        f'<body name="link{k}" pos="{"0.5 0 0" if k else "0 0 1"}">'
        f'<joint name="joint{k}" type="hinge" axis="0 1 0" damping="0.5"/>'
        f'<geom type="sphere" size="0.15" pos="0.5 0 0" mass="1" {SURFACE}/>'
        for k in range(5)
    ]
    return scene("".join(links) + "</body>" * 5)


class EngineComparison:
    """Simulations by both engines from the same model and initial state."""

    def __init__(self, folder, text: str, contact: str, qd, steps: int):
        model = load_model(write(folder, text))
        qd = np.zeros(model.nv) if qd is None else np.array(qd, dtype=float)
        sim = Simulator(model, contact=contact)
        self.ours = simulate(sim, sim.initial_state(qd=qd), steps=steps)
        assert not failure_message(sim, self.ours)

        mj = mujoco.MjModel.from_xml_string(text)
        self.theirs = MujocoState(model, mj, model.home, qd)
        data, q, self.rows_before_contact = self.theirs.data, [], 0
        for k in range(steps):
            q.append(data.qpos.copy())
            if not data.ncon and self.rows_before_contact == k:
                self.rows_before_contact = k + 1
            mujoco.mj_step(mj, data)
        self.q_theirs = np.array([*q, data.qpos])
        self.kin = kinematics(model, self.ours.q[-1], self.ours.qd[-1])
        self.bodies = model.topology.body_names

    def check_motion_before_contact(self, contact: str, min_rows: int) -> None:
        """Both motions are equal up to rounding before the first contact, and differ from then on."""
        # impulses prevent a penetration that MuJoCo detects at the beginning of the next step
        rows = self.rows_before_contact - (1 if contact == "impulse" else 0)
        assert rows >= min_rows, "contact begins too early"
        np.testing.assert_allclose(self.ours.q[:rows], self.q_theirs[:rows], rtol=0, atol=ROUNDING)
        difference = np.abs(self.ours.q - self.q_theirs).max(axis=1)
        assert difference[rows + 1] > 1e-4, "the first contact has no effect"

    def check_final_poses(self, *, horizontal: float, vertical: float, degrees: float) -> None:
        """Final poses of all bodies are equal within horizontal and vertical distances [m] and an angle."""
        assert np.abs(self.ours.qd[-1]).max() < MAX_REST_SPEED and np.abs(self.theirs.data.qvel).max() < MAX_REST_SPEED
        for k, body in enumerate(self.bodies):
            R, p = self.theirs.pose(body)
            distance = np.abs(np.asarray(self.kin.X_WB.p[k]) - p)
            angle = np.degrees(Rotation.from_matrix(np.asarray(self.kin.X_WB.R[k]).T @ R).magnitude())
            assert distance[:2].max() < horizontal, f"{body}: horizontal distance {1e3 * distance[:2].max():.1f} mm"
            assert distance[2] < vertical, f"{body}: vertical distance {1e3 * distance[2]:.2f} mm"
            assert angle < degrees, f"{body}: angle {angle:.2f}°"


CONTACT_MODELS = pytest.mark.parametrize("contact", ["impulse", "compliant"])


@CONTACT_MODELS
def test_a_cube_falls_on_an_edge_slides_and_rests(tmp_path, contact):
    text = falling_body_mjcf('type="box" size="0.1 0.1 0.1"', 0.2, "0 5 0")
    comparison = EngineComparison(tmp_path, text, contact, [0, 0, 0, 0.5, 0, 0], steps=1500)
    comparison.check_motion_before_contact(contact, min_rows=130)
    comparison.check_final_poses(horizontal=5e-3, vertical=1e-3, degrees=0.5)
    assert comparison.ours.q[-1, 0] > 0.06, "the cube must slide"


@CONTACT_MODELS
def test_a_spinning_cube_tumbles_through_the_air_and_lands_flat(tmp_path, contact):
    """The final heading is sensitive to each bounce, so only height and tilt are compared."""
    text = falling_body_mjcf('type="box" size="0.1 0.1 0.1"', 0.4, "10 15 20")
    comparison = EngineComparison(tmp_path, text, contact, [1.0, 2.0, 3.0, 0.3, 0.2, 0.0], steps=2000)
    comparison.check_motion_before_contact(contact, min_rows=200)
    R, p = comparison.theirs.pose("body")
    assert np.abs(comparison.ours.q[-1, 2] - p[2]) < 1e-3
    np.testing.assert_allclose(np.asarray(comparison.kin.X_WB.R[0])[2], R[2], atol=1e-4)


@CONTACT_MODELS
def test_a_capsule_falls_on_one_end_and_lies_down(tmp_path, contact):
    text = falling_body_mjcf('type="capsule" size="0.05 0.2"', 0.4, "0 70 0")
    comparison = EngineComparison(tmp_path, text, contact, [0, 0.5, 0, 0.3, 0, 0], steps=1500)
    comparison.check_motion_before_contact(contact, min_rows=200)
    # at the peak of an impact, the time step limits the slope of compliant friction
    comparison.check_final_poses(horizontal=3e-3, vertical=1.5e-3, degrees=0.1)


@CONTACT_MODELS
def test_a_pendulum_of_five_links_falls_to_the_ground(tmp_path, contact):
    """Inclined links between the hinge and the ground are held by friction, so that their rest pose is not unique."""
    comparison = EngineComparison(tmp_path, five_link_pendulum_mjcf(), contact, None, steps=3000)
    comparison.check_motion_before_contact(contact, min_rows=400)
    comparison.check_final_poses(horizontal=10e-3, vertical=10e-3, degrees=1.5)
    last_link_angles = comparison.ours.q[-1].cumsum()[-2:]
    np.testing.assert_allclose(last_link_angles, 0.0, atol=0.01)
