"""Cutting a graph into stages by what its nodes depend on.

A node that needs nothing but parameters is computed once per rollout, one that needs no cotangent can be computed
for several time steps at once, and so on. Each stage becomes a graph of its own; a value that a later stage needs
passes through memory, in an array named after the stage that computed it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hybridsim.native.graph import Graph

Outputs = dict[tuple[str, int], int]
"""The node to write to each (slot, index)."""


@dataclass(frozen=True)
class Stage:
    """A graph with what it writes, in slots of the whole and in its own slot for later stages."""

    graph: Graph
    outputs: Outputs
    passed: int
    """How many values it passes to later stages."""

    def reads(self) -> set[str]:
        """Names of the slots that it reads."""
        return {self.graph.data[n][0] for n in self.graph.live(self.outputs.values()) if self.graph.ops[n] == "input"}

    def writes(self) -> set[str]:
        """Names of the slots that it writes."""
        return {slot for slot, _ in self.outputs}


def by_slots(graph: Graph, outputs: Outputs, stage_of_slot: Mapping[str, int]) -> dict[int, int]:
    """The stage of every live node: the latest of what it reads."""
    stages: dict[int, int] = {}
    for node in graph.live(outputs.values()):
        if graph.ops[node] == "input":
            stages[node] = stage_of_slot[graph.data[node][0]]
        else:
            stages[node] = max((stages[a] for a in graph.args[node]), default=0)
    return stages


def cut(
    graph: Graph,
    outputs: Outputs,
    stages: Mapping[int, int],
    name: Callable[[int], str | None],
    home: Callable[[str], int],
) -> dict[int, Stage]:
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

    def inside(stage: int, node: int) -> int:
        """The node within a stage that stands for a node of the whole."""
        found = renamed.get((stage, node))
        if found is not None:
            return found
        new = graphs[stage]
        op = graph.ops[node]
        if op == "const":
            found = new.constant(graph.constants[node])
        elif op == "input":
            slot, index = graph.data[node]
            found = new.input(slot, index, graph.kinds[node])
        elif stages[node] == stage:
            args = [inside(stage, a) for a in graph.args[node]]
            found = new.node(op, *args, data=graph.data[node], kind=graph.kinds[node])
        else:
            cell = passed[stages[node]].setdefault(node, len(passed[stages[node]]))
            found = new.input(str(name(stages[node])), cell, graph.kinds[node])
        renamed[stage, node] = found
        return found

    for node in sorted(stages):  # in order, so that the recursion above is never deep
        inside(stages[node], node)
    written: dict[int, Outputs] = {k: {} for k in graphs}
    for place, node in outputs.items():
        # the first stage passes values on but writes no results
        early = graph.ops[node] in ("const", "input") or stages[node] == 0
        owner = home(place[0]) if early else stages[node]
        written[owner][place] = inside(owner, node)
    for stage, cells in passed.items():
        for node, cell in cells.items():
            written[stage][str(name(stage)), cell] = inside(stage, node)
    return {k: Stage(graphs[k], written[k], len(passed[k])) for k in graphs}


def only_used(slot: str, *graphs: tuple[Graph, Outputs]) -> tuple[list[int], list[tuple[Graph, Outputs]]]:
    """The cells of a slot that graphs read, and the graphs reading them from a row of just these."""
    used = sorted(
        {
            graph.data[n][1]
            for graph, outputs in graphs
            for n in graph.live(outputs.values())
            if graph.ops[n] == "input" and graph.data[n][0] == slot
        }
    )
    place = {cell: k for k, cell in enumerate(used)}
    return used, [(graph.renumbered(slot, place), outputs) for graph, outputs in graphs]
