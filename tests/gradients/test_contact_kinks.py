"""Derivatives exactly where contact has a kink: those of one side, or between both.

A ball on a plane stands on each kink in turn: just touching, touching without force, at rest, at the edge of the
friction cone, and where a compliant contact would begin to pull. Along every coordinate, forward and reverse mode have
to agree with the difference on one side of the kink or lie between the two; so they equal it where there is no kink.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.compliant.friction_laws import Hollars
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.model.coordinates import retract
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator
from support.contact_scenes import GRAVITY, on_plane
from support.slow import slow

DT, RADIUS, FRICTION = 1e-3, 0.1, 0.4
TRANSITION, PRESSED = 0.05, 1e-4
STEP = 1e-7
"""Of the differences on each side."""
TOLERANCE = 1e-5
"""Relative to the largest derivative: curvature times the step, and rounding by the step, are both below."""


def ball(contact, **surface) -> Simulator:
    return Simulator(on_plane("sphere", (RADIUS,), **surface), contact=contact, dt=DT, backend="native")


def started(sim: Simulator, gap: float, v) -> tuple[np.ndarray, np.ndarray]:
    q = sim.model.home.copy()
    q[2] = RADIUS + gap
    return q, np.array([0.0, 0.0, 0.0, *v])


STILL = (0.0, 0.0, 0.0)
KINKS = {
    "apart and still": (0.05, STILL),
    "touching and still": (0.0, STILL),
    "touching and sliding": (0.0, (0.3, 0.1, 0.0)),
    "touching and arriving": (0.0, (0.0, 0.0, -1.0)),
    "touching without force": (0.0, (0.0, 0.0, GRAVITY * DT)),
    "sliding without force": (0.0, (0.3, 0.0, GRAVITY * DT)),
    "pressed and still": (-1e-4, STILL),
    "slip at the transition of friction": (-1e-3, (TRANSITION, 0.0, 0.0)),
    "about to pull": (-1e-3, (0.1, 0.0, 1.0)),
    "about to pull and without slip": (-1e-3, (0.0, 0.0, 1.0)),
}


def cone_edge(sim: Simulator, direction) -> list[tuple[np.ndarray, np.ndarray]]:
    """The last velocity at which the ball sticks and the first at which it slides: neighbouring floats."""
    direction = np.array(direction) / np.linalg.norm(direction)

    def state(speed: float):
        return started(sim, -PRESSED, speed * direction)

    def impulses(speed: float):
        n, x, y = simulate(sim, sim.initial_state(*state(speed)), steps=1).final.aux["contact"].impulse
        return n, np.hypot(x, y) if sim.contact.cone == "cone" else max(abs(x), abs(y))

    def slides(speed: float) -> bool:
        normal, rubs = impulses(speed)
        return rubs >= FRICTION * normal * (1.0 - 1e-15)

    # a ball of 1 kg is easily pulled along at its lowest point, since that turns it, too
    lever, inertia = RADIUS - 0.5 * PRESSED, 0.4 * RADIUS**2
    largest = 1.0 if sim.contact.cone == "cone" else np.abs(direction).max()
    edge = (1.0 + lever**2 / inertia) * FRICTION * impulses(0.0)[0] / largest
    sticks, moves = (1.0 - 1e-8) * edge, (1.0 + 1e-8) * edge
    assert not slides(sticks) and slides(moves)
    while np.nextafter(sticks, moves) < moves:
        middle = 0.5 * (sticks + moves)
        sticks, moves = (sticks, middle) if slides(middle) else (middle, moves)
    return [state(sticks), state(moves)]


def check(sim: Simulator, states: dict, mode: str) -> None:
    """Derivatives of a step by coordinates, velocities and friction, from all states at once."""
    nv, count = sim.model.nv, len(states)
    q, qd = (np.array(rows) for rows in zip(*states.values(), strict=True))

    def after_a_step(p):
        def one(p, q, qd):
            changed = eqx.tree_at(lambda s: s.contact.friction, sim, sim.contact.friction + p[2 * nv])
            moved = retract(sim.model, q, p[:nv]), qd + p[nv : 2 * nv]
            start = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), moved)
            final = rollout(changed, start, steps=1).final
            return jnp.concatenate([final.q, final.qd])

        return jax.vmap(one)(p, q, qd)

    still, size = np.zeros((count, 2 * nv + 1)), sim.model.nq + nv
    found = derivatives(after_a_step, still, size, mode)
    value = jax.jit(after_a_step)
    for k, by_rule in enumerate(np.moveaxis(found, 2, 0)):
        along = np.zeros_like(still)
        along[:, k] = STEP
        left, right = (value(still) - value(-along)) / STEP, (value(along) - value(still)) / STEP
        slack = TOLERANCE * np.maximum(1.0, np.abs(right).max(axis=1, keepdims=True))
        outside = np.maximum(np.minimum(left, right) - by_rule, by_rule - np.maximum(left, right)) - slack
        for name, off, l, d, r in zip(states, outside, left, by_rule, right, strict=True):
            assert off.max() <= 0.0, f"{name}, direction {k}:\nleft  {l}\nbut   {d}\nright {r}"


def derivatives(function, p, size: int, mode: str) -> np.ndarray:
    """By the rules: one matrix of outputs by parameters for each state."""
    if mode == "reverse":
        pulled = jax.jit(lambda p, w: jax.vjp(function, p)[1](w)[0])
        return np.stack([pulled(p, np.tile(row, (len(p), 1))) for row in np.eye(size)], axis=1)
    pushed = jax.jit(lambda p, d: jax.jvp(function, (p,), (d,))[1])
    return np.stack([pushed(p, np.tile(row, (len(p), 1))) for row in np.eye(p.shape[1])], axis=2)


MODES = pytest.mark.parametrize("mode", ["reverse", slow("forward")])


@MODES
@pytest.mark.parametrize(
    ("cone", "gradient"),
    [("pyramid", "unrolled"), ("cone", "implicit"), slow("pyramid", "implicit"), slow("cone", "unrolled")],
)
def test_impulse_contact(cone, gradient, mode):
    sim = ball(ImpulseContact(cone=cone, gradient=gradient, friction=FRICTION))
    states = {name: started(sim, *where) for name, where in KINKS.items()}
    for name, direction in {"along x": (1.0, 0.0, 0.0), "aslant": (1.0, -1.0, 0.0)}.items():
        sticking, sliding = cone_edge(sim, direction)
        states |= {f"about to slide {name}": sticking, f"just sliding {name}": sliding}
    check(sim, states, mode)


@MODES
@pytest.mark.parametrize(
    "contact",
    [
        CompliantContact(friction=FRICTION, exponent=1.0, stiffness=1e4, damping=1e4),
        slow(
            CompliantContact(
                friction=FRICTION, stiffness=1e5, damping=1e5, law=Hollars(transition=np.array(TRANSITION))
            )
        ),
    ],
    ids=["linear", "hertz and hollars"],
)
def test_compliant_contact(contact, mode):
    sim = ball(contact)
    check(sim, {name: started(sim, *where) for name, where in KINKS.items()}, mode)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["unrolled", "implicit"])
def test_friction_is_learnt_from_none(gradient):
    """Of no friction there is one side only: it brakes what slides and does nothing to what does not."""
    sim = ball(ImpulseContact(friction=0.0, gradient=gradient))

    def speed(friction, v):
        changed = eqx.tree_at(lambda s: s.contact.friction, sim, friction)
        start = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), started(sim, -1e-4, (v, 0.0, 0.0)))
        return rollout(changed, start, steps=1).final.qd[3]

    none, some = np.zeros(1), np.full(1, STEP)
    for v in (0.3, -0.3):
        slope = (speed(some, v) - speed(none, v)) / STEP
        assert jax.grad(speed)(jnp.asarray(none), v)[0] == pytest.approx(slope, rel=1e-5)
        assert np.sign(slope) == -np.sign(v)
    assert jax.grad(speed)(jnp.asarray(none), 0.0)[0] == 0.0 == speed(some, 0.0)


@pytest.mark.parametrize("gradient", ["unrolled", slow("implicit")])
def test_restitution_is_learnt_from_none(gradient):
    """Nothing jumps where restitution begins, and it lifts what has just landed."""
    sim = ball(ImpulseContact(restitution=0.0, gradient=gradient), height=0.05)

    def height(restitution):
        changed = eqx.tree_at(lambda s: s.contact.restitution, sim, restitution)
        return rollout(changed, sim.initial_state(), steps=105).final.q[2]  # it lands after 101

    none = np.zeros(1)
    slope = (height(none + 1e-6) - height(none)) / 1e-6
    assert slope > 1e-3
    assert jax.grad(height)(jnp.asarray(none))[0] == pytest.approx(slope, rel=1e-4)
