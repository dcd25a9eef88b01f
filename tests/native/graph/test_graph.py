"""The scalar graph: constant folding, algebraic identities, hash-consing, scheduling and optimization."""

import itertools
import math
import struct

import numpy as np
import pytest

from hybridsim.native.graph.graph import BOOL, FLOAT, INT, Graph
from hybridsim.native.graph.optimize import optimize
from hybridsim.native.graph.partition import remap_slot
from hybridsim.native.graph.schedule import depth_first_schedule
from support.native_functions import evaluate_graph

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e300, 5e-324, math.inf, -math.inf, math.nan]


@pytest.fixture
def graph():
    return Graph()


def _bits(value: float) -> bytes:
    return struct.pack("<d", value)


def _same(a: float, b: float) -> bool:
    """Bitwise equality, with all NaNs equal."""
    return (a != a and b != b) or _bits(a) == _bits(b)


# constants


def test_constants_are_distinct_by_kind_sign_and_nan(graph):
    values = [0.0, -0.0, 0, False, 1.0, 1, True, math.nan, math.inf, -math.inf]
    nodes = [graph.constant(v) for v in values]
    assert len(set(nodes)) == len(values)
    assert [graph.kinds[n] for n in nodes[:4]] == [FLOAT, FLOAT, INT, BOOL]
    assert [graph.constant(v) for v in values] == nodes
    assert graph.constant(float("nan")) == graph.constant(-math.nan)
    assert math.copysign(1.0, graph.constants[graph.constant(-0.0)]) == -1.0
    for node, value in zip(nodes, values, strict=True):
        assert type(graph.constants[node]) is type(value)


BINARY_OPS = ("add", "sub", "mul", "div", "max", "min")


@pytest.mark.parametrize("op", BINARY_OPS)
def test_folding_equals_runtime_evaluation(graph, op):
    """Bitwise equal for constant and runtime operands, except for 0·NaN, 0/0 and the sign of zero."""
    numpy = {"max": np.maximum, "min": np.minimum, "add": np.add, "sub": np.subtract, "mul": np.multiply}
    numpy["div"] = np.divide
    for x, y in itertools.product(EDGES, EDGES):
        with np.errstate(all="ignore"):
            expected = float(numpy[op](x, y))
        folded = graph.constants[getattr(graph, op)(graph.constant(x), graph.constant(y))]
        assert _same(folded, expected) or (op in ("max", "min") and folded == expected == 0.0), (x, y)
        for side in ("left", "right", "none"):
            mixed = Graph()
            left = mixed.constant(x) if side == "left" else mixed.input("x", 0)
            right = mixed.constant(y) if side == "right" else mixed.input("x", 1)
            (actual,) = evaluate_graph(mixed, [getattr(mixed, op)(left, right)], {"x": [np.float64(x), np.float64(y)]})
            is_zero = (op in ("mul", "div") and side == "left" and x == 0) or (op, side, y) == ("mul", "right", 0)
            if is_zero or expected == 0.0:
                assert actual == 0.0
            else:
                # division by a constant is a product with its reciprocal
                assert _same(float(actual), expected) or abs(actual - expected) <= np.spacing(abs(expected)), (
                    x,
                    y,
                    side,
                )


def test_functions_of_constants_are_folded(graph):
    unary = {
        "sin": np.sin, "exp": np.exp, "tanh": np.tanh, "log": np.log, "floor": np.floor, "ceil": np.ceil,
        "rint": np.rint, "trunc": np.trunc, "sqrt": np.sqrt, "abs": np.abs, "neg": np.negative,
    }  # fmt: skip
    for (name, function), x in itertools.product(unary.items(), EDGES):
        node = graph.constant(x)
        if name in ("floor", "ceil", "rint", "trunc"):
            result = graph.round_to_integer(name, node)
        elif name in ("sqrt", "abs", "neg"):
            result = getattr(graph, name)(node)
        else:
            result = graph.function(name, node)
        with np.errstate(all="ignore"):
            assert _same(graph.constants[result], float(function(x))), (name, x)
    binary = {"pow": np.power, "atan2": np.arctan2, "rem": np.fmod}
    for name, function in binary.items():
        assert graph.constants[graph.function(name, graph.constant(2.5), graph.constant(0.75))] == function(2.5, 0.75)


def test_conversions_of_constants(graph):
    def convert(value, kind):
        return graph.constants[graph.convert(graph.constant(value), kind)]

    assert [convert(v, INT) for v in (2.9, -2.9, 1e300, -math.inf, math.nan, True)] == [
        2, -2, 2**63 - 1, -(2**63), 0, 1
    ]  # fmt: skip
    assert [convert(v, BOOL) for v in (0.0, -0.0, math.nan, 2, 0)] == [False, False, True, True, False]
    assert convert(3, FLOAT) == 3.0 and isinstance(convert(3, FLOAT), float)
    assert convert(True, FLOAT) == 1.0 and isinstance(convert(True, FLOAT), float)
    for value in EDGES:
        assert _same(graph.constants[graph.from_bits(graph.bits(graph.constant(value)))], value)
    assert graph.constants[graph.round_to_float32(graph.constant(0.1))] == float(np.float32(0.1))
    assert graph.constants[graph.round_to_float32(graph.constant(1e300))] == math.inf


