"""Networks can read and modify every quantity of the catalogue, with correct derivatives with respect to weights."""

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
from hybridsim.taps.catalogue import CATALOGUE, Form
from support.slow import slow

STEPS, SIZE = 4, 1e-3
WRITABLE = [quantity.name for quantity in CATALOGUE if quantity.form is not Form.READ_ONLY]
LAST = "step.qd_next"


def floating_arm():
    """A free body with an actuated arm, 0.5 mm above the ground."""
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


def small_network(inputs, outputs, seed):
    """A network with small outputs."""
    net = MLP(inputs, outputs, hidden=(2,), seed=seed, output_scale=SIZE, input_scale=3.0)
    return eqx.tree_at(lambda n: n.weights[-1], net, np.random.default_rng(seed).normal(size=(outputs, 2)))


def simulator(grafts, contact, backend):
    return Simulator(floating_arm(), dt=2e-3, contact=contact, backend=backend, blueprint=Blueprint(*grafts))


def sizes(contact):
    sim = Simulator(floating_arm(), contact=contact)
    model, nc = sim.model, sim.contact.candidates.nc
    return {"dof": model.nv, "body": model.nb, "actuator": model.nu, "contact": nc, "coordinate": model.nq, "-": 1}


def check(sim):
    """Check directional derivatives with respect to the weights of each graft against finite differences."""
    random = np.random.default_rng(7)
    initial = sim.initial_state(sim.model.home, 0.3 * random.normal(size=sim.model.nv))
    ct = random.normal(size=(sim.model.nq + sim.model.nv,))
    inputs = Inputs(random.normal(size=(STEPS, sim.model.nu)), random.normal(size=(STEPS, sim.model.nb, 6)))

    def loss(weights):
        changed = eqx.tree_at(lambda s: [graft.net.weights for graft in s.blueprint.grafts], sim, weights)
        trajectory = rollout(changed, initial, inputs)
        return jnp.concatenate([jnp.asarray(trajectory.q[-1]), jnp.asarray(trajectory.qd[-1])]) @ ct

    weights = [tuple(map(jnp.asarray, graft.net.weights)) for graft in sim.blueprint.grafts]
    value, gradient = jax.jit(loss), jax.jit(jax.grad(loss))(weights)
    for index, graft in enumerate(sim.blueprint.grafts):
        direction = [random.normal(size=W.shape) for W in weights[index]]
        slope = sum(float(jnp.sum(g * d)) for g, d in zip(gradient[index], direction, strict=True))

        def value_at(h, index=index, direction=direction):
            perturbed = list(weights)
            perturbed[index] = tuple(W + h * d for W, d in zip(weights[index], direction, strict=True))
            return float(value(perturbed))

        h = 1e-3
        difference = (value_at(-2 * h) - 8 * value_at(-h) + 8 * value_at(h) - value_at(2 * h)) / (12 * h)
        what = f"{graft.inputs} → {graft.outputs}"
        assert abs(difference) > 1e-10, f"{what} has no effect"
        assert slope == pytest.approx(difference, rel=1e-6, abs=1e-11), what


def is_available(name, contact):
    """Whether the quantity exists and has an effect with this contact model."""
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
def test_every_quantity_can_be_modified(backend, contact):
    size = sizes(contact)
    names = [name for name in WRITABLE if is_available(name, contact)]
    by_name = {quantity.name: quantity for quantity in CATALOGUE}
    grafts = []
    for k, name in enumerate(names):
        quantity = by_name[name]
        outputs = size[quantity.write_axis] * max(len(quantity.components), 1)
        grafts.append(Graft(name, "step.time", small_network(1, outputs, k)))
    check(simulator(grafts, contact, backend))


@pytest.mark.parametrize(("backend", "contact"), CASES)
def test_every_quantity_can_be_read(backend, contact):
    size = sizes(contact)
    grafts = []
    for k, quantity in enumerate(CATALOGUE):
        if not is_available(quantity.name, contact) or quantity.name in ("step.q_next",):
            continue
        width = max(len(quantity.components), 1) if quantity.component_axis == "-" else size[quantity.component_axis]
        grafts.append(Graft(LAST, quantity.name, small_network(size[quantity.axis] * width, size["dof"], k)))
    grafts.append(Graft("step.q_next", "step.q_next", small_network(size["coordinate"], size["dof"], 99)))
    check(simulator(grafts, contact, backend))
