"""Array nodes: layers of large networks and long loops, which a kernel computes by loops instead of unrolled code.

An array node is a single node of kind `ARRAY`, whose data specify its computation: an input slot, a stack of scalars,
an elementwise map, a matrix-vector product, an outer product or a loop. During lowering, elements of array nodes have
ids of their own among the node ids (`element_ids`), so that reshapes, slices and transposes apply to them as to any
node; rules without support for array nodes extract the elements as scalars (`scalarize`).
"""

from dataclasses import dataclass, replace

import numpy as np

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph.graph import ARRAY, FLOAT, Graph

MIN_LARGE_SIZE = 1024
"""Minimum size of a large parameter, which is read in place from the caller's memory."""
MIN_MATRIX_DIM = 8
"""Minimum number of rows and of columns of a large parameter; with fewer, it is treated as a list of vectors."""
MAX_UNROLLED_SIZE = 32
"""Maximum size at which an elementwise operation is unrolled."""
MAX_SCALARIZED_SIZE = 8192
"""Maximum number of elements extracted as scalars."""

_ELEMENT_BASE = 1 << 32
"""Ids from this value on denote elements of arrays."""


@dataclass(frozen=True)
class ArrayInput:
    """A contiguous range of cells of a slot."""

    slot: str
    offset: int
    size: int
    kind: str = FLOAT


@dataclass(frozen=True)
class Stack:
    """An array of its scalar operands."""

    size: int
    kind: str


@dataclass(frozen=True, eq=False)
class ElementwiseMap:
    """An elementwise operation: a scalar graph that reads operand k from the slot `operand_slot(k)`.

    Array operands are read elementwise; scalar operands are broadcast.
    """

    body: Graph
    result: int
    size: int
    kind: str


@dataclass(frozen=True)
class MatrixVectorProduct:
    """Product of a strided matrix in the first operand and a vector, the second operand.

    The terms of each sum are added sequentially, for any number of lanes.
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
    """Sum of outer products of consecutive pairs of operands."""

    rows: int
    columns: int
    kind: str = FLOAT
    fma: bool = False

    @property
    def size(self) -> int:
        """Number of elements, in row-major order."""
        return self.rows * self.columns


@dataclass(frozen=True)
class StridedView:
    """The view through which a loop reads one of its operands."""

    slot: str
    offset: int
    """First cell of the operand."""
    stride: int
    """Cells between consecutive iterations; zero for loop-invariant operands."""
    kind: str = FLOAT


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop with a carry (`scan`), whose body is a graph.

    The body reads the carry from the slot `carry` and all other operands through the views. It writes the new carry to
    `next` and one row of each stacked result per iteration to `out0`, `out1`, and so on. The array holds the final
    carry, then the rows of each result. Operands are the initial carry and the arrays of the views.
    """

    body: Graph
    outputs: tuple[tuple[tuple[str, int], int], ...]
    """The (slot, index) and the body node of each output."""
    trip_count: int
    reverse: bool
    """Whether iterations run from the last row to the first."""
    views: tuple[StridedView, ...]
    carry_kinds: tuple[str, ...]
    """Kinds of the entries of the carry."""
    result_rows: tuple[tuple[int, str], ...]
    """Size and kind of one row of each result."""
    kind: str = FLOAT

    @property
    def size(self) -> int:
        """Number of cells of the final carry and all results."""
        return len(self.carry_kinds) + self.trip_count * sum(size for size, _ in self.result_rows)

    def result_offsets(self) -> list[int]:
        """First element of each result."""
        sizes = [self.trip_count * size for size, _ in self.result_rows]
        return [len(self.carry_kinds) + sum(sizes[:k]) for k in range(len(sizes))]

    def kind_at(self, index: int) -> str:
        """Kind of the element at an index."""
        if index < len(self.carry_kinds):
            return self.carry_kinds[index]
        result = max(k for k, start in enumerate(self.result_offsets()) if start <= index)
        return self.result_rows[result][1]


def operand_slot(operand: int) -> str:
    """Slot from which the body of a map reads an operand."""
    return f"a{operand}"


def has_elements(nodes: np.ndarray) -> bool:
    """Whether any of the ids denote elements of arrays."""
    return nodes.size > 0 and int(nodes.max()) >= _ELEMENT_BASE


def element_ids(graph: Graph, array: int) -> np.ndarray:
    """Ids that denote the elements of an array."""
    return (array + 1) * _ELEMENT_BASE + np.arange(graph.data[array].size)


def _common_array(nodes: np.ndarray) -> tuple[int, np.ndarray] | None:
    """The array to which all elements belong and their indices in it; None if there is no such array."""
    owners, indices = np.divmod(nodes, _ELEMENT_BASE)
    first = int(owners.flat[0])
    return (first - 1, indices) if first and (owners == first).all() else None


