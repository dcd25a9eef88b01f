"""Packing: operations of a single trajectory that are the same on different numbers, done side by side in one vector.

A robot has many joints, each with a sine and a cosine, and legs that are alike; a network has many units with the same
function. Where there are no trajectories to fill the lanes of a vector, these do: values of the same form are computed
in one bundle, with what they depend on, as far as that saves instructions (superword parallelism, Larsen & Amarasinghe
2000). The operations are the same as one by one, so that no bit of a number changes.

All values of a bundle are on one level of the graph. What a value depends on is on a lower one, so that bundles cannot
wait for each other.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from hybridsim.native.graph.graph import ARRAY, FUNCTIONS, Graph

Bundle = tuple[int, ...]
"""Nodes that are computed together, by lane."""
Bundles = dict[int, Bundle]
"""The bundle that each node of some is in."""
SEED_OPS = {"div", "sqrt", "from_bits", "select"}
"""Operations that elementary functions end with, or nearly so, and what takes long by itself."""
LEVEL_OPS = {"abs", "bits", "div", "sqrt", "select", "lt", "le"}
"""Operations that functions begin with: a new level, whatever came before."""
INTERCHANGEABLE_OPS = {"add", "sub", "mul", "fma", "neg", "input", "part"}
"""Of which arguments of functions are made, be it a longer sum or a shorter one."""
UNPACKABLE_OPS = {"const", "input", "part", "pow", "atan2", "rem", "idiv", "irem", *FUNCTIONS}
"""What is read, and what is called number by number."""
COMMUTATIVE = {"add", "mul", "fma", "iadd", "imul", "iand", "ior", "ixor", "and", "or", "xor", "eq", "ne"}
SIGNATURE_DEPTH = 6
"""Operations one after the other that must agree before a bundle is tried."""
INSTRUCTION_COST = {"div": 4.0, "sqrt": 5.0}
"""Of an operation, in instructions; one for all others."""
GATHER_COST, EXTRACT_COST, SPLAT_COST = 0.3, 0.3, 0.3
"""What it costs to put a number into a vector, to take it out, and to have one in all lanes. These are instructions,
too, but others than those for which a processor has no time left (measured on a quadruped)."""
MIN_BUNDLE_SIZE = 3
"""Values in a bundle: two of them are as fast one by one, because the processor does two things at once anyway."""
MIN_SEED_SAVINGS, MIN_COMPONENT_SAVINGS = 3.0, 12.0
"""Instructions to be saved by a root and what is taken along with it, and by all bundles that hang together; less is
lost again in registers and waiting."""
VISITS_PER_NODE = 8
"""How often nodes are looked at on average, before what is left stays as it is."""


class Packing:
    """Which nodes of a graph are computed together."""

    def __init__(self, graph: Graph, order: Sequence[int], outputs: Iterable[int], width: int):
        """Find bundles.

        There are two ways: from the ends of functions, in full vectors of all that are alike; or from the end of the
        program, lane by lane along with parts of a mechanism that are alike. Wherever bundles hang together, that way
        is taken which saves more.

        Args:
            graph: what to compute.
            order: its nodes, arguments first.
            outputs: nodes that are wanted as single numbers.
            width: of the largest bundle.
        """
        self.graph, self._width = graph, width
        self._signatures, self._levels = _node_signatures(graph, order, INTERCHANGEABLE_OPS), _levels(graph, order)
        self._uses: dict[int, set[int]] = defaultdict(set)
        for node in order:
            for a in graph.args[node]:
                self._uses[a].add(node)
        for node in outputs:
            self._uses[node].add(-1)
        of_functions = self._grow_bundles([node for node in order if graph.ops[node] in SEED_OPS], self._signatures)
        of_all = self._grow_bundles(order, _node_signatures(graph, order))
        chosen: Bundles = {}
        for together in self._connected_components(of_all):
            other = {one: bundle for node in together for bundle in (of_functions.get(node, ()),) for one in bundle}
            if self._savings(together) > self._savings(other):
                chosen |= together
        for bundle in of_functions.values():
            if not any(node in chosen for node in bundle):
                chosen |= dict.fromkeys(bundle, bundle)
        self.bundle_of: Bundles = {}
        """The bundle that each node of some is in."""
        for together in self._connected_components(chosen):
            if self._savings(together) >= MIN_COMPONENT_SAVINGS:
                self.bundle_of |= together

    def operands(self, bundle: Bundle) -> Iterator[Bundle]:
        """What a bundle is computed from, argument by argument; where their order does not matter, in that of forms."""
        graph, forms = self.graph, self._signatures
        rows = []
        for node in bundle:
            args = graph.args[node]
            if graph.ops[node] in COMMUTATIVE and forms[args[0]] > forms[args[1]]:
                args = (args[1], args[0], *args[2:])
            rows.append(args)
        return zip(*rows, strict=True)

    def _grow_bundles(self, roots: Iterable[int], forms: Mapping[int, int]) -> Bundles:
        """Bundles of roots of the same form, the last ones first, and of what these depend on."""
        alike: dict[tuple, list[int]] = defaultdict(list)
        for node in roots:
            if self.graph.ops[node] not in UNPACKABLE_OPS and self.graph.kinds[node] != ARRAY:
                alike[self._levels[node], self.graph.ops[node], forms[node]].append(node)
        known: Bundles = {}
        left = VISITS_PER_NODE * len(self._levels)
        for _, nodes in sorted(alike.items(), reverse=True):
            free = [node for node in nodes if node not in known]
            for k in range(0, len(free) - MIN_BUNDLE_SIZE + 1, self._width):
                root = tuple(free[k : k + self._width])
                if len(root) < MIN_BUNDLE_SIZE or left < 0:
                    continue
                taken = self._grow_from_seed(root, known)
                left -= len(taken)
                if self._savings(taken, known) >= MIN_SEED_SAVINGS:
                    known |= taken
        return known

    def _grow_from_seed(self, root: Bundle, known: Bundles) -> Bundles:
        """A bundle and all that it depends on, wherever that can be bundles, too."""
        taken: Bundles = {}
        waiting = [root]
        while waiting:
            row = waiting.pop()
            if self._is_packable(row, taken, known):
                taken |= dict.fromkeys(row, row)
                waiting += reversed(list(self.operands(row)))
        return taken

    def _operand_cost(self, row: Bundle, *bundles: Mapping[int, Bundle]) -> float:
        """Instructions that bring numbers side by side that are not computed so."""
        first, constants = row[0], self.graph.constants
        if all(node in constants for node in row) or any(some.get(first) == row for some in bundles):
            return 0.0
        if all(node == first for node in row):
            return SPLAT_COST
        return GATHER_COST * len(row)

    def _is_packable(self, row: Bundle, taken: Bundles, known: Bundles) -> bool:
        """Are these different nodes of one operation, on one level, and in no other bundle?"""
        graph, first = self.graph, row[0]
        op, data, level, kinds = graph.ops[first], graph.data[first], self._levels[first], self._kinds(first)
        if op in UNPACKABLE_OPS or ARRAY in kinds or len(set(row)) < len(row):
            return False
        return all(
            graph.ops[node] == op
            and self._kinds(node) == kinds
            and graph.data[node] == data
            and self._levels[node] == level
            and node not in known
            and node not in taken
            for node in row
        )

    def _kinds(self, node: int) -> tuple[str, ...]:
        """Of a node's value and of its arguments: comparisons are of floats or of whole numbers."""
        kinds = self.graph.kinds
        return kinds[node], *(kinds[a] for a in self.graph.args[node])

    def _savings(self, bundles: Bundles, known: Mapping[int, Bundle] = MappingProxyType({})) -> float:
        """Instructions that bundles save, beside others that are known."""
        saved = 0.0
        for bundle in dict.fromkeys(bundles.values()):
            saved += INSTRUCTION_COST.get(self.graph.ops[bundle[0]], 1.0) * (len(bundle) - 1)
            saved -= sum(self._operand_cost(row, bundles, known) for row in self.operands(bundle))
        single = [node for node in bundles if any(u not in bundles and u not in known for u in self._uses[node])]
        return saved - EXTRACT_COST * len(single)

    def _connected_components(self, bundles: Bundles) -> Iterator[Bundles]:
        """Bundles by which of them are computed from each other."""
        neighbours: dict[Bundle, set[Bundle]] = defaultdict(set)
        for bundle in dict.fromkeys(bundles.values()):
            for row in self.operands(bundle):
                if bundles.get(row[0]) == row:
                    neighbours[bundle].add(row)
                    neighbours[row].add(bundle)
        seen: set[Bundle] = set()
        for bundle in dict.fromkeys(bundles.values()):
            if bundle in seen:
                continue
            seen.add(bundle)
            found, waiting = [], [bundle]
            while waiting:
                found.append(waiting.pop())
                new = neighbours[found[-1]] - seen
                seen |= new
                waiting += new
            yield {node: one for one in found for node in one}


