"""Pruning of networks: addresses of inputs, removal of inputs, ablation and wiring summaries."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.networks.drag import RodDrag
from hybridsim.networks.friction import JointFriction
from hybridsim.networks.internal_force import InternalForce
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Conservative, Dissipative, PortHamiltonian
from hybridsim.networks.prune import WHOLE, ablate, input_addresses, prune, pruning_units, reseed
from hybridsim.networks.wiring_summary import wiring_summaries
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.step import observe
from hybridsim.taps.blueprint import Blueprint, Graft
from support.networks import randomize_weights

READS = ["joint.q", "body.twist[link1].omega", "step.time", "input.wind"]


def bind(*grafts):
    blueprint = Blueprint(*grafts, inputs={"wind": 2})
    sim = Simulator(double_pendulum(), blueprint=blueprint)
    return blueprint, sim.bound_blueprint()


def test_every_scalar_input_has_an_address():
    _, bound = bind(Graft("joint.tau", READS, MLP(8, 2)))
    omega = [f"body.twist[link1].omega.{axis}" for axis in "xyz"]
    assert input_addresses(bound.grafts[0]) == [
        "joint.q[joint0]", "joint.q[joint1]", *omega, "step.time", "input.wind.0", "input.wind.1"
    ]  # fmt: skip


def test_input_addresses_of_a_per_element_network_have_no_rows():
    _, bound = bind(Graft("joint.tau", ["joint.qd", "step.time"], MLP(2, 1), per="element"))
    assert input_addresses(bound.grafts[0]) == ["joint.qd", "step.time"]


@pytest.mark.parametrize("per", ["graft", "element"])
def test_a_pruned_network_equals_zero_weights_on_the_removed_inputs(per):
    net = randomize_weights(
        MLP(4 if per == "graft" else 2, 2 if per == "graft" else 1, hidden=(5,), input_bias=True), (1, 1.0)
    )
    keep = [1, 2] if per == "graft" else [1]
    net.weights[0][:, [k for k in range(net.weights[0].shape[1]) if k not in keep]] = 0.0
    blueprint, bound = bind(Graft("joint.tau", ["joint.q", "joint.qd"], net, per=per))
    smaller = prune(blueprint, bound, {(0, k) for k in range(4) if k not in keep})
    assert smaller.grafts[0].net.weights[0].shape == (5, len(keep))
    model = double_pendulum()
    one, other = (Simulator(model, blueprint=b) for b in (blueprint, smaller))
    state = one.initial_state([0.3, -0.4], [1.0, 2.0])
    a, b = (observe(sim, state)["joint.tau"] for sim in (one, other))
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_networks_without_remaining_inputs_are_removed():
    blueprint, bound = bind(*(Graft(f"joint.tau[joint{k}]", "joint.qd", MLP(2, 1)) for k in range(2)))
    remaining = prune(blueprint, bound, {(0, 0), (0, 1), (1, 1)}).grafts
    assert [graft.outputs for graft in remaining] == [("joint.tau[joint1]",)]


def test_networks_without_a_first_layer_are_pruned_as_a_whole():
    blueprint, bound = bind(
        Graft("joint.tau[joint0]", "joint.qd", MLP(2, 1, hidden=(2,))),
        Graft("joint.tau", ["joint.q", "joint.qd"], Dissipative(2, 2, hidden=(3,))),
    )
    names = [f"graft[0].weights[0][{i},{j}]" for i in range(2) for j in range(2)]
    names += [f"graft[1].net.weights[{layer}][0,0]" for layer in range(2)] + ["graft[1].net.biases[1][0]"]
    columns = pruning_units(bound, names)
    assert [(c.graft, c.column, c.entries) for c in columns] == [(0, 0, (0, 2)), (0, 1, (1, 3)), (1, -1, (5, 6))]
    assert str(columns[2]) == "Dissipative(joint.q, joint.qd) → joint.tau"
    assert [type(g.net) for g in prune(blueprint, bound, {(1, -1), (0, 0)}).grafts] == [MLP]
    # networks without free weights are not prunable
    assert pruning_units(bound, names[:4]) == columns[:2]
    assert len(prune(blueprint, bound, {(0, 0), (0, 1)}).grafts) == 1


class SkipConnection(eqx.Module):
    """A user's network with a skip connection around its layers."""

    layers: tuple[eqx.nn.Linear, ...]
    skip: eqx.nn.Linear

    def __init__(self):
        keys = jax.random.split(jax.random.key(0), 3)
        self.layers = (eqx.nn.Linear(4, 3, key=keys[0]), eqx.nn.Linear(3, 1, key=keys[1]))
        self.skip = eqx.nn.Linear(4, 1, key=keys[2])

    def __call__(self, x):
        return self.layers[1](jnp.tanh(self.layers[0](x))) + self.skip(x)


