"""What the forward sweep of a gradient keeps for the reverse sweep, besides the states.

The reverse sweep needs many values that the forward sweep has had in its hands. Each can be kept in memory or computed
again from others; which ones to keep so that the sum of memory traffic and arithmetic is least is a minimum cut.
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
from hybridsim.native.graph.graph import ARRAY, Graph
from hybridsim.native.graph.partition import Outputs, source_slot

OP_COST = {
    "neg": 0, "part": 0, "div": 10, "sqrt": 12, "sin": 20, "cos": 20, "tan": 40, "asin": 30, "acos": 30, "atan": 30,
    "atan2": 35, "exp": 20, "exp2": 20, "expm1": 30, "sinh": 30, "cosh": 30, "tanh": 25, "logistic": 30, "log": 25,
    "log1p": 30, "pow": 70, "erf": 60, "erfc": 60,
}  # fmt: skip
"""What an operation costs, in additions; those not listed cost one."""
SAVE_COST = 6
"""What writing a value to memory and reading it again costs, in additions."""
_SCALE = 2
_INFINITE_CAPACITY = 10**8


def select_saved_values(
    graph: Graph, step: Outputs, vjp: Outputs, stages: Mapping[int, int], *, state: int
) -> list[int]:
    """The nodes to keep.

    Args:
        graph: of both sweeps.
        step: what the forward sweep computes.
        vjp: what the reverse sweep computes.
        stages: of the nodes.
        state: the stage of those that depend on the state but on no cotangent.
    """
    at_hand = set(graph.live(step.values()))
    wanted = set(vjp.values())
    order = graph.live(vjp.values())
    for node in order:
        if stages[node] > state:
            wanted.update(graph.args[node])
    nodes = [n for n in order if stages[n] == state and source_slot(graph, n) is None]
    wanted &= set(nodes)
    if not wanted:
        return []
    # two unknowns of each value: is it there, and was it computed again?
    there = {n: 2 + 2 * k for k, n in enumerate(nodes)}
    again = {n: 3 + 2 * k for k, n in enumerate(nodes)}
    source, sink = 0, 1
    edges: list[tuple[int, int, int]] = []
    for n in nodes:
        cost, keeping = _SCALE * _recompute_cost(graph, n), _SCALE * SAVE_COST * cell_count(graph, n)
        edges.append((again[n], there[n], _INFINITE_CAPACITY))
        edges += [(again[n], there[a], _INFINITE_CAPACITY) for a in graph.args[n] if a in there]
        if n in at_hand:
            edges.append((there[n], sink, keeping))
            edges.append((again[n], sink, cost - keeping) if cost >= keeping else (source, again[n], keeping - cost))
        else:
            edges += [(there[n], again[n], _INFINITE_CAPACITY), (again[n], sink, cost)]
        if n in wanted:
            edges.append((source, there[n], _INFINITE_CAPACITY))
    reached = _source_side(2 + 2 * len(nodes), edges)
    return [n for n in nodes if reached[there[n]] and not reached[again[n]]]


def _recompute_cost(graph: Graph, node: int) -> int:
    """What computing a value costs, in additions."""
    spec = graph.data[node]
    if isinstance(spec, MatrixVectorProduct):
        return spec.size * spec.columns
    if isinstance(spec, ElementwiseMap):
        return spec.size * sum(_recompute_cost(spec.body, n) for n in spec.body.live([spec.result]))
    if isinstance(spec, Loop):
        return spec.trip_count * sum(_recompute_cost(spec.body, n) for n in spec.body.live(n for _, n in spec.outputs))
    return OP_COST.get(graph.ops[node], 1) * cell_count(graph, node)


def cell_count(graph: Graph, node: int) -> int:
    """Cells of memory that a value takes."""
    return graph.data[node].size if graph.kinds[node] == ARRAY else 1


def _source_side(count: int, edges: list[tuple[int, int, int]]) -> np.ndarray:
    """Which nodes of a network are on the source's side of its minimum cut; node 0 is the source, node 1 the sink."""
    from scipy.sparse import coo_array  # takes a while to load
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    start, end, capacity = np.array(edges, dtype=np.int32).T
    network = coo_array((capacity, (start, end)), shape=(count, count)).tocsr()
    residual = network - maximum_flow(network, 0, 1).flow
    residual.eliminate_zeros()
    residual.data = (residual.data > 0).astype(np.int32)
    residual.eliminate_zeros()
    reached = np.zeros(count, dtype=bool)
    reached[breadth_first_order(residual, 0, return_predecessors=False)] = True
    return reached


def saved_value_offsets(graph: Graph, kept: list[int]) -> dict[int, int]:
    """The first cell of each kept value."""
    ends = itertools.accumulate(cell_count(graph, node) for node in kept)
    return dict(zip(kept, [0, *ends], strict=False))


def read_saved_values(graph: Graph, outputs: Outputs, kept: list[int]) -> tuple[Graph, Outputs]:
    """A graph that reads kept values from the slot `kept` instead of computing them."""
    new = Graph()
    cells = saved_value_offsets(graph, kept)
    renamed: dict[int, int] = {}
    waiting, needed = list(outputs.values()), set()
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += () if node in cells else graph.args[node]
    for node in sorted(needed):
        if node in graph.constants:
            renamed[node] = new.constant(graph.constants[node])
        elif node in cells:
            spec = graph.data[node]
            if graph.kinds[node] == ARRAY:
                renamed[node] = array_node(new, ArrayInput("kept", cells[node], spec.size, spec.kind))
            else:
                renamed[node] = new.input("kept", cells[node], graph.kinds[node])
        elif graph.ops[node] == "part":
            renamed[node] = element_node(new, renamed[graph.args[node][0]], graph.data[node], graph.kinds[node])
        else:
            args = (renamed[a] for a in graph.args[node])
            renamed[node] = new.node(graph.ops[node], *args, data=graph.data[node], kind=graph.kinds[node])
    return new, {place: renamed[node] for place, node in outputs.items()}
