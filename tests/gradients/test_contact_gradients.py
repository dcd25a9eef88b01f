"""Gradients through every mode of contact, in forward and reverse mode, against finite differences."""

from dataclasses import fields
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.contact.choices import FRICTION_LAWS
from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact, ImpulseState
from hybridsim.contact.impulse.stabilization import ERP, Baumgarte, RecoveryTime
from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.coordinates import retract
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator
from support.contact_scenes import body_on_plane, solid_inertia
from support.derivatives import check_derivatives
from support.slow import slow

DT = 1e-3
RADIUS = 0.1


@pytest.fixture(scope="module")
def hopper():
    """A ball with an actuated arm that ends in a smaller ball: two coupled contacts."""
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


def states_in_all_contact_modes() -> dict:
    """States in all modes of contact: separated, approaching, sliding, sticking, …"""
    rows = {
        #             gap    hinge  ω                 v                    command, approach speed of an earlier impact
        "separated": (0.05, 0.0, (0.3, -0.2, 0.1), (0.5, 0.2, -0.4), 0.1),
        "approaching": (6e-4, 0.01, (0.3, -0.2, 0.1), (0.5, 0.2, -1.1), 0.1),
        "grazing": (2e-4, 0.02, (0.0, 0.1, 0.0), (1.0, 0.3, -0.22), 0.0),
        "sliding": (-3e-4, 0.05, (0.2, 0.3, -0.1), (0.8, -0.5, -0.02), 0.2),
        "sticking": (-3e-4, 0.08, (0.002, 0.003, 0.001), (1e-3, -2e-3, -0.02), -0.3),
        "resting": (-2e-4, 0.1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.05),
        "both": (-2e-4, 0.1495, (0.1, 0.2, 0.3), (0.3, 0.2, -0.3), 0.4),
        "at the limit": (0.03, 0.401, (0.1, 0.2, 0.3), (0.3, 0.2, -0.3), 1.5),
        "rebounding": (-2e-4, 0.1495, (0.1, 0.2, 0.3), (0.3, 0.2, -0.02), 0.4, 0.7),
    }
    states = {"q": [], "qd": [], "u": [], "approach": []}
    for gap, hinge, omega, v, command, *approach in rows.values():
        quaternion = np.array([0.9, 0.1, 0.05, 0.2])
        states["q"].append([0.1, 0.2, RADIUS + gap, *(quaternion / np.linalg.norm(quaternion)), hinge])
        states["qd"].append([*omega, *v, 0.2 * omega[1]])
        states["u"].append([command])
        states["approach"].append(approach or [0.0])
    return {name: np.array(values) for name, values in states.items()}


def check(sim: Simulator, where: dict):
    """Check derivatives of a step with respect to state, command and selected parameters, in all modes."""
    states = states_in_all_contact_modes()

    def step(p, q, qd, u, approach):
        values = [get(sim) * (1.0 + p[name]) for name, get in where.items()]
        changed = eqx.tree_at(lambda s: [get(s) for get in where.values()], sim, values) if where else sim
        initial = eqx.tree_at(
            lambda s: (s.q, s.qd), sim.initial_state(), (retract(sim.model, q, p["delta q"]), qd + p["delta qd"])
        )
        if "contact" in initial.aux:
            # approach speeds of both contacts, and all impulses of the warm start
            approach = approach * (1.0 + p["approach"])
            initial = eqx.tree_at(lambda s: s.aux["contact"], initial, ImpulseState(p["delta impulse"], approach))
        new = rollout(changed, initial, (u + p["delta u"])[None]).final
        return new.q, new.qd, new.aux

    count = len(states["q"])
    warm_start = sim.initial_state().aux.get("contact")
    parameters = {
        "delta q": np.zeros((count, sim.model.nv)),
        "delta qd": np.zeros((count, sim.model.nv)),
        "delta u": np.zeros((count, sim.model.nu)),
        **{name: np.zeros((count, *np.shape(get(sim)))) for name, get in where.items()},
    }
    if warm_start is not None:
        parameters["delta impulse"] = np.zeros((count, *warm_start.impulse.shape))
        parameters["approach"] = np.zeros((count, *warm_start.approach.shape))
    sizes = check_derivatives(lambda p: jax.vmap(step)(p, *states.values()), parameters, tolerance=1e-6, step=5e-8)
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
CONTACT_PARAMETERS = {"friction": {"*": 0.4, "arm*": 0.6}, "restitution": 0.3, "softness": 0.3, "cfm": 0.05}


