"""Lowering rules of elementwise primitives: arithmetic, functions, comparisons, selects."""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph.elementary import FUNCTIONS
from hybridsim.native.graph.graph import BOOL, FLOAT, Graph
from hybridsim.native.lowering.lower import Lowering, Nodes, Rule, kind_of
from hybridsim.native.lowering.rules_bits import with_wraparound


def arithmetic(graph: Graph, dtype: Any, name: str) -> Callable[[int, int], int]:
    """Binary operation on nodes of a type: `add`, `sub`, `mul`, `max`, `min`, `and`, `or` or `xor`."""
    kind = kind_of(dtype)
    if name in ("max", "min"):
        return min_or_max(graph, dtype, name)
    if kind == FLOAT:
        return getattr(graph, name)
    return lambda a, b: graph.logic(name, a, b) if kind == BOOL else graph.integer(f"i{name}", a, b)


def _arithmetic_rule(float_op: Callable[[Graph], Callable], integer_op: str) -> Rule:
    """Rule of an arithmetic primitive for floats and integers."""

    @with_wraparound
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        graph = lowering.graph
        if kind_of(equation.outvars[0].aval.dtype) == FLOAT:
            return [lowering.map_elements(float_op(graph), *arguments)]
        return [lowering.map_elements(lambda *a: graph.integer(integer_op, *a), *arguments)]

    return rule


def _apply_op(function: Callable[[Graph], Callable[..., int]]):
    """Rule that applies a graph operation to each element."""

    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        return [lowering.map_elements(function(lowering.graph), *arguments)]

    return rule


