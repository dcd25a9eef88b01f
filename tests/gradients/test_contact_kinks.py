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

from hybridsim.contact.compliant import CompliantContact
from hybridsim.contact.friction_laws import Hollars
from hybridsim.contact.impulse import ImpulseContact
from hybridsim.model.coordinates import retract
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator
from support.contact_scenes import GRAVITY, on_plane

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


def check(sim: Simulator, states: dict) -> None:
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

    @jax.jit
    def everything(p, direction, w):
        value, forward = jax.jvp(after_a_step, (p,), (direction,))
        return value, forward, jax.vjp(after_a_step, p)[1](w)[0]

    still, size = np.zeros((count, 2 * nv + 1)), sim.model.nq + nv
    w = np.random.default_rng(0).normal(size=(count, size))
    value, _, reverse = everything(still, still, w)
    for k in range(2 * nv + 1):
        along = still.copy()
        along[:, k] = 1.0
        right = (everything(STEP * along, still, w)[0] - value) / STEP
        left = (value - everything(-STEP * along, still, w)[0]) / STEP
        forward = everything(still, along, w)[1]
        slack = TOLERANCE * np.maximum(1.0, np.abs(right).max(axis=1, keepdims=True))
        outside = np.maximum(np.minimum(left, right) - forward, forward - np.maximum(left, right)) - slack
        for name, off, l, f, r in zip(states, outside, left, forward, right, strict=True):
            assert off.max() <= 0.0, f"{name}, direction {k}:\nleft {l}\nbut  {f}\nright {r}"
        # on a kink rounding chooses the side, and forward and reverse mode are two programs, which round on their own
        is_kink = np.abs(left - right).max(axis=1) > slack[:, 0]
        expected = np.array([np.sum(w * side, axis=1) for side in (forward, left, right)])
        allowed = np.where(is_kink, slack[:, 0], 1e-9 * (1.0 + np.abs(expected[0])))
        assert (reverse[:, k] >= np.where(is_kink, expected.min(axis=0), expected[0]) - allowed).all()
        assert (reverse[:, k] <= np.where(is_kink, expected.max(axis=0), expected[0]) + allowed).all()


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("cone", "gradient"),
    [("pyramid", "unrolled"), ("cone", "implicit"), slow("pyramid", "implicit"), slow("cone", "unrolled")],
)
def test_impulse_contact(cone, gradient):
    sim = ball(ImpulseContact(cone=cone, gradient=gradient, friction=FRICTION))
    states = {name: started(sim, *where) for name, where in KINKS.items()}
    for name, direction in {"along x": (1.0, 0.0, 0.0), "aslant": (1.0, -1.0, 0.0)}.items():
        sticking, sliding = cone_edge(sim, direction)
        states |= {f"about to slide {name}": sticking, f"just sliding {name}": sliding}
    check(sim, states)


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
def test_compliant_contact(contact):
    sim = ball(contact)
    check(sim, {name: started(sim, *where) for name, where in KINKS.items()})


@pytest.mark.parametrize("gradient", ["unrolled", slow("implicit")])
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
