"""Lowering of loops with a known trip count: unrolled, or as loop nodes.

Unrolling folds the structural zeros and ones of a mechanism and passes nothing through memory, which pays off for
the joints of a robot, but not for the rows of a large contact problem: nothing folds, and the trip count is high. Such
loops become one node of the graph (`arrays.Loop`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.native.graph.arrays import (
    Loop,
    Stack,
    StridedView,
    array_node,
    contiguous_view,
    element_ids,
    element_node,
    scalarize,
    source_nodes,
)
from hybridsim.native.graph.graph import Graph
from hybridsim.native.lowering.lower import Lowering, Nodes, kind_of

MAX_WHILE_ITERATIONS = 10_000
"""Maximum trip count of while loops, which are always unrolled."""
MAX_UNROLLED_ITERATIONS = 150
"""Maximum trip count at which long loops are unrolled, however well they fold; more would take too long to compile."""
MAX_UNROLLED_NODES = 200_000
"""Maximum number of nodes of an unrolled long loop, however well it folds."""
MIN_LOOP_ITERATIONS = 4
"""Loops with a lower trip count are always unrolled."""
MIN_LOOP_NODES = 3_000
"""Loops that unroll to fewer nodes are always unrolled."""
FOLDING_THRESHOLD = 0.85
"""Size of an unrolled iteration relative to the loop body, below which a loop folds well enough to be unrolled."""
MAX_SCALAR_RESULTS = 2_000
"""Largest size of a stacked result that is extracted as scalars; larger results stay arrays."""
MIN_VIEW_SIZE = 16
"""Smallest row of an operand that is read in place through a view."""


@dataclass(frozen=True)
class Scan:
    """A `scan` as in its jaxpr equation."""

    jaxpr: Any
    trip_count: int
    reverse: bool
    consts: list[Nodes]
    carry: list[Nodes]
    xs: list[Nodes]
    result_avals: list[Any]
    """Abstract values of the final carry, then of the stacked results."""

    def row_order(self) -> range:
        """Row indices in order of iteration."""
        return range(self.trip_count - 1, -1, -1) if self.reverse else range(self.trip_count)


def unroll(lowering: Lowering, scan: Scan, first_iterations: list[list[Nodes]] | None = None) -> list[Nodes]:
    """Results of an unrolled loop.

    Args:
        lowering: lowering to add nodes to.
        scan: loop to unroll.
        first_iterations: results of the iterations that are already lowered.
    """
    n, iterations = len(scan.carry), list(first_iterations or ())
    carry = iterations[-1][:n] if iterations else scan.carry
    for row in list(scan.row_order())[len(iterations) :]:
        results = lowering.lower_closed_jaxpr(scan.jaxpr, [*scan.consts, *carry, *[s[row] for s in scan.xs]])
        carry = results[:n]
        iterations.append(results)
    rows = [results[n:] for results in iterations]
    if scan.reverse:
        rows.reverse()
    stacked = [
        np.stack([row[k] for row in rows]) if rows else np.empty(aval.shape, dtype=np.int64)
        for k, aval in enumerate(scan.result_avals[n:])
    ]
    return [*carry, *stacked]


def unroll_or_loop(lowering: Lowering, scan: Scan) -> list[Nodes]:
    """Results of a loop, unrolled or as a loop node, decided by the size of its second iteration when unrolled."""
    graph, n = lowering.graph, len(scan.carry)
    first_iterations, carry, operands = [], scan.carry, []
    for row in list(scan.row_order())[:2]:
        operands = [*scan.consts, *carry, *[s[row] for s in scan.xs]]
        first_iterations.append(lowering.lower_closed_jaxpr(scan.jaxpr, operands))
        carry = first_iterations[-1][:n]
    # live nodes are counted, not the new ones: the same loop may have been lowered before
    second_iteration = set(_live_nodes(graph, first_iterations[-1])) - set(_live_nodes(graph, operands))
    iteration_size = _compiled_size(graph, second_iteration)
    if iteration_size * scan.trip_count < MIN_LOOP_NODES:
        return unroll(lowering, scan, first_iterations)
    body = _LoopBody(lowering, scan)
    folds_well = iteration_size < FOLDING_THRESHOLD * _compiled_size(body.graph, range(len(body.graph)))
    if (
        folds_well
        and scan.trip_count <= MAX_UNROLLED_ITERATIONS
        and iteration_size * scan.trip_count <= MAX_UNROLLED_NODES
    ):
        return unroll(lowering, scan, first_iterations)
    return body.loop_results()


def _live_nodes(graph: Graph, arrays: list[Nodes]) -> list[int]:
    return graph.live_nodes(node for nodes in arrays for node in source_nodes(nodes))


def _compiled_size(graph: Graph, nodes: Collection[int]) -> int:
    """Number of nodes to compile, including the bodies of loops."""
    bodies = (graph.data[n].body for n in nodes if isinstance(graph.data[n], Loop))
    return len(nodes) + sum(_compiled_size(body, range(len(body))) for body in bodies)


class _LoopBody:
    """The body of a loop as a graph in which only loop-invariant constants are folded."""

    def __init__(self, lowering: Lowering, scan: Scan):
        self.outer, self.scan = lowering.graph, scan
        self.graph = Graph()
        self.views: list[StridedView] = []
        self.arguments: list[int] = []
        self.gathered_columns: dict[str, list[Nodes]] = {"invariants": [], "rows": []}
        carry, self.initial_carry = [], []
        for nodes in scan.carry:
            nodes = scalarize(self.outer, nodes)
            kinds = [self.outer.kinds[n] for n in nodes.ravel().tolist()]
            inputs = [self.graph.input("carry", len(self.initial_carry) + k, kind) for k, kind in enumerate(kinds)]
            carry.append(np.array(inputs, dtype=np.int64).reshape(nodes.shape))
            self.initial_carry += nodes.ravel().tolist()
        invariants = [self._operand(nodes[None], "invariants") for nodes in scan.consts]
        rows = [self._operand(nodes, "rows") for nodes in scan.xs]
        self.results = Lowering(self.graph).lower_closed_jaxpr(scan.jaxpr, [*invariants, *carry, *rows])

    def _operand(self, nodes: Nodes, slot: str) -> Nodes:
        """Body nodes that read an operand with one row, or with one row per iteration."""
        shape, row = nodes.shape[1:], int(np.prod(nodes.shape[1:], dtype=np.int64))
        if row >= MIN_VIEW_SIZE:
            view = contiguous_view(self.outer, nodes)
            if view is not None:
                array, first = view
                name, kind = f"view{len(self.views)}", self._kind(nodes)
                self.views.append(StridedView(name, first, 0 if slot == "invariants" else row, kind))
                self.arguments.append(array)
                return np.array([self.graph.input(name, k, kind) for k in range(row)], dtype=np.int64).reshape(shape)
        columns = scalarize(self.outer, nodes).reshape(len(nodes), row).T
        inputs = []
        for column in columns:
            constant = self.outer.constants.get(int(column[0]))
            if constant is not None and (column == column[0]).all():
                inputs.append(self.graph.constant(constant))
                continue
            index = len(self.gathered_columns[slot])
            self.gathered_columns[slot].append(column)
            inputs.append(self.graph.input(slot, index, self.outer.kinds[int(column[0])]))
        return np.array(inputs, dtype=np.int64).reshape(shape)

    def _kind(self, nodes: Nodes) -> str:
        first = int(nodes.flat[0])
        return self.outer.kinds[scalarize(self.outer, np.array([first]))[0]]

    def loop_results(self) -> list[Nodes]:
        """Nodes of the loop's results."""
        scan, outer, n = self.scan, self.outer, len(self.scan.carry)
        for slot, columns in self.gathered_columns.items():
            if columns:
                scalars = np.array(columns).T.ravel().tolist()
                self.views.append(StridedView(slot, 0, 0 if slot == "invariants" else len(columns)))
                self.arguments.append(array_node(outer, Stack(len(scalars), outer.kinds[scalars[0]]), *scalars))
        outputs, results, offset = {}, [], 0
        for nodes in self.results[:n]:
            flat = scalarize(self.graph, nodes).ravel().tolist()
            outputs |= {("next", offset + k): node for k, node in enumerate(flat)}
            offset += len(flat)
        for k, (nodes, aval) in enumerate(zip(self.results[n:], scan.result_avals[n:], strict=True)):
            flat = scalarize(self.graph, nodes).ravel().tolist()
            outputs |= {(f"out{k}", i): node for i, node in enumerate(flat)}
            results.append((len(flat), kind_of(aval.dtype)))
        kinds = tuple(outer.kinds[node] for node in self.initial_carry)
        spec = Loop(
            self.graph,
            tuple(outputs.items()),
            scan.trip_count,
            scan.reverse,
            tuple(self.views),
            kinds,
            tuple(results),
            kinds[0] if kinds else results[0][1],
        )
        initial_carry = array_node(outer, Stack(len(self.initial_carry), spec.kind), *self.initial_carry)
        array = array_node(outer, spec, initial_carry, *self.arguments)
        scalars, offsets = element_ids(outer, array), [*spec.result_offsets(), spec.size]
        carried, offset = [], 0
        for aval in scan.result_avals[:n]:
            size = int(np.prod(aval.shape, dtype=np.int64))
            entries = [element_node(outer, array, offset + k) for k in range(size)]
            carried.append(np.array(entries, dtype=np.int64).reshape(aval.shape))
            offset += size
        stacked = [
            scalars[offsets[k] : offsets[k + 1]].reshape(aval.shape) for k, aval in enumerate(scan.result_avals[n:])
        ]
        # operations on small results are unrolled, so that structural zeros and ones can fold in them
        return [
            *carried,
            *(scalarize(outer, nodes) if nodes.size <= MAX_SCALAR_RESULTS else nodes for nodes in stacked),
        ]
