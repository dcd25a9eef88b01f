"""Loops that are not unrolled: values and derivatives against XLA for carries of all kinds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.c.emit_function import SlotLocation, c_function
from hybridsim.native.graph.arrays import Loop, source_nodes
from hybridsim.native.graph.graph import ARRAY, Graph
from hybridsim.native.lowering import scan_lowering
from hybridsim.native.lowering.lower import lower
from hybridsim.native.runtime.function import NativeFunction
from hybridsim.native.runtime.rollout import Rollout

N = 6


@pytest.fixture(autouse=True)
def keep_loops(monkeypatch):
    """Lower all eligible loops to loop nodes."""
    monkeypatch.setattr(scan_lowering, "MIN_LOOP_NODES", 1)
    monkeypatch.setattr(scan_lowering, "FOLDING_THRESHOLD", 0.0)


def loop_count(graph: Graph) -> int:
    """Number of loops, including nested ones."""
    specs = [graph.data[n] for n in range(len(graph)) if graph.kinds[n] == ARRAY]
    return sum(1 + loop_count(spec.body) for spec in specs if isinstance(spec, Loop))


def gauss_seidel(A, b, x):
    """Projected Gauss–Seidel with cyclically shifted impulses: nested loops with rows and stacked results."""

    def sweep(x, _):
        def update_row(x, row):
            off_diagonal, b = row
            impulse = jnp.maximum(b - off_diagonal @ x[1:], 0.1 * x[0])
            return jnp.concatenate([x[1:], impulse[None]]), impulse * impulse

        rows = jnp.stack([jnp.roll(A[k], -k)[1:] for k in range(N)])
        return jax.lax.scan(update_row, x, (rows, b))

    return jax.lax.scan(sweep, x, None, length=5)


def reversed_scan(A, b, x):
    """A reverse scan with results that are integers and Booleans."""

    def body(carry, row):
        total, count, parity = carry
        is_larger = jnp.sum(row) > total
        count = jnp.where(is_larger, count + 2, count)
        return (total + jnp.sin(row) @ x, count, is_larger ^ parity), (count, is_larger, row * total)

    return jax.lax.scan(body, (b[0], jnp.asarray(3), jnp.asarray(False)), A, reverse=True)


def long_loop(A, b, x):
    """A trip count too high to unroll."""
    return jax.lax.fori_loop(0, 20_000, lambda k, x: x + 1e-4 * jnp.cos(x + b), x)


@pytest.mark.parametrize("function", [gauss_seidel, reversed_scan, long_loop])
def test_values_are_those_of_xla(function):
    rng = np.random.default_rng(0)
    args = 0.3 * rng.normal(size=(N, N)), rng.normal(size=N), rng.normal(size=N)
    expected = jax.jit(function)(*args)
    actual = NativeFunction(lambda *a: jax.tree.leaves(function(*a)), *args)(*args)
    for result, reference in zip(actual, jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("batch", [1, 3])
def test_derivatives_of_rollouts_are_those_of_xla(batch):
    """Reverse sweeps and sensitivities have loops over the results of earlier loops."""

    def step(fixed, free, x, s):
        x, results = gauss_seidel(jnp.outer(free, free) + fixed * np.eye(N), jnp.sin(x) + s, 0.5 * x)
        return jnp.tanh(x), jnp.sum(results**2)

    rng = np.random.default_rng(1)
    fixed, free, steps = np.array(2.0), 0.2 * rng.normal(size=N), 5
    initial, inputs = rng.normal(size=(batch, N)), 0.1 * rng.normal(size=(batch, steps, N))
    rollout = Rollout(step, fixed, free, initial[0], inputs[0, 0], outputs=np.zeros(()))
    layouts = rollout.layouts
    arguments = layouts.fixed.pack(fixed), layouts.free.pack(free), initial, inputs
    gradient = rollout.gradient(*arguments, np.zeros((1, N)), np.ones((1, 1, 1)))
    assert loop_count(rollout.graphs.step_graph[0]) >= 2
    tangents = rollout.tangents(*arguments, np.eye(N)[None], np.zeros((1, N, N)))

    def loss(free, initial, inputs):
        end, results = jax.lax.scan(lambda x, s: step(fixed, free, x, s), initial, inputs)
        return jnp.sum(results), end

    for k in range(batch):
        xla_gradient = jax.jit(jax.grad(loss, argnums=(0, 1, 2), has_aux=True))
        (d_free, d_initial, d_inputs), end = xla_gradient(free, initial[k], inputs[k])
        np.testing.assert_allclose(gradient.end[k], end, rtol=1e-12)
        np.testing.assert_allclose(gradient.free[k], d_free, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(gradient.initial[k], d_initial, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(gradient.inputs[k], d_inputs, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(tangents.output_tangents[k].sum(axis=(1, 2)), d_free, rtol=1e-10, atol=1e-12)


def test_lanes_are_bitwise_equal_to_single_trajectories():
    rng = np.random.default_rng(2)

    def step(fixed, free, x, s):
        x, results = gauss_seidel(fixed, x + s, x)
        return x, results

    A, initial = 0.3 * rng.normal(size=(N, N)), rng.normal(size=(7, N))
    rollout = Rollout(step, A, np.zeros(0), initial[0], np.zeros(N))
    fixed, inputs = rollout.layouts.fixed.pack(A), np.zeros((1, 4, N))
    batch = rollout.forward(fixed, np.zeros(0), initial, inputs)
    for k in range(len(initial)):
        single = rollout.forward(fixed, np.zeros(0), initial[k : k + 1], inputs)
        assert np.array_equal(batch.end[k], single.end[0])
        assert np.array_equal(batch.outputs[k], single.outputs[0])


def lowered_loop_count(function) -> int:
    args = [jax.ShapeDtypeStruct(shape, np.float64) for shape in ((N, N), (N,), (N,))]
    graph, results = lower(lambda *a: jax.tree.leaves(function(*a)), args, ["A", "b", "x"])
    used = graph.live_nodes(node for nodes in results for node in source_nodes(nodes))
    return sum(1 + loop_count(graph.data[n].body) for n in used if isinstance(graph.data[n], Loop))


def test_short_loops_are_unrolled(monkeypatch):
    monkeypatch.undo()
    assert lowered_loop_count(gauss_seidel) == 0


def test_repeated_loops_stay_loops(monkeypatch):
    """Iterations whose nodes already exist count as much as new ones."""
    monkeypatch.setattr(scan_lowering, "MIN_LOOP_NODES", 50)

    def iterate(A, b, x):
        return jax.lax.scan(lambda x, _: (jnp.maximum(b - A @ x, 0.1 * x), None), x, None, length=5)[0]

    assert lowered_loop_count(iterate) == 1
    assert lowered_loop_count(lambda A, b, x: (iterate(A, b, x), iterate(A, b, x))) == 2


def test_loops_with_high_trip_counts_are_kept_even_if_they_fold_well(monkeypatch):
    monkeypatch.setattr(scan_lowering, "FOLDING_THRESHOLD", 1e9)
    monkeypatch.setattr(scan_lowering, "MAX_UNROLLED_ITERATIONS", 4)
    assert lowered_loop_count(gauss_seidel) == 2
    monkeypatch.setattr(scan_lowering, "MAX_UNROLLED_ITERATIONS", N)
    assert lowered_loop_count(gauss_seidel) == 0


def test_loops_are_refused_in_c_code():
    args = [jax.ShapeDtypeStruct(shape, np.float64) for shape in ((N, N), (N,), (N,))]
    graph, results = lower(lambda *a: [gauss_seidel(*a)[0]], args, ["A", "b", "x"])
    outputs = {("y", k): int(node) for k, node in enumerate(results[0])}
    reads = {name: SlotLocation(name, 0) for name in ("A", "b", "x")}
    with pytest.raises(UnsupportedOperationError, match="cannot be exported as C"):
        c_function("hs", "step", graph, outputs, reads, {"y": SlotLocation("y", 0)})
