"""Gradients through contact in every mode, forward and reverse, against finite differences."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.compliant.friction_laws import LAWS
from hybridsim.contact.impulse.impulse_contact import ImpulseContact, ImpulseState
from hybridsim.contact.impulse.stabilisation import ERP, Baumgarte, Recovery
from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.coordinates import retract
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator
from support.contact_scenes import inertia_of, on_plane
from support.derivatives import check_derivatives
from support.slow import slow

DT = 1e-3
RADIUS = 0.1


@pytest.fixture(scope="module")
def hopper():
    """A ball with a driven arm that ends in a smaller ball: two contacts that feel each other."""
    robot = ModelBuilder("hopper", timestep=DT)
    robot.add_body(
        "ball", joint="root", kind="free", mass=1.0, inertia=(0.004, 0.005, 0.006), home=(0, 0, 1, 1, 0, 0, 0)
    )
    robot.add_geom("ball", "sphere", (RADIUS,), friction=0.5)
    robot.add_body(
        "arm", parent="ball", joint="hinge", at=(0.05, 0, 0), axis=(0, 1, 0), mass=0.3, com=(0.1, 0, 0),
        inertia=(1e-3, 2e-3, 2e-3), lower=-0.4, upper=0.4, friction=0.02,
    )  # fmt: skip
    robot.add_geom("arm", "sphere", (0.04,), at=(0.2, 0.01, -0.05), friction=0.7)
    robot.add_geom("world", "plane", (), name="floor", friction=0.3)
    return robot.build()


def modes() -> dict:
    """States in which both contacts are, one after the other, in every mode."""
    rows = {
        #             gap    hinge  ω                 v                    command  and the speed of an impact before
        "separated": (0.05, 0.0, (0.3, -0.2, 0.1), (0.5, 0.2, -0.4), 0.1),
        "approaching": (6e-4, 0.01, (0.3, -0.2, 0.1), (0.5, 0.2, -1.1), 0.1),
        "grazing": (2e-4, 0.02, (0.0, 0.1, 0.0), (1.0, 0.3, -0.22), 0.0),
        "sliding": (-3e-4, 0.05, (0.2, 0.3, -0.1), (0.8, -0.5, -0.02), 0.2),
        "sticking": (-3e-4, 0.08, (0.002, 0.003, 0.001), (1e-3, -2e-3, -0.02), -0.3),
        "resting": (-2e-4, 0.1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.05),
        "both": (-2e-4, 0.1495, (0.1, 0.2, 0.3), (0.3, 0.2, -0.3), 0.4),
        "at the limit": (0.03, 0.401, (0.1, 0.2, 0.3), (0.3, 0.2, -0.3), 1.5),
        "parting": (-2e-4, 0.1495, (0.1, 0.2, 0.3), (0.3, 0.2, -0.02), 0.4, 0.7),
    }
    found = {"q": [], "qd": [], "u": [], "approach": []}
    for gap, hinge, omega, v, command, *approach in rows.values():
        tilted = np.array([0.9, 0.1, 0.05, 0.2])
        found["q"].append([0.1, 0.2, RADIUS + gap, *(tilted / np.linalg.norm(tilted)), hinge])
        found["qd"].append([*omega, *v, 0.2 * omega[1]])
        found["u"].append([command])
        found["approach"].append(approach or [0.0])
    return {name: np.array(values) for name, values in found.items()}


def check(sim: Simulator, where: dict):
    """Derivatives of a step by the state, the command and the contact's numbers, in all modes at once."""
    states = modes()

    def one(p, q, qd, u, approach):
        numbers = [get(sim) * (1.0 + p[name]) for name, get in where.items()]
        changed = eqx.tree_at(lambda s: [get(s) for get in where.values()], sim, numbers) if where else sim
        start = eqx.tree_at(
            lambda s: (s.q, s.qd), sim.initial_state(), (retract(sim.model, q, p["delta q"]), qd + p["delta qd"])
        )
        if "contact" in start.aux:
            # of both contacts, and of all impulses that the sweeps begin with
            met = approach * (1.0 + p["approach"])
            start = eqx.tree_at(lambda s: s.aux["contact"], start, ImpulseState(p["delta impulse"], met))
        new = rollout(changed, start, (u + p["delta u"])[None]).final
        return new.q, new.qd, new.aux

    count = len(states["q"])
    memory = sim.initial_state().aux.get("contact")
    parameters = {
        "delta q": np.zeros((count, sim.model.nv)),
        "delta qd": np.zeros((count, sim.model.nv)),
        "delta u": np.zeros((count, sim.model.nu)),
        **{name: np.zeros((count, *np.shape(get(sim)))) for name, get in where.items()},
    }
    if memory is not None:
        parameters["delta impulse"] = np.zeros((count, *memory.impulse.shape))
        parameters["approach"] = np.zeros((count, *memory.approach.shape))
    sizes = check_derivatives(lambda p: jax.vmap(one)(p, *states.values()), parameters, tolerance=1e-6, step=5e-8)
    for name in where:
        assert sizes[name] > 1e-9, f"{name} has no influence"


