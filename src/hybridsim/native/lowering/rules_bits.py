"""Lowering rules of conversions and bit operations; integers of all types are stored as int64.

As in XLA, integer overflow wraps around, shifts by at least the bit width give zero (or the sign), and conversions of
floats to integers saturate.
"""

from typing import Any

import numpy as np

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph.graph import BOOL, INT
from hybridsim.native.lowering.lower import Lowering, Nodes, Rule, kind_of


def wrap_to_dtype(lowering: Lowering, dtype: Any, nodes: Nodes) -> Nodes:
    """Wrap integers around to a type narrower than int64; other types are unchanged."""
    graph, bits = lowering.graph, 8 * dtype.itemsize
    if dtype.kind == "u" and bits < 64:
        mask = graph.constant(2**bits - 1)
        return lowering.map_elements(lambda a: graph.integer("iand", a, mask), nodes)
    if dtype.kind == "i" and bits < 64:
        unused_bits = graph.constant(64 - bits)
        return lowering.map_elements(
            lambda a: graph.integer("ashr", graph.integer("shl", a, unused_bits), unused_bits), nodes
        )
    return nodes


def with_wraparound(rule: Rule) -> Rule:
    """Add wraparound of integer results to a rule."""

    def rule_with_wraparound(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        results = rule(lowering, equation, arguments)
        return [wrap_to_dtype(lowering, v.aval.dtype, r) for v, r in zip(equation.outvars, results, strict=True)]

    return rule_with_wraparound


def _convert(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph, old, new = lowering.graph, equation.invars[0].aval.dtype, equation.params["new_dtype"]
    kind = kind_of(new)
    if "uint64" in (old.name, new.name) and "f" in (old.kind, new.kind):
        raise UnsupportedOperationError(f"conversion of {old} to {new} is not supported by the native back-end")
    result = lowering.map_elements(lambda a: graph.convert(a, kind), *arguments)
    if kind != INT or np.can_cast(old, new):
        return [result]
    if kind_of(old) == INT:
        return [wrap_to_dtype(lowering, new, result)]
    if new.itemsize == 8:
        return [result]
    lowest, highest = graph.constant(int(np.iinfo(new).min)), graph.constant(int(np.iinfo(new).max))

    def clamp(a: int) -> int:
        return graph.select(graph.less(a, lowest), lowest, graph.select(graph.less(highest, a), highest, a))

    return [lowering.map_elements(clamp, result)]


def _bitcast(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph, old, new = lowering.graph, equation.invars[0].aval.dtype, equation.params["new_dtype"]
    if not {old.name, new.name} <= {"float64", "int64", "uint64"}:
        raise UnsupportedOperationError(f"bitcast of {old} to {new} is not supported by the native back-end")
    if (old.kind == "f") == (new.kind == "f"):
        return list(arguments)
    return [lowering.map_elements(graph.bits if old.kind == "f" else graph.from_bits, *arguments)]


def _logic(op: str):
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        graph = lowering.graph
        if kind_of(equation.outvars[0].aval.dtype) == BOOL:
            return [lowering.map_elements(lambda a, b: graph.logic(op, a, b), *arguments)]
        return [lowering.map_elements(lambda a, b: graph.integer(f"i{op}", a, b), *arguments)]

    return rule


@with_wraparound
def _not(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph
    if kind_of(equation.outvars[0].aval.dtype) == BOOL:
        return [lowering.map_elements(graph.invert, *arguments)]
    minus_one = graph.constant(-1)
    return [lowering.map_elements(lambda a: graph.integer("ixor", a, minus_one), *arguments)]


def _shift(op: str) -> Rule:
    @with_wraparound
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        graph, dtype = lowering.graph, equation.outvars[0].aval.dtype
        # extend the operand by sign or zero from its own width, not that of int64
        extended = {"ashr": f"int{8 * dtype.itemsize}", "lshr": f"uint{8 * dtype.itemsize}"}.get(op)
        operand = (
            arguments[0] if extended in (None, "uint64") else wrap_to_dtype(lowering, np.dtype(extended), arguments[0])
        )
        lower_bound, upper_bound = graph.constant(-1), graph.constant(8 * dtype.itemsize)
        zero, sign_shift = graph.constant(0), graph.constant(63)

        def shift(a: int, count: int) -> int:
            is_in_range = graph.logic("and", graph.less(lower_bound, count), graph.less(count, upper_bound))
            result = graph.integer(op, a, graph.select(is_in_range, count, sign_shift))
            return result if op == "ashr" else graph.select(is_in_range, result, zero)

        return [lowering.map_elements(shift, operand, arguments[1])]

    return rule


RULES = {
    "and": _logic("and"),
    "or": _logic("or"),
    "xor": _logic("xor"),
    "not": _not,
    "shift_left": _shift("shl"),
    "shift_right_arithmetic": _shift("ashr"),
    "shift_right_logical": _shift("lshr"),
    "convert_element_type": _convert,
    "bitcast_convert_type": _bitcast,
}
