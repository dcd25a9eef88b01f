"""Optimization passes: loop fusion, shared reciprocals, reassociation with fused multiply-adds, function expansion.

All rewrites happen in the graph; the compiler gets no fast-math flags. A trajectory is therefore bitwise identical in
any lane, vector width, batch or thread.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from hybridsim.native.graph.elementary import FUNCTIONS
from hybridsim.native.graph.functions import expand
from hybridsim.native.graph.graph import Graph
from hybridsim.native.graph.loop_fusion import fuse_loops
from hybridsim.native.graph.reassociate import reassociate_sums

_BINARY_FUNCTIONS = {"pow", "atan2", "rem"}


def optimize(graph: Graph, outputs: Sequence[int], *, fma: bool) -> tuple[Graph, list[int]]:
    """Rewrite a graph for fast execution.

    Args:
        graph: graph to optimize.
        outputs: its output nodes.
        fma: whether the target has fused multiply-add.
    """
    graph, outputs = fuse_loops(graph, outputs, partial(optimize, fma=fma), fma=fma)
    graph, outputs = _rebuild(graph, outputs, _ShareReciprocals(graph, outputs))
    graph, outputs = reassociate_sums(graph, outputs, fma=fma)
    # last, because these expansions must not be reassociated
    return _rebuild(graph, outputs, _ExpandFunctions(fma))


class _Rewrite:
    """A pass that rebuilds the graph node by node; subclasses override `node`."""

    def node(self, new: Graph, old: Graph, node_id: int, args: list[int]) -> int:
        """The new node of an old one, given its rebuilt operands."""
        op = old.ops[node_id]
        if op in _ARITHMETIC:
            return getattr(new, op)(*args)
        if op == "select":
            return new.select(*args)
        return new.node(op, *args, data=old.data[node_id], kind=old.kinds[node_id])


_ARITHMETIC = {"add", "sub", "mul", "div", "neg", "abs", "sqrt", "fma"}


class _ExpandFunctions(_Rewrite):
    """Expand elementary functions into arithmetic."""

    def __init__(self, fma: bool):
        self.fma = fma

    def node(self, new: Graph, old: Graph, node_id: int, args: list[int]) -> int:
        op = old.ops[node_id]
        if op in _EXPANDABLE:
            result = expand(new, op, *args, fma=self.fma)
            if result is not None:
                return result
        return super().node(new, old, node_id, args)


_EXPANDABLE = {*FUNCTIONS, *_BINARY_FUNCTIONS}


class _ShareReciprocals(_Rewrite):
    """Replace divisions by a common divisor with multiplications by its reciprocal."""

    def __init__(self, graph: Graph, outputs: Sequence[int]):
        live = graph.live_nodes(outputs)
        self.divisions = Counter(graph.args[n][1] for n in live if graph.ops[n] == "div")
        for constant in graph.constants:
            # constant divisors that remain are those whose reciprocal over- or underflows
            self.divisions.pop(constant, None)

    def node(self, new: Graph, old: Graph, node_id: int, args: list[int]) -> int:
        if old.ops[node_id] == "div" and self.divisions[old.args[node_id][1]] > 1:
            return new.mul(args[0], new.div(new.constant(1.0), args[1]))
        return super().node(new, old, node_id, args)


def _rebuild(graph: Graph, outputs: Sequence[int], rewrite: _Rewrite) -> tuple[Graph, list[int]]:
    new = Graph()
    node_map: dict[int, int] = {}
    for node_id in graph.live_nodes(outputs):
        if node_id in graph.constants:
            node_map[node_id] = new.constant(graph.constants[node_id])
        else:
            node_map[node_id] = rewrite.node(new, graph, node_id, [node_map[a] for a in graph.args[node_id]])
    return new, [node_map[n] for n in outputs]
