"""Lowering of operations on large arrays to loops: matrix-vector products, outer products, elementwise maps.

These rules take precedence over those of the primitives and return None where a loop does not pay off.
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
    array_node_of,
    element_ids,
    has_elements,
    operand_slot,
    strided_matrix,
)
from hybridsim.native.graph.graph import Graph
from hybridsim.native.lowering import rules_bits, rules_calls, rules_elementwise, rules_structure
from hybridsim.native.lowering.lower import Lowering, Nodes, kind_of

MIN_LOOP_ROWS = 64
"""Minimum number of rows at which the product with a small matrix becomes a loop."""
MAX_OUTER_TERMS = 64
"""Maximum number of terms per element of a sum of outer products."""

STRUCTURAL = {*rules_structure.RULES, *rules_calls.RULES} - {"pad"}
"""Primitives whose rules only rearrange node ids or inline functions, and so accept elements of arrays."""
_IDENTITY = {"copy", "copy_p", "stage", "stop_gradient", "name", "optimization_barrier", "device_put", "pvary"}
_ELEMENTWISE = {*rules_elementwise.RULES, *rules_bits.RULES} - {"bitcast_convert_type"}


def lower_to_loop(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes] | None:
    """Results of an equation as loops; None where a loop does not pay off."""
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
        sum_of_products = _add_outer_products(lowering.graph, arguments)
        if sum_of_products is not None:
            return [sum_of_products.reshape(shape)]
    if np.prod(shape) <= MAX_UNROLLED_SIZE:
        return None
    return [_elementwise_map(lowering, equation, arguments).reshape(shape)]


def _elementwise_map(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> Nodes:
    """Result of an elementwise primitive as a map."""
    graph, aval = lowering.graph, equation.outvars[0].aval
    body = Lowering(Graph())
    array_operands, inputs = [], []
    for array in arguments:
        nodes = np.broadcast_to(array, aval.shape)
        first = int(nodes.flat[0])
        if (nodes == first).all() and not has_elements(nodes):
            constant = graph.constants.get(first)
            if constant is not None:
                inputs.append(body.graph.constant(constant))
                continue
            operand, kind = first, graph.kinds[first]
        else:
            operand = array_node_of(graph, nodes)
            kind = graph.data[operand].kind
        inputs.append(body.graph.input(operand_slot(len(array_operands)), 0, kind))
        array_operands.append(operand)
    (result,) = body.lower_equation(equation, [np.array(node) for node in inputs])
    kind = kind_of(aval.dtype)
    return element_ids(
        graph, array_node(graph, ElementwiseMap(body.graph, result.item(), aval.size, kind), *array_operands)
    )


def _add_outer_products(graph: Graph, arguments: list[Nodes]) -> Nodes | None:
    """Sum of two sums of outer products as a single one; None if the arguments are not such sums."""
    if not all(has_elements(a) for a in arguments) or arguments[0].ndim != 2:
        return None
    a, b = (array_node_of(graph, nodes) for nodes in arguments)
    spec = graph.data[a]
    if not isinstance(spec, OuterProduct) or graph.data[b] != spec:
        return None
    return element_ids(graph, array_node(graph, spec, *graph.args[a], *graph.args[b]))


def _dot_general(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes] | None:
    """Matrix product as matrix-vector products, or as outer products (the derivatives of the former)."""
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
    """Products of all rows with all columns; there must be at least as many rows as columns."""
    (count, terms), column_count = rows.shape, len(columns)
    if count * max(terms, column_count) < MIN_LARGE_SIZE and count < MIN_LOOP_ROWS:
        return None
    matrix = strided_matrix(graph, rows) if terms > 1 or column_count == 1 else None
    if matrix is not None:
        array, first, row_stride, column_stride = matrix
        spec = MatrixVectorProduct(count, terms, first, row_stride, column_stride)
        return np.stack(
            [element_ids(graph, array_node(graph, spec, array, array_node_of(graph, column))) for column in columns],
            axis=1,
        )
    if terms <= min(MAX_OUTER_TERMS, column_count) and (has_elements(rows) or has_elements(columns)):
        pairs = [array_node_of(graph, side[:, k]) for k in range(terms) for side in (rows, columns)]
        return element_ids(graph, array_node(graph, OuterProduct(count, column_count), *pairs)).reshape(
            count, column_count
        )
    return None
