"""Lowering rules of gathers, scatters, dynamic slices and sorts.

Constant indices are free. A dynamic index becomes a chain of selects over all possible positions, which suits the short
arrays of a mechanism.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph.graph import BOOL, FLOAT
from hybridsim.native.lowering.lower import Lowering, Nodes, Rule, kind_of
from hybridsim.native.lowering.rules_bits import with_wraparound
from hybridsim.native.lowering.rules_elementwise import arithmetic

MAX_INDEX_CASES = 4096
"""Maximum number of positions of a dynamic index."""
MAX_TRANSPOSITION_SORT = 12
"""Maximum size of an array sorted by odd-even transposition."""


def _index_cases(
    lowering: Lowering, starts: list[int], last: list[int]
) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """Possible values of an index vector, clamped to the last valid start, each with its condition as a Boolean node.

    The condition is None if there is only one value.
    """
    graph = lowering.graph
    choices = []
    for start, largest in zip(starts, last, strict=True):
        value = graph.constants.get(start)
        if value is not None:
            choices.append([(min(max(int(value), 0), largest), None)])
        elif largest == 0:
            choices.append([(0, None)])
        else:
            lower, upper = graph.constant(0), graph.constant(largest)
            clamped = graph.select(
                graph.less(start, lower), lower, graph.select(graph.less(upper, start), upper, start)
            )
            choices.append([(k, graph.equal(clamped, graph.constant(k))) for k in range(largest + 1)])
    if np.prod([len(c) for c in choices]) > MAX_INDEX_CASES:
        raise UnsupportedOperationError("a dynamic index has too many possible positions")
    for combination in product(*choices):
        conditions = [c for _, c in combination if c is not None]
        conjunction = None
        for condition in conditions:
            conjunction = condition if conjunction is None else graph.logic("and", conjunction, condition)
        yield tuple(index for index, _ in combination), conjunction


def _read_block(lowering: Lowering, operand: Nodes, starts: list[int], sizes: tuple[int, ...]) -> Nodes:
    """Block of an array at a possibly dynamic start."""
    graph = lowering.graph
    last = [n - size for n, size in zip(operand.shape, sizes, strict=True)]
    result = None
    for position, condition in _index_cases(lowering, starts, last):
        block = operand[tuple(slice(first, first + size) for first, size in zip(position, sizes, strict=True))]
        if result is None or condition is None:
            result = block
        else:
            result = lowering.map_elements(lambda yes, no, c=condition: graph.select(c, yes, no), block, result)
    assert result is not None
    return result


def _update_block(
    lowering: Lowering, operand: Nodes, starts: list[int], update: Nodes, combine: Callable[[int, int], int]
) -> Nodes:
    """An array with a block combined into it at a possibly dynamic start."""
    graph = lowering.graph
    result = np.array(operand)
    last = [n - size for n, size in zip(operand.shape, update.shape, strict=True)]
    for position, condition in _index_cases(lowering, starts, last):
        region = tuple(slice(first, first + size) for first, size in zip(position, update.shape, strict=True))
        updated = lowering.map_elements(combine, operand[region], update)
        if condition is not None:
            # at most one condition is true, so other positions keep their values
            updated = lowering.map_elements(
                lambda yes, no, c=condition: graph.select(c, yes, no), updated, result[region]
            )
        result[region] = updated
    return result


def _dynamic_slice(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    operand, *starts = arguments
    return [_read_block(lowering, operand, [s.item() for s in starts], equation.params["slice_sizes"])]


def _dynamic_update_slice(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    operand, update, *starts = arguments
    return [_update_block(lowering, operand, [s.item() for s in starts], update, lambda old, new: new)]


def _is_out_of_bounds(lowering: Lowering, starts: list[int], last: list[int]) -> int:
    """Boolean node: whether an index vector is out of bounds."""
    graph = lowering.graph
    is_outside = graph.constant(False)
    for start, largest in zip(starts, last, strict=True):
        for low, high in ((start, graph.constant(0)), (graph.constant(largest), start)):
            is_outside = graph.logic("or", is_outside, graph.less(low, high))
    return is_outside


def _out_of_bounds_mode(equation: Any) -> str:
    """Out-of-bounds mode: contains `clip`, `fill` or `promise`."""
    return str(equation.params["mode"]).lower()


def _gather(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph
    operand, indices = arguments
    dimension_numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    shape = equation.outvars[0].aval.shape
    offset_dims = dimension_numbers.offset_dims
    squeezed = (*dimension_numbers.collapsed_slice_dims, *dimension_numbers.operand_batching_dims)
    batch_axes = [k for k in range(len(shape)) if k not in offset_dims]
    result = np.empty(shape, dtype=np.int64)
    last = [n - s for n, s in zip(operand.shape, sizes, strict=True)]
    fills_out_of_bounds = "fill" in _out_of_bounds_mode(equation)
    fill = None
    for position in np.ndindex(indices.shape[:-1]):
        starts = _start_vector(lowering, dimension_numbers.start_index_map, indices[position].tolist(), operand.ndim)
        for axis, batch in zip(
            dimension_numbers.operand_batching_dims, dimension_numbers.start_indices_batching_dims, strict=True
        ):
            starts[axis] = graph.constant(int(position[batch]))
        block = np.squeeze(_read_block(lowering, operand, starts, sizes), tuple(squeezed))
        if fills_out_of_bounds:
            is_outside = _is_out_of_bounds(lowering, starts, last)
            if graph.constants.get(is_outside) is not False:
                if fill is None:
                    fill = lowering.constants(_fill_value(equation)).item()
                block = lowering.map_elements(lambda b, c=is_outside, f=fill: graph.select(c, f, b), block)
        region: list[Any] = [slice(None)] * len(shape)
        for axis, k in zip(batch_axes, position, strict=True):
            region[axis] = k
        result[tuple(region)] = block
    return [result]


def _fill_value(equation: Any) -> np.ndarray:
    value, dtype = equation.params["fill_value"], np.dtype(equation.outvars[0].aval.dtype)
    if value is None:
        kind = kind_of(dtype)
        value = np.nan if kind == FLOAT else True if kind == BOOL else _integer_fill_value(dtype)
    return np.asarray(value, dtype=dtype)


def _integer_fill_value(dtype: np.dtype) -> int:
    """Fill value of an integer type, as in JAX."""
    limits = np.iinfo(dtype)
    return int(limits.min if dtype.kind == "i" else limits.max)


def _start_vector(lowering: Lowering, axes: tuple[int, ...], index: list[int], rank: int) -> list[int]:
    """Start of a block along every axis, from the indices along some axes."""
    starts = [lowering.graph.constant(0)] * rank
    for axis, node in zip(axes, index, strict=True):
        starts[axis] = node
    return starts


def _scatter(name: str) -> Rule:
    @with_wraparound
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        graph = lowering.graph
        operand, indices, updates = arguments
        dimension_numbers = equation.params["dimension_numbers"]
        combine = (
            _scatter_update(lowering, equation)
            if name == "set"
            else arithmetic(graph, equation.outvars[0].aval.dtype, name)
        )
        inserted = sorted((*dimension_numbers.inserted_window_dims, *dimension_numbers.operand_batching_dims))
        window_axes = dimension_numbers.update_window_dims
        batch_axes = [k for k in range(updates.ndim) if k not in window_axes]
        drops_out_of_bounds = "clip" not in _out_of_bounds_mode(equation)
        result = operand
        for position in np.ndindex(indices.shape[:-1]):
            starts = _start_vector(
                lowering, dimension_numbers.scatter_dims_to_operand_dims, indices[position].tolist(), operand.ndim
            )
            for axis, batch in zip(
                dimension_numbers.operand_batching_dims, dimension_numbers.scatter_indices_batching_dims, strict=True
            ):
                starts[axis] = graph.constant(int(position[batch]))
            region: list[Any] = [slice(None)] * updates.ndim
            for axis, k in zip(batch_axes, position, strict=True):
                region[axis] = k
            block = np.expand_dims(updates[tuple(region)], tuple(inserted))
            is_outside = graph.constant(False)
            if drops_out_of_bounds:
                last = [n - s for n, s in zip(operand.shape, block.shape, strict=True)]
                is_outside = _is_out_of_bounds(lowering, starts, last)
            if graph.constants.get(is_outside) is True:
                continue
            updated = _update_block(lowering, result, starts, block, combine)
            result = lowering.map_elements(lambda new, old, c=is_outside: graph.select(c, old, new), updated, result)
        return [result]

    return rule


def _scatter_update(lowering: Lowering, equation: Any) -> Callable[[int, int], int]:
    """Update function of `at[…].set` or `at[…].apply`."""
    function, consts = equation.params["update_jaxpr"], equation.params["update_consts"]
    if function is None:
        return lambda old, new: new
    return lambda old, new: lowering.lower_jaxpr(function, consts, [np.array(old), np.array(new)])[0].item()


def _sort(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Stable, branch-free sorting by a network of compare-exchange operations."""
    graph, params = lowering.graph, equation.params
    axis, keys = params["dimension"], params["num_keys"]
    rows = [np.array(np.moveaxis(a, axis, 0)) for a in arguments]
    shape = rows[0].shape
    n = shape[0]
    pairs = list(_odd_even_transposition(n) if n <= MAX_TRANSPOSITION_SORT else _merge_exchange(n))
    if n > MAX_TRANSPOSITION_SORT and len(rows) > 1:
        # the index as last key makes the sort stable
        indices = lowering.constants(np.arange(n)).reshape([-1] + [1] * (len(shape) - 1))
        rows.insert(keys, np.array(np.broadcast_to(indices, shape)))
    key_rows = rows[: keys + len(rows) - len(arguments)]
    for lower, upper in pairs:
        for position in np.ndindex(shape[1:]):
            low, high = (lower, *position), (upper, *position)
            swap = _precedes(lowering, [r[high] for r in key_rows], [r[low] for r in key_rows])
            for row in rows:
                a, b = int(row[low]), int(row[high])
                row[low], row[high] = graph.select(swap, b, a), graph.select(swap, a, b)
    return [np.moveaxis(row, 0, axis) for row in (*rows[:keys], *rows[len(key_rows) :])]


