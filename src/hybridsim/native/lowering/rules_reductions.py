"""Lowering rules of reductions: sums, cumulative operations, dot products, sliding windows, convolutions."""

import math
from collections.abc import Callable
from functools import partial, reduce
from itertools import accumulate
from typing import Any

import numpy as np

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph.graph import FLOAT, Graph
from hybridsim.native.lowering.lower import Lowering, Nodes, Rule, kind_of
from hybridsim.native.lowering.rules_bits import with_wraparound
from hybridsim.native.lowering.rules_elementwise import arithmetic
from hybridsim.native.lowering.rules_structure import pad


def _reduce_axes(array: Nodes, axes: tuple[int, ...], function: Callable[[list[int]], int]) -> Nodes:
    """Reduce some axes by a function of the list of nodes along them."""
    free_axes = [k for k in range(array.ndim) if k not in axes]
    shape = tuple(array.shape[k] for k in free_axes)
    count = int(np.prod([array.shape[k] for k in axes], dtype=np.int64))
    rows = array.transpose([*free_axes, *axes]).reshape(int(np.prod(shape, dtype=np.int64)), count)
    return np.array([function(row) for row in rows.tolist()], dtype=np.int64).reshape(shape)


def _reducer(lowering: Lowering, dtype: Any, name: str) -> Callable[[list[int]], int]:
    """Reduction of a list of nodes by `add`, `mul`, `max`, `min`, `and`, `or` or `xor`."""
    if name == "add" and kind_of(dtype) == FLOAT:
        return lowering.graph.sum
    combine = arithmetic(lowering.graph, dtype, name)
    identity = lowering.constants(np.asarray(_identity_element(np.dtype(dtype), name), dtype)).item()
    return lambda row: reduce(combine, row) if row else identity