INTEGERS = [0, 1, -1, 7, -7, 2**63 - 1, -(2**63)]


def test_integer_constants_wrap_around(graph):
    for x, y in itertools.product(INTEGERS, INTEGERS):
        a, b = graph.constant(x), graph.constant(y)
        with np.errstate(all="ignore"):
            for op, function in (
                ("iadd", np.add),
                ("isub", np.subtract),
                ("imul", np.multiply),
                ("ixor", np.bitwise_xor),
            ):
                assert graph.constants[graph.integer(op, a, b)] == int(function(np.int64(x), np.int64(y)))
        quotient, remainder = graph.constants[graph.integer("idiv", a, b)], graph.constants[graph.integer("irem", a, b)]
        if y == 0:
            assert (quotient, remainder) == (-1, x)
        else:
            assert abs(remainder) < abs(y) and remainder * x >= 0 and (quotient * y + remainder - x) % 2**64 == 0
    for x, count in itertools.product(INTEGERS, (0, 1, 63)):
        a, b = graph.constant(x), graph.constant(count)
        assert graph.constants[graph.integer("ashr", a, b)] == x >> count
        assert graph.constants[graph.integer("lshr", a, b)] % 2**64 == (x % 2**64) >> count
        assert (graph.constants[graph.integer("shl", a, b)] - (x << count)) % 2**64 == 0


# identities


def test_identity_elements_are_removed(graph):
    x = graph.input("x", 0)
    zero, one, minus = (graph.constant(v) for v in (0.0, 1.0, -1.0))
    same = [graph.add(x, zero), graph.add(zero, x), graph.sub(x, zero), graph.mul(x, one), graph.mul(one, x)]
    same += [graph.div(x, one), graph.neg(graph.neg(x)), graph.fma(x, one, zero), graph.fma(zero, x, x), graph.sum([x])]
    same += [graph.neg(graph.mul(x, minus)), graph.power(x, 1), graph.select(graph.constant(True), x, zero)]
    same += [graph.max(x, graph.constant(-math.inf)), graph.min(x, graph.constant(math.inf)), graph.max(x, x)]
    same += [graph.from_bits(graph.bits(x)), graph.select(graph.less(x, one), x, x), graph.convert(x, FLOAT)]
    assert set(same) == {x}
    n, t = graph.input("n", 0, INT), graph.input("t", 0, BOOL)
    assert graph.integer("iadd", n, graph.constant(0)) == graph.integer("imul", graph.constant(1), n) == n
    assert graph.logic("and", t, graph.constant(True)) == graph.logic("or", t, t) == graph.invert(graph.invert(t)) == t
    assert graph.logic("xor", t, t) == graph.logic("and", graph.constant(False), t) == graph.constant(False)


def test_structural_zeros_annihilate_everything_by_design(graph):
    x, zero = graph.input("x", 0), graph.constant(0.0)
    assert graph.mul(x, zero) == graph.mul(zero, x) == graph.div(zero, x) == zero
    assert graph.mul(x, graph.constant(-0.0)) == zero
    assert graph.fma(x, zero, x) == x


def test_nan_and_infinity_propagate_except_through_zeros(graph):
    x, y = graph.input("x", 0), graph.input("x", 1)
    nan, inf = graph.constant(math.nan), graph.constant(math.inf)
    results = {
        "x - x": graph.sub(x, x),
        "x / x": graph.div(x, x),
        "x / inf": graph.div(x, inf),
        "max with nan": graph.max(x, nan),
        "min with nan": graph.min(nan, x),
        "x == x": graph.select(graph.equal(x, x), graph.constant(1.0), x),
        "max": graph.max(x, y),
        "min": graph.min(y, x),
        "x + nan": graph.add(x, nan),
    }
    values = evaluate_graph(graph, list(results.values()), {"x": [math.nan, 1.0]})
    assert np.isnan(values).all(), dict(zip(results, values, strict=True))
    assert np.isnan(
        evaluate_graph(graph, [results["x - x"], results["x / x"], results["x / inf"]], {"x": [math.inf]})
    ).all()
    assert evaluate_graph(graph, [graph.compare("ne", x, x), graph.less(x, inf)], {"x": [math.nan]}) == [True, False]


