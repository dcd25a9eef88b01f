"""Reassociation of sums: terms are added in order of readiness, products by fused multiply-adds.

JAX adds in program order. The run time of a single trajectory is the latency of its critical path, so sums on that path
are added in pairs, earliest terms first; elsewhere a single chain of multiply-adds takes the fewest instructions. The
order is fixed in the graph and so is the same for every lane, vector width and batch.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hybridsim.native.graph.graph import FLOAT, Graph

LATENCY = {
    "const": 0, "input": 0, "neg": 0, "select": 2, "add": 3, "sub": 3, "mul": 3, "fma": 4, "div": 13, "sqrt": 20,
    "sin": 42, "cos": 42, "tan": 75, "asin": 60, "acos": 60, "atan": 49, "atan2": 51, "exp": 48, "exp2": 48,
    "expm1": 49, "sinh": 56, "cosh": 56, "tanh": 58, "logistic": 68, "log": 42, "log1p": 49, "pow": 138,
}  # fmt: skip
"""Approximate latencies in cycles; 1 for operations not listed."""
_SUMS = ("add", "sub", "neg")


class _Term(NamedTuple):
    """A signed term of a sum: a value, or a product not yet computed. Terms are ordered by readiness."""

    ready: int
    serial: int
    negative: bool
    factors: tuple[int, ...]


class SumReassociation:
    """Rebuilds a graph with reassociated sums."""

    def __init__(self, graph: Graph, outputs: Sequence[int], *, fma: bool):
        self.old, self.fma = graph, fma
        self.new = Graph()
        self.zeros = {self.new.constant(0.0), self.new.constant(-0.0)}
        self.depths: list[int] = []
        self.order = graph.live_nodes(outputs)
        self.uses: Counter = Counter(outputs)
        for node in self.order:
            self.uses.update(graph.args[node])
        self.absorbed = self._absorbed_nodes()
        self.slack = self._slack()
        self.serials = itertools.count()

    def run(self, outputs: Sequence[int]) -> tuple[Graph, list[int]]:
        """Rebuild the graph; returns it and its outputs."""
        old, new, node_map = self.old, self.new, {}
        for node in self.order:
            if node in self.absorbed:
                continue
            if node in old.constants:
                node_map[node] = new.constant(old.constants[node])
            elif old.ops[node] in _SUMS and old.kinds[node] == FLOAT:
                node_map[node] = self._sum(node, node_map)
            else:
                args = [node_map[a] for a in old.args[node]]
                node_map[node] = new.node(old.ops[node], *args, data=old.data[node], kind=old.kinds[node])
        return new, [node_map[n] for n in outputs]

    def _absorbed_nodes(self) -> set[int]:
        """Nodes with a single use that become part of the sum using them: partial sums and added products."""
        old, absorbed = self.old, set()
        for node in self.order:
            if old.ops[node] not in _SUMS:
                continue
            for a in old.args[node]:
                if self.uses[a] == 1 and (old.ops[a] in _SUMS or (old.ops[a] == "mul" and old.ops[node] != "neg")):
                    absorbed.add(a)
        return absorbed

    def _slack(self) -> dict[int, int]:
        """Slack of each node: cycles of delay that do not lengthen the critical path."""
        old, depth, height = self.old, {}, dict.fromkeys(self.order, 0)
        for node in self.order:
            depth[node] = LATENCY.get(old.ops[node], 1) + max((depth[a] for a in old.args[node]), default=0)
        for node in reversed(self.order):
            latency = LATENCY.get(old.ops[node], 1)
            for a in old.args[node]:
                height[a] = max(height[a], height[node] + latency)
        longest = max(depth.values(), default=0)
        return {node: longest - depth[node] - height[node] for node in self.order}

    def _ready_time(self, node: int) -> int:
        """Cycle at which the result of a new node is available."""
        new, depths = self.new, self.depths
        while len(depths) < len(new):
            k = len(depths)
            depths.append(LATENCY.get(new.ops[k], 1) + max((depths[a] for a in new.args[k]), default=0))
        return depths[node]

    def _sum(self, root: int, node_map: dict[int, int]) -> int:
        terms = self._terms(root, node_map)
        if not terms:
            return self.new.constant(0.0)
        is_critical = 4 * len(terms) > self.slack[root]
        total = self._sum_pairwise(terms) if is_critical and len(terms) > 2 else self._sum_sequentially(terms)
        value = self._value(total)
        return self.new.neg(value) if total.negative else value

    def _terms(self, root: int, node_map: dict[int, int]) -> list[_Term]:
        old, absorbed, leaves, terms = self.old, self.absorbed, [], []
        seen, repeated = set(), set()
        stack = [(root, False)]
        while stack:
            node, negative = stack.pop()
            op = old.ops[node]
            if op in _SUMS and (node == root or node in absorbed):
                *lhs, rhs = old.args[node]
                stack.append((rhs, negative != (op != "add")))
                stack += [(node, negative) for node in lhs]
            else:
                leaves.append((node, negative))
                (repeated if node in seen else seen).add(node)
        for node, negative in leaves:
            if old.ops[node] == "mul" and (node in absorbed or (self.fma and node not in repeated)):
                # a product with other uses is fused as well, at no extra instruction; but one that occurs twice in the
                # sum must be rounded both times, so that x·y − x·y is zero
                terms.append(self._term(negative, *[node_map[a] for a in old.args[node]]))
            else:
                terms.append(self._term(negative, node_map[node]))
        return [t for t in terms if self.zeros.isdisjoint(t.factors)]

    def _term(self, negative: bool, *factors: int) -> _Term:
        new, ready, positive = self.new, 0, []
        for factor in factors:
            while new.ops[factor] == "neg":
                factor, negative = new.args[factor][0], not negative
            positive.append(factor)
            ready = max(ready, self._ready_time(factor))
        return _Term(ready, next(self.serials), negative, tuple(positive))

    def _value(self, term: _Term) -> int:
        return term.factors[0] if len(term.factors) == 1 else self.new.mul(*term.factors)

    def _sum_sequentially(self, terms: list[_Term]) -> _Term:
        total, *others = sorted(terms)
        for term in others:
            total = self._add_terms(total, term)
        return total

    def _sum_pairwise(self, terms: list[_Term]) -> _Term:
        heap = sorted(terms)
        while len(heap) > 1:
            first = heapq.heappop(heap)
            heapq.heappush(heap, self._add_terms(first, heapq.heappop(heap)))
        return heap[0]

    def _add_terms(self, a: _Term, b: _Term) -> _Term:
        new = self.new
        if len(a.factors) == 2 and len(b.factors) == 1:
            a, b = b, a
        if len(b.factors) == 2 and self.fma:
            negative = a.negative and b.negative
            addend, (x, y) = self._value(a), b.factors
            if a.negative and not negative:
                addend = new.neg(addend)
            if b.negative and not negative:
                x = new.neg(x)
            return self._term(negative, new.fma(x, y, addend))
        x, y = self._value(a), self._value(b)
        if a.negative == b.negative:
            return self._term(a.negative, new.add(x, y))
        return self._term(False, new.sub(x, y) if b.negative else new.sub(y, x))


def reassociate_sums(graph: Graph, outputs: Sequence[int], *, fma: bool) -> tuple[Graph, list[int]]:
    """Reassociate the sums of a graph.

    Args:
        graph: graph to rewrite.
        outputs: its output nodes.
        fma: whether the target has fused multiply-add.
    """
    return SumReassociation(graph, outputs, fma=fma).run(outputs)