def _identity_element(dtype: np.dtype, name: str) -> Any:
    """Identity element of an operation."""
    if name in ("max", "min"):
        if dtype.kind == "f":
            return -np.inf if name == "max" else np.inf
        limits = (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return limits[name == "min"]
    if name == "and":
        return ~np.zeros((), dtype)
    return name == "mul"


def _reduction(name: str) -> Rule:
    @with_wraparound
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        reduce_row = _reducer(lowering, equation.outvars[0].aval.dtype, name)
        return [_reduce_axes(arguments[0], equation.params["axes"], reduce_row)]

    return rule


def _generic_reduce(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Reduction of one or several arrays by a user-defined function."""
    count, axes = len(arguments) // 2, equation.params["dimensions"]
    rows = [np.moveaxis(a, axes, range(len(axes))) for a in arguments[:count]]
    shape = rows[0].shape[len(axes) :]
    results = [np.broadcast_to(initial, shape) for initial in arguments[count:]]
    for position in np.ndindex(rows[0].shape[: len(axes)]):
        accumulated, elements = [r.ravel().tolist() for r in results], [r[position].ravel().tolist() for r in rows]
        combined = [
            lowering.lower_closed_jaxpr(equation.params["jaxpr"], [np.array(n, dtype=np.int64) for n in nodes])
            for nodes in zip(*accumulated, *elements, strict=True)
        ]
        results = [np.array(nodes, dtype=np.int64).reshape(shape) for nodes in zip(*combined, strict=True)]
    return results


def _arg_extreme(name: str):
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        graph = lowering.graph
        kind = kind_of(equation.invars[0].aval.dtype)

        def precedes(a: int, b: int) -> int:
            is_better = graph.less(b, a) if name == "argmax" else graph.less(a, b)
            # NaN takes precedence, as in JAX
            return graph.logic("or", is_better, graph.compare("ne", a, a)) if kind == FLOAT else is_better

        def index_of_extreme(row: list[int]) -> int:
            values = [graph.convert(n, "i") if kind == "b" else n for n in row]
            best, index = values[0], graph.constant(0)
            for k, value in enumerate(values[1:], start=1):
                is_better = precedes(value, best)
                if kind == FLOAT:
                    is_better = graph.logic("and", is_better, graph.equal(best, best))
                best = graph.select(is_better, value, best)
                index = graph.select(is_better, graph.constant(k), index)
            return index

        return [_reduce_axes(arguments[0], equation.params["axes"], index_of_extreme)]

    return rule


def _cumulative_reduction(name: str) -> Rule:
    @with_wraparound
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        graph, axis = lowering.graph, equation.params["axis"]
        if name == "logaddexp":
            combine = partial(_log_add_exp, graph)
        else:
            combine = arithmetic(graph, equation.outvars[0].aval.dtype, name)
        rows = np.moveaxis(arguments[0], axis, 0)
        rows = rows[::-1] if equation.params["reverse"] else rows
        results = list(accumulate(rows, lambda total, row: lowering.map_elements(combine, total, row)))
        results = results[::-1] if equation.params["reverse"] else results
        return [np.moveaxis(np.stack(results), 0, axis) if results else arguments[0]]

    return rule


def _log_add_exp(graph: Graph, a: int, b: int) -> int:
    """ln(eᵃ + eᵇ)."""
    larger, distance = graph.max(a, b), graph.abs(graph.sub(a, b))
    correction = graph.function("log1p", graph.function("exp", graph.neg(distance)))
    # for two infinities of the same sign the distance is NaN
    return graph.add(larger, graph.select(graph.equal(a, b), graph.constant(math.log(2.0)), correction))


def _dot_general(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    a, b = arguments
    (a_sum, b_sum), (a_batch, b_batch) = equation.params["dimension_numbers"]
    a_free = [k for k in range(a.ndim) if k not in (*a_sum, *a_batch)]
    b_free = [k for k in range(b.ndim) if k not in (*b_sum, *b_batch)]
    shape = [*(a.shape[k] for k in a_batch), *(a.shape[k] for k in a_free), *(b.shape[k] for k in b_free)]
    batch = int(np.prod([a.shape[k] for k in a_batch], dtype=np.int64))
    terms = int(np.prod([a.shape[k] for k in a_sum], dtype=np.int64))
    a_rows = int(np.prod([a.shape[k] for k in a_free], dtype=np.int64))
    b_rows = int(np.prod([b.shape[k] for k in b_free], dtype=np.int64))
    rows = a.transpose([*a_batch, *a_free, *a_sum]).reshape(batch, a_rows, terms)
    columns = b.transpose([*b_batch, *b_free, *b_sum]).reshape(batch, b_rows, terms)
    return [_batched_products(lowering, equation.outvars[0].aval.dtype, rows, columns).reshape(shape)]


def _batched_products(lowering: Lowering, dtype: Any, rows: Nodes, columns: Nodes) -> Nodes:
    """Products of all rows with all columns, batched."""
    mul, total = arithmetic(lowering.graph, dtype, "mul"), _reducer(lowering, dtype, "add")
    nodes = [
        total([mul(x, y) for x, y in zip(row, column, strict=True)])
        for batch_rows, batch_columns in zip(rows.tolist(), columns.tolist(), strict=True)
        for row in batch_rows
        for column in batch_columns
    ]
    return np.array(nodes, dtype=np.int64).reshape(*rows.shape[:2], columns.shape[1])


def _sliding_windows(x: Nodes, fill: int, sizes, strides, padding, base_dilation, dilation) -> Nodes:
    """Windows sliding over the last axes of an array; window positions come first among these axes, then elements."""
    first_axis = x.ndim - len(sizes)
    leading_padding = [(0, 0, 0)] * first_axis
    x = pad(
        x,
        fill,
        [
            *leading_padding,
            *((low, high, factor - 1) for (low, high), factor in zip(padding, base_dilation, strict=True)),
        ],
    )
    for k, (size, stride, spacing) in enumerate(zip(sizes, strides, dilation, strict=True)):
        axis = first_axis + k
        starts = np.arange(0, x.shape[axis] - (size - 1) * spacing, stride)
        x = np.moveaxis(np.take(x, starts[:, None] + np.arange(size) * spacing, axis), axis + 1, -1)
    return x


def _reduce_window(name: str) -> Rule:
    @with_wraparound
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        p, dtype = equation.params, equation.outvars[0].aval.dtype
        reduce_row = _reducer(lowering, dtype, name)
        sizes = p["window_dimensions"]
        geometry = (p["window_strides"], p["padding"], p["base_dilation"], p["window_dilation"])
        windows = _sliding_windows(arguments[0], reduce_row([]), sizes, *geometry)
        return [_reduce_axes(windows, tuple(range(len(sizes), 2 * len(sizes))), reduce_row)]

    return rule


@with_wraparound
def _convolution(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    p, dtype = equation.params, equation.outvars[0].aval.dtype
    if p["batch_group_count"] != 1:
        raise UnsupportedOperationError("convolutions with batch groups are not supported by the native back-end")
    layout, groups = p["dimension_numbers"], p["feature_group_count"]
    x, kernel = arguments[0].transpose(layout.lhs_spec), arguments[1].transpose(layout.rhs_spec)
    sizes, outputs = kernel.shape[2:], len(kernel)
    fill = _reducer(lowering, dtype, "add")([])
    windows = _sliding_windows(x, fill, sizes, p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"])
    window_counts = windows.shape[2 : 2 + len(sizes)]
    # axes: feature groups; batch and window positions; elements to contract
    windows = windows.reshape(len(x), groups, -1, *windows.shape[2:])
    axes = [1, 0, *range(3, 3 + len(sizes)), 2, *range(3 + len(sizes), windows.ndim)]
    rows = windows.transpose(axes).reshape(groups, len(x) * int(np.prod(window_counts)), -1)
    columns = kernel.reshape(groups, outputs // groups, -1)
    result = _batched_products(lowering, dtype, columns, rows)
    result = np.moveaxis(result.reshape(outputs, len(x), *window_counts), 0, 1)
    return [result.transpose(np.argsort(layout.out_spec))]


RULES = {
    "reduce_sum": _reduction("add"),
    "reduce_prod": _reduction("mul"),
    "reduce_max": _reduction("max"),
    "reduce_min": _reduction("min"),
    "reduce_and": _reduction("and"),
    "reduce_or": _reduction("or"),
    "reduce_xor": _reduction("xor"),
    "reduce": _generic_reduce,
    "reduce_window_sum": _reduce_window("add"),
    "reduce_window_max": _reduce_window("max"),
    "reduce_window_min": _reduce_window("min"),
    "argmax": _arg_extreme("argmax"),
    "argmin": _arg_extreme("argmin"),
    "cumsum": _cumulative_reduction("add"),
    "cumprod": _cumulative_reduction("mul"),
    "cummax": _cumulative_reduction("max"),
    "cummin": _cumulative_reduction("min"),
    "cumlogsumexp": _cumulative_reduction("logaddexp"),
    "dot_general": with_wraparound(_dot_general),
    "conv_general_dilated": _convolution,
}