def test_negations_are_hoisted(graph):
    x, y = graph.input("x", 0), graph.input("x", 1)
    minus = graph.neg(x)
    assert graph.add(y, minus) == graph.add(minus, y) == graph.sub(y, x)
    assert graph.sub(y, minus) == graph.add(x, y)
    assert graph.mul(minus, y) == graph.neg(graph.mul(x, y))
    assert graph.mul(minus, graph.neg(y)) == graph.mul(x, y)
    assert graph.div(minus, y) == graph.div(x, graph.neg(y)) == graph.neg(graph.div(x, y))
    assert graph.neg(graph.sub(x, y)) == graph.sub(y, x)
    assert graph.abs(minus) == graph.abs(graph.abs(x)) == graph.abs(x)
    assert graph.function("sin", minus) == graph.neg(graph.function("sin", x))
    assert graph.function("cos", minus) == graph.function("cos", x)
    assert graph.function("exp", minus) == graph.node("exp", minus)


def test_selects(graph):
    x, y, t = graph.input("x", 0), graph.input("x", 1), graph.input("t", 0, BOOL)
    assert graph.select(graph.invert(t), x, y) == graph.select(t, y, x)
    chosen = graph.select(t, graph.less(x, y), graph.less(y, x))
    for truth, a, b in itertools.product((False, True), (1.0, 2.0), (1.0, 2.0)):
        assert evaluate_graph(graph, [chosen], {"x": [a, b], "t": [truth]}) == [a < b if truth else b < a]
    assert graph.compare("ne", t, graph.constant(False)) == t
    assert graph.kinds[graph.convert(t, INT)] == INT


def test_division_by_constants_is_accurate(graph):
    """A division becomes a product with the reciprocal only if the reciprocal neither over- nor underflows."""
    x = graph.input("x", 0)
    for divisor in (3.0, 1e-300, 1e300, 5e-324, 2.0**-1022, 2.0**1022, 1.7e308, 0.0, math.inf, math.nan):
        for value in (1.0, 1e-300, 1e300, divisor):
            (actual,) = evaluate_graph(graph, [graph.div(x, graph.constant(divisor))], {"x": [np.float64(value)]})
            with np.errstate(all="ignore"):
                expected = np.float64(value) / np.float64(divisor)
            assert _same(float(actual), float(expected)) or abs(actual - expected) <= np.spacing(abs(expected)), (
                value,
                divisor,
            )
    assert graph.ops[graph.div(x, graph.constant(3.0))] == "mul"


def test_powers(graph):
    x = graph.input("x", 0)
    for n in range(-9, 10):
        (actual,) = evaluate_graph(graph, [graph.power(x, n)], {"x": [np.float64(1.3)]})
        assert actual == pytest.approx(1.3**n, rel=1e-15)
    assert graph.power(x, 0) == graph.constant(1.0)
    assert graph.op_counts([graph.power(x, 8)])["mul"] == 3


def test_single_precision_is_rounded_once(graph):
    x, y, t = (
        graph.round_to_float32(graph.input("x", 0)),
        graph.round_to_float32(graph.input("x", 1)),
        graph.input("t", 0, BOOL),
    )
    minus, size = graph.neg(x), graph.abs(y)
    for exact in (x, minus, size, graph.select(t, minus, size), graph.round_to_integer("floor", x)):
        assert graph.round_to_float32(exact) == exact
    for rounded in (graph.add(x, y), graph.mul(x, y), graph.select(t, x, graph.input("x", 2))):
        assert graph.ops[graph.round_to_float32(rounded)] == "float32"


# sharing and order


def test_equal_operations_are_one_node(graph):
    x, y = graph.input("x", 0), graph.input("x", 1)
    assert graph.input("x", 0) == x != graph.input("y", 0)
    assert graph.add(x, y) == graph.add(y, x)
    assert graph.mul(x, y) == graph.mul(y, x)
    assert graph.sub(x, y) != graph.sub(y, x)
    assert graph.logic("and", graph.less(x, y), graph.less(y, x)) == graph.logic(
        "and", graph.less(y, x), graph.less(x, y)
    )
    before = len(graph)
    graph.function("sin", graph.add(y, x))
    graph.function("sin", graph.add(x, y))
    assert len(graph) == before + 1


def test_unused_nodes_are_not_live(graph):
    x, y = graph.input("x", 0), graph.input("x", 1)
    needed, unused = graph.mul(x, x), graph.function("exp", y)
    assert graph.live_nodes([needed]) == [x, needed]
    assert graph.op_counts([needed]) == {"input": 1, "mul": 1}
    assert graph.op_counts([needed, unused, needed]) == {"input": 2, "mul": 1, "exp": 1}
    assert graph.op_counts([]) == {}
    rebuilt, _ = optimize(graph, [needed], fma=True)
    assert "exp" not in rebuilt.ops and rebuilt.ops.count("input") == 1


