"""Superword-level parallelism: isomorphic scalar operations of one trajectory packed into vector operations.

A robot has many joints, each with a sine and a cosine, and identical legs; a network layer applies one activation to
many units. Where no batch of trajectories fills the lanes of a vector, these operations do: isomorphic nodes form a
superword, and so, transitively, do their operands; superwords that save too few instructions are discarded (Larsen &
Amarasinghe 2000). Each lane does the scalar operation, so results are bitwise identical to scalar code.

All nodes of a superword have the same level, and operands have a lower level than their users, so superwords cannot
depend on each other cyclically.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from hybridsim.native.graph.elementary import FUNCTIONS
from hybridsim.native.graph.graph import ARRAY, Graph

Superword = tuple[int, ...]
"""The nodes of one vector operation, by lane."""
Superwords = dict[int, Superword]
"""The superword of each packed node."""
SEED_OPS = {"div", "sqrt", "from_bits", "select"}
"""Operations that seed superwords: the last ones of expanded elementary functions, and those of high latency."""
LEVEL_OPS = {"abs", "bits", "div", "sqrt", "select", "lt", "le"}
"""First operations of expanded functions: each begins a new level, whatever the length of the chain before it."""
INTERCHANGEABLE_OPS = {"add", "sub", "mul", "fma", "neg", "input", "extract"}
"""Operations typical of the arguments of functions.
They share a signature, so that functions match whichever of these operations compute their arguments."""
UNPACKABLE_OPS = {"const", "input", "extract", "pow", "atan2", "rem", "idiv", "irem", *FUNCTIONS}
"""Leaves, integer divisions and library calls, which stay scalar."""
COMMUTATIVE = {"add", "mul", "fma", "iadd", "imul", "iand", "ior", "ixor", "and", "or", "xor", "eq", "ne"}
SIGNATURE_DEPTH = 6
"""Depth to which the expression trees of a seed must match."""
INSTRUCTION_COST = {"div": 4.0, "sqrt": 5.0}
"""Cost of operations in instructions; 1 for all others."""
GATHER_COST, EXTRACT_COST, BROADCAST_COST = 0.3, 0.3, 0.3
"""Cost of inserting a scalar into a vector, extracting one, and broadcasting one to all lanes, in instructions. They
are below 1 because shuffles use other execution ports than arithmetic, the bottleneck (measured on a quadruped)."""
MIN_SUPERWORD_SIZE = 3
"""Smallest superword: two scalar operations are as fast as one vector operation, since the processor is superscalar."""
MIN_SEED_SAVINGS, MIN_COMPONENT_SAVINGS = 3.0, 12.0
"""Instructions that a seed with its operands must save, and that a connected component of superwords must save; smaller
savings are lost to register pressure and latency."""
MAX_VISITS_PER_NODE = 8
"""Average number of visits per node after which the search stops and the remaining nodes stay scalar."""


class Packing:
    """Assignment of the nodes of a graph to superwords."""

    def __init__(self, graph: Graph, order: Sequence[int], outputs: Iterable[int], width: int):
        """Find superwords.

        Two strategies compete: seeds at the ends of elementary functions, which give full vectors of isomorphic
        functions; and seeds at any node, outputs first, which give one lane per identical part of a mechanism (a leg).
        For each connected component of superwords, the strategy with the larger savings is selected.

        Args:
            graph: graph to pack.
            order: its nodes in topological order.
            outputs: nodes needed as scalars.
            width: largest size of a superword.
        """
        self.graph, self._width = graph, width
        self._signatures, self._levels = _node_signatures(graph, order, INTERCHANGEABLE_OPS), _levels(graph, order)
        self._uses: dict[int, set[int]] = defaultdict(set)
        for node in order:
            for a in graph.args[node]:
                self._uses[a].add(node)
        for node in outputs:
            self._uses[node].add(-1)
        seeds = [node for node in order if graph.ops[node] in SEED_OPS]
        function_superwords = self._grow_superwords(seeds, self._signatures)
        structure_superwords = self._grow_superwords(order, _node_signatures(graph, order))
        chosen: Superwords = {}
        for component in self._connected_components(structure_superwords):
            alternative = {
                member: superword
                for node in component
                for superword in (function_superwords.get(node, ()),)
                for member in superword
            }
            if self._savings(component) > self._savings(alternative):
                chosen |= component
        for superword in function_superwords.values():
            if not any(node in chosen for node in superword):
                chosen |= dict.fromkeys(superword, superword)
        self.superword_of: Superwords = {}
        """The superword of each packed node."""
        for component in self._connected_components(chosen):
            if self._savings(component) >= MIN_COMPONENT_SAVINGS:
                self.superword_of |= component

    def operands(self, superword: Superword) -> Iterator[Superword]:
        """Operand rows of a superword; operands of commutative operations are ordered by signature."""
        graph, signatures = self.graph, self._signatures
        operand_rows = []
        for node in superword:
            args = graph.args[node]
            if graph.ops[node] in COMMUTATIVE and signatures[args[0]] > signatures[args[1]]:
                args = (args[1], args[0], *args[2:])
            operand_rows.append(args)
        return zip(*operand_rows, strict=True)

    def _grow_superwords(self, roots: Iterable[int], signatures: Mapping[int, int]) -> Superwords:
        """Superwords of seeds with equal signatures, highest level first, and of their operands."""
        isomorphic: dict[tuple, list[int]] = defaultdict(list)
        for node in roots:
            if self.graph.ops[node] not in UNPACKABLE_OPS and self.graph.kinds[node] != ARRAY:
                isomorphic[self._levels[node], self.graph.ops[node], signatures[node]].append(node)
        packed: Superwords = {}
        budget = MAX_VISITS_PER_NODE * len(self._levels)
        for _, nodes in sorted(isomorphic.items(), reverse=True):
            unpacked = [node for node in nodes if node not in packed]
            for k in range(0, len(unpacked) - MIN_SUPERWORD_SIZE + 1, self._width):
                seed = tuple(unpacked[k : k + self._width])
                if len(seed) < MIN_SUPERWORD_SIZE or budget < 0:
                    continue
                grown = self._grow_from_seed(seed, packed)
                budget -= len(grown)
                if self._savings(grown, packed) >= MIN_SEED_SAVINGS:
                    packed |= grown
        return packed

    def _grow_from_seed(self, seed: Superword, packed: Superwords) -> Superwords:
        """A seed superword and, transitively, the operand rows that can be packed."""
        grown: Superwords = {}
        worklist = [seed]
        while worklist:
            row = worklist.pop()
            if self._is_packable(row, grown, packed):
                grown |= dict.fromkeys(row, row)
                worklist += reversed(list(self.operands(row)))
        return grown

    def _operand_cost(self, row: Superword, *superwords: Mapping[int, Superword]) -> float:
        """Instructions to assemble a vector operand from values that are not already packed that way."""
        first, constants = row[0], self.graph.constants
        if all(node in constants for node in row) or any(known.get(first) == row for known in superwords):
            return 0.0
        if all(node == first for node in row):
            return BROADCAST_COST
        return GATHER_COST * len(row)

    def _is_packable(self, row: Superword, grown: Superwords, packed: Superwords) -> bool:
        """Whether the nodes are distinct, of one operation, on one level and in no other superword."""
        graph, first = self.graph, row[0]
        op, data, level, kinds = graph.ops[first], graph.data[first], self._levels[first], self._kinds(first)
        if op in UNPACKABLE_OPS or ARRAY in kinds or len(set(row)) < len(row):
            return False
        return all(
            graph.ops[node] == op
            and self._kinds(node) == kinds
            and graph.data[node] == data
            and self._levels[node] == level
            and node not in packed
            and node not in grown
            for node in row
        )

    def _kinds(self, node: int) -> tuple[str, ...]:
        """Kinds of a node and its operands; a comparison is of floats or of integers."""
        kinds = self.graph.kinds
        return kinds[node], *(kinds[a] for a in self.graph.args[node])

    def _savings(self, superwords: Superwords, packed: Mapping[int, Superword] = MappingProxyType({})) -> float:
        """Instructions saved by superwords, given superwords already accepted."""
        savings = 0.0
        for superword in dict.fromkeys(superwords.values()):
            savings += INSTRUCTION_COST.get(self.graph.ops[superword[0]], 1.0) * (len(superword) - 1)
            savings -= sum(self._operand_cost(row, superwords, packed) for row in self.operands(superword))
        extracted = [
            node
            for node in superwords
            if any(user not in superwords and user not in packed for user in self._uses[node])
        ]
        return savings - EXTRACT_COST * len(extracted)

    def _connected_components(self, superwords: Superwords) -> Iterator[Superwords]:
        """Connected components of the graph of superwords and their operand superwords."""
        neighbours: dict[Superword, set[Superword]] = defaultdict(set)
        for superword in dict.fromkeys(superwords.values()):
            for row in self.operands(superword):
                if superwords.get(row[0]) == row:
                    neighbours[superword].add(row)
                    neighbours[row].add(superword)
        visited: set[Superword] = set()
        for superword in dict.fromkeys(superwords.values()):
            if superword in visited:
                continue
            visited.add(superword)
            component, worklist = [], [superword]
            while worklist:
                component.append(worklist.pop())
                unvisited = neighbours[component[-1]] - visited
                visited |= unvisited
                worklist += unvisited
            yield {node: superword for superword in component for node in superword}


def _levels(graph: Graph, order: Sequence[int]) -> Mapping[int, tuple[int, int]]:
    """Level of each node: the number of `LEVEL_OPS` so far and of other operations since; grows along every edge.

    Corresponding nodes of the same elementary function have equal levels even if the chains before them differ in
    length.
    """
    levels: dict[int, tuple[int, int]] = {}
    for node in order:
        high, low = max((levels[a] for a in graph.args[node]), default=(0, 0))
        levels[node] = (high + 1, 0) if graph.ops[node] in LEVEL_OPS else (high, low + 1)
    return levels


def _node_signatures(graph: Graph, order: Sequence[int], interchangeable: Collection[str] = ()) -> Mapping[int, int]:
    """Value numbers of the expression trees below the nodes, to `SIGNATURE_DEPTH`: equal for isomorphic nodes.

    Args:
        graph: graph to analyse.
        order: its nodes in topological order.
        interchangeable: operations treated as one and the same where no operand is a constant.
    """
    value_numbers: dict[tuple, int] = {}

    def value_number(key: tuple) -> int:
        return value_numbers.setdefault(key, len(value_numbers))

    ops, constants = graph.ops, graph.constants
    opaque = {
        node for node in order if ops[node] in interchangeable and not any(a in constants for a in graph.args[node])
    }
    signatures = {
        node: value_number(
            ("", graph.kinds[node]) if node in opaque else (ops[node], graph.kinds[node], constants.get(node))
        )
        for node in order
    }
    for _ in range(SIGNATURE_DEPTH):
        deeper = {}
        for node in order:
            if node in opaque:
                deeper[node] = signatures[node]
                continue
            args = [signatures[a] for a in graph.args[node]]
            if ops[node] in COMMUTATIVE:
                args[:2] = sorted(args[:2])
            deeper[node] = value_number((signatures[node], *args))
        signatures = deeper
    return signatures