def _odd_even_transposition(n: int) -> Iterator[tuple[int, int]]:
    """Pairs to compare by odd-even transposition, which is stable."""
    for round_index in range(n):
        yield from ((k, k + 1) for k in range(round_index % 2, n - 1, 2))


def _merge_exchange(n: int) -> Iterator[tuple[int, int]]:
    """Pairs to compare by merge exchange, about n log²n / 4 of them (Batcher; Knuth, volume 3, 5.2.2, algorithm M)."""
    top = 1 << ((n - 1).bit_length() - 1)
    step = top
    while step:
        stride, remainder, distance = top, 0, step
        while True:
            yield from ((k, k + distance) for k in range(n - distance) if k & step == remainder)
            if stride == step:
                break
            distance, stride, remainder = stride - step, stride // 2, step
        step //= 2


def _precedes(lowering: Lowering, left: list[int], right: list[int]) -> int:
    """Boolean node: whether one list of keys precedes another, with NaN last as in JAX."""
    graph = lowering.graph
    result = graph.constant(False)
    for a, b in reversed(list(zip((int(x) for x in left), (int(x) for x in right), strict=True))):
        is_less = graph.less(a, b) if graph.kinds[a] != BOOL else graph.logic("and", graph.invert(a), b)
        is_equal = graph.equal(a, b)
        if graph.kinds[a] == FLOAT:
            a_nan, b_nan = graph.compare("ne", a, a), graph.compare("ne", b, b)
            is_less = graph.logic("or", is_less, graph.logic("and", graph.invert(a_nan), b_nan))
            is_equal = graph.logic("or", is_equal, graph.logic("and", a_nan, b_nan))
        result = graph.logic("or", is_less, graph.logic("and", is_equal, result))
    return result


