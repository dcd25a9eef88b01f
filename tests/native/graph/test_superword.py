"""Superword packing: superwords are found, have a topological order, and do not change results."""

from collections import Counter
from dataclasses import replace
from time import process_time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.native.graph.graph import Graph
from hybridsim.native.graph.optimize import optimize
from hybridsim.native.graph.schedule import depth_first_schedule
from hybridsim.native.graph.superword import Packing
from hybridsim.native.llvm import emit, machine
from hybridsim.native.runtime.function import NativeFunction
from support.native_functions import normal


def packing_of(graph, outputs, width=8):
    graph, outputs = optimize(graph, outputs, fma=True)
    return Packing(graph, graph.live_nodes(outputs), outputs, width), outputs


def sizes(packing):
    return Counter(len(superword) for superword in set(packing.superword_of.values()))


def layer(graph, inputs, units, slot):
    """Units of a layer, with sums of different lengths."""
    results = []
    for i in range(units):
        x = graph.input(slot, 100 * i)
        for k, y in enumerate(inputs[: 2 + i % 3]):
            x = graph.add(x, graph.mul(graph.input(slot, 100 * i + k + 1), y))
        results.append(graph.function("tanh", x))
    return results


def test_units_of_a_layer_fill_vectors():
    graph = Graph()
    first = layer(graph, [graph.input("x", k) for k in range(4)], 8, "first")
    packing, outputs = packing_of(graph, first)
    assert sizes(packing)[8] > 20 and all(len(packing.superword_of[node]) == 8 for node in outputs)
    packing, outputs = packing_of(graph, layer(graph, first, 12, "second"))
    assert set(sizes(packing)) == {8, 4} and all(node in packing.superword_of for node in outputs)


def test_sines_and_cosines_share_their_range_reduction():
    graph = Graph()
    angles = [graph.input("x", k) for k in range(4)]
    both = [graph.function(name, x) for name in ("sin", "cos") for x in angles]
    packing, outputs = packing_of(graph, both)
    sines_only, _ = packing_of(graph, both[:4])
    assert all(node in packing.superword_of for node in outputs)
    assert sizes(packing)[4] < 1.5 * sizes(sines_only)[4]


def test_isomorphic_legs_are_packed():
    """Four legs of three joints: their forward kinematics is packed along with the sines and cosines."""
    graph = Graph()
    totals = []
    for leg in range(4):
        x, y = graph.input("p", 2 * leg), graph.input("p", 2 * leg + 1)
        for k in range(3):
            angle = graph.input("q", 3 * leg + k)
            c, s = graph.function("cos", angle), graph.function("sin", angle)
            x, y = (
                graph.add(graph.mul(c, x), graph.mul(s, y)),
                graph.sub(graph.mul(c, y), graph.mul(s, x)),
            )
        totals += [x, y]
    packing, outputs = packing_of(graph, totals)
    assert all(len(packing.superword_of[node]) == 4 for node in outputs)


def test_small_savings_are_not_packed():
    graph = Graph()
    few = [graph.function("tanh", graph.input("x", k)) for k in range(2)]
    assert not packing_of(graph, few)[0].superword_of
    many = [graph.div(graph.input("x", k), graph.input("x", 10 - k)) for k in range(3)]
    assert not packing_of(graph, many)[0].superword_of


@pytest.mark.parametrize("seed", range(8))
def test_superwords_have_a_topological_order(seed):
    rng = np.random.default_rng(seed)
    graph = Graph()
    nodes = [graph.input("x", k) for k in range(6)]
    for _ in range(250):
        a, b = (nodes[k] for k in rng.choice(len(nodes), 2))
        kind = rng.integers(8)
        if kind < 3:
            nodes.append(graph.function(["tanh", "sin", "exp"][kind], a))
        elif kind < 5:
            nodes.append(graph.div(a, graph.add(graph.mul(b, b), graph.constant(1.0))))
        else:
            nodes.append(graph.mul(a, b) if kind == 5 else graph.add(a, b))
    packing, outputs = packing_of(graph, nodes[-40:])
    assert len(packing.superword_of) > 50
    order = depth_first_schedule(packing.graph, outputs, packing.superword_of)
    assert sorted(order) == packing.graph.live_nodes(outputs)
    position = {node: k for k, node in enumerate(order)}
    for node in order:
        superword = packing.superword_of.get(node, (node,))
        first = position[superword[0]]
        assert [position[member] for member in superword] == list(range(first, first + len(superword)))
        assert all(position[a] < first for a in packing.graph.args[node])


def test_comparisons_of_floats_and_integers_are_not_mixed():
    def function(x, n):
        chosen = jnp.where(jnp.concatenate([x[:2] < 0.3, n[:2] < 3]), x, -0.5 * x)
        return jnp.tanh(chosen) / (2.0 + jnp.abs(x))

    x, n = normal(4), np.arange(4)
    scalar, packed = (
        NativeFunction(function, x, n, target=replace(machine.host(), register_width=width)) for width in (1, 4)
    )
    assert np.array_equal(scalar(x, n), packed(x, n))


def test_search_time_is_bounded():
    """Three chains whose values are all outputs: no seed pays, from any level."""
    graph = Graph()
    lanes, outputs = [graph.input("x", k) for k in range(3)], []
    for k in range(1500):
        lanes = [graph.fma(a, graph.input("y", 3 * k + i), graph.input("z", 3 * k + i)) for i, a in enumerate(lanes)]
        outputs += lanes
    begin_time = process_time()
    Packing(graph, graph.live_nodes(outputs), outputs, 8)
    assert process_time() - begin_time < 2.0


def program(x, W, n):
    """Packable operations on floats, Booleans, integers, arrays and constants."""
    hidden = jnp.tanh(W @ jnp.tanh(W @ x) + 0.1)
    chosen = jnp.where(hidden > x, jnp.exp(hidden), jnp.log1p(x * x))
    return {
        "hidden": hidden,
        "chosen": chosen,
        "angles": (jnp.sin(x), jnp.cos(x), jnp.arctan2(x, hidden), jnp.cbrt(x)),
        "whole": ((10.0 * chosen).astype(int) + n, n // 3),
        "gradient": jax.grad(lambda x: jnp.sum(jnp.tanh(W @ x) / (1.0 + x * x)))(x),
    }


ARGUMENTS = 0.5 * normal(5, 8), normal(5, 8, 8), np.arange(40).reshape(5, 8)


@pytest.mark.parametrize("register", [2, 3, 4, 8])
def test_packing_does_not_change_results(register):
    scalar, packed = (
        NativeFunction(program, *(a[0] for a in ARGUMENTS), target=replace(machine.host(), register_width=width))
        for width in (1, register)
    )
    kernel = packed.rollout.emit_kernel("forward", single=True)
    text = emit.module(kernel.functions, kernel.texts)
    assert (f"<{register} x double>" in text) == (register > 2)
    for k in range(5):
        arguments = [a[k] for a in ARGUMENTS]
        pairs = zip(jax.tree.leaves(scalar(*arguments)), jax.tree.leaves(packed(*arguments)), strict=True)
        assert all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