def _random_graph(graph: Graph, count: int, seed: int) -> list[int]:
    """Add random arithmetic to a graph; returns some of the last nodes."""
    random = np.random.default_rng(seed)
    nodes = [graph.input("x", k) for k in range(4)] + [graph.constant(float(v)) for v in random.normal(size=3)]
    for _ in range(count):
        a, b = (nodes[k] for k in random.integers(len(nodes), size=2))
        op = random.choice(["add", "sub", "mul", "max", "sin", "neg", "select"])
        if op == "sin":
            nodes.append(graph.function("sin", a))
        elif op == "neg":
            nodes.append(graph.neg(a))
        elif op == "select":
            nodes.append(graph.select(graph.less(a, b), b, a))
        else:
            nodes.append(getattr(graph, str(op))(a, b))
    return [int(n) for n in random.choice(nodes[-20:], 5)]


@pytest.mark.parametrize("seed", range(5))
def test_depth_first_schedule_is_a_topological_order(seed):
    graph = Graph()
    outputs = _random_graph(graph, 200, seed)
    order = depth_first_schedule(graph, outputs)
    assert sorted(order) == graph.live_nodes(outputs)
    position = {node: k for k, node in enumerate(order)}
    assert all(position[a] < position[node] for node in order for a in graph.args[node])
    assert depth_first_schedule(graph, []) == []


def test_depth_first_schedule_computes_values_shortly_before_their_use():
    """Two long chains built in alternation are scheduled one after the other."""
    graph = Graph()
    chains = [graph.input("x", k) for k in range(2)]
    for _ in range(30):
        chains = [graph.function("sin", node) for node in chains]
    order = depth_first_schedule(graph, [graph.add(*chains)])
    roots = [graph.live_nodes([node])[0] for node in order[:-1]]
    assert [*map(len, map(set, (roots[:31], roots[31:])))] == [1, 1]


def test_depth_first_schedule_takes_the_longest_chain_first():
    graph = Graph()
    short, long = (graph.function("cos", graph.input("x", k)) for k in range(2))
    for _ in range(5):
        long = graph.function("sin", long)
    chain = graph.live_nodes([long])
    assert depth_first_schedule(graph, [graph.add(short, long)])[: len(chain)] == chain
    assert depth_first_schedule(graph, [short, long])[: len(chain)] == chain


def test_remap_slot_changes_input_indices():
    graph = Graph()
    a, b, c = graph.input("fixed", 7), graph.input("fixed", 3), graph.input("x", 7)
    result = graph.sub(graph.mul(a, b), c)
    remapped = remap_slot(graph, "fixed", {7: 0, 3: 1})
    assert evaluate_graph(remapped, [result], {"fixed": [2.0, 5.0], "x": {7: 1.0}}) == [9.0]
    assert evaluate_graph(graph, [result], {"fixed": {7: 2.0, 3: 5.0}, "x": {7: 1.0}}) == [9.0]
    assert graph.data[a] == ("fixed", 7)


def test_sums_are_balanced_trees(graph):
    x = [graph.input("x", k) for k in range(9)]
    total = graph.sum([*x, graph.constant(0.0)])
    assert graph.op_counts([total])["add"] == 8

    def depth(node: int) -> int:
        return 1 + max((depth(a) for a in graph.args[node]), default=-1)

    assert depth(total) == 4
    assert graph.sum([]) == graph.constant(0.0)


# optimization of whole graphs


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_optimized_graphs_are_equivalent(seed, fma):
    graph = Graph()
    outputs = _random_graph(graph, 60, seed)
    x = list(np.random.default_rng(seed + 10).normal(size=(4, 50)))
    new, nodes = optimize(graph, outputs, fma=fma)
    for actual, expected in zip(
        evaluate_graph(new, nodes, {"x": x}), evaluate_graph(graph, outputs, {"x": x}), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def test_divisions_by_a_common_divisor_share_its_reciprocal():
    graph = Graph()
    x, y, d = (graph.input("x", k) for k in range(3))
    outputs = [graph.div(x, d), graph.div(y, d), graph.div(x, y)]
    new, nodes = optimize(graph, outputs, fma=True)
    assert new.op_counts(nodes)["div"] == 2
    values = [np.float64(v) for v in (0.3, -7.0, 1.7)]
    np.testing.assert_allclose(
        evaluate_graph(new, nodes, {"x": values}), evaluate_graph(graph, outputs, {"x": values}), rtol=4e-16
    )


def test_divisions_by_infinity_stay_divisions():
    graph = Graph()
    x, inf = graph.input("x", 0), graph.constant(math.inf)
    outputs = [graph.div(x, inf), graph.div(graph.abs(x), inf)]
    new, nodes = optimize(graph, outputs, fma=True)
    assert np.isnan(evaluate_graph(new, nodes, {"x": [math.inf]})).all()
