"""Derivatives at kinks of the contact model: equal to one of the one-sided derivatives, or between them.

A ball on a plane is placed exactly at each kink: zero gap, zero contact force, zero velocity, the edge of the friction
cone, and the velocity at which a compliant contact would become adhesive. In each direction, forward and reverse mode
must lie between the one-sided difference quotients, or equal them where there is no kink.
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
from support.contact_scenes import GRAVITY, body_on_plane
from support.slow import slow

DT, RADIUS, FRICTION = 1e-3, 0.1, 0.4
TRANSITION, PENETRATION = 0.05, 1e-4
STEP = 1e-7
"""Step of the one-sided difference quotients."""
TOLERANCE = 1e-5
"""Relative to the largest derivative; larger than truncation and rounding errors of the difference quotients."""


def ball(contact, **surface) -> Simulator:
    """A ball above a plane."""
    return Simulator(body_on_plane("sphere", (RADIUS,), **surface), contact=contact, dt=DT, backend="native")


def state_of_ball(sim: Simulator, gap: float, v) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities of the ball."""
    q = sim.model.home.copy()
    q[2] = RADIUS + gap
    return q, np.array([0.0, 0.0, 0.0, *v])


ZERO_VELOCITY = (0.0, 0.0, 0.0)
KINKS = {
    "separated, at rest": (0.05, ZERO_VELOCITY),
    "zero gap, at rest": (0.0, ZERO_VELOCITY),
    "zero gap, sliding": (0.0, (0.3, 0.1, 0.0)),
    "zero gap, approaching": (0.0, (0.0, 0.0, -1.0)),
    "zero gap, zero force": (0.0, (0.0, 0.0, GRAVITY * DT)),
    "zero gap, sliding, zero force": (0.0, (0.3, 0.0, GRAVITY * DT)),
    "penetrating, at rest": (-1e-4, ZERO_VELOCITY),
    "sliding at the transition velocity": (-1e-3, (TRANSITION, 0.0, 0.0)),
    "on the verge of adhesion, sliding": (-1e-3, (0.1, 0.0, 1.0)),
    "on the verge of adhesion, not sliding": (-1e-3, (0.0, 0.0, 1.0)),
}


def cone_edge(sim: Simulator, direction) -> list[tuple[np.ndarray, np.ndarray]]:
    """States at the largest speed with sticking and the smallest with sliding, which are neighbouring floats."""
    direction = np.array(direction) / np.linalg.norm(direction)

    def state(speed: float):
        return state_of_ball(sim, -PENETRATION, speed * direction)

    def impulses(speed: float):
        n, x, y = simulate(sim, sim.initial_state(*state(speed)), steps=1).final.aux["contact"].impulse
        return n, np.hypot(x, y) if sim.contact.cone == "circular" else max(abs(x), abs(y))

    def slides(speed: float) -> bool:
        normal, tangential = impulses(speed)
        return tangential >= FRICTION * normal * (1.0 - 1e-15)

    # inverse effective mass at the contact of a ball of 1 kg: translation and rotation
    lever, inertia = RADIUS - 0.5 * PENETRATION, 0.4 * RADIUS**2
    max_component = 1.0 if sim.contact.cone == "circular" else np.abs(direction).max()
    edge = (1.0 + lever**2 / inertia) * FRICTION * impulses(0.0)[0] / max_component
    sticking, sliding = (1.0 - 1e-8) * edge, (1.0 + 1e-8) * edge
    assert not slides(sticking) and slides(sliding)
    while np.nextafter(sticking, sliding) < sliding:
        middle = 0.5 * (sticking + sliding)
        sticking, sliding = (sticking, middle) if slides(middle) else (middle, sliding)
    return [state(sticking), state(sliding)]


def check(sim: Simulator, states: dict, mode: str) -> None:
    """Check derivatives of a step with respect to coordinates, velocities and friction, at all states."""
    nv, count = sim.model.nv, len(states)
    q, qd = (np.array(rows) for rows in zip(*states.values(), strict=True))

    def step_all(p):
        def step(p, q, qd):
            changed = eqx.tree_at(lambda s: s.contact.friction, sim, sim.contact.friction + p[2 * nv])
            perturbed = retract(sim.model, q, p[:nv]), qd + p[nv : 2 * nv]
            initial = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), perturbed)
            final = rollout(changed, initial, steps=1).final
            return jnp.concatenate([final.q, final.qd])

        return jax.vmap(step)(p, q, qd)

    zero, size = np.zeros((count, 2 * nv + 1)), sim.model.nq + nv
    jacobians = autodiff_jacobians(step_all, zero, size, mode)
    value = jax.jit(step_all)
    for k, column in enumerate(np.moveaxis(jacobians, 2, 0)):
        delta = np.zeros_like(zero)
        delta[:, k] = STEP
        left, right = (value(zero) - value(-delta)) / STEP, (value(delta) - value(zero)) / STEP
        tolerance = TOLERANCE * np.maximum(1.0, np.abs(right).max(axis=1, keepdims=True))
        violations = np.maximum(np.minimum(left, right) - column, column - np.maximum(left, right)) - tolerance
        for name, violation, l, d, r in zip(states, violations, left, column, right, strict=True):
            assert violation.max() <= 0.0, f"{name}, direction {k}:\nleft     {l}\nautodiff {d}\nright    {r}"


