"""Arrays in the graph: layers of large networks, which a kernel computes by loops instead of number by number.

An array is one node, of kind `ARRAY`, whose data says how it is computed: read from a slot, collected from numbers, an
operation on each element, a product of a matrix and a vector, or an outer product. While a function is lowered, the
elements of an array stand among node numbers as numbers of their own (`elements`), so that reshaping, slicing and
transposing work on them as on anything else; an operation that knows nothing of arrays takes them out one by one.
"""

from dataclasses import dataclass, replace

import numpy as np

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.graph.graph import ARRAY, FLOAT, Graph

MIN_LARGE_SIZE = 1024
"""Numbers from which on a parameter is a large one: it stays where the caller has it."""
MIN_MATRIX_DIM = 8
"""Rows and columns that a large parameter must have: with fewer it is no matrix of a network but a list of vectors."""
MAX_UNROLLED_SIZE = 32
"""Elements up to which an operation on each is written out."""
MAX_SCALARIZED_SIZE = 8192
"""Elements of an array that may be taken out one by one."""

_ELEMENT_BASE = 1 << 32
"""Node numbers from here on are elements of arrays."""


@dataclass(frozen=True)
class ArrayInput:
    """Numbers that lie in a slot."""

    slot: str
    offset: int
    size: int
    kind: str = FLOAT


@dataclass(frozen=True)
class Stack:
    """The arguments, as an array."""

    size: int
    kind: str


@dataclass(frozen=True, eq=False)
class ElementwiseMap:
    """An operation on each element: a graph that reads its operands from slots of their own.

    Arguments that are arrays are read element by element, the others are the same for all.
    """

    body: Graph
    result: int
    size: int
    kind: str


@dataclass(frozen=True)
class MatrixVectorProduct:
    """A matrix, given by its place in the first argument, times the vector that is the second one.

    The terms of each sum are added one after the other, whatever the lanes.
    """

    size: int
    columns: int
    offset: int
    row_stride: int
    column_stride: int
    kind: str = FLOAT
    fma: bool = False


@dataclass(frozen=True)
class OuterProduct:
    """Every element of the first argument times every element of the second, plus the same of further pairs."""

    rows: int
    columns: int
    kind: str = FLOAT
    fma: bool = False

    @property
    def size(self) -> int:
        """Elements, row by row."""
        return self.rows * self.columns


