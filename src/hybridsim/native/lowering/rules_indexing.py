"""Rules of primitives that pick or place elements by index.

Indices known at compile time cost nothing. An index that is computed in the kernel becomes a choice among all the
places that it could mean, which is right for the short arrays of a mechanism.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.graph.graph import BOOL, FLOAT
from hybridsim.native.lowering.lower import Lowering, Nodes, Rule, kind_of
from hybridsim.native.lowering.rules_bits import with_wraparound
from hybridsim.native.lowering.rules_elementwise import arithmetic

MAX_INDEX_CASES = 4096
"""Choices among more places than this would swamp the kernel."""
MAX_TRANSPOSITION_SORT = 12
"""Numbers up to which sorting compares neighbours."""


def _index_cases(
    lowering: Lowering, starts: list[int], last: list[int]
) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """Where an index vector can point to (clamped to the last valid start), each with the condition that it does.

    The condition is None if there is only one place.
    """
    graph = lowering.graph
    choices = []
    for start, most in zip(starts, last, strict=True):
        known = graph.constants.get(start)
        if known is not None:
            choices.append([(min(max(int(known), 0), most), None)])
        elif most == 0:
            choices.append([(0, None)])
        else:
            low, high = graph.constant(0), graph.constant(most)
            clamped = graph.select(graph.less(start, low), low, graph.select(graph.less(high, start), high, start))
            choices.append([(k, graph.equal(clamped, graph.constant(k))) for k in range(most + 1)])
    if np.prod([len(c) for c in choices]) > MAX_INDEX_CASES:
        raise UnsupportedPrimitive("an index computed in the kernel ranges over too many places")
    for combination in product(*choices):
        conditions = [c for _, c in combination if c is not None]
        together = None
        for condition in conditions:
            together = condition if together is None else graph.logic("and", together, condition)
        yield tuple(place for place, _ in combination), together


def _read_block(lowering: Lowering, operand: Nodes, starts: list[int], sizes: tuple[int, ...]) -> Nodes:
    """A block of an array at a start that may be computed."""
    graph = lowering.graph
    last = [n - s for n, s in zip(operand.shape, sizes, strict=True)]
    result = None
    for place, condition in _index_cases(lowering, starts, last):
        block = operand[tuple(slice(p, p + s) for p, s in zip(place, sizes, strict=True))]
        if result is None or condition is None:
            result = block
        else:
            result = lowering.elementwise(lambda yes, no, c=condition: graph.select(c, yes, no), block, result)
    assert result is not None
    return result


def _update_block(
    lowering: Lowering, operand: Nodes, starts: list[int], update: Nodes, join: Callable[[int, int], int]
) -> Nodes:
    """An array with a block joined into it at a start that may be computed."""
    graph = lowering.graph
    result = np.array(operand)
    last = [n - s for n, s in zip(operand.shape, update.shape, strict=True)]
    for place, condition in _index_cases(lowering, starts, last):
        at = tuple(slice(p, p + s) for p, s in zip(place, update.shape, strict=True))
        joined = lowering.elementwise(join, operand[at], update)
        if condition is not None:
            # one place at most is true, so other places keep what they have
            joined = lowering.elementwise(lambda yes, no, c=condition: graph.select(c, yes, no), joined, result[at])
        result[at] = joined
    return result


def _dynamic_slice(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    operand, *starts = arguments
    return [_read_block(lowering, operand, [s.item() for s in starts], equation.params["slice_sizes"])]


def _dynamic_update_slice(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    operand, update, *starts = arguments
    return [_update_block(lowering, operand, [s.item() for s in starts], update, lambda old, new: new)]


def _out_of_bounds(lowering: Lowering, starts: list[int], last: list[int]) -> int:
    """A truth value: does an index vector point outside?"""
    graph = lowering.graph
    outside = graph.constant(False)
    for start, most in zip(starts, last, strict=True):
        for low, high in ((start, graph.constant(0)), (graph.constant(most), start)):
            outside = graph.logic("or", outside, graph.less(low, high))
    return outside


def _mode(equation: Any) -> str:
    """`clip`, `fill` or `promise`."""
    return str(equation.params["mode"]).lower()


def _gather(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph = lowering.graph
    operand, indices = arguments
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    shape = equation.outvars[0].aval.shape
    offset_dims = numbers.offset_dims
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    batch_axes = [k for k in range(len(shape)) if k not in offset_dims]
    result = np.empty(shape, dtype=np.int64)
    last = [n - s for n, s in zip(operand.shape, sizes, strict=True)]
    fills = "fill" in _mode(equation)
    fill = None
    for position in np.ndindex(indices.shape[:-1]):
        starts = _start_vector(lowering, numbers.start_index_map, indices[position].tolist(), operand.ndim)
        for axis, batch in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            starts[axis] = graph.constant(int(position[batch]))
        block = np.squeeze(_read_block(lowering, operand, starts, sizes), tuple(dropped))
        if fills:
            outside = _out_of_bounds(lowering, starts, last)
            if graph.constants.get(outside) is not False:
                if fill is None:
                    fill = lowering.constants(_fill_value(equation)).item()
                block = lowering.elementwise(lambda b, c=outside, f=fill: graph.select(c, f, b), block)
        at: list[Any] = [slice(None)] * len(shape)
        for axis, k in zip(batch_axes, position, strict=True):
            at[axis] = k
        result[tuple(at)] = block
    return [result]


def _fill_value(equation: Any) -> np.ndarray:
    value, dtype = equation.params["fill_value"], np.dtype(equation.outvars[0].aval.dtype)
    if value is None:
        kind = kind_of(dtype)
        value = np.nan if kind == FLOAT else True if kind == BOOL else _integer_fill_value(dtype)
    return np.asarray(value, dtype=dtype)


def _integer_fill_value(dtype: np.dtype) -> int:
    """The whole number of a type that is the least likely to be meant."""
    limits = np.iinfo(dtype)
    return int(limits.min if dtype.kind == "i" else limits.max)


def _start_vector(lowering: Lowering, axes: tuple[int, ...], index: list[int], rank: int) -> list[int]:
    """Where a block starts along every axis, from the indices along some."""
    starts = [lowering.graph.constant(0)] * rank
    for axis, node in zip(axes, index, strict=True):
        starts[axis] = node
    return starts


def _scatter(name: str) -> Rule:
    @with_wraparound
    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        graph = lowering.graph
        operand, indices, updates = arguments
        numbers = equation.params["dimension_numbers"]
        join = (
            _scatter_update(lowering, equation)
            if name == "set"
            else arithmetic(graph, equation.outvars[0].aval.dtype, name)
        )
        inserted = sorted((*numbers.inserted_window_dims, *numbers.operand_batching_dims))
        window_axes = numbers.update_window_dims
        batch_axes = [k for k in range(updates.ndim) if k not in window_axes]
        drops = "clip" not in _mode(equation)
        result = operand
        for position in np.ndindex(indices.shape[:-1]):
            starts = _start_vector(
                lowering, numbers.scatter_dims_to_operand_dims, indices[position].tolist(), operand.ndim
            )
            for axis, batch in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
                starts[axis] = graph.constant(int(position[batch]))
            at: list[Any] = [slice(None)] * updates.ndim
            for axis, k in zip(batch_axes, position, strict=True):
                at[axis] = k
            block = np.expand_dims(updates[tuple(at)], tuple(inserted))
            outside = graph.constant(False)
            if drops:
                last = [n - s for n, s in zip(operand.shape, block.shape, strict=True)]
                outside = _out_of_bounds(lowering, starts, last)
            if graph.constants.get(outside) is True:
                continue
            placed = _update_block(lowering, result, starts, block, join)
            result = lowering.elementwise(lambda new, old, c=outside: graph.select(c, old, new), placed, result)
        return [result]

    return rule


def _scatter_update(lowering: Lowering, equation: Any) -> Callable[[int, int], int]:
    """What `at[…].set` and `at[…].apply` put in an old element's place."""
    function, consts = equation.params["update_jaxpr"], equation.params["update_consts"]
    if function is None:
        return lambda old, new: new
    return lambda old, new: lowering.lower_jaxpr(function, consts, [np.array(old), np.array(new)])[0].item()


