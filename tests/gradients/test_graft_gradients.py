"""Every quantity of the catalogue can be changed by a network and read by one, with derivatives by the weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.model.builder import ModelBuilder
from hybridsim.networks.mlp import MLP
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs
from hybridsim.taps.blueprint import Blueprint, Graft
from hybridsim.taps.catalog import CATALOG, Form
from support.slow import slow

STEPS, SIZE = 4, 1e-3
CHANGED = [quantity.name for quantity in CATALOG if quantity.form is not Form.INPUT]
LAST = "step.qd_next"


def floating():
    """A free body with a driven arm, about to touch the ground."""
    robot = ModelBuilder("floating")
    robot.add_body(
        "base", joint="root", kind="free", mass=2.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.25, 0.01, 0.02, 0.03)
    )
    robot.add_body(
        "arm",
        parent="base",
        joint="hinge",
        at=(0.3, 0, 0),
        mass=0.5,
        com=(0.2, 0, 0),
        inertia=(0.1, 0.1, 0.1),
        damping=0.3,
    )
    robot.add_actuator("hinge")
    robot.add_geom("base", "sphere", (0.1,))
    robot.add_geom("world", "plane", (), at=(0.0, 0.0, -0.0995), name="floor")
    return robot.build()


def small(inputs, outputs, seed):
    """A network that changes a little."""
    net = MLP(inputs, outputs, hidden=(2,), seed=seed, output_scale=SIZE, input_scale=3.0)
    return eqx.tree_at(lambda n: n.weights[-1], net, np.random.default_rng(seed).normal(size=(outputs, 2)))


def simulator(grafts, contact, backend):
    return Simulator(floating(), dt=2e-3, contact=contact, backend=backend, blueprint=Blueprint(*grafts))


def sizes(contact):
    sim = Simulator(floating(), contact=contact)
    model, nc = sim.model, sim.contact.candidates.nc
    return {"dof": model.nv, "body": model.nb, "actuator": model.nu, "contact": nc, "coordinate": model.nq, "-": 1}


def check(sim):
    """Derivatives by the weights of every graft, along a direction, against differences of a rollout."""
    random = np.random.default_rng(7)
    start = sim.initial_state(sim.model.home, 0.3 * random.normal(size=sim.model.nv))
    ct = random.normal(size=(sim.model.nq + sim.model.nv,))
    given = Inputs(random.normal(size=(STEPS, sim.model.nu)), random.normal(size=(STEPS, sim.model.nb, 6)))

    def end(weights):
        other = eqx.tree_at(lambda s: [graft.net.weights for graft in s.blueprint.grafts], sim, weights)
        motion = rollout(other, start, given)
        return jnp.concatenate([jnp.asarray(motion.q[-1]), jnp.asarray(motion.qd[-1])]) @ ct

    weights = [tuple(map(jnp.asarray, graft.net.weights)) for graft in sim.blueprint.grafts]
    value, slopes = jax.jit(end), jax.jit(jax.grad(end))(weights)
    for place, graft in enumerate(sim.blueprint.grafts):
        direction = [random.normal(size=W.shape) for W in weights[place]]
        slope = sum(float(jnp.sum(g * d)) for g, d in zip(slopes[place], direction, strict=True))

        def moved(h, place=place, direction=direction):
            other = list(weights)
            other[place] = tuple(W + h * d for W, d in zip(weights[place], direction, strict=True))
            return float(value(other))

        h = 1e-3
        difference = (moved(-2 * h) - 8 * moved(-h) + 8 * moved(h) - moved(2 * h)) / (12 * h)
        what = f"{graft.inputs} → {graft.outputs}"
        assert abs(difference) > 1e-10, f"{what} has no effect at all"
        assert slope == pytest.approx(difference, rel=1e-6, abs=1e-11), what


def is_of(name, contact):
    """Does the engine have this quantity, and go by it, with this kind of contact?"""
    if contact == "compliant":
        return name != "contact.impulse"
    return name not in ("contact.normal_force", "contact.friction_force")


CASES = [
    ("native", "compliant"),
    slow("native", "impulse"),
    slow("xla", "compliant"),
    slow("xla", "impulse"),
]


@pytest.mark.parametrize(("backend", "contact"), CASES)
def test_every_quantity_can_be_changed(backend, contact):
    size = sizes(contact)
    names = [name for name in CHANGED if is_of(name, contact)]
    by_name = {quantity.name: quantity for quantity in CATALOG}
    grafts = []
    for k, name in enumerate(names):
        quantity = by_name[name]
        outputs = size[quantity.write_axis] * max(len(quantity.components), 1)
        grafts.append(Graft(name, "step.time", small(1, outputs, k)))
    check(simulator(grafts, contact, backend))


@pytest.mark.parametrize(("backend", "contact"), CASES)
def test_every_quantity_can_be_read(backend, contact):
    size = sizes(contact)
    grafts = []
    for k, quantity in enumerate(CATALOG):
        if not is_of(quantity.name, contact) or quantity.name in ("step.q_next",):
            continue
        width = max(len(quantity.components), 1) if quantity.columns == "-" else size[quantity.columns]
        grafts.append(Graft(LAST, quantity.name, small(size[quantity.axis] * width, size["dof"], k)))
    grafts.append(Graft("step.q_next", "step.q_next", small(size["coordinate"], size["dof"], 99)))
    check(simulator(grafts, contact, backend))
