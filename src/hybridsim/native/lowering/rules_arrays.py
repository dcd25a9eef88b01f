"""Rules for large arrays: products with matrices, outer products, and operations on each element, as loops.

They stand before the other rules and take what is worth a loop; everything else is left to these.
"""

from typing import Any

import numpy as np

from hybridsim.native.graph.arrays import (
    MAX_UNROLLED_SIZE,
    MIN_LARGE_SIZE,
    ElementwiseMap,
    MatrixVectorProduct,
    OuterProduct,
    array_node,
    as_array,
    element_ids,
    has_elements,
    operand_slot,
    strided_matrix,
)
from hybridsim.native.graph.graph import Graph
from hybridsim.native.lowering import rules_bits, rules_calls, rules_elementwise, rules_structure
from hybridsim.native.lowering.lower import Lowering, Nodes, kind_of

MIN_LOOP_ROWS = 64
"""Outputs from which on a product is worth a loop, even of a small matrix."""
MAX_OUTER_TERMS = 64
"""Terms of each element of an outer product, at most."""

STRUCTURAL = {*rules_structure.RULES, *rules_calls.RULES} - {"pad"}
"""Primitives whose rules only move node numbers about, or walk into functions: elements of arrays may be among them."""
_IDENTITY = {"copy", "copy_p", "stage", "stop_gradient", "name", "optimization_barrier", "device_put", "pvary"}
_ELEMENTWISE = {*rules_elementwise.RULES, *rules_bits.RULES} - {"bitcast_convert_type"}


def lower_to_loop(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes] | None:
    """Results of an equation by loops, or nothing if it is not worth one."""
    name = equation.primitive.name
    if name == "dot_general":
        return _dot_general(lowering, equation, arguments)
    if not lowering.graph.has_arrays or not any(has_elements(a) for a in arguments):
        return None
    if name in _IDENTITY:
        return list(arguments)
    if name not in _ELEMENTWISE or len(equation.outvars) != 1:
        return None
    shape = equation.outvars[0].aval.shape
    if name in ("add", "add_any"):
        joined = _add_outer_products(lowering.graph, arguments)
        if joined is not None:
            return [joined.reshape(shape)]
    if np.prod(shape) <= MAX_UNROLLED_SIZE:
        return None
    return [_elementwise_map(lowering, equation, arguments).reshape(shape)]


def _elementwise_map(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> Nodes:
    """An operation on each element."""
    graph, aval = lowering.graph, equation.outvars[0].aval
    body = Lowering(Graph())
    args, operands = [], []
    for given in arguments:
        nodes = np.broadcast_to(given, aval.shape)
        first = int(nodes.flat[0])
        if (nodes == first).all() and not has_elements(nodes):
            constant = graph.constants.get(first)
            if constant is not None:
                operands.append(body.graph.constant(constant))
                continue
            argument, kind = first, graph.kinds[first]
        else:
            argument = as_array(graph, nodes)
            kind = graph.data[argument].kind
        operands.append(body.graph.input(operand_slot(len(args)), 0, kind))
        args.append(argument)
    (result,) = body.lower_equation(equation, [np.array(node) for node in operands])
    kind = kind_of(aval.dtype)
    return element_ids(graph, array_node(graph, ElementwiseMap(body.graph, result.item(), aval.size, kind), *args))


def _add_outer_products(graph: Graph, arguments: list[Nodes]) -> Nodes | None:
    """A sum of outer products is one with more pairs."""
    if not all(has_elements(a) for a in arguments) or arguments[0].ndim != 2:
        return None
    a, b = (as_array(graph, nodes) for nodes in arguments)
    spec = graph.data[a]
    if not isinstance(spec, OuterProduct) or graph.data[b] != spec:
        return None
    return element_ids(graph, array_node(graph, spec, *graph.args[a], *graph.args[b]))


def _dot_general(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes] | None:
    """Products with a matrix of parameters, or the outer products that are their derivatives."""
    a, b = arguments
    aval = equation.outvars[0].aval
    (a_sum, b_sum), (batch, _) = equation.params["dimension_numbers"]
    if batch or aval.dtype.name != "float64" or 0 in (a.size, b.size):
        return None
    a_free = [k for k in range(a.ndim) if k not in a_sum]
    b_free = [k for k in range(b.ndim) if k not in b_sum]
    terms = int(np.prod([a.shape[k] for k in a_sum], dtype=np.int64))
    rows = a.transpose([*a_free, *a_sum]).reshape(-1, terms)
    columns = b.transpose([*b_free, *b_sum]).reshape(-1, terms)
    if len(rows) >= len(columns):
        result = _rows_times_columns(lowering.graph, rows, columns)
    else:
        result = _rows_times_columns(lowering.graph, columns, rows)
        result = None if result is None else result.T
    return None if result is None else [result.reshape(aval.shape)]


def _rows_times_columns(graph: Graph, rows: Nodes, columns: Nodes) -> Nodes | None:
    """Every row times every column; there are at least as many rows."""
    (count, terms), others = rows.shape, len(columns)
    if count * max(terms, others) < MIN_LARGE_SIZE and count < MIN_LOOP_ROWS:
        return None
    matrix = strided_matrix(graph, rows) if terms > 1 or others == 1 else None
    if matrix is not None:
        array, first, row_step, column_step = matrix
        spec = MatrixVectorProduct(count, terms, first, row_step, column_step)
        return np.stack(
            [element_ids(graph, array_node(graph, spec, array, as_array(graph, column))) for column in columns], axis=1
        )
    if terms <= min(MAX_OUTER_TERMS, others) and (has_elements(rows) or has_elements(columns)):
        pairs = [as_array(graph, side[:, k]) for k in range(terms) for side in (rows, columns)]
        return element_ids(graph, array_node(graph, OuterProduct(count, others), *pairs)).reshape(count, others)
    return None
