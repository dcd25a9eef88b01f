"""Reassociation of sums: equal up to rounding, with the fewest instructions and low latency on the critical path."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hybridsim.native.graph.graph import Graph
from hybridsim.native.graph.reassociate import LATENCY, reassociate_sums
from support.native_functions import evaluate_graph

ARITHMETIC = ("add", "sub", "mul", "fma")


def instruction_count(graph: Graph, outputs) -> int:
    return sum(graph.op_counts(outputs)[op] for op in ARITHMETIC)


def latency(graph: Graph, outputs) -> int:
    """Length of the critical path in cycles."""
    ready: dict[int, int] = {}
    for node in graph.live_nodes(outputs):
        ready[node] = LATENCY.get(graph.ops[node], 1) + max((ready[a] for a in graph.args[node]), default=0)
    return max(ready[node] for node in outputs)


def random_sum(graph: Graph, random, inputs: int, terms: int) -> tuple[int, list[tuple[int, ...]]]:
    """A sum of signed inputs and products of two, added in random order; and its terms as sign and input indices."""
    parts, terms_as_inputs = [], []
    for _ in range(terms):
        factors = [int(k) for k in random.integers(inputs, size=random.integers(1, 3))]
        node = graph.input("x", factors[0])
        if len(factors) > 1:
            node = graph.mul(node, graph.input("x", factors[1]))
        sign = int(random.choice([-1, 1]))
        parts.append(node if sign > 0 else graph.neg(node))
        terms_as_inputs.append((sign, *factors))
    while len(parts) > 1:
        first, second = (parts.pop(int(random.integers(len(parts)))) for _ in range(2))
        parts.append(graph.add(first, second))
    return parts[0], terms_as_inputs


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_sums_are_equal_up_to_rounding(seed, fma):
    """Against exact fractions: the error of n terms is at most n rounding errors of the largest partial sum."""
    random = np.random.default_rng(seed)
    graph = Graph()
    count = int(random.integers(2, 30))
    total, terms = random_sum(graph, random, 6, count)
    x = random.normal(size=6) * 10.0 ** random.integers(-3, 4, 6)
    exact = [sign * math.prod(Fraction(float(x[k])) for k in factors) for sign, *factors in terms]
    new, outputs = reassociate_sums(graph, [total], fma=fma)
    bound = count * 2.0**-53 * float(sum(map(abs, exact)))
    for owner, node in ((graph, total), (new, outputs[0])):
        (value,) = evaluate_graph(owner, [node], {"x": list(x)})
        assert abs(Fraction(float(value)) - sum(exact)) <= bound
    assert instruction_count(new, outputs) <= instruction_count(graph, [total])
    assert ("fma" in new.ops) <= fma


def random_graph(seed: int, count: int = 80) -> tuple[Graph, list[int]]:
    """Sums of products of sums, some of which are outputs."""
    random = np.random.default_rng(seed)
    graph = Graph()
    nodes = [graph.input("x", k) for k in range(5)] + [graph.constant(v) for v in (0.5, -2.0)]
    for _ in range(count):
        a, b = (nodes[k] for k in random.integers(max(len(nodes) - 15, 0), len(nodes), size=2))
        op = str(random.choice(["add", "sub", "mul", "add", "sub", "mul", "neg", "sin"]))
        node = graph.function("sin", a) if op == "sin" else graph.neg(a) if op == "neg" else getattr(graph, op)(a, b)
        nodes.append(node)
    return graph, [int(n) for n in random.choice(nodes[-30:], 6)]


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_graphs_are_equal_up_to_rounding(seed, fma):
    graph, outputs = random_graph(seed)
    x = list(np.random.default_rng(seed).normal(size=(5, 20)) * 0.3)
    new, nodes = reassociate_sums(graph, outputs, fma=fma)
    for actual, expected in zip(
        evaluate_graph(new, nodes, {"x": x}), evaluate_graph(graph, outputs, {"x": x}), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    assert ("fma" in new.ops) == fma
    assert all(a < node for node in range(len(new)) for a in new.args[node])


def test_dot_products_become_fused_chains():
    graph = Graph()
    x, y = ([graph.input(slot, k) for k in range(6)] for slot in "xy")
    product = graph.sum([graph.mul(a, b) for a, b in zip(x, y, strict=True)])
    # the critical path is elsewhere, so that fewest instructions are best
    late = graph.function("sin", graph.function("sin", graph.input("z", 0)))
    new, outputs = reassociate_sums(graph, [product, late], fma=True)
    assert new.op_counts(outputs[:1]) == {"input": 12, "mul": 1, "fma": 5}
    new, outputs = reassociate_sums(graph, [product, late], fma=False)
    assert new.op_counts(outputs[:1]) == {"input": 12, "mul": 6, "add": 5}


def test_signs_need_no_instructions():
    """-(a·b) - c·d + e is two multiply-adds with negated operands."""
    graph = Graph()
    a, b, c, d, e = (graph.input("x", k) for k in range(5))
    total = graph.add(graph.sub(graph.neg(graph.mul(a, b)), graph.mul(c, d)), e)
    new, outputs = reassociate_sums(graph, [total], fma=True)
    assert instruction_count(new, outputs) == 2
    values = [2.0, 3.0, 5.0, 7.0, 11.0]
    assert evaluate_graph(new, outputs, {"x": values}) == [-2.0 * 3.0 - 5.0 * 7.0 + 11.0]
    new, outputs = reassociate_sums(graph, [graph.neg(graph.add(a, graph.neg(b)))], fma=True)
    assert new.op_counts(outputs) == {"input": 2, "sub": 1}


@pytest.mark.parametrize("fma", [True, False])
def test_late_terms_are_added_last(fma):
    graph = Graph()
    late = graph.function("sin", graph.input("x", 0))
    total = late
    for k in range(1, 9):
        total = graph.add(total, graph.mul(graph.input("x", k), graph.input("y", k)))
    new, outputs = reassociate_sums(graph, [total], fma=fma)
    assert latency(graph, [total]) == LATENCY["sin"] + 8 * LATENCY["add"]
    assert latency(new, outputs) == LATENCY["sin"] + LATENCY["add"]
    # also where slack permits a sequential sum
    later = graph.function("pow", late, late)
    new, (output, _) = reassociate_sums(graph, [total, later], fma=fma)
    assert latency(new, [output]) == LATENCY["sin"] + LATENCY["add"]


def test_long_sums_on_the_critical_path_are_added_in_pairs():
    graph = Graph()
    total = graph.input("x", 0)
    for k in range(1, 32):
        total = graph.add(total, graph.input("x", k))
    new, outputs = reassociate_sums(graph, [total], fma=True)
    assert latency(graph, [total]) == 31 * LATENCY["add"]
    assert latency(new, outputs) == 5 * LATENCY["add"]


def test_shared_sums_are_added_once():
    graph = Graph()
    x = [graph.input("x", k) for k in range(4)]
    shared = graph.add(graph.add(x[0], x[1]), x[2])
    outputs = [graph.add(shared, x[3]), graph.mul(shared, shared), graph.sub(shared, x[3])]
    new, nodes = reassociate_sums(graph, outputs, fma=False)
    assert new.op_counts(nodes) == {"input": 4, "add": 3, "sub": 1, "mul": 1}
    # a sum that is itself an output is not merged into its user
    new, nodes = reassociate_sums(graph, [shared, graph.add(shared, x[3])], fma=False)
    assert new.op_counts(nodes)["add"] == 3


def test_zeros_and_single_terms():
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    minus = graph.neg(x)
    new, outputs = reassociate_sums(graph, [x, minus, graph.sub(graph.constant(2.0), x), graph.constant(0.0)], fma=True)
    assert evaluate_graph(new, outputs, {"x": [3.0]}) == [3.0, -3.0, -1.0, 0.0]
    # sums without terms arise only if products with zero are inserted directly
    hidden = graph.node("add", graph.node("mul", x, graph.constant(0.0)), graph.node("mul", graph.constant(0.0), y))
    new, outputs = reassociate_sums(graph, [hidden], fma=True)
    assert new.constants[outputs[0]] == 0.0


def test_equal_products_cancel_exactly():
    """A product minus itself, as in the cross product of a vector with itself, is zero and not a rounding error."""
    graph = Graph()
    x, y, z = (graph.input("x", k) for k in range(3))
    product = graph.mul(x, y)
    new, outputs = reassociate_sums(graph, [graph.sub(product, graph.mul(y, x)), graph.sub(product, z)], fma=True)
    cancelled, fused = evaluate_graph(new, outputs, {"x": [0.1, 0.3, 0.1 * 0.3]})
    assert cancelled == 0.0
    assert fused == float(Fraction(0.1) * Fraction(0.3) - Fraction(0.1 * 0.3)) != 0.0


def test_infinities_and_nan_propagate():
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    new, outputs = reassociate_sums(graph, [graph.sub(graph.add(x, y), x), graph.sub(x, x)], fma=True)
    assert np.isnan(evaluate_graph(new, outputs, {"x": [math.inf, 1.0]})).all()


def test_reassociation_is_deterministic():
    for seed in range(3):
        first, second = (reassociate_sums(*random_graph(seed), fma=True) for _ in range(2))
        assert first[1] == second[1]
        assert (first[0].ops, first[0].args, first[0].data) == (second[0].ops, second[0].args, second[0].data)
