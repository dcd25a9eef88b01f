"""Contact against closed forms: inclines, impacts, braking, rolling, spinning, stacks."""

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.optimize import brentq

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.dynamics.energy import gravity_energy, kinetic_energy
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.model.builder import ModelBuilder
from hybridsim.sim.rollout import Trajectory, failure_message, simulate
from hybridsim.sim.simulator import Simulator
from support.contact_scenes import GRAVITY, body_on_plane, solid_inertia, stack
from support.rotations import rotations, world_velocities

PYRAMIDAL, CIRCULAR, COMPLIANT = ImpulseContact(), ImpulseContact(cone="circular"), CompliantContact()
EACH = pytest.mark.parametrize("contact", [PYRAMIDAL, CIRCULAR, COMPLIANT], ids=["pyramidal", "circular", "compliant"])
IMPULSE = pytest.mark.parametrize("contact", [PYRAMIDAL, CIRCULAR], ids=["pyramidal", "circular"])
DT = 1e-3


def run(model, contact, time: float, qd=None) -> Trajectory:
    sim = Simulator(model, contact=contact, dt=DT)
    trajectory = simulate(sim, sim.initial_state(qd=qd), steps=round(time / DT))
    assert not failure_message(sim, trajectory)
    return trajectory


def energy(model, trajectory: Trajectory, every: int) -> np.ndarray:
    """Kinetic and potential energy [J]."""

    def one(q, qd):
        kin = kinematics(model, q, qd)
        return kinetic_energy(model, kin, qd) + gravity_energy(model, kin)

    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(one))(trajectory.q[::every], trajectory.qd[::every]))


def slope_motion(contact, degrees: float, heading: float = 0.0, friction: float = 0.5) -> np.ndarray:
    """Distance travelled down a slope by a block initially at rest."""
    model = body_on_plane("box", (0.05, 0.05, 0.05), tilt=np.radians(degrees), heading=heading, friction=friction)
    trajectory = run(model, contact, 1.0)
    return np.linalg.norm(trajectory.q[:, :3] - trajectory.q[0, :3], axis=1)


@IMPULSE
def test_a_block_sticks_on_a_slope_below_the_angle_of_friction(contact):
    degrees = np.degrees(np.arctan(0.5))
    travelled = slope_motion(contact, degrees - 1.0)
    assert travelled.max() < 1e-4  # settles by a few micrometres
    assert np.ptp(travelled[500:]) < 1e-9  # and does not creep


def test_creep_of_compliant_friction():
    """Smooth friction bears a tangential load at a slip of v_t artanh(load/friction)."""
    contact = CompliantContact(damping=1e6, stiffness=1e5)
    travelled = slope_motion(contact, 20.0)
    creep = 0.01 * np.arctanh(np.tan(np.radians(20.0)) / 0.5)
    assert (travelled[-1] - travelled[-201]) / 0.2 == pytest.approx(creep, rel=0.05)


@EACH
def test_a_block_slides_down_a_slope_with_the_right_acceleration(contact):
    tilt = np.radians(40.0)
    travelled = slope_motion(contact, 40.0)
    acceleration = GRAVITY * (np.sin(tilt) - 0.5 * np.cos(tilt))
    assert travelled[-1] == pytest.approx(0.5 * acceleration, rel=0.01)


def test_friction_is_isotropic_within_the_error_of_the_cone():
    tilt, friction = np.radians(40.0), 0.5
    headings = np.linspace(0.0, np.pi / 2.0, 7)

    def coefficients(contact):
        """Coefficients of friction that explain the distances travelled."""
        travelled = np.array([slope_motion(contact, 40.0, heading)[-1] for heading in headings])
        return (np.sin(tilt) - 2.0 * travelled / GRAVITY) / np.cos(tilt)

    np.testing.assert_allclose(coefficients(CIRCULAR), friction, rtol=0.005)
    np.testing.assert_allclose(coefficients(CompliantContact()), friction, rtol=0.03)
    # a pyramidal cone is stronger towards its edges, by |cos| + |sin| of the direction on the slope
    pyramidal = coefficients(PYRAMIDAL)
    assert pyramidal.min() > friction * 0.995
    assert pyramidal.max() < friction * np.sqrt(2.0) * 1.005