@dataclass(frozen=True)
class StridedView:
    """Where a loop reads one of its arguments."""

    slot: str
    offset: int
    """Cell of the array that it begins with."""
    stride: int
    """Cells by which it moves on in every turn; none for what stays."""
    kind: str = FLOAT


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop that carries values: a graph that is computed again and again.

    It reads what is carried from the slot `carry` and everything else through the views, and writes what is carried on
    to `next` and its results to `out0`, `out1` and so on, a row each per turn. As an array it holds what is carried in
    the end, then the rows of each result. Its arguments are the array of what is carried first and those of the views.
    """

    body: Graph
    outputs: tuple[tuple[tuple[str, int], int], ...]
    """Node of the body to write to each (slot, index)."""
    trip_count: int
    reverse: bool
    """Are rows gone through from the last to the first?"""
    views: tuple[StridedView, ...]
    carry_kinds: tuple[str, ...]
    """Kinds of what is carried."""
    result_rows: tuple[tuple[int, str], ...]
    """Size and kind of a row of each result."""
    kind: str = FLOAT

    @property
    def size(self) -> int:
        """Cells of what is carried and of all results."""
        return len(self.carry_kinds) + self.trip_count * sum(size for size, _ in self.result_rows)

    def result_offsets(self) -> list[int]:
        """The first element of each result."""
        sizes = [self.trip_count * size for size, _ in self.result_rows]
        return [len(self.carry_kinds) + sum(sizes[:k]) for k in range(len(sizes))]

    def kind_at(self, index: int) -> str:
        """Kind of an element."""
        if index < len(self.carry_kinds):
            return self.carry_kinds[index]
        found = max(k for k, start in enumerate(self.result_offsets()) if start <= index)
        return self.result_rows[found][1]


def operand_slot(name: int) -> str:
    """The slot that the operation of a map reads an operand from."""
    return f"a{name}"


def has_elements(nodes: np.ndarray) -> bool:
    """Are there elements of arrays among node numbers?"""
    return nodes.size > 0 and int(nodes.max()) >= _ELEMENT_BASE


def element_ids(graph: Graph, array: int) -> np.ndarray:
    """Numbers that stand for the elements of an array."""
    return (array + 1) * _ELEMENT_BASE + np.arange(graph.data[array].size)


def _common_array(nodes: np.ndarray) -> tuple[int, np.ndarray] | None:
    """The one array that all of some elements belong to, and their places in it."""
    owners, places = np.divmod(nodes, _ELEMENT_BASE)
    first = int(owners.flat[0])
    return (first - 1, places) if first and (owners == first).all() else None


def source_nodes(nodes: np.ndarray) -> list[int]:
    """Nodes that node numbers depend on: themselves, or the arrays of which they are elements."""
    return np.unique(np.where(nodes >= _ELEMENT_BASE, nodes // _ELEMENT_BASE - 1, nodes)).tolist()


def scalarize(graph: Graph, nodes: np.ndarray) -> np.ndarray:
    """Node numbers in which elements of arrays have become nodes."""
    if not graph.has_arrays or not has_elements(nodes):
        return nodes
    if nodes.size > MAX_SCALARIZED_SIZE:
        raise UnsupportedPrimitive(f"an operation on {nodes.size} elements of a large array has no native code")
    flat = [
        element_node(graph, n // _ELEMENT_BASE - 1, n % _ELEMENT_BASE) if n >= _ELEMENT_BASE else n
        for n in nodes.ravel().tolist()
    ]
    return np.array(flat, dtype=np.int64).reshape(nodes.shape)


def element_node(graph: Graph, array: int, index: int, kind: str | None = None) -> int:
    """The node of an element of an array; the elements of an array in a slot may be of different kinds."""
    spec, args = graph.data[array], graph.args[array]
    if isinstance(spec, ArrayInput):
        return graph.input(spec.slot, spec.offset + index, kind or spec.kind)
    if isinstance(spec, Stack):
        return args[index]
    if isinstance(spec, OuterProduct):
        row, column = divmod(index, spec.columns)
        pairs = zip(args[::2], args[1::2], strict=True)
        return graph.sum(
            [graph.mul(element_node(graph, a, row), element_node(graph, b, column)) for a, b in pairs],
        )
    return graph.node("part", array, data=index, kind=spec.kind_at(index) if isinstance(spec, Loop) else spec.kind)


def as_array(graph: Graph, nodes: np.ndarray) -> int:
    """The array that has these node numbers as its elements, in their order."""
    flat = nodes.ravel()
    owned = _common_array(flat)
    if owned is not None:
        array, places = owned
        spec = graph.data[array]
        if len(places) == spec.size and (places == np.arange(spec.size)).all():
            return array
        if isinstance(spec, ArrayInput) and (np.diff(places) == 1).all():
            return array_node(graph, replace(spec, offset=spec.offset + int(places[0]), size=len(places)))
        if isinstance(spec, OuterProduct) and nodes.shape == (spec.columns, spec.rows):
            turned = np.arange(spec.size).reshape(spec.rows, spec.columns).T
            if (places == turned.ravel()).all():
                pairs = zip(graph.args[array][1::2], graph.args[array][::2], strict=True)
                return array_node(graph, OuterProduct(spec.columns, spec.rows), *(a for pair in pairs for a in pair))
    numbers = scalarize(graph, flat).tolist()
    if all(graph.ops[n] == "input" for n in numbers):
        (slot, first), kind = graph.data[numbers[0]], graph.kinds[numbers[0]]
        if all(graph.data[n] == (slot, first + k) for k, n in enumerate(numbers)):
            return array_node(graph, ArrayInput(slot, first, len(numbers), kind))
    if len(numbers) > MAX_SCALARIZED_SIZE:
        raise UnsupportedPrimitive(f"an array put together of {len(numbers)} numbers has no native code")
    return array_node(graph, Stack(len(numbers), graph.kinds[numbers[0]]), *numbers)


def contiguous_view(graph: Graph, nodes: np.ndarray) -> tuple[int, int] | None:
    """The array in which nodes lie one after the other, and the first one's place, if they do."""
    flat = nodes.ravel()
    owned = _common_array(flat)
    if owned is not None:
        array, places = owned
        in_order = (np.diff(places) == 1).all()
        return (array, int(places[0])) if in_order and not isinstance(graph.data[array], Stack) else None
    if has_elements(flat) or any(graph.ops[n] != "input" for n in flat.tolist()):
        return None
    slot, first = graph.data[int(flat[0])]
    if any(graph.data[n] != (slot, first + k) for k, n in enumerate(flat.tolist())):
        return None
    return array_node(graph, ArrayInput(slot, first, len(flat), graph.kinds[int(flat[0])])), 0


def array_node(
    graph: Graph, spec: "ArrayInput | Stack | ElementwiseMap | MatrixVectorProduct | OuterProduct | Loop", *args: int
) -> int:
    """The node of an array."""
    return graph.node("array", *args, data=spec, kind=ARRAY)


def strided_matrix(graph: Graph, nodes: np.ndarray) -> tuple[int, int, int, int] | None:
    """The array in which a matrix lies, its first element and the steps to the next row and column, if it has such."""
    owned = _common_array(nodes)
    if owned is None:
        flat = nodes.ravel().tolist()
        if has_elements(nodes) or any(graph.ops[n] != "input" for n in flat):
            return None
        slots = {graph.data[n][0] for n in flat}
        if len(slots) > 1 or graph.kinds[flat[0]] != FLOAT:
            return None
        cells = np.array([graph.data[n][1] for n in flat]).reshape(nodes.shape)
        low = int(cells.min())
        array, places = array_node(graph, ArrayInput(slots.pop(), low, int(cells.max()) - low + 1)), cells - low
    else:
        array, places = owned
    first = int(places[0, 0])
    row_step = int(places[1, 0]) - first if len(places) > 1 else 0
    column_step = int(places[0, 1]) - first if len(places[0]) > 1 else 0
    straight = first + row_step * np.arange(len(places))[:, None] + column_step * np.arange(len(places[0]))
    return None if (places != straight).any() else (array, first, row_step, column_step)


def add_to_input(graph: Graph, leaf: ArrayInput, array: int) -> int:
    """An array added to numbers in a slot."""
    body = Graph()
    total = body.node("add", body.input(operand_slot(0), 0), body.input(operand_slot(1), 0))
    return array_node(graph, ElementwiseMap(body, total, leaf.size, FLOAT), array_node(graph, leaf), array)