GEOMETRY = {"friction of the surfaces": lambda s: s.model.geometry.friction}
IMPULSE = {
    "friction": lambda s: s.contact.friction,
    "restitution": lambda s: s.contact.restitution,
    "softness": lambda s: s.contact.softness,
    "cfm": lambda s: s.contact.cfm,
    "mass": lambda s: s.model.body.mass,
    "radius": lambda s: s.model.geometry.size,
}
NUMBERS = {"friction": {"*": 0.4, "arm*": 0.6}, "restitution": 0.3, "softness": 0.3, "cfm": 0.05}


BACKENDS = pytest.mark.parametrize("backend", ["native", slow("xla")])


@BACKENDS
@pytest.mark.parametrize(
    ("cone", "gradient"),
    [("pyramid", "unrolled"), slow("cone", "implicit"), slow("pyramid", "implicit"), slow("cone", "unrolled")],
)
def test_impulse_contact(hopper, cone, gradient, backend):
    sweeps = 4 if gradient == "unrolled" else 100
    contact = ImpulseContact(cone=cone, gradient=gradient, sweeps=sweeps, **NUMBERS)
    check(Simulator(hopper, contact=contact, backend=backend), IMPULSE)


@pytest.mark.parametrize(
    ("stabilisation", "where"),
    [
        slow(Recovery(0.03), {"time": lambda s: s.contact.stabilisation.time}),
        slow(ERP(0.1), {"erp": lambda s: s.contact.stabilisation.erp}),
        slow(
            Baumgarte(300.0, 200.0),
            {"alpha": lambda s: s.contact.stabilisation.alpha, "beta": lambda s: s.contact.stabilisation.beta},
        ),
    ],
    ids=["recovery", "erp", "baumgarte"],
)
def test_stabilisation(hopper, stabilisation, where):
    contact = ImpulseContact(stabilisation=stabilisation)
    check(Simulator(hopper, contact=contact, backend="native"), where | GEOMETRY)


@BACKENDS
@pytest.mark.parametrize("law", ["coulomb", slow("brown"), slow("andersson"), slow("hollars")])
def test_compliant_contact(hopper, law, backend):
    where = {
        "friction": lambda s: s.contact.friction,
        "stiffness": lambda s: s.contact.stiffness,
        "damping": lambda s: s.contact.damping,
        "exponent": lambda s: s.contact.exponent,
        "mass": lambda s: s.model.body.mass,
    }
    numbers = {"transition": 0.05}
    if law != "coulomb":
        numbers["static"] = 1.3
    if law == "andersson":
        numbers |= {"stribeck": 0.06, "exponent": 1.4}
    where |= {f"{what} of the law": lambda s, what=what: getattr(s.contact.law, what) for what in numbers}
    made = LAWS[law](**{what: np.array(value) for what, value in numbers.items()})
    contact = CompliantContact(friction=0.4, stiffness=1e5, damping=2e5, law=made)
    check(Simulator(hopper, contact=contact, backend=backend), where)


def test_surfaces_do_not_change_accelerations_without_contact():
    """Nor do their derivatives fail, though of all that changes nothing reaches them."""
    model = on_plane("sphere", (RADIUS,))

    def accelerations(friction):
        changed = eqx.tree_at(lambda m: m.geometry.friction, model, friction)
        return forward_dynamics(changed, model.home, np.ones(model.nv), np.zeros(model.nv))

    with jax.enable_x64(True):
        for jacobian in (jax.jacfwd, jax.jacrev):
            np.testing.assert_array_equal(jax.jit(jacobian(accelerations))(model.geometry.friction), 0.0)


def tripod():
    """A body with three feet: unlike that on a box's four corners, their load is unique, and sweeps converge soon."""
    robot = ModelBuilder("tripod").passive()
    inertia = inertia_of("box", (0.05, 0.04, 0.03), 1.0)
    robot.add_body("body", kind="free", mass=1.0, inertia=inertia, home=(0, 0, 0.05, 1, 0, 0, 0))
    robot.add_geom("body", "points", (), data=[(0.05, 0, -0.03), (-0.03, 0.04, -0.03), (-0.03, -0.04, -0.03)])
    return robot.add_geom("world", "plane", ()).build()