@IMPULSE
@pytest.mark.parametrize("restitution", [0.0, 0.4, 0.8, 1.0])
def test_rebound_height_of_a_ball_follows_from_its_restitution(contact, restitution):
    height = 1.0
    model = body_on_plane("sphere", (0.1,), height=height, restitution=restitution)
    trajectory = run(model, contact, 1.0)
    z = trajectory.q[:, 2] - 0.1
    impact = int(np.argmin(z[:500]))
    speed = np.sqrt(2.0 * GRAVITY * height)
    assert z.min() > -speed * DT  # no deeper than a step
    assert z[impact:].max() == pytest.approx(restitution**2 * height, abs=0.005)


@IMPULSE
def test_a_bouncing_body_comes_to_rest(contact):
    """Free fall within a step is not an impact: otherwise a body at rest would bounce by micrometres forever."""
    trajectory = run(body_on_plane("box", (0.05, 0.05, 0.05), height=0.02, restitution=0.5), contact, 2.0)
    assert trajectory.q[100:300, 2].max() > 0.053
    assert np.abs(trajectory.qd[-500:]).max() < 1e-9


@IMPULSE
def test_edge_impact_of_a_cube_is_continuous_in_its_tilt(contact):
    """Even if the cube tips over its edge while the contact is closed, so that another face becomes the lowest."""
    half, spin, speed = 0.05, 3.0, 1.0
    model = body_on_plane("box", (half,) * 3, height=0.0, restitution=0.5, friction=0.0)
    sim = Simulator(model, contact=contact, dt=DT)
    spins = []
    for tilt in np.pi / 4 + np.linspace(-0.01, 0.01, 21):
        reach = half * (np.cos(tilt) + np.sin(tilt))
        q = np.array([0.0, 0.0, reach + 1.5 * DT * speed, np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0])
        qd = np.array([0.0, spin, 0.0, speed * np.sin(tilt), 0.0, -speed * np.cos(tilt)])
        state = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), (q, qd))
        spins.append(simulate(sim, state, steps=10).qd[-1, 1])
    change = np.diff(spins)
    np.testing.assert_allclose(change, np.mean(change), rtol=0.1)


def test_restitution_of_hunt_crossley_contact():
    """With r = d/k, speeds u before and v after an impact obey r u − ln(1 + r u) = −r v − ln(1 − r v) for any n."""
    ratio, height = 0.5, 0.05
    contact = CompliantContact(stiffness=1e8, damping=ratio * 1e8)
    sim = Simulator(body_on_plane("sphere", (0.1,), height=height), contact=contact, dt=1e-5)
    z = simulate(sim, steps=30_000).q[:, 2] - 0.1
    before = ratio * np.sqrt(2.0 * GRAVITY * height)
    after = brentq(lambda v: before - np.log1p(before) + v + np.log1p(-v), 0.0, before)
    impact = int(np.argmin(z[:15_000]))
    assert np.sqrt(z[impact:].max() / height) == pytest.approx(after / before, abs=0.005)


@EACH
def test_a_pushed_block_stops_after_its_braking_distance(contact):
    model = body_on_plane("box", (0.1, 0.1, 0.05), friction=0.3)
    trajectory = run(model, contact, 1.0, qd=[0, 0, 0, 1.0, 0, 0])
    assert trajectory.q[-1, 0] == pytest.approx(1.0 / (2.0 * 0.3 * GRAVITY), rel=0.01)
    assert np.abs(trajectory.qd[-1]).max() < (1e-3 if contact is COMPLIANT else 1e-9)