def source_nodes(nodes: np.ndarray) -> list[int]:
    """The nodes that ids refer to: scalars themselves, arrays for their elements."""
    return np.unique(np.where(nodes >= _ELEMENT_BASE, nodes // _ELEMENT_BASE - 1, nodes)).tolist()


def scalarize(graph: Graph, nodes: np.ndarray) -> np.ndarray:
    """Ids with elements of arrays replaced by scalar nodes."""
    if not graph.has_arrays or not has_elements(nodes):
        return nodes
    if nodes.size > MAX_SCALARIZED_SIZE:
        raise UnsupportedOperationError(
            f"an operation on {nodes.size} elements of a large array is not supported by the native back-end"
        )
    flat = [
        element_node(graph, n // _ELEMENT_BASE - 1, n % _ELEMENT_BASE) if n >= _ELEMENT_BASE else n
        for n in nodes.ravel().tolist()
    ]
    return np.array(flat, dtype=np.int64).reshape(nodes.shape)


def element_node(graph: Graph, array: int, index: int, kind: str | None = None) -> int:
    """Scalar node of an element of an array; elements of an input array may differ in kind."""
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
    return graph.node("extract", array, data=index, kind=spec.kind_at(index) if isinstance(spec, Loop) else spec.kind)


def array_node_of(graph: Graph, nodes: np.ndarray) -> int:
    """The array node whose elements are these nodes, in order."""
    flat = nodes.ravel()
    common = _common_array(flat)
    if common is not None:
        array, indices = common
        spec = graph.data[array]
        if len(indices) == spec.size and (indices == np.arange(spec.size)).all():
            return array
        if isinstance(spec, ArrayInput) and (np.diff(indices) == 1).all():
            return array_node(graph, replace(spec, offset=spec.offset + int(indices[0]), size=len(indices)))
        if isinstance(spec, OuterProduct) and nodes.shape == (spec.columns, spec.rows):
            transposed = np.arange(spec.size).reshape(spec.rows, spec.columns).T
            if (indices == transposed.ravel()).all():
                pairs = zip(graph.args[array][1::2], graph.args[array][::2], strict=True)
                return array_node(graph, OuterProduct(spec.columns, spec.rows), *(a for pair in pairs for a in pair))
    scalars = scalarize(graph, flat).tolist()
    if all(graph.ops[n] == "input" for n in scalars):
        (slot, first), kind = graph.data[scalars[0]], graph.kinds[scalars[0]]
        if all(graph.data[n] == (slot, first + k) for k, n in enumerate(scalars)):
            return array_node(graph, ArrayInput(slot, first, len(scalars), kind))
    if len(scalars) > MAX_SCALARIZED_SIZE:
        raise UnsupportedOperationError(
            f"an array stacked from {len(scalars)} scalars is not supported by the native back-end"
        )
    return array_node(graph, Stack(len(scalars), graph.kinds[scalars[0]]), *scalars)


def contiguous_view(graph: Graph, nodes: np.ndarray) -> tuple[int, int] | None:
    """Array in which nodes are contiguous and the index of the first; None if they are not."""
    flat = nodes.ravel()
    common = _common_array(flat)
    if common is not None:
        array, indices = common
        is_contiguous = (np.diff(indices) == 1).all()
        return (array, int(indices[0])) if is_contiguous and not isinstance(graph.data[array], Stack) else None
    if has_elements(flat) or any(graph.ops[n] != "input" for n in flat.tolist()):
        return None
    slot, first = graph.data[int(flat[0])]
    if any(graph.data[n] != (slot, first + k) for k, n in enumerate(flat.tolist())):
        return None
    return array_node(graph, ArrayInput(slot, first, len(flat), graph.kinds[int(flat[0])])), 0


def array_node(
    graph: Graph, spec: "ArrayInput | Stack | ElementwiseMap | MatrixVectorProduct | OuterProduct | Loop", *args: int
) -> int:
    """The array node with a specification and operands."""
    return graph.node("array", *args, data=spec, kind=ARRAY)


def strided_matrix(graph: Graph, nodes: np.ndarray) -> tuple[int, int, int, int] | None:
    """Array of a strided matrix, index of its first element, row and column strides; None if it is not strided."""
    common = _common_array(nodes)
    if common is None:
        flat = nodes.ravel().tolist()
        if has_elements(nodes) or any(graph.ops[n] != "input" for n in flat):
            return None
        slots = {graph.data[n][0] for n in flat}
        if len(slots) > 1 or graph.kinds[flat[0]] != FLOAT:
            return None
        cells = np.array([graph.data[n][1] for n in flat]).reshape(nodes.shape)
        base = int(cells.min())
        array, indices = array_node(graph, ArrayInput(slots.pop(), base, int(cells.max()) - base + 1)), cells - base
    else:
        array, indices = common
    first = int(indices[0, 0])
    row_stride = int(indices[1, 0]) - first if len(indices) > 1 else 0
    column_stride = int(indices[0, 1]) - first if len(indices[0]) > 1 else 0
    strided = first + row_stride * np.arange(len(indices))[:, None] + column_stride * np.arange(len(indices[0]))
    return None if (indices != strided).any() else (array, first, row_stride, column_stride)


def add_to_input(graph: Graph, leaf: ArrayInput, array: int) -> int:
    """Sum of an input array and another array."""
    body = Graph()
    total = body.node("add", body.input(operand_slot(0), 0), body.input(operand_slot(1), 0))
    return array_node(graph, ElementwiseMap(body, total, leaf.size, FLOAT), array_node(graph, leaf), array)
