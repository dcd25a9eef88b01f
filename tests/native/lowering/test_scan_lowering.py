"""Loops that stay loops: values and derivatives against XLA, whatever is carried."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.c.emit_function import SlotLocation, c_function
from hybridsim.native.graph.arrays import Loop, source_nodes
from hybridsim.native.graph.graph import ARRAY, Graph
from hybridsim.native.lowering import scan_lowering
from hybridsim.native.lowering.lower import lower
from hybridsim.native.runtime.function import NativeFunction
from hybridsim.native.runtime.rollout import Rollout

N = 6


@pytest.fixture(autouse=True)
def loops_stay(monkeypatch):
    """Everything that may be a loop is one."""
    monkeypatch.setattr(scan_lowering, "MIN_LOOP_NODES", 1)
    monkeypatch.setattr(scan_lowering, "FOLDING_THRESHOLD", 0.0)


def loops_in(graph: Graph) -> int:
    """Loops, with those inside of loops."""
    specs = [graph.data[n] for n in range(len(graph)) if graph.kinds[n] == ARRAY]
    return sum(1 + loops_in(spec.body) for spec in specs if isinstance(spec, Loop))


def sweeps(A, b, x):
    """Gauss–Seidel with impulses that go round: a loop within a loop, with rows and results."""

    def sweep(x, _):
        def turn(x, row):
            others, b = row
            new = jnp.maximum(b - others @ x[1:], 0.1 * x[0])
            return jnp.concatenate([x[1:], new[None]]), new * new

        rows = jnp.stack([jnp.roll(A[k], -k)[1:] for k in range(N)])
        return jax.lax.scan(turn, x, (rows, b))

    return jax.lax.scan(sweep, x, None, length=5)


def backwards(A, b, x):
    """Rows from the last to the first, with results that are whole numbers and truth values."""

    def turn(carry, row):
        total, count, was = carry
        is_larger = jnp.sum(row) > total
        count = jnp.where(is_larger, count + 2, count)
        return (total + jnp.sin(row) @ x, count, is_larger ^ was), (count, is_larger, row * total)

    return jax.lax.scan(turn, (b[0], jnp.asarray(3), jnp.asarray(False)), A, reverse=True)


def far(A, b, x):
    """More turns than anybody would write out."""
    return jax.lax.fori_loop(0, 20_000, lambda k, x: x + 1e-4 * jnp.cos(x + b), x)


@pytest.mark.parametrize("function", [sweeps, backwards, far])
def test_values_are_those_of_xla(function):
    rng = np.random.default_rng(0)
    args = 0.3 * rng.normal(size=(N, N)), rng.normal(size=N), rng.normal(size=N)
    expected = jax.jit(function)(*args)
    found = NativeFunction(lambda *a: jax.tree.leaves(function(*a)), *args)(*args)
    for one, other in zip(found, jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("batch", [1, 3])
def test_derivatives_of_rollouts_are_those_of_xla(batch):
    """Reverse sweeps and sensitivities go through loops that go through what earlier loops have left behind."""

    def step(fixed, free, x, s):
        x, results = sweeps(jnp.outer(free, free) + fixed * np.eye(N), jnp.sin(x) + s, 0.5 * x)
        return jnp.tanh(x), jnp.sum(results**2)

    rng = np.random.default_rng(1)
    fixed, free, steps = np.array(2.0), 0.2 * rng.normal(size=N), 5
    start, inputs = rng.normal(size=(batch, N)), 0.1 * rng.normal(size=(batch, steps, N))
    rollout = Rollout(step, fixed, free, start[0], inputs[0, 0], outputs=np.zeros(()))
    forms = rollout.forms
    given = forms.fixed.pack(fixed), forms.free.pack(free), start, inputs
    gradient = rollout.gradient(*given, np.zeros((1, N)), np.ones((1, 1, 1)))
    assert loops_in(rollout.program.step_graph[0]) >= 2
    tangents = rollout.tangents(*given, np.eye(N)[None], np.zeros((1, N, N)))

    def loss(free, start, inputs):
        end, results = jax.lax.scan(lambda x, s: step(fixed, free, x, s), start, inputs)
        return jnp.sum(results), end

    for k in range(batch):
        by_xla = jax.jit(jax.grad(loss, argnums=(0, 1, 2), has_aux=True))
        (d_free, d_start, d_inputs), end = by_xla(free, start[k], inputs[k])
        np.testing.assert_allclose(gradient.end[k], end, rtol=1e-12)
        np.testing.assert_allclose(gradient.free[k], d_free, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(gradient.initial[k], d_start, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(gradient.inputs[k], d_inputs, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(tangents.output_tangents[k].sum(axis=(1, 2)), d_free, rtol=1e-10, atol=1e-12)


def test_every_lane_has_the_bits_of_a_trajectory_alone():
    rng = np.random.default_rng(2)

    def step(fixed, free, x, s):
        x, results = sweeps(fixed, x + s, x)
        return x, results

    A, start = 0.3 * rng.normal(size=(N, N)), rng.normal(size=(7, N))
    rollout = Rollout(step, A, np.zeros(0), start[0], np.zeros(N))
    fixed, inputs = rollout.forms.fixed.pack(A), np.zeros((1, 4, N))
    together = rollout.forward(fixed, np.zeros(0), start, inputs)
    for k in range(len(start)):
        alone = rollout.forward(fixed, np.zeros(0), start[k : k + 1], inputs)
        assert np.array_equal(together.end[k], alone.end[0])
        assert np.array_equal(together.outputs[k], alone.outputs[0])


def loops_of(function) -> int:
    args = [jax.ShapeDtypeStruct(shape, np.float64) for shape in ((N, N), (N,), (N,))]
    graph, results = lower(lambda *a: jax.tree.leaves(function(*a)), args, ["A", "b", "x"])
    used = graph.live(node for nodes in results for node in source_nodes(nodes))
    return sum(1 + loops_in(graph.data[n].body) for n in used if isinstance(graph.data[n], Loop))


def test_short_loops_are_written_out(monkeypatch):
    monkeypatch.undo()
    assert loops_of(sweeps) == 0


def test_a_loop_that_was_met_before_stays_one(monkeypatch):
    """Its turns are nodes already, and yet to write out the rest of them is as much work as ever."""
    monkeypatch.setattr(scan_lowering, "MIN_LOOP_NODES", 50)

    def turns(A, b, x):
        return jax.lax.scan(lambda x, _: (jnp.maximum(b - A @ x, 0.1 * x), None), x, None, length=5)[0]

    assert loops_of(turns) == 1
    assert loops_of(lambda A, b, x: (turns(A, b, x), turns(A, b, x))) == 2


def test_many_turns_stay_a_loop_however_much_would_vanish(monkeypatch):
    monkeypatch.setattr(scan_lowering, "FOLDING_THRESHOLD", 1e9)
    monkeypatch.setattr(scan_lowering, "MAX_UNROLLED_ITERATIONS", 4)
    assert loops_of(sweeps) == 2
    monkeypatch.setattr(scan_lowering, "MAX_UNROLLED_ITERATIONS", N)
    assert loops_of(sweeps) == 0


def test_c_code_says_that_it_has_no_such_loops():
    args = [jax.ShapeDtypeStruct(shape, np.float64) for shape in ((N, N), (N,), (N,))]
    graph, results = lower(lambda *a: [sweeps(*a)[0]], args, ["A", "b", "x"])
    outputs = {("y", k): int(node) for k, node in enumerate(results[0])}
    reads = {name: SlotLocation(name, 0) for name in ("A", "b", "x")}
    with pytest.raises(UnsupportedPrimitive, match="has no C code"):
        c_function("hs", "step", graph, outputs, reads, {"y": SlotLocation("y", 0)})
