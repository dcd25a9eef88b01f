"""Rematerialization: selection of the values that the forward sweep saves for the reverse sweep, besides the states.

The reverse sweep needs many values that the forward sweep computes. Each can be saved to memory or recomputed from
others; the choice that minimizes the total cost of memory traffic and arithmetic is a minimum cut.
"""

import itertools
from collections.abc import Mapping

import numpy as np

from hybridsim.native.graph.arrays import (
    ArrayInput,
    ElementwiseMap,
    Loop,
    MatrixVectorProduct,
    array_node,
    element_node,
)
from hybridsim.native.graph.elementary import FUNCTIONS
from hybridsim.native.graph.graph import ARRAY, Graph
from hybridsim.native.graph.partition import Outputs, source_slot

OP_COST = {
    "neg": 0,
    "extract": 0,
    "div": 10,
    "sqrt": 12,
    "atan2": 35,
    "pow": 70,
    **{name: function.cost for name, function in FUNCTIONS.items()},
}
"""Cost of operations, in additions; 1 for those not listed."""
SAVE_COST = 6
"""Cost of one store and one load, in additions."""
_SCALE = 2
_INFINITE_CAPACITY = 10**8


def select_saved_values(
    graph: Graph, step: Outputs, vjp: Outputs, stages: Mapping[int, int], *, state: int
) -> list[int]:
    """Nodes to save, of minimum total cost of saving and recomputing.

    Args:
        graph: graph of both sweeps.
        step: outputs of the forward sweep.
        vjp: outputs of the reverse sweep.
        stages: stage of every live node.
        state: stage of nodes that depend on the state but on no cotangent.
    """
    available = set(graph.live_nodes(step.values()))
    required = set(vjp.values())
    order = graph.live_nodes(vjp.values())
    for node in order:
        if stages[node] > state:
            required.update(graph.args[node])
    nodes = [n for n in order if stages[n] == state and source_slot(graph, n) is None]
    required &= set(nodes)
    if not required:
        return []
    # two binary variables per value: whether the reverse sweep has it, and whether it recomputes it
    present = {n: 2 + 2 * k for k, n in enumerate(nodes)}
    recomputed = {n: 3 + 2 * k for k, n in enumerate(nodes)}
    source, sink = 0, 1
    edges: list[tuple[int, int, int]] = []
    for n in nodes:
        cost, save = _SCALE * _recompute_cost(graph, n), _SCALE * SAVE_COST * cell_count(graph, n)
        edges.append((recomputed[n], present[n], _INFINITE_CAPACITY))
        edges += [(recomputed[n], present[a], _INFINITE_CAPACITY) for a in graph.args[n] if a in present]
        if n in available:
            edges.append((present[n], sink, save))
            edges.append((recomputed[n], sink, cost - save) if cost >= save else (source, recomputed[n], save - cost))
        else:
            edges += [(present[n], recomputed[n], _INFINITE_CAPACITY), (recomputed[n], sink, cost)]
        if n in required:
            edges.append((source, present[n], _INFINITE_CAPACITY))
    on_source_side = _source_side(2 + 2 * len(nodes), edges)
    return [n for n in nodes if on_source_side[present[n]] and not on_source_side[recomputed[n]]]


def _recompute_cost(graph: Graph, node: int) -> int:
    """Cost of computing a value from its operands, in additions."""
    spec = graph.data[node]
    if isinstance(spec, MatrixVectorProduct):
        return spec.size * spec.columns
    if isinstance(spec, ElementwiseMap):
        return spec.size * sum(_recompute_cost(spec.body, n) for n in spec.body.live_nodes([spec.result]))
    if isinstance(spec, Loop):
        nodes = spec.body.live_nodes(n for _, n in spec.outputs)
        return spec.trip_count * sum(_recompute_cost(spec.body, n) for n in nodes)
    return OP_COST.get(graph.ops[node], 1) * cell_count(graph, node)


def cell_count(graph: Graph, node: int) -> int:
    """Number of memory cells of a value."""
    return graph.data[node].size if graph.kinds[node] == ARRAY else 1


def _source_side(count: int, edges: list[tuple[int, int, int]]) -> np.ndarray:
    """Nodes on the source side of the minimum cut of a flow network; node 0 is the source, node 1 the sink."""
    from scipy.sparse import coo_array  # imported here because it loads slowly
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    tail, head, capacity = np.array(edges, dtype=np.int32).T
    network = coo_array((capacity, (tail, head)), shape=(count, count)).tocsr()
    residual = network - maximum_flow(network, 0, 1).flow
    residual.eliminate_zeros()
    residual.data = (residual.data > 0).astype(np.int32)
    residual.eliminate_zeros()
    reachable = np.zeros(count, dtype=bool)
    reachable[breadth_first_order(residual, 0, return_predecessors=False)] = True
    return reachable


def saved_value_offsets(graph: Graph, saved: list[int]) -> dict[int, int]:
    """First cell of each saved value."""
    ends = itertools.accumulate(cell_count(graph, node) for node in saved)
    return dict(zip(saved, [0, *ends], strict=False))


def read_saved_values(graph: Graph, outputs: Outputs, saved: list[int]) -> tuple[Graph, Outputs]:
    """A graph that reads saved values from the slot `saved` instead of computing them."""
    new = Graph()
    cells = saved_value_offsets(graph, saved)
    node_map: dict[int, int] = {}
    worklist, needed = list(outputs.values()), set()
    while worklist:
        node = worklist.pop()
        if node not in needed:
            needed.add(node)
            worklist += () if node in cells else graph.args[node]
    for node in sorted(needed):
        if node in graph.constants:
            node_map[node] = new.constant(graph.constants[node])
        elif node in cells:
            spec = graph.data[node]
            if graph.kinds[node] == ARRAY:
                node_map[node] = array_node(new, ArrayInput("saved", cells[node], spec.size, spec.kind))
            else:
                node_map[node] = new.input("saved", cells[node], graph.kinds[node])
        elif graph.ops[node] == "extract":
            node_map[node] = element_node(new, node_map[graph.args[node][0]], graph.data[node], graph.kinds[node])
        else:
            args = (node_map[a] for a in graph.args[node])
            node_map[node] = new.node(graph.ops[node], *args, data=graph.data[node], kind=graph.kinds[node])
    return new, {target: node_map[node] for target, node in outputs.items()}
