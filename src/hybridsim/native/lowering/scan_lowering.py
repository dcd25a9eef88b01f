"""Loops of known length: written out turn by turn, or kept as loops.

Written out, the zeros and ones of a mechanism vanish, and nothing passes through memory. That pays for the joints of a
robot. It does not for the rows of a large contact problem: there each turn is as long as the loop's body, and there are
many. Such loops become one node of the graph (`arrays.Repeat`).
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
"""Loops whose end depends on numbers are written out, but no more often than this."""
MAX_UNROLLED_ITERATIONS = 150
"""Long loops of more turns stay loops, however much of them would vanish: compiling would take longer than it saves."""
MAX_UNROLLED_NODES = 200_000
"""Nodes that a loop may be written out to, however much of it vanishes."""
MIN_LOOP_ITERATIONS = 4
"""Loops of fewer turns are always written out."""
MIN_LOOP_NODES = 3_000
"""Nodes from which on a loop may stay one."""
FOLDING_THRESHOLD = 0.85
"""Share of its body that a turn must be written out to in order to be taken as it is: less, and much of it vanishes."""
MAX_SCALAR_RESULTS = 2_000
"""Results of all turns that are numbers by themselves; more of them stay an array."""
MIN_VIEW_SIZE = 16
"""Numbers from which on an argument is read where it lies."""


@dataclass(frozen=True)
class Scan:
    """A loop, as JAX describes it."""

    jaxpr: Any
    trip_count: int
    reverse: bool
    consts: list[Nodes]
    carry: list[Nodes]
    xs: list[Nodes]
    result_avals: list[Any]
    """Shapes and types of what is carried in the end, then of the stacked results."""

    def row_order(self) -> range:
        """The rows in the order of turns."""
        return range(self.trip_count - 1, -1, -1) if self.reverse else range(self.trip_count)


def unroll(lowering: Lowering, scan: Scan, done: list[list[Nodes]] | None = None) -> list[Nodes]:
    """Results of a loop, turn by turn.

    Args:
        lowering: to write to.
        scan: the loop.
        done: results of its first turns.
    """
    n, turns = len(scan.carry), list(done or ())
    carry = turns[-1][:n] if turns else scan.carry
    for row in list(scan.row_order())[len(turns) :]:
        results = lowering.lower_closed_jaxpr(scan.jaxpr, [*scan.consts, *carry, *[s[row] for s in scan.xs]])
        carry = results[:n]
        turns.append(results)
    rows = [results[n:] for results in turns]
    if scan.reverse:
        rows.reverse()
    stacked = [
        np.stack([row[k] for row in rows]) if rows else np.empty(aval.shape, dtype=np.int64)
        for k, aval in enumerate(scan.result_avals[n:])
    ]
    return [*carry, *stacked]


def unroll_or_loop(lowering: Lowering, scan: Scan) -> list[Nodes]:
    """Results of a loop in the way that takes less: its second turn, written out, tells."""
    graph, n = lowering.graph, len(scan.carry)
    done, carry, given = [], scan.carry, []
    for row in list(scan.row_order())[:2]:
        given = [*scan.consts, *carry, *[s[row] for s in scan.xs]]
        done.append(lowering.lower_closed_jaxpr(scan.jaxpr, given))
        carry = done[-1][:n]
    # what the turn needs, not what it added: the same loop may have been met before
    turn = _compiled_size(graph, set(_live(graph, done[-1])) - set(_live(graph, given)))
    if turn * scan.trip_count < MIN_LOOP_NODES:
        return unroll(lowering, scan, done)
    body = _LoopBody(lowering, scan)
    folds = turn < FOLDING_THRESHOLD * _compiled_size(body.graph, range(len(body.graph)))
    if folds and scan.trip_count <= MAX_UNROLLED_ITERATIONS and turn * scan.trip_count <= MAX_UNROLLED_NODES:
        return unroll(lowering, scan, done)
    return body.loop_results()


def _live(graph: Graph, arrays: list[Nodes]) -> list[int]:
    return graph.live(node for nodes in arrays for node in source_nodes(nodes))


def _compiled_size(graph: Graph, nodes: Collection[int]) -> int:
    """How many nodes there are to be compiled, those within loops included."""
    inner = (graph.data[n].body for n in nodes if isinstance(graph.data[n], Loop))
    return len(nodes) + sum(_compiled_size(body, range(len(body))) for body in inner)


class _LoopBody:
    """The body of a loop, with nothing known but what stays the same."""

    def __init__(self, lowering: Lowering, scan: Scan):
        self.outer, self.scan = lowering.graph, scan
        self.graph = Graph()
        self.views: list[StridedView] = []
        self.arguments: list[int] = []
        self.collected: dict[str, list[Nodes]] = {"fixed": [], "rows": []}
        carry, self.first = [], []
        for nodes in scan.carry:
            nodes = scalarize(self.outer, nodes)
            kinds = [self.outer.kinds[n] for n in nodes.ravel().tolist()]
            inputs = [self.graph.input("carry", len(self.first) + k, kind) for k, kind in enumerate(kinds)]
            carry.append(np.array(inputs, dtype=np.int64).reshape(nodes.shape))
            self.first += nodes.ravel().tolist()
        fixed = [self._operand(nodes[None], "fixed") for nodes in scan.consts]
        rows = [self._operand(nodes, "rows") for nodes in scan.xs]
        self.results = Lowering(self.graph).lower_closed_jaxpr(scan.jaxpr, [*fixed, *carry, *rows])

    def _operand(self, nodes: Nodes, slot: str) -> Nodes:
        """Nodes of the body that read an argument, of which there is one row, or one for every turn."""
        shape, row = nodes.shape[1:], int(np.prod(nodes.shape[1:], dtype=np.int64))
        if row >= MIN_VIEW_SIZE:
            view = contiguous_view(self.outer, nodes)
            if view is not None:
                array, first = view
                name, kind = f"view{len(self.views)}", self._kind(nodes)
                self.views.append(StridedView(name, first, 0 if slot == "fixed" else row, kind))
                self.arguments.append(array)
                return np.array([self.graph.input(name, k, kind) for k in range(row)], dtype=np.int64).reshape(shape)
        columns = scalarize(self.outer, nodes).reshape(len(nodes), row).T
        found = []
        for column in columns:
            same = self.outer.constants.get(int(column[0]))
            if same is not None and (column == column[0]).all():
                found.append(self.graph.constant(same))
                continue
            place = len(self.collected[slot])
            self.collected[slot].append(column)
            found.append(self.graph.input(slot, place, self.outer.kinds[int(column[0])]))
        return np.array(found, dtype=np.int64).reshape(shape)

    def _kind(self, nodes: Nodes) -> str:
        first = int(nodes.flat[0])
        return self.outer.kinds[scalarize(self.outer, np.array([first]))[0]]

    def loop_results(self) -> list[Nodes]:
        """Nodes of the loop's results."""
        scan, outer, n = self.scan, self.outer, len(self.scan.carry)
        for slot, columns in self.collected.items():
            if columns:
                numbers = np.array(columns).T.ravel().tolist()
                self.views.append(StridedView(slot, 0, 0 if slot == "fixed" else len(columns)))
                self.arguments.append(array_node(outer, Stack(len(numbers), outer.kinds[numbers[0]]), *numbers))
        outputs, results, place = {}, [], 0
        for nodes in self.results[:n]:
            flat = scalarize(self.graph, nodes).ravel().tolist()
            outputs |= {("next", place + k): node for k, node in enumerate(flat)}
            place += len(flat)
        for k, (nodes, aval) in enumerate(zip(self.results[n:], scan.result_avals[n:], strict=True)):
            flat = scalarize(self.graph, nodes).ravel().tolist()
            outputs |= {(f"out{k}", i): node for i, node in enumerate(flat)}
            results.append((len(flat), kind_of(aval.dtype)))
        kinds = tuple(outer.kinds[node] for node in self.first)
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
        first = array_node(outer, Stack(len(self.first), spec.kind), *self.first)
        array = array_node(outer, spec, first, *self.arguments)
        numbers, places = element_ids(outer, array), [*spec.result_offsets(), spec.size]
        carried, place = [], 0
        for aval in scan.result_avals[:n]:
            size = int(np.prod(aval.shape, dtype=np.int64))
            found = [element_node(outer, array, place + k) for k in range(size)]
            carried.append(np.array(found, dtype=np.int64).reshape(aval.shape))
            place += size
        stacked = [
            numbers[places[k] : places[k + 1]].reshape(aval.shape) for k, aval in enumerate(scan.result_avals[n:])
        ]
        # what reads a few numbers is written out, and has zeros and ones of its own that would be lost in a loop
        return [
            *carried,
            *(scalarize(outer, nodes) if nodes.size <= MAX_SCALAR_RESULTS else nodes for nodes in stacked),
        ]