@EACH
def test_a_block_slides_over_the_seam_of_two_flush_boxes(contact):
    """It penetrates by micrometres, but does not hit the side face of the second box."""
    scene, half, speed, friction = ModelBuilder("tiles").declare_unactuated(), 0.05, 1.0, 0.1
    scene.add_body("block", kind="free", mass=1.0, inertia=solid_inertia("box", (half,) * 3, 1.0))
    scene.add_geom("block", "box", (half,) * 3, friction=friction)
    for x in (-0.5, 0.5):
        scene.add_geom("world", "box", (0.5, 0.5, half), at=(x, 0, -half), friction=friction)
    sim = Simulator(scene.build(), contact=contact, dt=DT)
    trajectory = simulate(sim, sim.initial_state([-0.2, 0, half, 1, 0, 0, 0], [0, 0, 0, speed, 0, 0]), steps=400)
    assert trajectory.q[-1, 0] == pytest.approx(-0.2 + speed * 0.4 - 0.5 * friction * GRAVITY * 0.4**2, abs=0.002)
    assert np.abs(trajectory.q[-1, 4:]).max() < 1e-3


@EACH
def test_a_sliding_ball_begins_to_roll(contact):
    """At 5/7 of its initial speed, after 2 v / (7 μ g)."""
    model = body_on_plane("sphere", (0.1,), friction=0.3)
    trajectory = run(model, contact, 0.5, qd=[0, 0, 0, 1.0, 0, 0])
    v = np.diff(trajectory.q[:, 0]) / DT
    assert v[-1] == pytest.approx(5.0 / 7.0, rel=0.01)
    rolls = int(np.argmax(v < 5.0 / 7.0 * 1.02))
    assert rolls * DT == pytest.approx(2.0 / (7.0 * 0.3 * GRAVITY), abs=0.01)


@IMPULSE
def test_angular_momentum_of_a_bowling_ball_about_the_lane(contact):
    """Friction has no moment about lines on the plane: m v r + I ω is conserved in sliding and rolling."""
    mass, radius = 2.0, 0.1
    model = body_on_plane("sphere", (radius,), mass=mass, friction=0.2)
    sim = Simulator(model, contact=contact, dt=DT)
    trajectory = simulate(sim, sim.initial_state(qd=[0.0, -8.0, 5.0, 2.0, 0.3, 0]), steps=800)
    omega, v = world_velocities(trajectory)
    inertia = 0.4 * mass * radius**2
    about_y = mass * v[:, 0] * radius + inertia * omega[:, 1]
    about_x = -mass * v[:, 1] * radius + inertia * omega[:, 0]
    np.testing.assert_allclose(about_y, about_y[0], atol=1e-3 * abs(about_y[0]))
    np.testing.assert_allclose(about_x, about_x[0], atol=1e-3 * abs(about_y[0]))
    np.testing.assert_allclose(omega[:, 2], omega[0, 2], rtol=1e-6)  # no torsional friction


def test_conserved_quantities_of_a_top_on_a_frictionless_floor():
    """Spin about its axis, angular momentum about the vertical, horizontal momentum, energy."""
    model = body_on_plane("sphere", (0.1,), friction=0.0)
    # a flattened body: a ball's shape with a disc's inertia
    model = eqx.tree_at(lambda m: m.body.inertia, model, np.array([[0.003, 0.003, 0.005, 0, 0, 0]]))
    sim = Simulator(model, contact="impulse", dt=1e-4)
    start = sim.initial_state(qd=[1.0, 0.0, 40.0, 0.1, 0.0, 0.0])
    trajectory = simulate(sim, start, steps=10_000)
    _, v = world_velocities(trajectory)
    R = rotations(trajectory.q[:, 3:7])
    L = np.einsum("tij,j,tj->ti", R, np.array([0.003, 0.003, 0.005]), trajectory.qd[:, :3])
    np.testing.assert_allclose(trajectory.qd[:, 2], 40.0, rtol=1e-9)
    np.testing.assert_allclose(L[:, 2], L[0, 2], rtol=2e-3)
    np.testing.assert_allclose(v[:, 0], v[0, 0], atol=1e-9)
    energies = energy(model, trajectory, every=500)
    np.testing.assert_allclose(energies, energies[0], rtol=2e-3)


