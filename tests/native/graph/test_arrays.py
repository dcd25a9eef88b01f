"""Layers of large networks as loops: equal to XLA, the same bits for any batch, and no code that grows with them."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import UnsupportedPrimitive
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


def forwards(net, x, activation=jnp.tanh):
    for W, b in net[:-1]:
        x = activation(W @ x + b)
    W, b = net[-1]
    return W @ x + b


def backwards(net, x):
    """With matrices that are used transposed, and twice."""
    for W, b in net[:-1]:
        x = jnp.sin(x @ W.T + b)
    W, b = net[-1]
    return (W @ x + b) * (W @ (x * x))


def on_several(net, x):
    """One network for several inputs."""
    y = jax.vmap(lambda part: forwards(net, part))(jnp.stack([x, 0.5 * x, -x]))
    return jnp.sum(y**2, axis=0)


def scaled(net, x):
    """Weights that are computed before they are used."""
    return forwards([(jnp.tanh(W) * 0.5, b) for W, b in net], x)


def with_relu(net, x):
    return forwards(net, x, lambda y: jnp.where(y > 0.0, y, 0.01 * y))


def with_softplus(net, x):
    return forwards(net, x, jax.nn.softplus)


CASES = {
    "forwards": (forwards, layers(7, 48, 50, 3)),
    "backwards": (backwards, layers(5, 36, 37, 4)),
    "several": (on_several, layers(3, 40, 33, 2)),
    "scaled": (scaled, layers(3, 34, 34, 2)),
    "relu": (with_relu, layers(2, 130, 41, 3)),
    "softplus": (with_softplus, layers(3, 70, 70, 3)),
}


class Case:
    """A step with a network, its weights free or fixed, and rows to call it with."""

    def __init__(self, name, *, fixed=False, target=None):
        self.function, self.net = CASES[name]
        width, n = len(self.net[-1][1]), self.net[0][0].shape[1]

        def step(fixed_net, free_net, state, inputs):
            y = self.function(fixed_net if fixed else free_net, inputs)
            return 0.9 * state + 0.1 * jnp.sin(y), y + state

        self.step, self.fixed = step, fixed
        self.given = (self.net, None) if fixed else (None, self.net)
        self.rollout = Rollout(step, *self.given, np.zeros(width), np.zeros(n), target=target)
        rng = np.random.default_rng(1)
        forms = self.rollout.forms
        self.parameters = forms.fixed.pack(self.given[0]), forms.free.pack(self.given[1])
        self.initial, self.inputs = rng.normal(size=(BATCH, width)), rng.normal(size=(BATCH, STEPS, n))
        self.cotangents = rng.normal(size=(BATCH, width)), rng.normal(size=(BATCH, STEPS, width))

    def rows(self, batch=slice(None)):
        return *self.parameters, self.initial[batch], self.inputs[batch]

    def by_xla(self, net, start, inputs):
        given = (net, None) if self.fixed else (None, net)
        return jax.lax.scan(lambda s, i: self.step(*given, s, i), start, inputs)

    def loss(self, net, start, inputs):
        end, outputs = jax.vmap(lambda s, i: self.by_xla(net, s, i))(start, inputs)
        return jnp.sum(end * self.cotangents[0]) + jnp.sum(outputs * self.cotangents[1])


@pytest.fixture(scope="module")
def cases():
    made = {}

    def case(name, fixed=False):
        if (name, fixed) not in made:
            made[name, fixed] = Case(name, fixed=fixed)
        return made[name, fixed]

    with jax.enable_x64(True):
        yield case


def assert_close(found, wanted):
    scale = max(float(np.max(np.abs(wanted))), 1e-3)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-13 * scale)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_xla(name, fixed, cases):
    case = cases(name, fixed)
    forms = case.rollout.forms
    together = case.rollout.forward(*case.rows())
    end, outputs = jax.vmap(lambda s, i: case.by_xla(case.net, s, i))(case.initial, case.inputs)
    assert_close(together.end, end)
    assert_close(together.outputs, outputs)
    found = case.rollout.gradient(*case.rows(), *case.cotangents, summed=True)
    d_net, d_start, d_inputs = jax.grad(case.loss, (0, 1, 2))(case.net, case.initial, case.inputs)
    assert_close(found.initial, d_start)
    assert_close(found.inputs, d_inputs)
    if not fixed:
        for mine, wanted in zip(jax.tree.leaves(forms.free.unpack(found.free[0])), jax.tree.leaves(d_net), strict=True):
            assert_close(mine, wanted)


@pytest.mark.parametrize("name", ["forwards", "backwards", "scaled"])
def test_bits_do_not_depend_on_batch_or_threads(name, cases):
    case = cases(name)
    rollout = case.rollout
    together, one = rollout.forward(*case.rows()), rollout.forward(*case.rows(slice(0, 1)))
    np.testing.assert_array_equal(one.outputs, together.outputs[:1])
    own = rollout.gradient(*case.rows(), *case.cotangents)
    summed = rollout.gradient(*case.rows(), *case.cotangents, summed=True)
    for threads in (2, 3):
        again = rollout.gradient(*case.rows(), *case.cotangents, summed=True, threads=threads)
        np.testing.assert_array_equal(again.free, summed.free)
    np.testing.assert_array_equal(own.initial, summed.start)
    np.testing.assert_array_equal(own.inputs, summed.inputs)
    assert own.free.shape == (BATCH, rollout.sizes.free)
    assert_close(own.free.sum(axis=0), summed.free[0])
    alone = rollout.gradient(*case.rows(slice(2, 3)), *(c[2:3] for c in case.cotangents))
    np.testing.assert_array_equal(alone.free[0], own.free[2])


def test_many_trajectories_are_summed_in_few_rows(cases):
    case = cases("forwards")
    batch = 150
    rng = np.random.default_rng(3)
    start, inputs = rng.normal(size=(batch, 3)), rng.normal(size=(batch, STEPS, 7))
    arrays = *case.parameters, start, inputs, np.ones((1, 3)), np.ones((1, STEPS, 3))
    call = case.rollout.bind_gradient(*arrays, summed=True)
    call()
    assert len(call.results[2]) <= 16
    own = case.rollout.gradient(*arrays)
    assert_close(call.results[2].sum(axis=0), own.free.sum(axis=0))


@pytest.mark.parametrize("fixed", [False, True])
def test_every_trajectory_may_have_weights_of_its_own(fixed, cases):
    case = cases("forwards", fixed)
    scales = np.linspace(0.5, 1.5, BATCH)[:, None]
    parameters = [scales * p for p in case.parameters]
    together = case.rollout.gradient(*parameters, case.initial, case.inputs, *case.cotangents)
    for k in (0, 4):
        rows = [p[k] for p in parameters]
        one = slice(k, k + 1)
        alone = case.rollout.gradient(*rows, case.initial[one], case.inputs[one], *(c[one] for c in case.cotangents))
        np.testing.assert_array_equal(alone.outputs[0], together.outputs[k])
        np.testing.assert_array_equal(alone.free[0], together.free[k])


@pytest.mark.parametrize("name", ["forwards", "several"])
def test_tangents_are_those_of_xla(name, cases):
    case = cases(name)
    directions = 3
    rng = np.random.default_rng(2)
    t_free = rng.normal(size=(1, directions, case.rollout.sizes.free))
    t_start = rng.normal(size=(1, directions, case.initial.shape[1]))
    together = case.rollout.tangents(*case.rows(), t_free, t_start)
    alone = case.rollout.tangents(*case.rows(slice(0, 1)), t_free, t_start)
    np.testing.assert_array_equal(alone.output_tangents[0], together.output_tangents[0])
    for k in range(directions):
        t_net = case.rollout.forms.free.unpack(t_free[0, k])
        given = (case.net, case.initial[0]), (t_net, t_start[0, k])
        _, (t_end, t_outputs) = jax.jvp(lambda n, s: case.by_xla(n, s, case.inputs[0]), *given)
        assert_close(alone.end_tangents[0, k], t_end)
        assert_close(alone.output_tangents[0, k], t_outputs)


def test_inside_jax(cases):
    """The sum of many, one gradient for each, and weights that are mapped."""
    case = cases("forwards")
    call, forms = NativeCall(case.rollout), case.rollout.forms

    def loss(net, start, inputs, ct):
        _, outputs = call(jnp.zeros((1, 0)), forms.free.pack_traced(net)[None], start[None], inputs[None])
        return jnp.sum(outputs[0] * ct)

    def by_xla(net, start, inputs, ct):
        return jnp.sum(case.by_xla(net, start, inputs)[1] * ct)

    arrays = case.initial, case.inputs, case.cotangents[1]
    many = jax.tree.map(lambda w: jnp.stack([w * (1.0 + 0.1 * k) for k in range(BATCH)]), case.net)

    def total(function):
        return lambda net: jnp.sum(jax.vmap(function, (None, 0, 0, 0))(net, *arrays))

    for of in (
        lambda f: jax.grad(total(f))(case.net),
        lambda f: jax.jit(jax.vmap(jax.grad(f), (None, 0, 0, 0)))(case.net, *arrays),
        lambda f: jax.vmap(jax.grad(f))(many, *arrays),
        lambda f: jax.vmap(jax.grad(total(f)))(many),
        lambda f: jax.jvp(total(f), (case.net,), (case.net,))[1],
    ):
        for mine, wanted in zip(jax.tree.leaves(of(loss)), jax.tree.leaves(of(by_xla)), strict=True):
            assert_close(mine, wanted)


def test_code_does_not_grow_with_the_network(cases):
    """The network of a quadruped's controller: 12 outputs are all that is written out."""
    net = layers(41, 192, 192, 12)

    def step(fixed, free, state, inputs):
        return state, forwards(free, inputs)

    rollout = Rollout(step, None, net, None, np.zeros(41))
    graph, outputs = rollout.program.vjp_graph
    report = graph.op_counts(outputs.values())
    specs = [graph.data[n] for n in graph.live(outputs.values()) if graph.ops[n] == "array"]
    counts = {
        kind: sum(isinstance(s, kind) for s in specs) for kind in (MatrixVectorProduct, OuterProduct, ElementwiseMap)
    }
    # 2 layers forwards (the last has nothing to be recomputed for) and 3 backwards; bias and activation are one loop
    assert counts == {MatrixVectorProduct: 5, OuterProduct: 3, ElementwiseMap: 4}
    assert report.total() < 200
    text = emit.module((kernel := rollout.emit_kernel("gradient", False)).functions, kernel.texts)
    assert len(text) < 300_000