BACKENDS = pytest.mark.parametrize("backend", ["native", slow("xla")])


@BACKENDS
@pytest.mark.parametrize(
    ("cone", "gradient"),
    [
        ("pyramidal", "unrolled"),
        slow("circular", "implicit"),
        slow("pyramidal", "implicit"),
        slow("circular", "unrolled"),
    ],
)
def test_impulse_contact(hopper, cone, gradient, backend):
    sweeps = 4 if gradient == "unrolled" else 100
    contact = ImpulseContact(cone=cone, gradient=gradient, sweeps=sweeps, **CONTACT_PARAMETERS)
    check(Simulator(hopper, contact=contact, backend=backend), IMPULSE)


@pytest.mark.parametrize(
    ("stabilization", "where"),
    [
        slow(RecoveryTime(0.03), {"recovery_time": lambda s: s.contact.stabilization.recovery_time}),
        slow(ERP(0.1), {"erp": lambda s: s.contact.stabilization.erp}),
        slow(
            Baumgarte(300.0, 200.0),
            {"alpha": lambda s: s.contact.stabilization.alpha, "beta": lambda s: s.contact.stabilization.beta},
        ),
    ],
    ids=["recovery", "erp", "baumgarte"],
)
def test_stabilization(hopper, stabilization, where):
    contact = ImpulseContact(stabilization=stabilization)
    check(Simulator(hopper, contact=contact, backend="native"), where | GEOMETRY)


LAW_PARAMETERS = {"transition_velocity": 0.05, "static_ratio": 1.3, "stribeck_velocity": 0.06, "exponent": 1.4}
"""Parameters of friction laws by name."""


@BACKENDS
@pytest.mark.parametrize("law", [name if name == "coulomb" else slow(name) for name in FRICTION_LAWS])
def test_compliant_contact(hopper, law, backend):
    where = {
        "friction": lambda s: s.contact.friction,
        "stiffness": lambda s: s.contact.stiffness,
        "damping": lambda s: s.contact.damping,
        "exponent": lambda s: s.contact.exponent,
        "mass": lambda s: s.model.body.mass,
    }
    law_parameters = {field.name: LAW_PARAMETERS[field.name] for field in fields(FRICTION_LAWS[law])}
    where |= {f"{name} of the law": lambda s, name=name: getattr(s.contact.law, name) for name in law_parameters}
    friction_law = FRICTION_LAWS[law](**{name: np.array(value) for name, value in law_parameters.items()})
    contact = CompliantContact(friction=0.4, stiffness=1e5, damping=2e5, law=friction_law)
    check(Simulator(hopper, contact=contact, backend=backend), where)


def test_surfaces_do_not_change_accelerations_without_contact():
    """Their derivatives exist and are zero, although no differentiated input enters the computation."""
    model = body_on_plane("sphere", (RADIUS,))

    def accelerations(friction):
        changed = eqx.tree_at(lambda m: m.geometry.friction, model, friction)
        return forward_dynamics(changed, model.home, np.ones(model.nv), np.zeros(model.nv))

    with jax.enable_x64(True):
        for jacobian in (jax.jacfwd, jax.jacrev):
            np.testing.assert_array_equal(jax.jit(jacobian(accelerations))(model.geometry.friction), 0.0)


def tripod():
    """A body with three feet; unlike those of a box's four corners, its loads are unique, and sweeps converge fast."""
    robot = ModelBuilder("tripod").declare_unactuated()
    inertia = solid_inertia("box", (0.05, 0.04, 0.03), 1.0)
    robot.add_body("body", kind="free", mass=1.0, inertia=inertia, home=(0, 0, 0.05, 1, 0, 0, 0))
    robot.add_geom("body", "points", (), data=[(0.05, 0, -0.03), (-0.03, 0.04, -0.03), (-0.03, -0.04, -0.03)])
    return robot.add_geom("world", "plane", ()).build()