def _sort(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Sorting by a network of compare-and-swap: without branches, and stable."""
    graph, params = lowering.graph, equation.params
    axis, keys = params["dimension"], params["num_keys"]
    rows = [np.array(np.moveaxis(a, axis, 0)) for a in arguments]
    shape = rows[0].shape
    n = shape[0]
    pairs = list(_odd_even_transposition(n) if n <= MAX_TRANSPOSITION_SORT else _merge_exchange(n))
    if n > MAX_TRANSPOSITION_SORT and len(rows) > 1:
        # what is equal stays in order because its number is the last of the keys
        numbers = lowering.constants(np.arange(n)).reshape([-1] + [1] * (len(shape) - 1))
        rows.insert(keys, np.array(np.broadcast_to(numbers, shape)))
    compared = rows[: keys + len(rows) - len(arguments)]
    for first, second in pairs:
        for position in np.ndindex(shape[1:]):
            low, high = (first, *position), (second, *position)
            swap = _precedes(lowering, [r[high] for r in compared], [r[low] for r in compared])
            for row in rows:
                a, b = int(row[low]), int(row[high])
                row[low], row[high] = graph.select(swap, b, a), graph.select(swap, a, b)
    return [np.moveaxis(row, 0, axis) for row in (*rows[:keys], *rows[len(compared) :])]


def _odd_even_transposition(n: int) -> Iterator[tuple[int, int]]:
    """Places to compare: every second pair of neighbours, by turns. It keeps what is equal in order."""
    for turn in range(n):
        yield from ((k, k + 1) for k in range(turn % 2, n - 1, 2))


def _merge_exchange(n: int) -> Iterator[tuple[int, int]]:
    """Places to compare: n log² n / 4 of them (Batcher; Knuth, volume 3, 5.2.2, algorithm M)."""
    top = 1 << ((n - 1).bit_length() - 1)
    step = top
    while step:
        reach, rest, distance = top, 0, step
        while True:
            yield from ((k, k + distance) for k in range(n - distance) if k & step == rest)
            if reach == step:
                break
            distance, reach, rest = reach - step, reach // 2, step
        step //= 2


def _precedes(lowering: Lowering, left: list[int], right: list[int]) -> int:
    """Does one list of keys come before another? NaN comes last, as in JAX."""
    graph = lowering.graph
    result = graph.constant(False)
    for a, b in reversed(list(zip((int(x) for x in left), (int(x) for x in right), strict=True))):
        ahead = graph.less(a, b) if graph.kinds[a] != BOOL else graph.logic("and", graph.invert(a), b)
        same = graph.equal(a, b)
        if graph.kinds[a] == FLOAT:
            a_nan, b_nan = graph.compare("ne", a, a), graph.compare("ne", b, b)
            ahead = graph.logic("or", ahead, graph.logic("and", graph.invert(a_nan), b_nan))
            same = graph.logic("or", same, graph.logic("and", a_nan, b_nan))
        result = graph.logic("or", ahead, graph.logic("and", same, result))
    return result


def _top_k(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    graph, k = lowering.graph, equation.params["k"]
    axis = equation.params.get("axis", arguments[0].ndim - 1) % arguments[0].ndim
    rows = np.moveaxis(np.array(arguments[0]), axis, 0)
    numbers = np.broadcast_to(
        lowering.constants(np.arange(rows.shape[0])).reshape([-1] + [1] * (rows.ndim - 1)), rows.shape
    )
    values, places = np.array(rows), np.array(numbers)
    n = rows.shape[0]
    for target in range(k):
        # carry the largest of the rest to its place; earlier ones win ties
        for other in range(n - 1, target, -1):
            for position in np.ndindex(rows.shape[1:]):
                low, high = (other - 1, *position), (other, *position)
                a, b = int(values[low]), int(values[high])
                swap = graph.less(a, b)
                if graph.kinds[a] == FLOAT:
                    b_nan = graph.logic("and", graph.compare("ne", b, b), graph.equal(a, a))
                    swap = graph.logic("or", swap, b_nan)
                for array in (values, places):
                    x, y = int(array[low]), int(array[high])
                    array[low], array[high] = graph.select(swap, y, x), graph.select(swap, x, y)
    return [np.moveaxis(array[:k], 0, axis) for array in (values, places)]


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