def _top_k(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph, k = lowering.graph, equation.params["k"]
    axis = equation.params.get("axis", arguments[0].ndim - 1) % arguments[0].ndim
    rows = np.moveaxis(np.array(arguments[0]), axis, 0)
    row_indices = np.broadcast_to(
        lowering.constants(np.arange(rows.shape[0])).reshape([-1] + [1] * (rows.ndim - 1)), rows.shape
    )
    values, indices = np.array(rows), np.array(row_indices)
    n = rows.shape[0]
    for target in range(k):
        # move the largest remaining value to position `target`; among equal values the first
        for other in range(n - 1, target, -1):
            for position in np.ndindex(rows.shape[1:]):
                low, high = (other - 1, *position), (other, *position)
                a, b = int(values[low]), int(values[high])
                swap = graph.less(a, b)
                if graph.kinds[a] == FLOAT:
                    b_nan = graph.logic("and", graph.compare("ne", b, b), graph.equal(a, a))
                    swap = graph.logic("or", swap, b_nan)
                for array in (values, indices):
                    x, y = int(array[low]), int(array[high])
                    array[low], array[high] = graph.select(swap, y, x), graph.select(swap, x, y)
    return [np.moveaxis(array[:k], 0, axis) for array in (values, indices)]


RULES = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter("set"),
    "scatter-add": _scatter("add"),
    "scatter-sub": _scatter("sub"),
    "scatter-mul": _scatter("mul"),
    "scatter-min": _scatter("min"),
    "scatter-max": _scatter("max"),
    "scatter_add": _scatter("add"),
    "scatter_mul": _scatter("mul"),
    "sort": _sort,
    "top_k": _top_k,
}