def autodiff_jacobians(function, p, size: int, mode: str) -> np.ndarray:
    """Jacobian of the outputs with respect to the parameters, for each state."""
    if mode == "reverse":
        vjp = jax.jit(lambda p, w: jax.vjp(function, p)[1](w)[0])
        return np.stack([vjp(p, np.tile(row, (len(p), 1))) for row in np.eye(size)], axis=1)
    jvp = jax.jit(lambda p, d: jax.jvp(function, (p,), (d,))[1])
    return np.stack([jvp(p, np.tile(row, (len(p), 1))) for row in np.eye(p.shape[1])], axis=2)


MODES = pytest.mark.parametrize("mode", ["reverse", slow("forward")])


@MODES
@pytest.mark.parametrize(
    ("cone", "gradient"),
    [("pyramidal", "unrolled"), ("circular", "implicit"), slow("pyramidal", "implicit"), slow("circular", "unrolled")],
)
def test_impulse_contact(cone, gradient, mode):
    sim = ball(ImpulseContact(cone=cone, gradient=gradient, friction=FRICTION))
    states = {name: state_of_ball(sim, *where) for name, where in KINKS.items()}
    for name, direction in {"along x": (1.0, 0.0, 0.0), "diagonally": (1.0, -1.0, 0.0)}.items():
        sticking, sliding = cone_edge(sim, direction)
        states |= {f"sticking limit {name}": sticking, f"sliding limit {name}": sliding}
    check(sim, states, mode)


@MODES
@pytest.mark.parametrize(
    "contact",
    [
        CompliantContact(friction=FRICTION, exponent=1.0, stiffness=1e4, damping=1e4),
        slow(
            CompliantContact(
                friction=FRICTION, stiffness=1e5, damping=1e5, law=Hollars(transition_velocity=np.array(TRANSITION))
            )
        ),
    ],
    ids=["linear", "hertz and hollars"],
)
def test_compliant_contact(contact, mode):
    sim = ball(contact)
    check(sim, {name: state_of_ball(sim, *where) for name, where in KINKS.items()}, mode)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["unrolled", "implicit"])
def test_gradient_at_zero_friction(gradient):
    """One-sided: friction decelerates a sliding ball and has no effect on one at rest."""
    sim = ball(ImpulseContact(friction=0.0, gradient=gradient))

    def speed(friction, v):
        changed = eqx.tree_at(lambda s: s.contact.friction, sim, friction)
        initial = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), state_of_ball(sim, -1e-4, (v, 0.0, 0.0)))
        return rollout(changed, initial, steps=1).final.qd[3]

    zero, small = np.zeros(1), np.full(1, STEP)
    for v in (0.3, -0.3):
        slope = (speed(small, v) - speed(zero, v)) / STEP
        assert jax.grad(speed)(jnp.asarray(zero), v)[0] == pytest.approx(slope, rel=1e-5)
        assert np.sign(slope) == -np.sign(v)
    assert jax.grad(speed)(jnp.asarray(zero), 0.0)[0] == 0.0 == speed(small, 0.0)


@pytest.mark.parametrize("gradient", ["unrolled", slow("implicit")])
def test_gradient_at_zero_restitution(gradient):
    """The motion is continuous at zero restitution, which increases the height after an impact."""
    sim = ball(ImpulseContact(restitution=0.0, gradient=gradient), height=0.05)

    def height(restitution):
        changed = eqx.tree_at(lambda s: s.contact.restitution, sim, restitution)
        return rollout(changed, sim.initial_state(), steps=105).final.q[2]  # the impact is after 101 steps

    zero = np.zeros(1)
    slope = (height(zero + 1e-6) - height(zero)) / 1e-6
    assert slope > 1e-3
    assert jax.grad(height)(jnp.asarray(zero))[0] == pytest.approx(slope, rel=1e-4)
