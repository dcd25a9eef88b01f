"""Rewriting a finished graph for the machine: functions as arithmetic, shared reciprocals, fused multiply-adds.

All of this happens in the graph and nothing is left to the compiler's licence, so that one trajectory gives the same
bits whatever lane, width, batch or thread it is computed in.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from hybridsim.native.graph.functions import expand
from hybridsim.native.graph.graph import FUNCTIONS, Graph
from hybridsim.native.graph.loop_fusion import fuse_loops
from hybridsim.native.graph.reassociate import reassociate_sums

_BINARY_FUNCTIONS = {"pow", "atan2", "rem"}


def optimize(graph: Graph, outputs: Sequence[int], *, fma: bool) -> tuple[Graph, list[int]]:
    """An equivalent graph that is fast to run.

    Args:
        graph: what to compute.
        outputs: the nodes that are wanted.
        fma: does the machine have fused multiply-add?
    """
    graph, outputs = fuse_loops(graph, outputs, partial(optimize, fma=fma), fma=fma)
    graph, outputs = _rebuild(graph, outputs, _ShareReciprocals(graph, outputs))
    graph, outputs = reassociate_sums(graph, outputs, fma=fma)
    # last, because the order of operations in these formulas matters
    return _rebuild(graph, outputs, _ExpandFunctions(fma))


class _Rewrite:
    """Rebuilds nodes one by one; a pass overrides what it changes."""

    def node(self, new: Graph, old: Graph, number: int, args: list[int]) -> int:
        """The new node for an old one whose arguments have been rebuilt."""
        op = old.ops[number]
        if op in _ARITHMETIC:
            return getattr(new, op)(*args)
        if op == "select":
            return new.select(*args)
        return new.node(op, *args, data=old.data[number], kind=old.kinds[number])


_ARITHMETIC = {"add", "sub", "mul", "div", "neg", "abs", "sqrt", "fma"}


class _ExpandFunctions(_Rewrite):
    """Elementary functions become arithmetic."""

    def __init__(self, fma: bool):
        self.fma = fma

    def node(self, new: Graph, old: Graph, number: int, args: list[int]) -> int:
        op = old.ops[number]
        if op in _EXPANDABLE:
            result = expand(new, op, *args, fma=self.fma)
            if result is not None:
                return result
        return super().node(new, old, number, args)


_EXPANDABLE = {*FUNCTIONS, *_BINARY_FUNCTIONS}


class _ShareReciprocals(_Rewrite):
    """Several divisions by one number become one division and several products."""

    def __init__(self, graph: Graph, outputs: Sequence[int]):
        live = graph.live(outputs)
        self.divisions = Counter(graph.args[n][1] for n in live if graph.ops[n] == "div")
        for constant in graph.constants:
            # a constant divisor that is left has no reciprocal as good as itself
            self.divisions.pop(constant, None)

    def node(self, new: Graph, old: Graph, number: int, args: list[int]) -> int:
        if old.ops[number] == "div" and self.divisions[old.args[number][1]] > 1:
            return new.mul(args[0], new.div(new.constant(1.0), args[1]))
        return super().node(new, old, number, args)


def _rebuild(graph: Graph, outputs: Sequence[int], rewrite: _Rewrite) -> tuple[Graph, list[int]]:
    new = Graph()
    renamed: dict[int, int] = {}
    for number in graph.live(outputs):
        if number in graph.constants:
            renamed[number] = new.constant(graph.constants[number])
        else:
            renamed[number] = rewrite.node(new, graph, number, [renamed[a] for a in graph.args[number]])
    return new, [renamed[n] for n in outputs]
