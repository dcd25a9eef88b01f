"""Layers of large networks as loops: equal to XLA, bitwise independent of the batch, and with code of constant size."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph.arrays import ElementwiseMap, MatrixVectorProduct, OuterProduct
from hybridsim.native.llvm import emit, machine
from hybridsim.native.runtime.jax_call import NativeCall
from hybridsim.native.runtime.rollout import Rollout
from hybridsim.networks.mlp import MLP
from hybridsim.robots import double_pendulum
from hybridsim.sim.rollout import simulate
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft

STEPS, BATCH = 3, 6


def layers(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(n, m)) / np.sqrt(m), 0.1 * rng.normal(size=n)) for m, n in pairwise(sizes)]


def mlp(net, x, activation=jnp.tanh):
    for W, b in net[:-1]:
        x = activation(W @ x + b)
    W, b = net[-1]
    return W @ x + b


def mlp_with_transposed_weights(net, x):
    """Network with transposed matrices, and one that is used twice."""
    for W, b in net[:-1]:
        x = jnp.sin(x @ W.T + b)
    W, b = net[-1]
    return (W @ x + b) * (W @ (x * x))


def shared_weights(net, x):
    """One network applied to several inputs."""
    y = jax.vmap(lambda row: mlp(net, row))(jnp.stack([x, 0.5 * x, -x]))
    return jnp.sum(y**2, axis=0)


def computed_weights(net, x):
    """Network with reparametrized weights."""
    return mlp([(jnp.tanh(W) * 0.5, b) for W, b in net], x)


def relu_mlp(net, x):
    return mlp(net, x, lambda y: jnp.where(y > 0.0, y, 0.01 * y))


def softplus_mlp(net, x):
    return mlp(net, x, jax.nn.softplus)


CASES = {
    "mlp": (mlp, layers(7, 48, 50, 3)),
    "transposed": (mlp_with_transposed_weights, layers(5, 36, 37, 4)),
    "shared": (shared_weights, layers(3, 40, 33, 2)),
    "computed": (computed_weights, layers(3, 34, 34, 2)),
    "relu": (relu_mlp, layers(2, 130, 41, 3)),
    "softplus": (softplus_mlp, layers(3, 70, 70, 3)),
}


class NetworkCase:
    """A step with a network, its weights free or fixed, and rows of arguments."""

    def __init__(self, name, *, fixed=False, target=None):
        self.function, self.net = CASES[name]
        width, n = len(self.net[-1][1]), self.net[0][0].shape[1]

        def step(fixed_net, free_net, state, inputs):
            y = self.function(fixed_net if fixed else free_net, inputs)
            return 0.9 * state + 0.1 * jnp.sin(y), y + state

        self.step, self.fixed = step, fixed
        self.trees = (self.net, None) if fixed else (None, self.net)
        self.rollout = Rollout(step, *self.trees, np.zeros(width), np.zeros(n), target=target)
        rng = np.random.default_rng(1)
        layouts = self.rollout.layouts
        self.parameters = layouts.fixed.pack(self.trees[0]), layouts.free.pack(self.trees[1])
        self.initial, self.inputs = rng.normal(size=(BATCH, width)), rng.normal(size=(BATCH, STEPS, n))
        self.cotangents = rng.normal(size=(BATCH, width)), rng.normal(size=(BATCH, STEPS, width))

    def rows(self, batch=slice(None)):
        return *self.parameters, self.initial[batch], self.inputs[batch]

    def xla_rollout(self, net, initial, inputs):
        trees = (net, None) if self.fixed else (None, net)
        return jax.lax.scan(lambda s, i: self.step(*trees, s, i), initial, inputs)

    def loss(self, net, initial, inputs):
        end, outputs = jax.vmap(lambda s, i: self.xla_rollout(net, s, i))(initial, inputs)
        return jnp.sum(end * self.cotangents[0]) + jnp.sum(outputs * self.cotangents[1])


@pytest.fixture(scope="module")
def cases():
    built = {}

    def case(name, fixed=False):
        if (name, fixed) not in built:
            built[name, fixed] = NetworkCase(name, fixed=fixed)
        return built[name, fixed]

    with jax.enable_x64(True):
        yield case


def assert_close(actual, expected):
    scale = max(float(np.max(np.abs(expected))), 1e-3)
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=1e-13 * scale)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_xla(name, fixed, cases):
    case = cases(name, fixed)
    layouts = case.rollout.layouts
    result = case.rollout.forward(*case.rows())
    end, outputs = jax.vmap(lambda s, i: case.xla_rollout(case.net, s, i))(case.initial, case.inputs)
    assert_close(result.end, end)
    assert_close(result.outputs, outputs)
    gradient = case.rollout.gradient(*case.rows(), *case.cotangents, summed=True)
    d_net, d_initial, d_inputs = jax.grad(case.loss, (0, 1, 2))(case.net, case.initial, case.inputs)
    assert_close(gradient.initial, d_initial)
    assert_close(gradient.inputs, d_inputs)
    if not fixed:
        for actual, expected in zip(
            jax.tree.leaves(layouts.free.unpack(gradient.free[0])), jax.tree.leaves(d_net), strict=True
        ):
            assert_close(actual, expected)


@pytest.mark.parametrize("name", ["mlp", "transposed", "computed"])
def test_results_are_bitwise_equal_for_any_batch_and_threads(name, cases):
    case = cases(name)
    rollout = case.rollout
    batch, single = rollout.forward(*case.rows()), rollout.forward(*case.rows(slice(0, 1)))
    np.testing.assert_array_equal(single.outputs, batch.outputs[:1])
    separate = rollout.gradient(*case.rows(), *case.cotangents)
    summed = rollout.gradient(*case.rows(), *case.cotangents, summed=True)
    for threads in (2, 3):
        repeated = rollout.gradient(*case.rows(), *case.cotangents, summed=True, threads=threads)
        np.testing.assert_array_equal(repeated.free, summed.free)
    np.testing.assert_array_equal(separate.initial, summed.initial)
    np.testing.assert_array_equal(separate.inputs, summed.inputs)
    assert separate.free.shape == (BATCH, rollout.sizes.free)
    assert_close(separate.free.sum(axis=0), summed.free[0])
    single_gradient = rollout.gradient(*case.rows(slice(2, 3)), *(c[2:3] for c in case.cotangents))
    np.testing.assert_array_equal(single_gradient.free[0], separate.free[2])


def test_summed_gradients_of_large_batches_use_few_rows(cases):
    case = cases("mlp")
    batch = 150
    rng = np.random.default_rng(3)
    initial, inputs = rng.normal(size=(batch, 3)), rng.normal(size=(batch, STEPS, 7))
    arrays = *case.parameters, initial, inputs, np.ones((1, 3)), np.ones((1, STEPS, 3))
    call = case.rollout.bind_gradient(*arrays, summed=True)
    call()
    assert len(call.results[2]) <= 16
    separate = case.rollout.gradient(*arrays)
    assert_close(call.results[2].sum(axis=0), separate.free.sum(axis=0))


@pytest.mark.parametrize("fixed", [False, True])
def test_weights_may_differ_between_trajectories(fixed, cases):
    case = cases("mlp", fixed)
    scales = np.linspace(0.5, 1.5, BATCH)[:, None]
    parameters = [scales * p for p in case.parameters]
    batch = case.rollout.gradient(*parameters, case.initial, case.inputs, *case.cotangents)
    for k in (0, 4):
        rows = [p[k] for p in parameters]
        row = slice(k, k + 1)
        single = case.rollout.gradient(*rows, case.initial[row], case.inputs[row], *(c[row] for c in case.cotangents))
        np.testing.assert_array_equal(single.outputs[0], batch.outputs[k])
        np.testing.assert_array_equal(single.free[0], batch.free[k])


@pytest.mark.parametrize("name", ["mlp", "shared"])
def test_tangents_are_those_of_xla(name, cases):
    case = cases(name)
    directions = 3
    rng = np.random.default_rng(2)
    t_free = rng.normal(size=(1, directions, case.rollout.sizes.free))
    t_initial = rng.normal(size=(1, directions, case.initial.shape[1]))
    batch = case.rollout.tangents(*case.rows(), t_free, t_initial)
    single = case.rollout.tangents(*case.rows(slice(0, 1)), t_free, t_initial)
    np.testing.assert_array_equal(single.output_tangents[0], batch.output_tangents[0])
    for k in range(directions):
        t_net = case.rollout.layouts.free.unpack(t_free[0, k])
        primals_and_tangents = (case.net, case.initial[0]), (t_net, t_initial[0, k])
        _, (t_end, t_outputs) = jax.jvp(lambda n, s: case.xla_rollout(n, s, case.inputs[0]), *primals_and_tangents)
        assert_close(single.end_tangents[0, k], t_end)
        assert_close(single.output_tangents[0, k], t_outputs)


def test_inside_jax(cases):
    """Gradients of a sum, gradients per trajectory, and mapped weights."""
    case = cases("mlp")
    call, layouts = NativeCall(case.rollout), case.rollout.layouts

    def loss(net, initial, inputs, ct):
        _, outputs = call(jnp.zeros((1, 0)), layouts.free.pack_traced(net)[None], initial[None], inputs[None])
        return jnp.sum(outputs[0] * ct)

    def xla_loss(net, initial, inputs, ct):
        return jnp.sum(case.xla_rollout(net, initial, inputs)[1] * ct)

    arrays = case.initial, case.inputs, case.cotangents[1]
    batched_nets = jax.tree.map(lambda w: jnp.stack([w * (1.0 + 0.1 * k) for k in range(BATCH)]), case.net)

    def total(function):
        return lambda net: jnp.sum(jax.vmap(function, (None, 0, 0, 0))(net, *arrays))

    for transform in (
        lambda f: jax.grad(total(f))(case.net),
        lambda f: jax.jit(jax.vmap(jax.grad(f), (None, 0, 0, 0)))(case.net, *arrays),
        lambda f: jax.vmap(jax.grad(f))(batched_nets, *arrays),
        lambda f: jax.vmap(jax.grad(total(f)))(batched_nets),
        lambda f: jax.jvp(total(f), (case.net,), (case.net,))[1],
    ):
        for actual, expected in zip(
            jax.tree.leaves(transform(loss)), jax.tree.leaves(transform(xla_loss)), strict=True
        ):
            assert_close(actual, expected)


def test_code_does_not_grow_with_the_network(cases):
    """The network of a quadruped controller; only its 12 outputs are unrolled."""
    net = layers(41, 192, 192, 12)

    def step(fixed, free, state, inputs):
        return state, mlp(free, inputs)

    rollout = Rollout(step, None, net, None, np.zeros(41))
    graph, outputs = rollout.graphs.vjp_graph
    report = graph.op_counts(outputs.values())
    specs = [graph.data[n] for n in graph.live_nodes(outputs.values()) if graph.ops[n] == "array"]
    counts = {
        kind: sum(isinstance(s, kind) for s in specs) for kind in (MatrixVectorProduct, OuterProduct, ElementwiseMap)
    }
    # 2 layers forward (the last needs no recomputation) and 3 in reverse; bias and activation are one loop
    assert counts == {MatrixVectorProduct: 5, OuterProduct: 3, ElementwiseMap: 4}
    assert report.total() < 200
    text = emit.module((kernel := rollout.emit_kernel("gradient", False)).functions, kernel.texts)
    assert len(text) < 300_000


@pytest.mark.parametrize("target", [machine.AVX2, machine.PLAIN_X86, machine.ARM], ids=["avx2", "x86", "arm"])
def test_other_targets(target, cases):
    case = NetworkCase("mlp", target=target)
    if target is machine.ARM:
        for single in (False, True):
            kernel = case.rollout.emit_kernel("gradient", single)
            assert machine.object_code(emit.module(kernel.functions, kernel.texts), target)
        return
    if machine.host().triple.partition("-")[0] != "x86_64":
        pytest.skip("this processor cannot run x86 code")
    for summed in (False, True):
        arrays = *case.rows(), *case.cotangents
        actual, expected = (c.rollout.gradient(*arrays, summed=summed) for c in (case, cases("mlp")))
        assert_close(actual.outputs, expected.outputs)
        assert_close(actual.free, expected.free)


def test_unsupported_operations_on_large_arrays_are_named(cases):
    weights = np.zeros((128, 128))
    with pytest.raises(UnsupportedOperationError, match="16384 elements"):
        rollout = Rollout(lambda f, w, x, s: (x, jnp.sort(w, axis=0)[0]), None, weights, None, None)
        rollout.check_supported()


def test_weights_masses_and_time_steps_never_recompile():
    """Values of zero, as in an untrained network, and of one are not compiled in as constants."""
    net = MLP(4, 2, hidden=(40, 40))
    blueprint = Blueprint(Graft("joint.tau", ["joint.q", "joint.qd"], net))
    sim = Simulator(double_pendulum(), blueprint=blueprint, dt=1.0, backend="native")
    simulate(sim, sim.initial_state(), steps=2)
    before = Rollout.compilations
    other = eqx.tree_at(lambda s: s.blueprint.grafts[0].net.weights[-1], sim, np.ones((2, 40)))
    other = eqx.tree_at(lambda s: s.blueprint.grafts[0].net.biases[0], other, np.ones(40))
    other = eqx.tree_at(lambda s: (s.dt, s.model.body.mass), other, (0.01, 1.1 * sim.model.body.mass))
    first, second = (simulate(s, s.initial_state([1.0, 0.5]), steps=5).q for s in (sim, other))
    assert not np.allclose(first, second)
    assert Rollout.compilations == before