def _levels(graph: Graph, order: Sequence[int]) -> Mapping[int, tuple[int, int]]:
    """A pair of numbers that grows along every dependence: operations of `STEPS` so far, and others since the last.

    It is the same for what is inside of the same function of different arguments, even if one of them is a longer sum.
    """
    levels: dict[int, tuple[int, int]] = {}
    for node in order:
        high, low = max((levels[a] for a in graph.args[node]), default=(0, 0))
        levels[node] = (high + 1, 0) if graph.ops[node] in LEVEL_OPS else (high, low + 1)
    return levels


def _node_signatures(graph: Graph, order: Sequence[int], alike: Collection[str] = ()) -> Mapping[int, int]:
    """Numbers that are the same for nodes of the same operations, as far as these are looked at.

    Args:
        graph: what to compute.
        order: its nodes, arguments first.
        alike: operations that are all the same where none of their arguments is a constant.
    """
    numbers: dict[tuple, int] = {}

    def number(key: tuple) -> int:
        return numbers.setdefault(key, len(numbers))

    ops, constants = graph.ops, graph.constants
    plain = {node for node in order if ops[node] in alike and not any(a in constants for a in graph.args[node])}
    forms = {
        node: number(("", graph.kinds[node]) if node in plain else (ops[node], graph.kinds[node], constants.get(node)))
        for node in order
    }
    for _ in range(SIGNATURE_DEPTH):
        deeper = {}
        for node in order:
            if node in plain:
                deeper[node] = forms[node]
                continue
            args = [forms[a] for a in graph.args[node]]
            if ops[node] in COMMUTATIVE:
                args[:2] = sorted(args[:2])
            deeper[node] = number((forms[node], *args))
        forms = deeper
    return forms
