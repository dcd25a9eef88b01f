"""Contact taps: values read at rest and in sliding, and the effect of grafts on motion.

A dumb-bell with an off-centre mass lies on a plane: two contacts with different loads, which share one network.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.contact.compliant.compliant_contact import CompliantContact, hunt_crossley
from hybridsim.contact.compliant.friction_laws import Coulomb
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.geometry import DEFAULT_RECOVERY_TIME
from hybridsim.networks.mlp import MLP
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import State
from hybridsim.sim.step import observe
from hybridsim.taps.blueprint import Blueprint, Graft
from support.contact_scenes import GRAVITY
from support.slow import slow

DT, MASS, RADIUS, FRICTION, TRANSITION = 1e-3, 2.0, 0.1, 0.3, 0.02
STIFFNESS, DAMPING, SOFTNESS = 3e5, 1e6, 0.2
SHARES = np.array([0.75, 0.25])
"""Shares of the weight on each ball, from the position of the centre of mass."""
CONTACTS = {
    "impulse": ImpulseContact(friction=FRICTION, softness=SOFTNESS),
    "compliant": CompliantContact(friction=FRICTION, stiffness=STIFFNESS, damping=DAMPING, law=Coulomb(TRANSITION)),
}
BOTH = pytest.mark.parametrize("kind", CONTACTS)


@pytest.fixture(scope="module")
def dumbbell():
    robot = ModelBuilder("dumb-bell").declare_unactuated()
    robot.add_body(
        "bar", joint="root", kind="free", mass=MASS, com=(0.1, 0, 0), inertia=(0.01, 0.04, 0.04),
        home=(0, 0, RADIUS, 1, 0, 0, 0),
    )  # fmt: skip
    for x in (0.2, -0.2):
        robot.add_geom("bar", "sphere", (RADIUS,), at=(x, 0, 0))
    return robot.add_geom("world", "plane", (), name="floor").build()


@pytest.fixture(scope="module")
def states_at_rest(dumbbell) -> dict[str, State]:
    """States after settling, by kind of contact."""
    return {
        kind: simulate(Simulator(dumbbell, contact=contact), steps=3000).final for kind, contact in CONTACTS.items()
    }


def simulator(dumbbell, kind: str, *grafts: Graft) -> Simulator:
    return Simulator(dumbbell, contact=CONTACTS[kind], dt=DT, blueprint=Blueprint(*grafts), backend="native")


def add_velocity(state: State, v: float) -> State:
    """The state with an added velocity along x and y [m/s]."""
    return eqx.tree_at(lambda s: s.qd, state, state.qd + np.array([0, 0, 0, v, 0.5 * v, 0]))


def constant(*values):
    return eqx.Partial(lambda c, x: c + 0.0 * jnp.sum(x), jnp.asarray(values, dtype=float))


observe_jit = eqx.filter_jit(observe)


@BOTH
def test_values_at_rest_agree_with_closed_forms(dumbbell, states_at_rest, kind):
    sim = simulator(dumbbell, kind)
    values = observe_jit(sim, states_at_rest[kind])
    read = {name: np.asarray(value) for name, value in values.items() if name.startswith("contact.")}
    loads = SHARES * MASS * GRAVITY
    np.testing.assert_allclose(read["contact.normal_force"], loads, rtol=2e-3)
    assert read["contact.normal_force"].sum() == pytest.approx(MASS * GRAVITY, rel=1e-6)
    if kind == "impulse":
        # the velocity of the compliance under the load equals the recovery velocity
        depth = SOFTNESS * sim.contact.inverse_mass.pairs * loads * DT * DEFAULT_RECOVERY_TIME
    else:
        depth = (loads / STIFFNESS) ** (2.0 / 3.0)
    np.testing.assert_allclose(read["contact.gap"], -depth, rtol=2e-3)
    np.testing.assert_allclose(read["contact.normal"], [[0, 0, 1]] * 2, atol=1e-12)
    x = states_at_rest[kind].q[0] + np.array([0.2, -0.2])
    points = np.stack([x, np.zeros(2), -0.5 * depth], axis=1)
    np.testing.assert_allclose(read["contact.point"], points, atol=1e-5)
    for name in ("contact.gap_velocity", "contact.slip_velocity"):
        assert np.abs(read[name]).max() < 1e-6
    # sticking friction may have internal forces between the balls, but no resultant
    friction = read["contact.friction_force"]
    assert np.abs(friction.sum(axis=0)).max() < 1e-4 * MASS * GRAVITY
    assert np.all(np.abs(friction) <= FRICTION * loads[:, None])
    force = np.concatenate([read["contact.normal_force"][:, None], read["contact.friction_force"]], axis=1)
    np.testing.assert_allclose(read["contact.impulse"], DT * force, rtol=1e-12)


@BOTH
def test_values_in_sliding_agree_with_coulombs_law(dumbbell, states_at_rest, kind):
    read = observe_jit(simulator(dumbbell, kind), add_velocity(states_at_rest[kind], 0.4))
    slip, normal, friction = (
        np.asarray(read[f"contact.{name}"]) for name in ("slip_velocity", "normal_force", "friction_force")
    )
    np.testing.assert_allclose(slip, [[0.4, 0.2]] * 2, atol=1e-5)
    # a pyramidal cone bounds each component separately, the smooth law their norm
    direction = np.sign(slip) if kind == "impulse" else slip / np.linalg.norm(slip, axis=1, keepdims=True)
    np.testing.assert_allclose(friction, -FRICTION * normal[:, None] * direction, rtol=1e-9)


@BOTH
def test_an_added_normal_force_lifts_the_body(dumbbell, states_at_rest, kind):
    """Three newtons more at each of two contacts for one step."""
    graft = Graft("contact.normal_force", ["contact.gap"], constant(3.0), per="element")
    plain, lifted = (
        simulate(simulator(dumbbell, kind, *g), states_at_rest[kind], steps=1).final.qd for g in ((), (graft,))
    )
    change = lifted - plain
    assert change[5] - 0.1 * change[1] == pytest.approx(2.0 * 3.0 * DT / MASS, rel=1e-5)


@BOTH
def test_a_grafted_viscous_friction_law(dumbbell, states_at_rest, kind):
    """Viscous instead of dry friction, −c N v at each contact: v decays as exp(−c g t)."""
    rate = 0.5
    viscous = eqx.Partial(lambda c, x: -c * x[0] * x[1:], jnp.asarray(rate))
    inputs = ["contact.normal_force", "contact.slip_velocity"]
    graft = Graft("contact.friction_force", inputs, viscous, mode="replace", per="element")
    v = [
        simulate(simulator(dumbbell, kind, *grafts), add_velocity(states_at_rest[kind], 0.2), steps=200).qd[-1, 3]
        for grafts in ((), (graft,))
    ]
    assert v[0] < 0.01, "dry friction has stopped it by now"
    assert v[1] == pytest.approx(0.2 * np.exp(-rate * GRAVITY * 0.2), rel=0.02)


@BOTH
@pytest.mark.parametrize(
    ("quantity", "change"),
    [("normal_force", (3.0,)), ("friction_force", (2.0, 1.0)), ("impulse", (0.1, 0.2, 0.3))],
)
def test_a_graft_has_no_effect_on_open_contacts(dumbbell, kind, quantity, change):
    graft = Graft(f"contact.{quantity}", ["contact.gap"], constant(*change), per="element")
    sim = simulator(dumbbell, kind, graft)
    start = sim.initial_state(q=[0, 0, 1.0, 1, 0, 0, 0])
    plain, grafted = (simulate(s, start, steps=20) for s in (simulator(dumbbell, kind), sim))
    np.testing.assert_allclose(grafted.qd, plain.qd, rtol=0, atol=1e-15)


def test_gap_of_absent_points_is_the_sum_of_bounding_radii():
    """Two boxes in edge contact, with one of four points; a graft cannot close the others."""
    scene = ModelBuilder("boxes").declare_unactuated()
    for k, quaternion in enumerate(((1.0, 0.0, 0.0, 0.0), (0.9, 0.3, 0.2, 0.1))):
        home = (0, 0, 0.05 + 0.14 * k, *(np.array(quaternion) / np.linalg.norm(quaternion)))
        scene.add_body(f"box{k}", joint=f"root{k}", kind="free", mass=1.0, inertia=(0.01,) * 3, home=home)
        scene.add_geom(f"box{k}", "box", (0.05,) * 3, name=f"box{k}")
    sim = Simulator(scene.build(), contact="compliant", dt=DT)
    gap = np.asarray(observe_jit(sim, sim.initial_state())["contact.gap"])
    far = 2.0 * np.sqrt(3.0) * 0.05
    assert gap.min() < 0.05 and np.sum(np.isclose(gap, far, rtol=1e-12)) == 3
    pressed = Simulator(
        sim.model,
        contact="compliant",
        dt=DT,
        blueprint=Blueprint(Graft("contact.gap", ["contact.gap"], constant(-far - 0.01), per="element")),
    )
    forces = np.asarray(observe_jit(pressed, pressed.initial_state())["contact.normal_force"])
    assert np.sum(forces > 0.0) == 1


def analytic_grafts(kind: str) -> list[Graft]:
    """Networks that compute the same as the quantities that they replace."""
    if kind == "impulse":
        same = eqx.Partial(lambda c, x: c * x, jnp.ones(()))
        quantities = ("contact.normal_force", "contact.friction_force", "contact.impulse")
        return [Graft(name, [name], same, mode="replace", per="element") for name in quantities]

    def spring(parameters, x):
        return hunt_crossley(-x[0], -x[1], *parameters)

    def coulomb(parameters, x):
        mu, transition = parameters
        speed = jnp.sqrt(x[1:] @ x[1:] + 1e-30)
        return -mu * x[0] * jnp.tanh(speed / transition) / speed * x[1:]

    normal = eqx.Partial(spring, tuple(jnp.asarray(x) for x in (STIFFNESS, DAMPING, 1.5)))
    friction = eqx.Partial(coulomb, (jnp.asarray(FRICTION), jnp.asarray(TRANSITION)))
    inputs = ["contact.normal_force", "contact.slip_velocity"]
    return [
        Graft("contact.normal_force", ["contact.gap", "contact.gap_velocity"], normal, mode="replace", per="element"),
        Graft("contact.friction_force", inputs, friction, mode="replace", per="element"),
    ]


@BOTH
def test_networks_equal_to_the_quantities_they_replace_do_not_change_motion(dumbbell, states_at_rest, kind):
    start = add_velocity(states_at_rest[kind], 0.3)
    plain = simulate(simulator(dumbbell, kind), start, steps=200)
    grafted = simulate(simulator(dumbbell, kind, *analytic_grafts(kind)), start, steps=200)
    assert plain.q[-1, 0] > plain.q[0, 0] + 0.005, "the body must slide"
    # up to rounding
    np.testing.assert_allclose(grafted.q, plain.q, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["compliant", slow("impulse")])
def test_gradient_with_respect_to_weights_of_a_shared_network(dumbbell, states_at_rest, kind):
    """One network outputs both forces of every contact from its gap and slip."""
    net = MLP(3, 3, hidden=(4,), seed=1, input_scale=[1e-3, 0.1, 0.1])
    net = eqx.tree_at(lambda n: n.weights[-1], net, np.random.default_rng(0).normal(size=(3, 4)))
    outputs = ["contact.normal_force", "contact.friction_force"]
    graft = Graft(outputs, ["contact.gap", "contact.slip_velocity"], net, per="element")
    sim, start = simulator(dumbbell, kind, graft), add_velocity(states_at_rest[kind], 0.3)

    def loss(weights):
        changed = eqx.tree_at(lambda s: s.blueprint.grafts[0].net.weights, sim, weights)
        return jnp.sum(rollout(changed, start, steps=20).qd ** 2)

    gradient = jax.grad(loss)(net.weights)
    for layer, entry in ((0, (2, 1)), (0, (1, 0)), (1, (0, 3)), (1, (2, 1))):

        def perturbed_loss(h, layer=layer, entry=entry):
            weights = [w.copy() for w in net.weights]
            weights[layer][entry] += h
            return float(loss(tuple(weights)))

        expected = (perturbed_loss(1e-5) - perturbed_loss(-1e-5)) / 2e-5
        assert float(gradient[layer][entry]) == pytest.approx(expected, rel=1e-5)
        assert abs(expected) > 1e-6
