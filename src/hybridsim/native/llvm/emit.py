"""Emission: a graph as LLVM functions, in which each value is one number or W of them side by side.

A graph reads and writes named arrays (slots). The numbers of a slot are either uniform (one for all lanes) or
lane-wise (a vector of W). Values that depend on uniform slots only are computed once; the others in every lane.

A large graph becomes several functions: pieces of straight code (`straight.py`) and loops for arrays (`emit_loops.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hybridsim.native.graph.arrays import ArrayInput, Loop, OuterProduct, Stack, StridedView
from hybridsim.native.graph.graph import ARRAY, Graph
from hybridsim.native.graph.schedule import deepest_first
from hybridsim.native.graph.superword import MIN_BUNDLE_SIZE, Bundle, Packing
from hybridsim.native.llvm.emit_loops import ArrayFunction
from hybridsim.native.llvm.emit_straight_line import RELOADED_OPS, SCRATCH, Slot, StraightLineBlock

MAX_BLOCK_NODES = 500
"""Nodes in one LLVM function: compile time grows faster than linearly within one."""
MAX_PACKED_BLOCK_NODES = 2000
"""The same for code whose values lie side by side, in which a bundle counts as one: there is less of it to compile, and
vectors that pass from piece to piece through memory cost more than single numbers."""
LARGE_GRAPH_NODES = 12_000
"""Nodes from which on a graph is computed in the order of the program, and in pieces of half the size.