BOX = partial(on_plane, "box", (0.05, 0.04, 0.03), height=0.02)
BALL = partial(on_plane, "sphere", (0.05,), height=0.02)
BOUNCY = partial(ImpulseContact, friction=0.4, restitution=0.3, softness=0.2)
ROLLOUTS = {
    "pyramid": (BOX, BOUNCY()),
    "cone": (BOX, BOUNCY(cone="cone")),
    # on two feet that stick the tripod would come to rest, and what these do to each other has no unique answer
    "implicit pyramid": (BALL, BOUNCY(friction=0.1, sweeps=200, gradient="implicit")),
    "implicit cone": (tripod, BOUNCY(sweeps=200, gradient="implicit", cone="cone")),
    "compliant": (BOX, CompliantContact(friction=0.4)),
}


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("pyramid", "native"),
        ("compliant", "native"),
        slow("cone", "native"),
        slow("implicit pyramid", "native"),
        slow("implicit cone", "native"),
        slow("pyramid", "xla"),
        slow("compliant", "xla"),
    ],
)
def test_a_rollout_that_bounces_slides_and_stops(name, backend):
    """Gradients with respect to the start and the surface over 300 steps with an impact, slip and rest."""
    make, contact = ROLLOUTS[name]
    sim = Simulator(make(), contact=contact, dt=DT, backend=backend)
    start = sim.initial_state()
    own = ("stiffness", "damping") if name == "compliant" else ("restitution", "softness")

    def numbers(sim: Simulator):
        return [sim.model.body.mass, *(getattr(sim.contact, what) for what in ("friction", *own))]

    def end(p):
        scaled = [x * (1.0 + p[what]) for what, x in zip(("mass", "friction", *own), numbers(sim), strict=True)]
        changed = eqx.tree_at(numbers, sim, scaled)
        begin = eqx.tree_at(lambda s: s.qd, start, p["qd"])
        motion = rollout(changed, begin, steps=300)
        return motion.q[-1], motion.q[150]

    parameters = {
        "qd": np.array([0.3, 0.25, 0.5, 0.6, 0.2, -0.1]),  # no contact begins or ends within the differences
        **{what: np.zeros(1) for what in ("mass", "friction", *own)},
    }
    sizes = check_derivatives(end, parameters, tolerance=1e-4, step=1e-8)
    assert min(sizes.values()) > 1e-5, sizes


def test_feet_that_hold_each_other_do_not_spoil_the_implicit_derivative():
    """On two feet that stick, the pull of one on the other is hardly determined; what moves does not depend on it."""
    sim = Simulator(tripod(), contact=BOUNCY(sweeps=400, gradient="implicit"), dt=DT, backend="native")
    start = eqx.tree_at(lambda s: s.qd, sim.initial_state(), np.array([0.3, 0.25, 0.5, 0.6, 0.2, -0.1]))
    start = simulate(sim, start, steps=210).final

    @jax.jit
    def after(turn):
        q = retract(sim.model, start.q, jnp.concatenate([jnp.zeros(3), turn]))
        return rollout(sim, eqx.tree_at(lambda s: s.q, start, q), steps=1).qd[-1]

    step = 1e-8
    expected = np.stack([(after(step * e) - after(-step * e)) / (2.0 * step) for e in np.eye(3)], axis=1)
    assert np.abs(expected).max() > 10.0
    np.testing.assert_allclose(jax.jacfwd(after)(jnp.zeros(3)), expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("gradient", [slow("unrolled"), "implicit"])
def test_one_number_of_the_contacts_alone_has_a_derivative(gradient):
    """Nothing else of the problem changes with it."""
    sim = Simulator(on_plane("sphere", (RADIUS,)), contact=ImpulseContact(gradient=gradient), dt=DT, backend="xla")
    start = sim.initial_state(q=np.array([0, 0, RADIUS - 1e-3, 1, 0, 0, 0]), qd=np.array([0, 0, 0, 1.0, 0, 0]))

    @jax.jit
    def slip(friction):
        changed = eqx.tree_at(lambda s: s.model.geometry.friction, sim, jnp.stack([friction, jnp.zeros(())]))
        return rollout(changed, start, steps=5).qd[-1, 3]

    slope = jax.grad(slip)(0.3)
    np.testing.assert_allclose(slope, (slip(0.3 + 1e-6) - slip(0.3 - 1e-6)) / 2e-6, rtol=1e-7)
    assert slope < -0.01
