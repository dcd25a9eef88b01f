"""Partitioning of a graph into stages by the dependencies of its nodes.

Nodes that depend on parameters only are loop-invariant and computed once per rollout; nodes independent of cotangents
can be computed for several time steps at a time, and so on. Each stage becomes a graph of its own; values needed by a
later stage pass through memory, in a slot named after the stage that computes them, such as `state_values`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hybridsim.native.graph.arrays import ArrayInput, array_node, element_node
from hybridsim.native.graph.graph import ARRAY, Graph

Outputs = dict[tuple[str, int], int]
"""The node stored to each (slot, index)."""

PARAMETERS, STATE, COTANGENT, GRADIENT = range(4)
"""Stages. PARAMETERS: nodes that depend on parameters only; STATE: on the state too; COTANGENT: on cotangents. If
cotangents are propagated in a stage of their own, GRADIENT has the other nodes that depend on them."""
TANGENT = COTANGENT
"""Stage of nodes that depend on tangents."""
STAGE_OF_SLOT = {
    **dict.fromkeys(("fixed", "free", "fixed_rows", "free_rows"), PARAMETERS),
    **dict.fromkeys(("x", "s", "saved"), STATE),
    **dict.fromkeys(("ct", "ct_y", "acc"), COTANGENT),
    **dict.fromkeys(("t_free", "t_x", "t_s"), TANGENT),
}
"""First stage in which the values of each slot are available.

`fixed` and `free` are parameters, `fixed_rows` and `free_rows` the large ones of them; `x` is the state, `s` the inputs
of the step and `saved` its saved values; `ct` and `ct_y` are the cotangents of the next state and of the outputs, `acc`
is the gradient accumulated so far; `t_free`, `t_x` and `t_s` are tangents.
"""


@dataclass(frozen=True)
class GraphStage:
    """The graph of one stage and its outputs: those of the whole graph, and those to its own slot for later stages."""

    graph: Graph
    outputs: Outputs
    passed_cells: int
    """Number of cells passed to later stages."""

    def read_slots(self) -> set[str]:
        """Names of the slots read."""
        slots = (source_slot(self.graph, n) for n in self.graph.live_nodes(self.outputs.values()))
        return {slot for slot in slots if slot is not None}


def source_slot(graph: Graph, node: int) -> str | None:
    """The slot that a node reads; None if it is not an input."""
    data = graph.data[node]
    if graph.ops[node] == "input":
        return data[0]
    return data.slot if isinstance(data, ArrayInput) else None


def assign_stages(graph: Graph, outputs: Outputs) -> dict[int, int]:
    """Stage of every live node: the latest stage among the inputs that it depends on."""
    stages: dict[int, int] = {}
    for node in graph.live_nodes(outputs.values()):
        slot = source_slot(graph, node)
        if slot is not None:
            stages[node] = STAGE_OF_SLOT[slot]
        else:
            stages[node] = max((stages[a] for a in graph.args[node]), default=0)
    return stages


def split_stages(
    graph: Graph,
    outputs: Outputs,
    stages: Mapping[int, int],
    slot_name: Callable[[int], str | None],
    default_stage: Callable[[str], int],
) -> dict[int, GraphStage]:
    """Split a graph into one graph per stage.

    Args:
        graph: graph to split.
        outputs: its outputs.
        stages: stage of every live node.
        slot_name: slot through which a stage passes values to later stages.
        default_stage: for each slot, the stage that stores outputs that are constants or inputs.
    """
    used_stages = {*stages.values(), *(default_stage(slot) for slot, _ in outputs)}
    graphs: dict[int, Graph] = {k: Graph() for k in sorted(used_stages)}
    node_map: dict[tuple[int, int], int] = {}
    passed: dict[int, dict[int, int]] = {k: {} for k in graphs}
    cell_counts = dict.fromkeys(graphs, 0)

    def map_node(stage: int, node: int) -> int:
        """The node of a stage that corresponds to a node of the whole graph."""
        mapped = node_map.get((stage, node))
        if mapped is not None:
            return mapped
        subgraph = graphs[stage]
        op = graph.ops[node]
        if op == "const":
            mapped = subgraph.constant(graph.constants[node])
        elif source_slot(graph, node) is not None:
            mapped = subgraph.node(op, data=graph.data[node], kind=graph.kinds[node])
        elif stages[node] == stage and op == "extract":
            # the array may belong to another stage
            mapped = element_node(subgraph, map_node(stage, graph.args[node][0]), graph.data[node], graph.kinds[node])
        elif stages[node] == stage:
            args = [map_node(stage, a) for a in graph.args[node]]
            mapped = subgraph.node(op, *args, data=graph.data[node], kind=graph.kinds[node])
        else:
            mapped = load_from_stage(stages[node], node, subgraph)
        node_map[stage, node] = mapped
        return mapped

    def load_from_stage(producer: int, node: int, subgraph: Graph) -> int:
        """An input that reads a value computed by another stage."""
        spec, slot = graph.data[node], str(slot_name(producer))
        is_array = graph.kinds[node] == ARRAY
        if node not in passed[producer]:
            passed[producer][node] = cell_counts[producer]
            cell_counts[producer] += spec.size if is_array else 1
        cell = passed[producer][node]
        if is_array:
            return array_node(subgraph, ArrayInput(slot, cell, spec.size, spec.kind))
        return subgraph.input(slot, cell, graph.kinds[node])

    for node in sorted(stages):  # in topological order, which keeps the recursion shallow
        map_node(stages[node], node)
    written: dict[int, Outputs] = {k: {} for k in graphs}
    for target, node in outputs.items():
        # the first stage passes values to later stages but stores no outputs
        uses_default = graph.ops[node] == "const" or source_slot(graph, node) is not None or stages[node] == 0
        producer = default_stage(target[0]) if uses_default else stages[node]
        written[producer][target] = map_node(producer, node)
    for stage, cells in passed.items():
        for node, cell in cells.items():
            written[stage][str(slot_name(stage)), cell] = map_node(stage, node)
    return {k: GraphStage(graphs[k], written[k], cell_counts[k]) for k in graphs}


def compact_slot(slot: str, *graphs: tuple[Graph, Outputs]) -> tuple[list[int], list[tuple[Graph, Outputs]]]:
    """Cells of a slot that graphs read, and the graphs remapped to a row of only those cells."""
    cells: set[int] = set()
    for graph, outputs in graphs:
        for node in graph.live_nodes(outputs.values()):
            if source_slot(graph, node) == slot:
                data = graph.data[node]
                cells.update(range(data.offset, data.offset + data.size) if isinstance(data, ArrayInput) else [data[1]])
    used = sorted(cells)
    index_of = {cell: k for k, cell in enumerate(used)}
    return used, [(remap_slot(graph, slot, index_of), outputs) for graph, outputs in graphs]


def remap_slot(graph: Graph, slot: str, index_of: Mapping[int, int]) -> Graph:
    """A copy with the cells of a slot renumbered; cells without a new index must not be live."""
    remapped = Graph()
    remapped.ops, remapped.args, remapped.kinds = graph.ops.copy(), graph.args.copy(), graph.kinds.copy()
    remapped.constants = graph.constants.copy()
    remapped.data = graph.data.copy()
    for node in range(len(graph)):
        if source_slot(graph, node) == slot:
            data = graph.data[node]
            if isinstance(data, ArrayInput):
                remapped.data[node] = replace(data, offset=index_of.get(data.offset, -1))
            else:
                remapped.data[node] = (slot, index_of.get(data[1], -1))
    return remapped
