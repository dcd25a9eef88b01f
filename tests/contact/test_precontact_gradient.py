"""Derivatives of open contacts: values do not change, and derivatives follow the documented formula."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.contact.compliant.compliant_contact import WEIGHT_DEPTH, CompliantContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.geometry import DEFAULT_RECOVERY_TIME
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator
from support.contact_scenes import body_on_plane, solid_inertia
from support.slow import slow

DT, RADIUS, MASS, REACH = 1e-3, 0.1, 2.0, 0.04
KINDS = pytest.mark.parametrize("kind", [ImpulseContact, CompliantContact], ids=["impulse", "compliant"])
KINDS_IMPULSE_SLOW = pytest.mark.parametrize(
    "kind", [CompliantContact, slow(ImpulseContact)], ids=["compliant", "impulse"]
)
"""Where a second gradient has to be compiled, that of impulse contact runs with the slow tests."""


def slope_of_closed_contact(sim: Simulator) -> float:
    """Derivative of the vertical velocity after a step of a closed contact with respect to height [1/s]."""
    if isinstance(sim.contact, ImpulseContact):
        return -1.0 / DEFAULT_RECOVERY_TIME
    stiffness, exponent = float(sim.contact.stiffness[0]), float(sim.contact.exponent[0])
    return -DT * stiffness * exponent * WEIGHT_DEPTH ** (exponent - 1.0) / MASS


def ball(kind, reach: float) -> Simulator:
    return Simulator(body_on_plane("sphere", (RADIUS,), mass=MASS), contact=kind(reach=reach), dt=DT, backend="native")


def fall(sim: Simulator, height, steps: int):
    """Velocity and height after some steps from a height [m]."""
    start = sim.initial_state()
    state = rollout(sim, eqx.tree_at(lambda s: s.q, start, start.q + np.eye(7)[2] * height), steps=steps).final
    return jnp.append(state.qd, state.q[2])


def slopes(sim: Simulator, gap: float, steps: int = 1) -> tuple[np.ndarray, float]:
    """Derivatives of final velocity and height of a ball with respect to its initial height."""
    _, pullback = jax.vjp(lambda height: fall(sim, height, steps), jnp.asarray(gap))
    rows = np.array([float(pullback(jnp.asarray(row))[0]) for row in np.eye(7)])
    return rows[:6], rows[6]


@KINDS
def test_reach_does_not_change_values(kind):
    """A box spins, falls on a corner and slides.

    Its name is unique: native code for a mechanism that other tests simulate with more parameters takes these as inputs
    instead of constants, and then rounds differently, whatever the reach.
    """
    scene = ModelBuilder("thrown box").declare_unactuated()
    scene.add_body(
        "thrown",
        kind="free",
        mass=1.0,
        inertia=solid_inertia("box", (0.1, 0.1, 0.1), 1.0),
        home=(0, 0, 0.12, 1, 0, 0, 0),
    )
    scene.add_geom("thrown", "box", (0.1, 0.1, 0.1), friction=0.3).add_geom("world", "plane", (), friction=0.3)
    model = scene.build()
    motions = []
    for reach in (0.0, REACH):
        sim = Simulator(model, contact=kind(reach=reach), dt=DT)
        motions.append(simulate(sim, sim.initial_state(qd=[0.1, 0.2, 0.3, 0.4, 0.2, 0.0]), steps=300))
    without_reach, with_reach = motions
    assert np.abs(without_reach.qd[-1] - without_reach.qd[0]).max() > 0.1, "the box must have hit the plane"
    assert np.array_equal(without_reach.q, with_reach.q) and np.array_equal(without_reach.qd, with_reach.qd)


@KINDS_IMPULSE_SLOW
def test_open_contact_has_no_derivative_by_default(kind):
    velocity_slopes, height_slope = slopes(ball(kind, 0.0), 0.02)
    assert np.all(velocity_slopes == 0.0) and height_slope == 1.0


@KINDS
def test_open_contact_has_a_derivative_with_a_reach(kind):
    sim = ball(kind, REACH)
    for gap in (0.02, 0.04, 0.12):
        # that of a closed contact, decaying exponentially with the gap
        expected = slope_of_closed_contact(sim) * np.exp(-gap / REACH)
        velocity_slopes, height_slope = slopes(sim, gap)
        assert velocity_slopes[5] == pytest.approx(expected, rel=1e-6) and expected < 0.0
        assert np.abs(np.delete(velocity_slopes, 5)).max() < 1e-9 * abs(expected)
        assert height_slope == pytest.approx(1.0 + DT * expected, rel=1e-9)


@KINDS
def test_derivative_accumulates_over_steps(kind):
    """The derivative x of height with respect to initial height obeys ẍ = slope · x / dt."""
    sim = ball(kind, REACH)
    changes = [1.0 - slopes(sim, 0.05, steps)[1] for steps in (1, 2, 4)]
    # 1, 1 + 2 and 1 + 2 + 3 + 4 times the first, while the change is small
    assert changes[0] > 0.0
    np.testing.assert_allclose(np.array(changes) / changes[0], [1.0, 3.0, 10.0], rtol=0.1)


@KINDS_IMPULSE_SLOW
def test_derivative_of_a_closed_contact_does_not_depend_on_reach(kind):
    without_reach, with_reach = slopes(ball(kind, 0.0), -1e-3), slopes(ball(kind, REACH), -1e-3)
    np.testing.assert_allclose(with_reach[0], without_reach[0], rtol=1e-12, atol=1e-12)
    assert with_reach[1] == pytest.approx(without_reach[1], rel=1e-12)
    assert abs(without_reach[0][5]) > 0.1


@pytest.mark.slow
@KINDS
def test_forward_mode_agrees_with_reverse_mode(kind):
    sim = ball(kind, REACH)
    _, forward = jax.jvp(lambda height: fall(sim, height, 3), (jnp.asarray(0.03),), (jnp.ones(()),))
    velocity_slopes, height_slope = slopes(sim, 0.03, 3)
    np.testing.assert_allclose(forward, [*velocity_slopes, height_slope], rtol=1e-10, atol=1e-12)
