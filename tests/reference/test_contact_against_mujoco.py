"""Falling and coming to rest, against MuJoCo on the same MJCF text.

Until bodies touch, both engines take the same semi-implicit Euler steps and differ by rounding alone. From then on
their contacts are different models, and what is compared is what these have in common: where bodies come to rest.

- MuJoCo's contacts are springs and dampers in the space of accelerations, critically damped by default. They act from
  the first penetration on, an impact takes some 20 ms, and a body at rest stays sunk in by a few hundredths of a
  millimetre. Under a steady side load its friction creeps: the pendulum here goes on moving by 0.8 mrad/s.
- Impulse contact lets a gap close within a step and no further, so that it acts one step before MuJoCo's does. The
  speed of an impact is gone in two steps, and nothing creeps.
- Compliant contact bears the whole weight at a depth of 1 mm, less where several points share it, gives back some of
  the speed of an impact, and creeps like MuJoCo's.
- So what slides or rocks after an impact ends a few millimetres from where it does with another model.
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
# what falls touches the floor and nothing else
FLOOR = '<geom name="floor" type="plane" size="0 0 1" friction="0.6 0 0" contype="2" conaffinity="1"/>'
SURFACE = 'friction="0.6 0 0" contype="1" conaffinity="2"'
ROUNDING = 1e-13
"""Some hundred steps, each off by 1e-16 of coordinates of order one, in the same direction."""
REST = 0.01
"""Speed [m/s and rad/s] of what counts as at rest: creep is allowed, sliding and rocking are not."""


def scene(bodies: str) -> str:
    return f"<mujoco>{OPTION}<worldbody>{FLOOR}{bodies}</worldbody></mujoco>"


def falling(geom: str, height: float, turned: str) -> str:
    return scene(
        f'<body name="body" pos="0 0 {height}" euler="{turned}"><freejoint name="root"/>'
        f'<geom {geom} mass="1" {SURFACE}/></body>'
    )


def pendulum() -> str:
    """Five links of 0.5 m on a hinge at 1 m, each with a ball of 1 kg and 0.15 m radius at its end, stretched out.

    Its hinges are damped: otherwise it is chaotic, and no two models of contact leave it in the same pose.
    """
    links = [
        f'<body name="link{k}" pos="{"0.5 0 0" if k else "0 0 1"}">'
        f'<joint name="joint{k}" type="hinge" axis="0 1 0" damping="0.5"/>'
        f'<geom type="sphere" size="0.15" pos="0.5 0 0" mass="1" {SURFACE}/>'
        for k in range(5)
    ]
    return scene("".join(links) + "</body>" * 5)


class Both:
    """The motions of both engines from one text and one start."""

    def __init__(self, folder, text: str, contact: str, qd, steps: int):
        model = load_model(write(folder, text))
        qd = np.zeros(model.nv) if qd is None else np.array(qd, dtype=float)
        sim = Simulator(model, contact=contact)
        self.ours = simulate(sim, sim.initial_state(qd=qd), steps=steps)
        assert not failure_message(sim, self.ours)

        mj = mujoco.MjModel.from_xml_string(text)
        self.theirs = MujocoState(model, mj, model.home, qd)
        data, q, self.before = self.theirs.data, [], 0
        for k in range(steps):
            q.append(data.qpos.copy())
            if not data.ncon and self.before == k:
                self.before = k + 1  # rows up to MuJoCo's first contact
            mujoco.mj_step(mj, data)
        self.q_theirs = np.array([*q, data.qpos])
        self.kin = kinematics(model, self.ours.q[-1], self.ours.qd[-1])
        self.bodies = model.topology.body_names

    def check_the_same_before_contact(self, contact: str, at_least: int) -> None:
        # impulses prevent a penetration that MuJoCo sees at the start of the step after
        rows = self.before - (1 if contact == "impulse" else 0)
        assert rows >= at_least, "this is to be a fall"
        np.testing.assert_allclose(self.ours.q[:rows], self.q_theirs[:rows], rtol=0, atol=ROUNDING)
        difference = np.abs(self.ours.q - self.q_theirs).max(axis=1)
        assert difference[rows + 1] > 1e-4, "contact is to be felt at once"

    def check_the_same_rest(self, *, across: float, up: float, degrees: float) -> None:
        """Poses of all bodies agree within distances across the floor and above it [m] and an angle."""
        assert np.abs(self.ours.qd[-1]).max() < REST and np.abs(self.theirs.data.qvel).max() < REST
        for k, body in enumerate(self.bodies):
            R, p = self.theirs.pose(body)
            away = np.abs(np.asarray(self.kin.X_WB.p[k]) - p)
            turn = np.degrees(Rotation.from_matrix(np.asarray(self.kin.X_WB.R[k]).T @ R).magnitude())
            assert away[:2].max() < across, f"{body} is {1e3 * away[:2].max():.1f} mm aside"
            assert away[2] < up, f"{body} is {1e3 * away[2]:.2f} mm higher or lower"
            assert turn < degrees, f"{body} is turned by {turn:.2f}°"


BOTH = pytest.mark.parametrize("contact", ["impulse", "compliant"])


@BOTH
def test_a_cube_falls_on_an_edge_slides_and_rests(tmp_path, contact):
    text = falling('type="box" size="0.1 0.1 0.1"', 0.2, "0 5 0")
    both = Both(tmp_path, text, contact, [0, 0, 0, 0.5, 0, 0], steps=1500)
    both.check_the_same_before_contact(contact, at_least=130)
    both.check_the_same_rest(across=5e-3, up=1e-3, degrees=0.5)
    assert both.ours.q[-1, 0] > 0.06, "it has moved"


@BOTH
def test_a_spinning_cube_tumbles_through_the_air_and_lands_flat(tmp_path, contact):
    """Which way it then faces, every bounce decides anew: only height and flatness are compared."""
    text = falling('type="box" size="0.1 0.1 0.1"', 0.4, "10 15 20")
    both = Both(tmp_path, text, contact, [1.0, 2.0, 3.0, 0.3, 0.2, 0.0], steps=2000)
    both.check_the_same_before_contact(contact, at_least=200)
    R, p = both.theirs.pose("body")
    assert np.abs(both.ours.q[-1, 2] - p[2]) < 1e-3
    np.testing.assert_allclose(np.asarray(both.kin.X_WB.R[0])[2], R[2], atol=1e-4)


@BOTH
def test_a_capsule_falls_on_one_end_and_lies_down(tmp_path, contact):
    text = falling('type="capsule" size="0.05 0.2"', 0.4, "0 70 0")
    both = Both(tmp_path, text, contact, [0, 0.5, 0, 0.3, 0, 0], steps=1500)
    both.check_the_same_before_contact(contact, at_least=200)
    # at the peak of an impact compliant friction is no steeper than the time step can follow
    both.check_the_same_rest(across=3e-3, up=1.5e-3, degrees=0.1)


@BOTH
def test_a_pendulum_of_five_links_falls_to_the_ground_and_lies_there(tmp_path, contact):
    """Links that stand aslant between the ground and the hinge are held by friction, which leaves their place open."""
    both = Both(tmp_path, pendulum(), contact, None, steps=3000)
    both.check_the_same_before_contact(contact, at_least=400)
    both.check_the_same_rest(across=10e-3, up=10e-3, degrees=1.5)
    lying = both.ours.q[-1].cumsum()[-2:]
    np.testing.assert_allclose(lying, 0.0, atol=0.01)