BOX = partial(body_on_plane, "box", (0.05, 0.04, 0.03), height=0.02)
BALL = partial(body_on_plane, "sphere", (0.05,), height=0.02)
BOUNCY = partial(ImpulseContact, friction=0.4, restitution=0.3, softness=0.2)
ROLLOUTS = {
    "pyramidal": (BOX, BOUNCY()),
    "circular": (BOX, BOUNCY(cone="circular")),
    # the tripod would come to rest on two sticking feet, whose impulses along their line are not unique
    "implicit pyramidal": (BALL, BOUNCY(friction=0.1, sweeps=200, gradient="implicit")),
    "implicit circular": (tripod, BOUNCY(sweeps=200, gradient="implicit", cone="circular")),
    "compliant": (BOX, CompliantContact(friction=0.4)),
}


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("pyramidal", "native"),
        ("compliant", "native"),
        slow("circular", "native"),
        slow("implicit pyramidal", "native"),
        slow("implicit circular", "native"),
        slow("pyramidal", "xla"),
        slow("compliant", "xla"),
    ],
)
def test_rollout_with_impact_sliding_and_rest(name, backend):
    """Gradients with respect to initial velocity and contact parameters, over 300 steps."""
    build_model, contact = ROLLOUTS[name]
    sim = Simulator(build_model(), contact=contact, dt=DT, backend=backend)
    initial = sim.initial_state()
    specific = ("stiffness", "damping") if name == "compliant" else ("restitution", "softness")

    def parameter_leaves(sim: Simulator):
        return [sim.model.body.mass, *(getattr(sim.contact, what) for what in ("friction", *specific))]

    def coordinates(p):
        names = ("mass", "friction", *specific)
        scaled = [x * (1.0 + p[name]) for name, x in zip(names, parameter_leaves(sim), strict=True)]
        changed = eqx.tree_at(parameter_leaves, sim, scaled)
        trajectory = rollout(changed, eqx.tree_at(lambda s: s.qd, initial, p["qd"]), steps=300)
        return trajectory.q[-1], trajectory.q[150]

    parameters = {
        "qd": np.array(
            [0.3, 0.25, 0.5, 0.6, 0.2, -0.1]
        ),  # the finite differences do not change the steps at which contacts begin or end
        **{name: np.zeros(1) for name in ("mass", "friction", *specific)},
    }
    sizes = check_derivatives(coordinates, parameters, tolerance=1e-4, step=1e-8)
    assert min(sizes.values()) > 1e-5, sizes


def test_implicit_derivative_with_nonunique_impulses():
    """Impulses of two sticking feet along their line are almost undetermined, but do not affect the motion."""
    sim = Simulator(tripod(), contact=BOUNCY(sweeps=400, gradient="implicit"), dt=DT, backend="native")
    initial = eqx.tree_at(lambda s: s.qd, sim.initial_state(), np.array([0.3, 0.25, 0.5, 0.6, 0.2, -0.1]))
    sticking = simulate(sim, initial, steps=210).final

    @jax.jit
    def next_velocity(delta):
        q = retract(sim.model, sticking.q, jnp.concatenate([jnp.zeros(3), delta]))
        return rollout(sim, eqx.tree_at(lambda s: s.q, sticking, q), steps=1).qd[-1]

    step = 1e-8
    expected = np.stack(
        [(next_velocity(step * e) - next_velocity(-step * e)) / (2.0 * step) for e in np.eye(3)], axis=1
    )
    assert np.abs(expected).max() > 10.0
    jacobian = jax.jacfwd(next_velocity)(jnp.zeros(3))
    np.testing.assert_allclose(jacobian, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("gradient", [slow("unrolled"), "implicit"])
def test_derivative_with_respect_to_friction_only(gradient):
    """No other parameter and no state is differentiated."""
    sim = Simulator(body_on_plane("sphere", (RADIUS,)), contact=ImpulseContact(gradient=gradient), dt=DT, backend="xla")
    initial = sim.initial_state(q=np.array([0, 0, RADIUS - 1e-3, 1, 0, 0, 0]), qd=np.array([0, 0, 0, 1.0, 0, 0]))

    @jax.jit
    def sliding_speed(friction):
        changed = eqx.tree_at(lambda s: s.model.geometry.friction, sim, jnp.stack([friction, jnp.zeros(())]))
        return rollout(changed, initial, steps=5).qd[-1, 3]

    slope = jax.grad(sliding_speed)(0.3)
    difference = (sliding_speed(0.3 + 1e-6) - sliding_speed(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, difference, rtol=1e-7)
    assert slope < -0.01
