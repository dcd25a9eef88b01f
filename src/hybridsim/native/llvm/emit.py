"""Emission: a graph as LLVM functions, in which each value is a scalar or a vector of W lanes.

A graph reads and writes named arrays (slots). The elements of a slot are either uniform (one scalar for all lanes) or
per lane (a vector of W). Values that depend on uniform slots only are computed once as scalars; the others per lane.

A large graph becomes several functions: blocks of straight-line code (`emit_straight_line.py`) and loops over arrays
(`emit_loops.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hybridsim.native.graph.arrays import ArrayInput, Loop, OuterProduct, Stack, StridedView
from hybridsim.native.graph.graph import ARRAY, Graph
from hybridsim.native.graph.partition import Outputs
from hybridsim.native.graph.schedule import depth_first_schedule
from hybridsim.native.graph.superword import MIN_SUPERWORD_SIZE, Packing, Superword
from hybridsim.native.llvm.emit_loops import ArrayFunction
from hybridsim.native.llvm.emit_straight_line import RELOADED_OPS, SCRATCH, Slot, StraightLineBlock

MAX_BLOCK_NODES = 500
"""Nodes in one LLVM function: compile time grows faster than linearly within one."""
MAX_PACKED_BLOCK_NODES = 2000
"""The same for code with superwords, each of which counts as one node: there is less of it to compile, and spilling
vectors between blocks costs more than spilling scalars."""
LARGE_GRAPH_NODES = 12_000
"""Minimum number of nodes of a graph that is scheduled in program order, in blocks of half the size.