@with_wraparound
def _neg(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph
    if kind_of(equation.outvars[0].aval.dtype) == FLOAT:
        return [lowering.map_elements(graph.neg, *arguments)]
    zero = graph.constant(0)
    return [lowering.map_elements(lambda a: graph.integer("isub", zero, a), *arguments)]


@with_wraparound
def _abs(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph
    if kind_of(equation.outvars[0].aval.dtype) == FLOAT:
        return [lowering.map_elements(graph.abs, *arguments)]
    zero = graph.constant(0)
    return [
        lowering.map_elements(
            lambda a: graph.select(graph.less(a, zero), graph.integer("isub", zero, a), a), *arguments
        )
    ]


def _min_or_max_rule(name: str):
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        return [lowering.map_elements(min_or_max(lowering.graph, equation.outvars[0].aval.dtype, name), *arguments)]

    return rule


def min_or_max(graph: Graph, dtype: Any, name: str) -> Callable[[int, int], int]:
    """`max` or `min` on nodes of a type."""
    kind = kind_of(dtype)
    if kind == FLOAT:
        return getattr(graph, name)
    if kind == BOOL:
        return lambda a, b: graph.logic("or" if name == "max" else "and", a, b)
    return lambda a, b: graph.select(graph.less(b, a) if name == "max" else graph.less(a, b), a, b)


def _sign(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph
    is_float = kind_of(equation.outvars[0].aval.dtype) == FLOAT
    zero, one, minus_one = (graph.constant(v) for v in ((0.0, 1.0, -1.0) if is_float else (0, 1, -1)))

    def sign(a: int) -> int:
        # sign(0) = 0 and sign(NaN) = NaN
        return graph.select(graph.less(zero, a), one, graph.select(graph.less(a, zero), minus_one, a))

    return [lowering.map_elements(sign, *arguments)]


def _comparison(op: str, *, swapped: bool = False):
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        graph = lowering.graph
        a, b = reversed(arguments) if swapped else arguments
        if kind_of(equation.invars[0].aval.dtype) == BOOL and op in ("lt", "le"):
            # false < true
            a, b = (lowering.map_elements(lambda x: graph.convert(x, "i"), x) for x in (a, b))
        return [lowering.map_elements(lambda x, y: graph.compare(op, x, y), a, b)]

    return rule


def _total_order(op: str):
    """Rule of a comparison in the IEEE total order: -NaN, -∞, …, -0, 0, …, ∞, NaN."""

    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        graph = lowering.graph
        if kind_of(equation.invars[0].aval.dtype) != FLOAT:
            return _comparison(op)(lowering, equation, arguments)
        sign, one = graph.constant(63), graph.constant(1)

        def sortable_bits(a: int) -> int:
            # bit patterns of negative floats are in reverse order: invert all bits but the sign
            bits = graph.bits(a)
            return graph.integer("ixor", bits, graph.integer("lshr", graph.integer("ashr", bits, sign), one))

        return [lowering.map_elements(lambda a, b: graph.compare(op, sortable_bits(a), sortable_bits(b)), *arguments)]

    return rule


def _select_n(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph
    predicate, *cases = arguments
    if kind_of(equation.invars[0].aval.dtype) == BOOL:
        return [lowering.map_elements(lambda c, no, yes: graph.select(c, yes, no), predicate, *cases)]

    def select_case(index: int, *values: int) -> int:
        result = values[-1]
        for k in range(len(values) - 2, -1, -1):
            result = graph.select(graph.equal(index, graph.constant(k)), values[k], result)
        return result

    return [lowering.map_elements(select_case, predicate, *cases)]


@with_wraparound
def _integer_pow(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph, n, dtype = lowering.graph, equation.params["y"], equation.outvars[0].aval.dtype
    if kind_of(dtype) == FLOAT:
        return [lowering.map_elements(lambda a: graph.power(a, n), *arguments)]
    mul, result = arithmetic(graph, dtype, "mul"), lowering.constants(np.ones(arguments[0].shape, int))
    for _ in range(n):
        result = lowering.map_elements(mul, result, *arguments)
    return [result]


def _pow(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph

    def power(a: int, b: int) -> int:
        exponent = graph.constants.get(b)
        if exponent is not None and float(exponent).is_integer() and abs(exponent) <= 16:
            return graph.power(a, int(exponent))
        return graph.function("pow", a, graph.convert(b, FLOAT))

    return [lowering.map_elements(power, *arguments)]


def _square(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return RULES["mul"](lowering, equation, [arguments[0], arguments[0]])


@with_wraparound
def _one_minus_square(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """1 − x² as (1 + x)(1 − x), which avoids cancellation near one."""
    graph, dtype = lowering.graph, equation.outvars[0].aval.dtype
    add, sub, mul = (arithmetic(graph, dtype, name) for name in ("add", "sub", "mul"))
    one = lowering.constants(np.ones((), dtype)).item()
    return [lowering.map_elements(lambda x: mul(add(one, x), sub(one, x)), *arguments)]


@with_wraparound
def _polynomial(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Polynomial by Horner's rule, coefficients in ascending order."""
    dtype = equation.outvars[0].aval.dtype
    add, mul = (arithmetic(lowering.graph, dtype, name) for name in ("add", "mul"))

    def value(x: int, *coefficients: int) -> int:
        return reduce(lambda total, c: add(mul(total, x), c), reversed(coefficients))

    return [lowering.map_elements(value, *arguments)]


def _clamp(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    dtype = equation.outvars[0].aval.dtype
    larger, smaller = (min_or_max(lowering.graph, dtype, name) for name in ("max", "min"))
    lower, x, upper = arguments
    return [lowering.map_elements(lambda lo, a, up: smaller(larger(lo, a), up), lower, x, upper)]


def _round(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph
    if int(equation.params["rounding_method"]) == 1:
        return [lowering.map_elements(lambda a: graph.round_to_integer("rint", a), *arguments)]
    half = graph.constant(0.5)

    def round_half_away_from_zero(a: int) -> int:
        # for |a| just below 0.5, |a| + 0.5 is rounded to 1; the fractional part is compared instead
        magnitude = graph.abs(a)
        truncated = graph.round_to_integer("trunc", magnitude)
        next_up = graph.add(truncated, graph.constant(1.0))
        result = graph.select(graph.less(graph.sub(magnitude, truncated), half), truncated, next_up)
        return graph.select(graph.less(a, graph.constant(0.0)), graph.neg(result), result)

    return [lowering.map_elements(round_half_away_from_zero, *arguments)]


def _erf_inv(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Winitzki's approximation, to 0.4 %, and two Halley steps, each of which triples the number of correct digits."""
    graph = lowering.graph
    add, sub, mul, div, constant = graph.add, graph.sub, graph.mul, graph.div, graph.constant
    one, half = constant(1.0), constant(0.5)

    def erf_inv(x: int) -> int:
        magnitude = graph.abs(x)
        # ln(1 - x²) without cancellation near 1, where 1 - x is exact
        log = add(graph.function("log1p", magnitude), graph.function("log1p", graph.neg(magnitude)))
        middle = add(constant(2.0 / (math.pi * 0.147)), mul(half, log))
        root = graph.sqrt(sub(mul(middle, middle), div(log, constant(0.147))))
        z = graph.sqrt(sub(root, middle))
        for _ in range(2):
            residual_near_zero = sub(graph.function("erf", z), magnitude)
            residual_near_one = sub(sub(one, magnitude), graph.function("erfc", z))
            residual = graph.select(graph.less(magnitude, half), residual_near_zero, residual_near_one)
            step = mul(mul(residual, constant(math.sqrt(math.pi) / 2.0)), graph.function("exp", mul(z, z)))
            z = sub(z, div(step, add(one, mul(z, step))))
        # the limits at ±1, where Halley's method gives ∞/∞; NaN outside
        limit = graph.select(graph.equal(magnitude, one), constant(math.inf), constant(math.nan))
        z = graph.select(graph.less(magnitude, one), z, limit)
        return graph.select(graph.less(x, constant(0.0)), graph.neg(z), z)

    return [lowering.map_elements(erf_inv, *arguments)]


def _is_finite(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph
    infinity = graph.constant(float("inf"))
    return [lowering.map_elements(lambda a: graph.less(graph.abs(a), infinity), *arguments)]


def _rem(graph: Graph) -> Callable[[int, int], int]:
    return lambda a, b: graph.function("rem", a, b)


def _identity(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return list(arguments)


def _reduce_precision(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    bits = (equation.params["exponent_bits"], equation.params["mantissa_bits"])
    if bits == (11, 52):
        return list(arguments)
    if bits == (8, 23):
        return [lowering.map_elements(lowering.graph.round_to_float32, *arguments)]
    raise UnsupportedOperationError(f"reduce_precision to {bits} bits is not supported by the native back-end")


_UNARY_FUNCTIONS = {name: _apply_op(lambda g, name=name: lambda a: g.function(name, a)) for name in FUNCTIONS}

RULES = {
    **_UNARY_FUNCTIONS,
    "add": _arithmetic_rule(lambda g: g.add, "iadd"),
    "add_any": _arithmetic_rule(lambda g: g.add, "iadd"),
    "sub": _arithmetic_rule(lambda g: g.sub, "isub"),
    "mul": _arithmetic_rule(lambda g: g.mul, "imul"),
    "div": _arithmetic_rule(lambda g: g.div, "idiv"),
    "rem": _arithmetic_rule(_rem, "irem"),
    "neg": _neg,
    "abs": _abs,
    "sign": _sign,
    "max": _min_or_max_rule("max"),
    "min": _min_or_max_rule("min"),
    "clamp": _clamp,
    "sqrt": _apply_op(lambda g: g.sqrt),
    "rsqrt": _apply_op(lambda g: lambda a: g.div(g.constant(1.0), g.sqrt(a))),
    "square": _square,
    "one_minus_square": _one_minus_square,
    "polynomial": _polynomial,
    "log2": _apply_op(lambda g: lambda a: g.mul(g.function("log", a), g.constant(1.0 / math.log(2.0)))),
    "integer_pow": _integer_pow,
    "pow": _pow,
    "atan2": _apply_op(lambda g: lambda a, b: g.function("atan2", a, b)),
    "floor": _apply_op(lambda g: lambda a: g.round_to_integer("floor", a)),
    "ceil": _apply_op(lambda g: lambda a: g.round_to_integer("ceil", a)),
    "round": _round,
    "erf_inv": _erf_inv,
    "is_finite": _is_finite,
    "lt": _comparison("lt"),
    "le": _comparison("le"),
    "gt": _comparison("lt", swapped=True),
    "ge": _comparison("le", swapped=True),
    "eq": _comparison("eq"),
    "ne": _comparison("ne"),
    "lt_to": _total_order("lt"),
    "le_to": _total_order("le"),
    "eq_to": _total_order("eq"),
    "select_n": _select_n,
    "reduce_precision": _reduce_precision,
    "stop_gradient": _identity,
    "copy": _identity,
    "stage": _identity,
    "copy_p": _identity,
    "name": _identity,
    "optimization_barrier": _identity,
    "device_put": _identity,
    "pvary": _identity,
}
