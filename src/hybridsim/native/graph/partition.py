"""Cutting a graph into stages by what its nodes depend on.

A node that needs nothing but parameters is computed once per rollout, one that needs no cotangent can be computed
for several time steps at once, and so on. Each stage becomes a graph of its own; a value that a later stage needs
passes through memory, in an array named after the stage that computed it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hybridsim.native.graph.arrays import ArrayInput, array_node, element_node
from hybridsim.native.graph.graph import ARRAY, Graph

Outputs = dict[tuple[str, int], int]
"""The node to write to each (slot, index)."""

PARAMETERS, STATE, COTANGENT, GRADIENT = range(4)
TANGENT = COTANGENT
STAGE_OF_SLOT = {
    **dict.fromkeys(("fixed", "free", "fixed_rows", "free_rows"), PARAMETERS),
    **dict.fromkeys(("x", "s", "kept"), STATE),
    **dict.fromkeys(("ct", "ct_y", "acc"), COTANGENT),
    **dict.fromkeys(("t_free", "t_x", "t_s"), TANGENT),
}
"""From when on the numbers of a slot are known."""


@dataclass(frozen=True)
class GraphStage:
    """A graph with what it writes, in slots of the whole and in its own slot for later stages."""

    graph: Graph
    outputs: Outputs
    passed_cells: int
    """How many values it passes to later stages."""

    def reads(self) -> set[str]:
        """Names of the slots that it reads."""
        slots = (source_slot(self.graph, n) for n in self.graph.live(self.outputs.values()))
        return {slot for slot in slots if slot is not None}

    def writes(self) -> set[str]:
        """Names of the slots that it writes."""
        return {slot for slot, _ in self.outputs}


def source_slot(graph: Graph, node: int) -> str | None:
    """The slot from which a node is read, if it is."""
    data = graph.data[node]
    if graph.ops[node] == "input":
        return data[0]
    return data.slot if isinstance(data, ArrayInput) else None


def assign_stages(graph: Graph, outputs: Outputs) -> dict[int, int]:
    """The stage of every live node: the latest of what it reads."""
    stages: dict[int, int] = {}
    for node in graph.live(outputs.values()):
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
    name: Callable[[int], str | None],
    home: Callable[[str], int],
) -> dict[int, GraphStage]:
    """Cut a graph into stages.

    Args:
        graph: the whole.
        outputs: what the whole writes.
        stages: the stage of every live node.
        name: the slot through which a stage passes values on.
        home: the stage that writes those results of a slot which are constants or inputs.
    """
    used = {*stages.values(), *(home(slot) for slot, _ in outputs)}
    graphs: dict[int, Graph] = {k: Graph() for k in sorted(used)}
    renamed: dict[tuple[int, int], int] = {}
    passed: dict[int, dict[int, int]] = {k: {} for k in graphs}
    room = dict.fromkeys(graphs, 0)

    def inside(stage: int, node: int) -> int:
        """The node within a stage that stands for a node of the whole."""
        found = renamed.get((stage, node))
        if found is not None:
            return found
        new = graphs[stage]
        op = graph.ops[node]
        if op == "const":
            found = new.constant(graph.constants[node])
        elif source_slot(graph, node) is not None:
            found = new.node(op, data=graph.data[node], kind=graph.kinds[node])
        elif stages[node] == stage and op == "part":
            # its array may be another stage's
            found = element_node(new, inside(stage, graph.args[node][0]), graph.data[node], graph.kinds[node])
        elif stages[node] == stage:
            args = [inside(stage, a) for a in graph.args[node]]
            found = new.node(op, *args, data=graph.data[node], kind=graph.kinds[node])
        else:
            found = through_memory(stages[node], node, new)
        renamed[stage, node] = found
        return found

    def through_memory(owner: int, node: int, new: Graph) -> int:
        """A value that another stage has computed."""
        spec, slot = graph.data[node], str(name(owner))
        is_array = graph.kinds[node] == ARRAY
        if node not in passed[owner]:
            passed[owner][node] = room[owner]
            room[owner] += spec.size if is_array else 1
        cell = passed[owner][node]
        if is_array:
            return array_node(new, ArrayInput(slot, cell, spec.size, spec.kind))
        return new.input(slot, cell, graph.kinds[node])

    for node in sorted(stages):  # in order, so that the recursion above is never deep
        inside(stages[node], node)
    written: dict[int, Outputs] = {k: {} for k in graphs}
    for place, node in outputs.items():
        # the first stage passes values on but writes no results
        early = graph.ops[node] == "const" or source_slot(graph, node) is not None or stages[node] == 0
        owner = home(place[0]) if early else stages[node]
        written[owner][place] = inside(owner, node)
    for stage, cells in passed.items():
        for node, cell in cells.items():
            written[stage][str(name(stage)), cell] = inside(stage, node)
    return {k: GraphStage(graphs[k], written[k], room[k]) for k in graphs}


def compact_slot(slot: str, *graphs: tuple[Graph, Outputs]) -> tuple[list[int], list[tuple[Graph, Outputs]]]:
    """The cells of a slot that graphs read, and the graphs reading them from a row of just these."""
    cells: set[int] = set()
    for graph, outputs in graphs:
        for node in graph.live(outputs.values()):
            if source_slot(graph, node) == slot:
                data = graph.data[node]
                cells.update(range(data.offset, data.offset + data.size) if isinstance(data, ArrayInput) else [data[1]])
    used = sorted(cells)
    place = {cell: k for k, cell in enumerate(used)}
    return used, [(remap_slot(graph, slot, place), outputs) for graph, outputs in graphs]


def remap_slot(graph: Graph, slot: str, place: Mapping[int, int]) -> Graph:
    """A copy that reads the cells of a slot from other places; cells without one must not be needed."""
    copy = Graph()
    copy.ops, copy.args, copy.kinds = graph.ops.copy(), graph.args.copy(), graph.kinds.copy()
    copy.constants = graph.constants.copy()
    copy.data = graph.data.copy()
    for node in range(len(graph)):
        if source_slot(graph, node) == slot:
            data = graph.data[node]
            if isinstance(data, ArrayInput):
                copy.data[node] = replace(data, offset=place.get(data.offset, -1))
            else:
                copy.data[node] = (slot, place.get(data[1], -1))
    return copy
