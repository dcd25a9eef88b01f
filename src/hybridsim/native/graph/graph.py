"""The scalar graph: a DAG of the scalar operations of a kernel.

Operands of a node precede it, so node ids are a topological order. On insertion, equal operations on equal operands
become one node (hash-consing), constants are folded, and algebraic identities remove products with the zeros and ones
of axes and placements.

Rewrites change results by rounding only, with two exceptions. `0·x` and `0/x` are 0 for any x, NaN and infinity
included, because a zero known at compile time is structural: an axis or a placement without that component. And a sum,
difference, maximum or minimum that is zero may have either sign. Infinities and NaN propagate everywhere else.
"""

import math
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

from hybridsim.native.graph.constant_folding import (
    INTEGER_OPS,
    divide,
    evaluate_function,
    saturate_to_int64,
    wrap_int64,
)

FLOAT, INT, BOOL, ARRAY = "f", "i", "b", "a"
"""Kinds of values: float64, int64, Boolean, array of these."""


class Graph:
    """Nodes in topological order, each an operation with operands."""

    def __init__(self):
        self.ops: list[str] = []
        self.args: list[tuple[int, ...]] = []
        self.data: list[Any] = []
        """Attributes of the operation: value of a constant, slot and index of an input, specification of an array."""
        self.kinds: list[str] = []
        self.constants: dict[int, float | int | bool] = {}
        """Value of every constant node."""
        self.has_arrays = False
        """Whether any node is an array."""
        self._value_numbers: dict[tuple, int] = {}
        self._float32_nodes: set[int] = set()

    def __len__(self) -> int:
        return len(self.ops)

    def copy(self) -> "Graph":
        """An independent copy."""
        other = Graph()
        for name, value in vars(self).items():
            setattr(other, name, copy(value))
        return other

    def node(self, op: str, *args: int, data: Any = None, kind: str = FLOAT) -> int:
        """The node of an operation, new or existing."""
        key = (op, args, data)
        node_id = self._value_numbers.get(key)
        if node_id is None:
            node_id = self._value_numbers[key] = len(self.ops)
            self.ops.append(op)
            self.args.append(args)
            self.data.append(data)
            self.kinds.append(kind)
            self.has_arrays |= kind == ARRAY
        return node_id

    # leaves

    def constant(self, value: float | int | bool) -> int:
        """A compile-time constant."""
        if isinstance(value, bool):
            kind, key = BOOL, value
        elif isinstance(value, int):
            kind, key = INT, value
        else:
            # NaN is unequal to itself and 0.0 equals -0.0, so these are keyed by their text
            value = float(value)
            kind, key = FLOAT, value if value == value and value != 0.0 else str(value)
        node = self.node("const", data=(kind, key), kind=kind)
        self.constants[node] = value
        return node

    def input(self, slot: str, index: int, kind: str = FLOAT) -> int:
        """A value that the kernel loads: element `index` of the array named `slot`."""
        return self.node("input", data=(slot, index), kind=kind)

    # float arithmetic

    def add(self, a: int, b: int) -> int:
        constants, ops, args = self.constants, self.ops, self.args
        x, y = constants.get(a), constants.get(b)
        if x is not None:
            if y is not None:
                return self.constant(x + y)
            if x == 0.0:
                return b
        elif y == 0.0:
            return a
        if ops[b] == "neg":
            return self.sub(a, args[b][0])
        if ops[a] == "neg":
            return self.sub(b, args[a][0])
        return self.node("add", a, b) if a < b else self.node("add", b, a)

    def sub(self, a: int, b: int) -> int:
        constants, ops, args = self.constants, self.ops, self.args
        x, y = constants.get(a), constants.get(b)
        if x is not None:
            if y is not None:
                return self.constant(x - y)
            if x == 0.0:
                return self.neg(b)
        elif y == 0.0:
            return a
        if ops[b] == "neg":
            return self.add(a, args[b][0])
        if ops[a] == "neg":
            return self.neg(self.add(args[a][0], b))
        return self.node("sub", a, b)

    def neg(self, a: int) -> int:
        x = self.constants.get(a)
        if x is not None:
            return self.constant(-x)
        if self.ops[a] == "neg":
            return self.args[a][0]
        if self.ops[a] == "sub":
            return self.node("sub", self.args[a][1], self.args[a][0])
        return self.node("neg", a)

    def mul(self, a: int, b: int) -> int:
        constants, ops, args = self.constants, self.ops, self.args
        x, y = constants.get(a), constants.get(b)
        if x is not None:
            if y is not None:
                return self.constant(x * y)
            a, b, x, y = b, a, y, x
        if y is not None:
            if y == 0.0:
                return self.constant(0.0)
            if y == 1.0:
                return a
            if y == -1.0:
                return self.neg(a)
        if ops[a] == "neg":
            return self.neg(self.mul(args[a][0], b))
        if ops[b] == "neg":
            return self.neg(self.mul(a, args[b][0]))
        return self.node("mul", a, b) if a < b else self.node("mul", b, a)

    def div(self, a: int, b: int) -> int:
        x, y = self.constants.get(a), self.constants.get(b)
        if y is not None:
            if x is not None:
                return self.constant(divide(x, y))
            if _MIN_NORMAL <= abs(y) <= 1.0 / _MIN_NORMAL:
                return self.mul(a, self.constant(1.0 / y))
        elif x == 0.0:
            return a
        if self.ops[a] == "neg":
            return self.neg(self.div(self.args[a][0], b))
        if self.ops[b] == "neg":
            return self.neg(self.div(a, self.args[b][0]))
        return self.node("div", a, b)

    def fma(self, a: int, b: int, c: int) -> int:
        """a·b + c, rounded once."""
        x, y, z = (self.constants.get(n) for n in (a, b, c))
        if x == 0.0 or y == 0.0:
            return c
        if z == 0.0 or (x is not None and y is not None):
            return self.add(self.mul(a, b), c)
        if x in (1.0, -1.0) or y in (1.0, -1.0):
            return self.add(self.mul(a, b), c)
        return self.node("fma", a, b, c)

    def sqrt(self, a: int) -> int:
        x = self.constants.get(a)
        if x is not None:
            return self.constant(math.sqrt(x) if x >= 0.0 else math.nan)
        return self.node("sqrt", a)

    def abs(self, a: int) -> int:
        x = self.constants.get(a)
        if x is not None:
            return self.constant(abs(x))
        if self.ops[a] == "neg":
            a = self.args[a][0]
        return a if self.ops[a] == "abs" else self.node("abs", a)

    def power(self, a: int, n: int) -> int:
        """aⁿ for an integer n, by repeated squaring."""
        if n < 0:
            return self.div(self.constant(1.0), self.power(a, -n))
        result, square = self.constant(1.0), a
        while n:
            if n & 1:
                result = self.mul(result, square)
            n >>= 1
            if n:
                square = self.mul(square, square)
        return result

    def max(self, a: int, b: int) -> int:
        """Maximum; NaN if either operand is NaN."""
        return self._min_or_max(a, b, self.constants.get(a), self.constants.get(b), largest=True)

    def min(self, a: int, b: int) -> int:
        """Minimum; NaN if either operand is NaN."""
        return self._min_or_max(a, b, self.constants.get(a), self.constants.get(b), largest=False)

    def _min_or_max(self, a: int, b: int, x, y, *, largest: bool) -> int:
        identity = -math.inf if largest else math.inf
        if x is not None and y is not None:
            pick = max if largest else min
            return self.constant(math.nan if x != x or y != y else pick(x, y))
        if x == identity or a == b:
            return b
        if y == identity:
            return a
        if y is not None:
            a, b, x, y = b, a, y, x
        if x is not None and x != x:
            return a
        # comparisons with NaN are false and select b, so NaN in b propagates; NaN in a needs a select unless constant
        chosen = self.select(self.less(b, a) if largest else self.less(a, b), a, b)
        return chosen if x is not None else self.select(self.equal(a, a), chosen, a)

    def function(self, name: str, *args: int) -> int:
        """An elementary function, such as `sin`."""
        values = [self.constants[a] for a in args if a in self.constants]
        if len(values) == len(args):
            return self.constant(evaluate_function(name, *values))
        if self.ops[args[0]] == "neg":
            inner = self.args[args[0]][0]
            if name in _ODD:
                return self.neg(self.function(name, inner))
            if name in _EVEN:
                return self.function(name, inner)
        return self.node(name, *args)

    def round_to_integer(self, name: str, a: int) -> int:
        """`a` rounded to an integer, as a float: `floor`, `ceil`, `rint` (half to even) or `trunc`."""
        x = self.constants.get(a)
        return self.node(name, a) if x is None else self.constant(evaluate_function(name, x))

    def round_to_float32(self, a: int) -> int:
        """`a` rounded to single precision."""
        float32_nodes = self._float32_nodes
        if a in float32_nodes:
            return a
        floats = (n for n in self.args[a] if self.kinds[n] == FLOAT)
        if a in self.constants:
            a = self.constant(evaluate_function("float32", self.constants[a]))
        elif self.ops[a] not in _EXACT_IN_FLOAT32 or not float32_nodes.issuperset(floats):
            a = self.node("float32", a)
        float32_nodes.add(a)
        return a

    # comparisons, selects, Booleans

    def compare(self, op: str, a: int, b: int) -> int:
        """`lt`, `le`, `eq` or `ne`; false for NaN, except `ne`."""
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y is not None:
            return self.constant(bool({"lt": x < y, "le": x <= y, "eq": x == y, "ne": x != y}[op]))
        if op == "lt" and (x == math.inf or y == -math.inf):
            return self.constant(False)  # also for NaN
        if self.kinds[a] == BOOL:
            differs = self.logic("xor", a, b)
            return {"ne": differs, "eq": self.invert(differs)}[op]
        return self.node(op, a, b, kind=BOOL)

    def less(self, a: int, b: int) -> int:
        return self.compare("lt", a, b)

    def equal(self, a: int, b: int) -> int:
        return self.compare("eq", a, b)

    def select(self, condition: int, yes: int, no: int) -> int:
        """`yes` if the condition holds, else `no`."""
        value = self.constants.get(condition)
        if value is not None:
            return yes if value else no
        if yes == no:
            return yes
        if self.ops[condition] == "not":
            return self.select(self.args[condition][0], no, yes)
        kind = self.kinds[yes]
        if kind == BOOL:
            return self.logic("or", self.logic("and", condition, yes), self.logic("and", self.invert(condition), no))
        return self.node("select", condition, yes, no, kind=kind)

    def logic(self, op: str, a: int, b: int) -> int:
        """`and`, `or`, `xor` of Booleans."""
        if a == b:
            return self.constant(False) if op == "xor" else a
        for operand, other in ((a, b), (b, a)):
            value = self.constants.get(operand)
            if value is None:
                continue
            if op == "and":
                return other if value else operand
            if op == "or":
                return operand if value else other
            return self.invert(other) if value else other
        return self.node(op, *sorted((a, b)), kind=BOOL)

    def invert(self, a: int) -> int:
        """Logical negation of a Boolean."""
        value = self.constants.get(a)
        if value is not None:
            return self.constant(not value)
        return self.args[a][0] if self.ops[a] == "not" else self.node("not", a, kind=BOOL)

    # integers and bit patterns

    def integer(self, op: str, *args: int) -> int:
        """`iadd`, `isub`, `imul`, `iand`, `ior`, `ixor`, `shl`, `ashr`, `lshr`, `idiv` or `irem` (truncating).

        Results wrap around; shift counts are 0 to 63; division by 0 gives quotient -1 and remainder the dividend.
        """
        values = [self.constants.get(a) for a in args]
        if all(v is not None for v in values):
            return self.constant(wrap_int64(INTEGER_OPS[op](*values)))
        if op == "iadd":
            for a, v in ((args[1], values[0]), (args[0], values[1])):
                if v == 0:
                    return a
        if op == "imul" and 1 in values:
            return args[1] if values[0] == 1 else args[0]
        return self.node(op, *args, kind=INT)

    def bits(self, a: int) -> int:
        """Bit pattern of a float as int64."""
        if a in self.constants:
            return self.constant(struct.unpack("<q", struct.pack("<d", self.constants[a]))[0])
        return self.args[a][0] if self.ops[a] == "from_bits" else self.node("bits", a, kind=INT)

    def from_bits(self, a: int) -> int:
        """The float with a given bit pattern."""
        if a in self.constants:
            return self.constant(struct.unpack("<d", struct.pack("<q", self.constants[a]))[0])
        return self.args[a][0] if self.ops[a] == "bits" else self.node("from_bits", a)

    def convert(self, a: int, kind: str) -> int:
        """A value as another kind: Booleans become 0 or 1; floats are truncated to int64, saturating, NaN becomes 0."""
        source_kind = self.kinds[a]
        if source_kind == kind:
            return a
        value = self.constants.get(a)
        if value is not None:
            return self.constant({FLOAT: float, INT: saturate_to_int64, BOOL: bool}[kind](value))
        if source_kind == BOOL:
            one, zero = (self.constant(v) for v in ((1.0, 0.0) if kind == FLOAT else (1, 0)))
            return self.select(a, one, zero)
        if kind == BOOL:
            return self.compare("ne", a, self.constant(0.0 if source_kind == FLOAT else 0))
        return self.node("to_float" if kind == FLOAT else "to_int", a, kind=kind)

    # whole graphs

    def sum(self, nodes: Sequence[int]) -> int:
        """Sum as a balanced tree, with less rounding error and less latency than a chain."""
        nodes = [n for n in nodes if self.constants.get(n) != 0.0]
        if not nodes:
            return self.constant(0.0)
        while len(nodes) > 1:
            pairs = [self.add(a, b) for a, b in zip(nodes[::2], nodes[1::2], strict=False)]
            nodes = pairs + ([nodes[-1]] if len(nodes) % 2 else [])
        return nodes[0]

    def live_nodes(self, outputs: Iterable[int]) -> list[int]:
        """Nodes that the outputs depend on, in topological order."""
        visited, worklist, args = set(), list(outputs), self.args
        while worklist:
            node = worklist.pop()
            if node not in visited:
                visited.add(node)
                worklist.extend(args[node])
        return sorted(visited)

    def op_counts(self, outputs: Iterable[int]) -> Counter:
        """Number of live nodes of each operation."""
        return Counter(self.ops[node] for node in self.live_nodes(outputs))


_EXACT_IN_FLOAT32 = {"neg", "abs", "select", "floor", "ceil", "rint", "trunc"}
"""Operations that are exact in single precision for single-precision operands."""
_MIN_NORMAL = 2.0**-1022
_ODD = {"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "cbrt", "erf"}
_EVEN = {"cos", "cosh"}