@pytest.mark.parametrize("target", [machine.AVX2, machine.PLAIN_X86, machine.ARM], ids=["avx2", "x86", "arm"])
def test_other_processors(target, cases):
    case = Case("forwards", target=target)
    if target is machine.ARM:
        for alone in (False, True):
            kernel = case.rollout.emit_kernel("gradient", alone)
            assert machine.object_code(emit.module(kernel.functions, kernel.texts), target)
        return
    if machine.host().triple.partition("-")[0] != "x86_64":
        pytest.skip("this processor cannot run x86 code")
    for summed in (False, True):
        arrays = *case.rows(), *case.cotangents
        found, wanted = (c.rollout.gradient(*arrays, summed=summed) for c in (case, cases("forwards")))
        assert_close(found.outputs, wanted.outputs)
        assert_close(found.free, wanted.free)


def test_what_has_no_loop_is_named(cases):
    weights = np.zeros((128, 128))
    with pytest.raises(UnsupportedPrimitive, match="16384 elements"):
        rollout = Rollout(lambda f, w, x, s: (x, jnp.sort(w, axis=0)[0]), None, weights, None, None)
        rollout.check_supported()


def test_weights_masses_and_time_steps_never_recompile():
    """Neither from zero, as in a fresh network, nor from one."""
    net = MLP(4, 2, hidden=(40, 40))
    blueprint = Blueprint(Graft("joint.tau", ["joint.q", "joint.qd"], net))
    sim = Simulator(double_pendulum(), blueprint=blueprint, dt=1.0, backend="native")
    simulate(sim, sim.initial_state(), steps=2)
    before = Rollout.compilations
    changed = eqx.tree_at(lambda s: s.blueprint.grafts[0].net.weights[-1], sim, np.ones((2, 40)))
    changed = eqx.tree_at(lambda s: s.blueprint.grafts[0].net.biases[0], changed, np.ones(40))
    changed = eqx.tree_at(lambda s: (s.dt, s.model.body.mass), changed, (0.01, 1.1 * sim.model.body.mass))
    first, second = (simulate(s, s.initial_state([1.0, 0.5]), steps=5).q for s in (sim, changed))
    assert not np.allclose(first, second)
    assert Rollout.compilations == before