Most of its values pass through memory anyway then, and the program takes them link by link (measured on chains)."""


@dataclass(frozen=True)
class EmittedFunction:
    """LLVM functions that compute a graph; the last one calls the others."""

    name: str
    slots: tuple[Slot, ...]
    lanes: int
    texts: tuple[str, ...]
    declarations: frozenset[str]
    scratch: int
    """Cells of memory for values that pass from piece to piece, each W numbers wide."""


Outputs = Mapping[tuple[str, int], int]


def emit(
    name: str, graph: Graph, outputs: Outputs, slots: Sequence[Slot], lanes: int, register: int
) -> EmittedFunction:
    """LLVM text of a function `void name(ptr slot, …, ptr scratch)`.

    Args:
        name: of the function.
        graph: what to compute.
        outputs: the node to write to each (slot, index); arrays are written from there on.
        slots: every array that is read or written, in the order of the function's arguments.
        lanes: W.
        register: numbers in a vector register, which a single lane fills with values of the same form.
    """
    order, packing = graph.live(outputs.values()), None
    largest = MAX_BLOCK_NODES if len(order) < LARGE_GRAPH_NODES else MAX_BLOCK_NODES // 2
    if len(order) < LARGE_GRAPH_NODES:
        packing = (
            Packing(graph, order, outputs.values(), register) if lanes == 1 and register >= MIN_BUNDLE_SIZE else None
        )
        largest = MAX_PACKED_BLOCK_NODES if packing and packing.bundle_of else MAX_BLOCK_NODES
        order = deepest_first(graph, outputs.values(), packing.bundle_of if packing else {})
    bundle_of = packing.bundle_of if packing else {}
    varying = _varying(graph, order, {s.name for s in slots if s.per_lane})
    pieces = _pieces(graph, order, outputs, largest, bundle_of)
    owner = {node: k for k, piece in enumerate(pieces) for node in piece}
    bodies = {
        node: _body(f"{name}.body{node}", graph, node, slots, lanes, register)
        for node in order
        if isinstance(graph.data[node], Loop)
    }
    cells, scratch = _cells(graph, pieces, owner, bodies, bundle_of)
    writes: list[list[tuple[tuple[str, int], int]]] = [[] for _ in pieces]
    arrays = []
    for place, node in outputs.items():
        if graph.kinds[node] == ARRAY:
            arrays.append((place, node))
        else:
            writes[owner.get(node, 0)].append((place, node))

    declarations: set[str] = set()
    texts, parts = [], []

    def own_name() -> str:
        parts.append(f"{name}.{len(parts)}")
        return parts[-1]

    alone = len(pieces) == 1 and not arrays and not _is_loop(graph, pieces[0])
    for k, piece in enumerate(pieces):
        if _is_loop(graph, piece):
            loops = ArrayFunction(graph, varying, slots, lanes, cells, declarations)
            body = bodies.get(piece[0])
            if body is None:
                texts.append(loops.computed(own_name(), piece[0]))
            else:
                declarations |= body.declarations
                texts += [*body.texts, loops.repeated(own_name(), piece[0], body.name)]
        else:
            straight = StraightLineBlock(graph, varying, slots, lanes, cells, declarations, packing=packing)
            texts.append(straight.text(name if alone else own_name(), piece, writes[k]))
    for place, node in arrays:
        texts.append(ArrayFunction(graph, varying, slots, lanes, cells, declarations).written(own_name(), place, node))
    if not alone:
        arguments = ", ".join(f"ptr %{s.name}" for s in (*slots, SCRATCH))
        calls = "\n".join(f"  call void @{part}({arguments})" for part in parts)
        texts.append(f"define void @{name}({arguments}) #0 {{\n{calls}\n  ret void\n}}\n")
    return EmittedFunction(name, tuple(slots), lanes, tuple(texts), frozenset(declarations), scratch)


def _body(name: str, graph: Graph, node: int, slots: Sequence[Slot], lanes: int, register: int) -> EmittedFunction:
    """The function that computes a turn of a loop."""
    spec, (_, *viewed) = graph.data[node], graph.args[node]
    known = {s.name: s for s in slots}

    def slot(view: StridedView, array: int) -> Slot:
        leaf = graph.data[array]
        return replace(known[leaf.slot], name=view.slot) if isinstance(leaf, ArrayInput) else Slot(view.slot, True)

    own = [slot(view, array) for view, array in zip(spec.views, viewed, strict=True)]
    results = [Slot(f"out{k}", True) for k in range(len(spec.result_rows))]
    all_slots = [Slot("carry", True), Slot("next", True), *own, *results]
    return emit(name, spec.body, dict(spec.outputs), all_slots, lanes, register)


def _varying(graph: Graph, order: Iterable[int], lane_slots: set[str]) -> set[int]:
    """The nodes that differ between lanes; arrays that are computed always count as such."""
    varying = set()
    for node in order:
        data = graph.data[node]
        if graph.ops[node] == "input" or isinstance(data, ArrayInput):
            if (data.slot if isinstance(data, ArrayInput) else data[0]) in lane_slots:
                varying.add(node)
        elif graph.kinds[node] == ARRAY or any(a in varying for a in graph.args[node]):
            varying.add(node)
    return varying


def _is_loop(graph: Graph, piece: list[int]) -> bool:
    return len(piece) == 1 and _needs_loop(graph, piece[0])


def _needs_loop(graph: Graph, node: int) -> bool:
    return graph.kinds[node] == ARRAY and not isinstance(graph.data[node], ArrayInput | Stack)


def _pieces(
    graph: Graph, order: list[int], outputs: Outputs, largest: int, bundle_of: Mapping[int, Bundle]
) -> list[list[int]]:
    """Nodes that are computed by one function: loops by themselves, the others in pieces of a good size."""
    used = {a for node in order for a in graph.args[node]}
    used.update(node for (slot, _), node in outputs.items() if slot != "sums")
    pieces: list[list[int]] = [[]]
    count = 0  # of single nodes and bundles
    for node in order:
        if _needs_loop(graph, node):
            # an outer product that is only added up is never written down
            if node in used or not isinstance(graph.data[node], OuterProduct):
                pieces += [[node], []]
                count = 0
            continue
        is_first = node == bundle_of.get(node, (node,))[0]
        if count >= largest and is_first:
            pieces.append([])
            count = 0
        pieces[-1].append(node)
        count += is_first
    return [piece for piece in pieces if piece] or [[]]


def _cells(
    graph: Graph,
    pieces: list[list[int]],
    owner: dict[int, int],
    bodies: Mapping[int, EmittedFunction],
    bundle_of: Mapping[int, Bundle],
) -> tuple[dict[int, int], int]:
    """Cells for arrays and for the values that later pieces need, and how many these are.

    A loop needs room behind its array for what it carries, twice, and for what its body needs. Bundles lie side by
    side: what is written as a vector can be read as one at once, but not what was written number by number.
    """
    cells: dict[int, int] = {}
    size = 0
    for k, piece in enumerate(pieces):
        for node in piece:
            if graph.kinds[node] == ARRAY and not isinstance(graph.data[node], ArrayInput):
                cells[node] = size
                size += graph.data[node].size
                if node in bodies:
                    size += 2 * len(graph.data[node].carry_kinds) + bodies[node].scratch
            for a in graph.args[node]:
                if graph.kinds[a] == ARRAY or graph.ops[a] in RELOADED_OPS or a in cells or owner[a] == k:
                    continue
                together = bundle_of.get(a, (a,))
                size += -size % (1 << (len(together) - 1).bit_length())
                cells |= {one: size + lane for lane, one in enumerate(together)}
                size += len(together)
    return cells, size


def module(functions: Iterable[EmittedFunction], loops: Iterable[str] = ()) -> str:
    """The text of a whole module."""
    functions = list(functions)
    declarations = sorted({d for f in functions for d in f.declarations})
    texts = [t for f in functions for t in f.texts]
    return "\n".join([*declarations, *texts, *loops, 'attributes #0 = { nounwind "no-trapping-math"="true" }', ""])