Most of its values are spilled anyway, and program order follows the kinematic chain link by link (measured on
chains)."""


@dataclass(frozen=True)
class EmittedFunction:
    """LLVM functions that evaluate a graph; the last one calls the others."""

    name: str
    slots: tuple[Slot, ...]
    lanes: int
    texts: tuple[str, ...]
    declarations: frozenset[str]
    scratch_cells: int
    """Scratch cells for arrays and for values spilled between blocks, each W lanes wide."""


def emit(
    name: str, graph: Graph, outputs: Outputs, slots: Sequence[Slot], lanes: int, register_width: int
) -> EmittedFunction:
    """LLVM IR of a function `void name(ptr slot, …, ptr scratch)`.

    Args:
        name: function name.
        graph: graph to evaluate.
        outputs: node written to each (slot, index); arrays occupy the cells from index on.
        slots: all arrays read or written, in the order of the function's arguments.
        lanes: W.
        register_width: elements of a vector register; with W = 1, isomorphic scalar operations are packed to fill it.
    """
    order, packing = graph.live_nodes(outputs.values()), None
    max_nodes = MAX_BLOCK_NODES if len(order) < LARGE_GRAPH_NODES else MAX_BLOCK_NODES // 2
    if len(order) < LARGE_GRAPH_NODES:
        is_packed = lanes == 1 and register_width >= MIN_SUPERWORD_SIZE
        packing = Packing(graph, order, outputs.values(), register_width) if is_packed else None
        max_nodes = MAX_PACKED_BLOCK_NODES if packing and packing.superword_of else MAX_BLOCK_NODES
        order = depth_first_schedule(graph, outputs.values(), packing.superword_of if packing else {})
    superword_of = packing.superword_of if packing else {}
    varying = _varying_nodes(graph, order, {s.name for s in slots if s.per_lane})
    blocks = _blocks(graph, order, outputs, max_nodes, superword_of)
    block_of = {node: k for k, block in enumerate(blocks) for node in block}
    bodies = {
        node: _loop_body(f"{name}.body{node}", graph, node, slots, lanes, register_width)
        for node in order
        if isinstance(graph.data[node], Loop)
    }
    cells, scratch_cells = _scratch_cells(graph, blocks, block_of, bodies, superword_of)
    writes: list[list[tuple[tuple[str, int], int]]] = [[] for _ in blocks]
    arrays = []
    for target, node in outputs.items():
        if graph.kinds[node] == ARRAY:
            arrays.append((target, node))
        else:
            writes[block_of.get(node, 0)].append((target, node))

    declarations: set[str] = set()
    texts, parts = [], []

    def part_name() -> str:
        parts.append(f"{name}.{len(parts)}")
        return parts[-1]

    is_single = len(blocks) == 1 and not arrays and not _is_loop(graph, blocks[0])
    for k, block in enumerate(blocks):
        if _is_loop(graph, block):
            loops = ArrayFunction(graph, varying, slots, lanes, cells, declarations)
            body = bodies.get(block[0])
            if body is None:
                texts.append(loops.computation(part_name(), block[0]))
            else:
                declarations |= body.declarations
                texts += [*body.texts, loops.loop(part_name(), block[0], body.name)]
        else:
            straight_line = StraightLineBlock(graph, varying, slots, lanes, cells, declarations, packing=packing)
            texts.append(straight_line.text(name if is_single else part_name(), block, writes[k]))
    for target, node in arrays:
        texts.append(ArrayFunction(graph, varying, slots, lanes, cells, declarations).write(part_name(), target, node))
    if not is_single:
        arguments = ", ".join(f"ptr %{s.name}" for s in (*slots, SCRATCH))
        calls = "\n".join(f"  call void @{part}({arguments})" for part in parts)
        texts.append(f"define void @{name}({arguments}) #0 {{\n{calls}\n  ret void\n}}\n")
    return EmittedFunction(name, tuple(slots), lanes, tuple(texts), frozenset(declarations), scratch_cells)


def _loop_body(
    name: str, graph: Graph, node: int, slots: Sequence[Slot], lanes: int, register_width: int
) -> EmittedFunction:
    """Function that evaluates one iteration of a loop."""
    spec, (_, *view_arrays) = graph.data[node], graph.args[node]
    by_name = {s.name: s for s in slots}

    def slot(view: StridedView, array: int) -> Slot:
        leaf = graph.data[array]
        return replace(by_name[leaf.slot], name=view.slot) if isinstance(leaf, ArrayInput) else Slot(view.slot, True)

    views = [slot(view, array) for view, array in zip(spec.views, view_arrays, strict=True)]
    results = [Slot(f"out{k}", True) for k in range(len(spec.result_rows))]
    all_slots = [Slot("carry", True), Slot("next", True), *views, *results]
    return emit(name, spec.body, dict(spec.outputs), all_slots, lanes, register_width)


def _varying_nodes(graph: Graph, order: Iterable[int], lane_slots: set[str]) -> set[int]:
    """Nodes that differ between lanes; computed arrays always count as varying."""
    varying = set()
    for node in order:
        data = graph.data[node]
        if graph.ops[node] == "input" or isinstance(data, ArrayInput):
            if (data.slot if isinstance(data, ArrayInput) else data[0]) in lane_slots:
                varying.add(node)
        elif graph.kinds[node] == ARRAY or any(a in varying for a in graph.args[node]):
            varying.add(node)
    return varying


def _is_loop(graph: Graph, block: list[int]) -> bool:
    return len(block) == 1 and _needs_loop(graph, block[0])


def _needs_loop(graph: Graph, node: int) -> bool:
    return graph.kinds[node] == ARRAY and not isinstance(graph.data[node], ArrayInput | Stack)


def _blocks(
    graph: Graph, order: list[int], outputs: Outputs, max_nodes: int, superword_of: Mapping[int, Superword]
) -> list[list[int]]:
    """Partition of the nodes into functions: one per loop, the other nodes in blocks of bounded size."""
    used = {a for node in order for a in graph.args[node]}
    used.update(node for (slot, _), node in outputs.items() if slot != "sums")
    blocks: list[list[int]] = [[]]
    count = 0  # single nodes and superwords in the current block
    for node in order:
        if _needs_loop(graph, node):
            # an outer product that is only accumulated is never materialized
            if node in used or not isinstance(graph.data[node], OuterProduct):
                blocks += [[node], []]
                count = 0
            continue
        is_first = node == superword_of.get(node, (node,))[0]
        if count >= max_nodes and is_first:
            blocks.append([])
            count = 0
        blocks[-1].append(node)
        count += is_first
    return [block for block in blocks if block] or [[]]


def _scratch_cells(
    graph: Graph,
    blocks: list[list[int]],
    block_of: dict[int, int],
    bodies: Mapping[int, EmittedFunction],
    superword_of: Mapping[int, Superword],
) -> tuple[dict[int, int], int]:
    """Scratch cells of arrays and of values spilled to later blocks, and their total.

    The array of a loop is followed by two buffers for the carry and by the scratch memory of its body. Superwords are
    contiguous: a vector store forwards to a vector load without a stall, whereas several scalar stores do not.
    """
    cells: dict[int, int] = {}
    size = 0
    for k, block in enumerate(blocks):
        for node in block:
            if graph.kinds[node] == ARRAY and not isinstance(graph.data[node], ArrayInput):
                cells[node] = size
                size += graph.data[node].size
                if node in bodies:
                    size += 2 * len(graph.data[node].carry_kinds) + bodies[node].scratch_cells
            for a in graph.args[node]:
                if graph.kinds[a] == ARRAY or graph.ops[a] in RELOADED_OPS or a in cells or block_of[a] == k:
                    continue
                superword = superword_of.get(a, (a,))
                size += -size % (1 << (len(superword) - 1).bit_length())
                cells |= {member: size + lane for lane, member in enumerate(superword)}
                size += len(superword)
    return cells, size


def module(functions: Iterable[EmittedFunction], other_texts: Iterable[str] = ()) -> str:
    """IR text of a module of functions and other definitions."""
    functions = list(functions)
    declarations = sorted({d for f in functions for d in f.declarations})
    texts = [t for f in functions for t in f.texts]
    return "\n".join(
        [*declarations, *texts, *other_texts, 'attributes #0 = { nounwind "no-trapping-math"="true" }', ""]
    )