def test_a_network_with_weights_outside_of_layers_is_pruned_by_all_its_weights():
    sim = Simulator(
        double_pendulum(), blueprint=Blueprint(Graft("joint.tau[joint0]", ["joint.q", "joint.qd"], SkipConnection()))
    )
    space = ParameterSpace(Setup(sim, Sensors.from_addresses(sim, {"q": "joint.q[joint0]"})), [Free("graft[0]")])
    (whole,) = pruning_units(sim.bound_blueprint(), space.names)
    assert whole.column == WHOLE and len(whole.entries) == space.size


def test_networks_of_other_kinds_are_reseeded():
    class Seeded(eqx.Module):
        seed: int

        def reseed(self, seed):
            return Seeded(seed)

    first, second = reseed((Seeded(0), Seeded(0)), 5)
    assert (first.seed, second.seed) == (5, 6)


def test_reseeding_changes_initial_weights_only():
    random_bias = randomize_weights(MLP(2, 1, input_bias=True), (0, 1.0))
    assert random_bias.input_bias.any() and not reseed(random_bias, 1).input_bias.any()
    for net in (MLP(2, 1, activation="relu", input_scale=3.0), Dissipative(2, 2)):
        one, same, other = (reseed(randomize_weights(net, (0, 1.0)), seed) for seed in (1, 1, 2))
        inner = [n.net if isinstance(n, Dissipative) else n for n in (one, same, other)]
        assert np.array_equal(inner[0].weights[0], inner[1].weights[0])
        assert not np.array_equal(inner[0].weights[0], inner[2].weights[0])
        assert not inner[0].weights[-1].any() and not inner[0].biases[0].any()
        assert np.array_equal(inner[0].input_scale, (net.net if isinstance(net, Dissipative) else net).input_scale)


NETWORKS = {
    "MLP": (MLP(4, 2, hidden=(3,)), 4),
    "Dissipative": (Dissipative(2, 2, hidden=(3,)), 4),
    "constant Dissipative": (Dissipative(0, 2), 2),
    "Conservative": (Conservative(2, hidden=(3,)), 2),
    "PortHamiltonian": (PortHamiltonian(2, ports=1, hidden=(3,)), 5),
    "JointFriction": (JointFriction(1, hidden=(3,)), 2),
    "InternalForce": (InternalForce(hidden=(3,), damping_scale=2.0), 24),
    "RodDrag": (RodDrag((0, 0, 0), (0, 0, 1), linear=1.0, quadratic=1.0), 6),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_ablated_networks_have_zero_output(kind):
    net, inputs = NETWORKS[kind]
    net = randomize_weights(net, (3, 1.0))
    x = np.random.default_rng(0).normal(size=inputs)
    assert np.asarray(net(x)).any()
    assert not np.asarray(ablate(Graft("joint.tau", "joint.q", net), inputs)(x)).any()


def test_an_ablated_lagrangian_does_not_change_accelerations():
    rng = np.random.default_rng(0)
    net = randomize_weights(Lagrangian(2, hidden=(3,)), (3, 1.0))
    x = np.concatenate([rng.normal(size=6), np.array([2.0, 0.3, 0.3, 1.0])])
    ablated = ablate(Graft("joint.qdd", "joint.q", net, mode="replace"), 10)
    np.testing.assert_allclose(ablated(x), x[4:6], rtol=1e-14)


def test_wirings_list_strengths_and_weight_counts():
    net = randomize_weights(MLP(4, 1, hidden=(3,)), (1, 1.0))
    net.weights[0][:, 2] = 0.0
    _, bound = bind(
        Graft("joint.tau[joint0]", ["joint.q", "joint.qd"], net), Graft("joint.tau", ["joint.qd"], Dissipative(0, 2))
    )
    first, second = wiring_summaries(bound)
    assert (first.kind, first.shape, first.weights) == ("MLP", "4→3→1", 4 * 3 + 3 + 3 + 1)
    assert [wire.is_pruned for wire in first.inputs] == [False, False, True, False]
    assert first.inputs[0].strength == pytest.approx(np.linalg.norm(net.weights[0][:, 0]))
    assert (second.shape, second.weights, second.inputs[0].strength) == ("", 3, None)