def drift(trajectory: Trajectory, boxes: int, start: int = 0) -> tuple[float, float]:
    """Largest displacement [m] and rotation [°] of boxes since a step."""
    q = trajectory.q[start:].reshape(-1, boxes, 7)
    rotation = 2.0 * np.linalg.norm(q[:, :, 3:] - q[0, :, 3:], axis=2)
    return np.linalg.norm(q[:, :, :3] - q[0, :, :3], axis=2).max(), np.degrees(rotation).max()


@pytest.mark.parametrize("friction", [0.5, 1.0])
def test_two_compliant_boxes_do_not_vibrate(friction):
    """The lower one bears both, and its corners have less apparent inertia than its centre."""
    trajectory = run(stack(2, friction=friction), COMPLIANT, 1.0)
    displacement, rotation = drift(trajectory, 2, 500)
    assert displacement < 1e-3 and rotation < 0.01
    # the remaining motion is vertical oscillation
    assert np.abs(trajectory.qd[-200:]).max() < 0.01


@pytest.mark.parametrize("dt", [1e-3, 5e-3, 1e-2])
@pytest.mark.parametrize("half", [(0.05, 0.05, 0.05), (0.2, 0.05, 0.02)], ids=["cube", "plate"])
def test_a_compliant_impact_gains_no_energy_at_any_time_step(half, dt):
    """Without stability limits, explicit steps at this stiffness would gain energy many times over."""
    model = body_on_plane("box", half, height=1.0, friction=0.5)
    sim = Simulator(model, contact="compliant", dt=dt)
    tilted = np.array([1.0, 0.1, 0.07, 0.02]) / np.linalg.norm([1.0, 0.1, 0.07, 0.02])
    trajectory = simulate(sim, sim.initial_state([*model.home[:3], *tilted]), steps=round(1.0 / dt))
    energies = energy(model, trajectory, every=1)
    assert energies.max() <= energies[0] * (1.0 + 1e-6)
    assert energies[-1] < 0.7 * energies[0]


STIFF = CompliantContact(stiffness=3.5e6)
"""Ten times the default stiffness."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contact", "max_yaw"),
    [(COMPLIANT, 0.0), (STIFF, 0.0), (STIFF, 1.0)],
    ids=["default", "stiff", "stiff and rotated"],
)
def test_a_compliant_stack_of_five_boxes_rests(contact, max_yaw):
    """Initial settling is 3 mm, or 0.6 mm if stiff."""
    model = stack(5, max_yaw=max_yaw, friction=0.5)
    trajectory = run(model, contact, 10.0)
    displacement, rotation = drift(trajectory, 5, 2000)
    assert displacement < 1e-3 and rotation < 0.1
    assert trajectory.q[0, -5] - trajectory.q[-1, -5] < (4e-3 if contact is COMPLIANT else 1e-3)
    assert np.abs(trajectory.qd[-1000:]).max() < 1e-3
    energies = energy(model, trajectory, every=100)
    assert energies.max() <= energies[0] + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("sweeps", [2, PYRAMIDAL.sweeps])
@pytest.mark.parametrize("cone", ["pyramidal", "circular"])
@pytest.mark.parametrize("max_yaw", [0.0, 1.0])
def test_a_stack_of_five_boxes_rests(cone, sweeps, max_yaw):
    """Two sweeps are enough, with a drift of 0.25 mm as with four; with one, the stack vibrates and moves by 8 mm."""
    model = stack(5, max_yaw=max_yaw, friction=0.5)
    sim = Simulator(model, contact=ImpulseContact(cone=cone, sweeps=sweeps), dt=DT)
    trajectory = simulate(sim, steps=10_000)
    displacement, rotation = drift(trajectory, 5)
    assert displacement < 1e-3 and rotation < 0.1
    assert np.abs(trajectory.qd[-1000:]).max() < 1e-9
    energies = energy(model, trajectory, every=100)
    assert energies.max() <= energies[0] + 1e-9
