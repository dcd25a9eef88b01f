"""Gradients through contact in every mode, forward and reverse, against finite differences."""

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim.contact.compliant import CompliantContact
from hybridsim.contact.friction_laws import LAWS
from hybridsim.contact.impulse import ImpulseContact
from hybridsim.contact.stabilisation import Baumgarte, Erp, Recovery
from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.coordinates import retract
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from support.contact_scenes import on_plane
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
        #             gap    hinge  ω                 v                    command
        "separated": (0.05, 0.0, (0.3, -0.2, 0.1), (0.5, 0.2, -0.4), 0.1),
        "approaching": (6e-4, 0.01, (0.3, -0.2, 0.1), (0.5, 0.2, -1.1), 0.1),
        "grazing": (2e-4, 0.02, (0.0, 0.1, 0.0), (1.0, 0.3, -0.22), 0.0),
        "sliding": (-3e-4, 0.05, (0.2, 0.3, -0.1), (0.8, -0.5, -0.02), 0.2),
        "sticking": (-3e-4, 0.08, (0.002, 0.003, 0.001), (1e-3, -2e-3, -0.02), -0.3),
        "resting": (-2e-4, 0.1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.05),
        "both": (-2e-4, 0.1495, (0.1, 0.2, 0.3), (0.3, 0.2, -0.3), 0.4),
        "at the limit": (0.03, 0.401, (0.1, 0.2, 0.3), (0.3, 0.2, -0.3), 1.5),
    }
    found = {"q": [], "qd": [], "u": []}
    for gap, hinge, omega, v, command in rows.values():
        tilted = np.array([0.9, 0.1, 0.05, 0.2])
        found["q"].append([0.1, 0.2, RADIUS + gap, *(tilted / np.linalg.norm(tilted)), hinge])
        found["qd"].append([*omega, *v, 0.2 * omega[1]])
        found["u"].append([command])
    return {name: np.array(values) for name, values in found.items()}


def check(sim: Simulator, where: dict):
    """Derivatives of a step by the state, the command and the contact's numbers, in all modes at once."""
    states = modes()

    def one(p, q, qd, u):
        numbers = [get(sim) * (1.0 + p[name]) for name, get in where.items()]
        changed = eqx.tree_at(lambda s: [get(s) for get in where.values()], sim, numbers) if where else sim
        start = eqx.tree_at(
            lambda s: (s.q, s.qd), sim.initial_state(), (retract(sim.model, q, p["delta q"]), qd + p["delta qd"])
        )
        new = rollout(changed, start, (u + p["delta u"])[None]).final
        return new.q, new.qd, new.aux

    count = len(states["q"])
    parameters = {
        "delta q": np.zeros((count, sim.model.nv)),
        "delta qd": np.zeros((count, sim.model.nv)),
        "delta u": np.zeros((count, sim.model.nu)),
        **{name: np.zeros((count, *np.shape(get(sim)))) for name, get in where.items()},
    }
    sizes = check_derivatives(
        lambda p: jax.vmap(one)(p, states["q"], states["qd"], states["u"]), parameters, tolerance=1e-6, step=5e-8
    )
    for name in where:
        assert sizes[name] > 1e-9, f"{name} has no influence"


GEOMETRY = {"friction of the surfaces": lambda s: s.model.geometry.friction}
IMPULSE = {
    "friction": lambda s: s.contact.friction,
    "softness": lambda s: s.contact.softness,
    "cfm": lambda s: s.contact.cfm,
    "mass": lambda s: s.model.body.mass,
    "radius": lambda s: s.model.geometry.size,
}
NUMBERS = {"friction": {"*": 0.4, "arm*": 0.6}, "softness": 0.3, "cfm": 0.05}


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
        slow(Erp(0.1), {"erp": lambda s: s.contact.stabilisation.erp}),
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
        "transition": lambda s: s.contact.law.transition,
        "mass": lambda s: s.model.body.mass,
    }
    if law != "coulomb":
        where["static friction"] = lambda s: s.contact.law.static
    made = LAWS[law](transition=np.array(0.05), **({} if law == "coulomb" else {"static": np.array(1.3)}))
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


@BACKENDS
def test_a_rollout_that_bounces_slides_and_stops(backend):
    """Gradients with respect to the start and the surface over 300 steps with an impact, slip and rest."""
    model = on_plane("box", (0.05, 0.04, 0.03), height=0.02, friction=0.4, restitution=0.3)
    contact = ImpulseContact(friction=0.4, restitution=0.3)
    sim = Simulator(model, contact=contact, dt=DT, backend=backend)
    start = sim.initial_state()

    def end(p):
        changed = eqx.tree_at(
            lambda s: (s.contact.friction, s.contact.restitution, s.model.body.mass),
            sim,
            (p["friction"], p["restitution"], p["mass"]),
        )
        begin = eqx.tree_at(lambda s: s.qd, start, p["qd"])
        motion = rollout(changed, begin, steps=300)
        return motion.q[-1], motion.q[150]

    parameters = {
        "qd": np.array([0.3, 0.25, 0.5, 0.6, 0.2, -0.1]),  # no contact begins or ends within the differences
        "friction": np.array([0.4]),
        "restitution": np.array([0.3]),
        "mass": np.array([1.0]),
    }
    check_derivatives(end, parameters, tolerance=1e-4, step=1e-7)
