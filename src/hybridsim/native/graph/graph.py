"""The scalar graph: every number that a kernel computes, each one once.

A node is an operation on earlier nodes, so node numbers are an order in which the graph can be evaluated. Equal
operations on equal arguments are one node (hash-consing), constants are folded, and products with the zeros and ones
of axes and placements vanish on the way in.

Rewrites never change a result beyond rounding, with two exceptions. `0·x` and `0/x` are 0 whatever x is, because the
zeros of a mechanism mean "not there". And a sum, a difference, a larger or a smaller one that is zero may be the other
zero of 0.0 and -0.0. Infinities and NaN elsewhere stay what they are.
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
"""Kinds of values: float64, int64, truth value, array of these."""

FUNCTIONS = (
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log1p logistic cbrt erf erfc"
).split()
"""Elementary functions of one argument; `functions.py` turns the common ones into arithmetic."""


class Graph:
    """Nodes, each an operation with arguments, in an order in which they can be computed."""

    def __init__(self):
        self.ops: list[str] = []
        self.args: list[tuple[int, ...]] = []
        self.data: list[Any] = []
        """What the operation needs besides its arguments: the value of a constant, the place of an input."""
        self.kinds: list[str] = []
        self.constants: dict[int, float | int | bool] = {}
        """Value of every constant node."""
        self.has_arrays = False
        """Are there arrays among the nodes?"""
        self._value_numbers: dict[tuple, int] = {}
        self._float32_nodes: set[int] = set()

    def __len__(self) -> int:
        return len(self.ops)

    def copy(self) -> "Graph":
        """The same nodes, to which others can be added."""
        other = Graph()
        for name, value in vars(self).items():
            setattr(other, name, copy(value))
        return other

    def node(self, op: str, *args: int, data: Any = None, kind: str = FLOAT) -> int:
        """The node of an operation, new or already there."""
        key = (op, args, data)
        found = self._value_numbers.get(key)
        if found is None:
            found = self._value_numbers[key] = len(self.ops)
            self.ops.append(op)
            self.args.append(args)
            self.data.append(data)
            self.kinds.append(kind)
            self.has_arrays |= kind == ARRAY
        return found

    # leaves

    def constant(self, value: float | int | bool) -> int:
        """A number known when the kernel is compiled."""
        if isinstance(value, bool):
            kind, key = BOOL, value
        elif isinstance(value, int):
            kind, key = INT, value
        else:
            # NaN is not equal to itself, and zero is equal to minus zero: their text tells them apart
            value = float(value)
            kind, key = FLOAT, value if value == value and value != 0.0 else str(value)
        node = self.node("const", data=(kind, key), kind=kind)
        self.constants[node] = value
        return node

    def input(self, slot: str, index: int, kind: str = FLOAT) -> int:
        """A number that the kernel reads: element `index` of the array named `slot`."""
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
        """aⁿ for a whole number n, by repeated squaring."""
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
        """The larger one; NaN if either is."""
        return self._min_or_max(a, b, self.constants.get(a), self.constants.get(b), largest=True)

    def min(self, a: int, b: int) -> int:
        """The smaller one; NaN if either is."""
        return self._min_or_max(a, b, self.constants.get(a), self.constants.get(b), largest=False)

    def _min_or_max(self, a: int, b: int, x, y, *, largest: bool) -> int:
        worst = -math.inf if largest else math.inf
        if x is not None and y is not None:
            pick = max if largest else min
            return self.constant(math.nan if x != x or y != y else pick(x, y))
        if x == worst or a == b:
            return b
        if y == worst:
            return a
        if y is not None:
            a, b, x, y = b, a, y, x
        if x is not None and x != x:
            return a
        # a comparison with NaN is false, so that the second choice below is taken: it must be the NaN
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
        """A whole number near `a`, as a float: `floor`, `ceil`, `rint` (half to even) or `trunc`."""
        x = self.constants.get(a)
        return self.node(name, a) if x is None else self.constant(evaluate_function(name, x))

    def round_to_float32(self, a: int) -> int:
        """`a` rounded to single precision."""
        singles = self._float32_nodes
        if a in singles:
            return a
        floats = (n for n in self.args[a] if self.kinds[n] == FLOAT)
        if a in self.constants:
            a = self.constant(evaluate_function("float32", self.constants[a]))
        elif self.ops[a] not in _EXACT_IN_FLOAT32 or not singles.issuperset(floats):
            a = self.node("single", a)
        singles.add(a)
        return a

    # comparisons, choices, truth values

    def compare(self, op: str, a: int, b: int) -> int:
        """`lt`, `le`, `eq` or `ne`; false for NaN, except `ne`."""
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y is not None:
            return self.constant(bool({"lt": x < y, "le": x <= y, "eq": x == y, "ne": x != y}[op]))
        if op == "lt" and (x == math.inf or y == -math.inf):
            return self.constant(False)  # for NaN too
        if self.kinds[a] == BOOL:
            differs = self.logic("xor", a, b)
            return {"ne": differs, "eq": self.invert(differs)}[op]
        return self.node(op, a, b, kind=BOOL)

    def less(self, a: int, b: int) -> int:
        return self.compare("lt", a, b)

    def equal(self, a: int, b: int) -> int:
        return self.compare("eq", a, b)

    def select(self, condition: int, yes: int, no: int) -> int:
        """`yes` where the condition holds, else `no`."""
        known = self.constants.get(condition)
        if known is not None:
            return yes if known else no
        if yes == no:
            return yes
        if self.ops[condition] == "not":
            return self.select(self.args[condition][0], no, yes)
        kind = self.kinds[yes]
        if kind == BOOL:
            return self.logic("or", self.logic("and", condition, yes), self.logic("and", self.invert(condition), no))
        return self.node("select", condition, yes, no, kind=kind)

    def logic(self, op: str, a: int, b: int) -> int:
        """`and`, `or`, `xor` of truth values."""
        if a == b:
            return self.constant(False) if op == "xor" else a
        for first, second in ((a, b), (b, a)):
            known = self.constants.get(first)
            if known is None:
                continue
            if op == "and":
                return second if known else first
            if op == "or":
                return first if known else second
            return self.invert(second) if known else second
        return self.node(op, *sorted((a, b)), kind=BOOL)

    def invert(self, a: int) -> int:
        known = self.constants.get(a)
        if known is not None:
            return self.constant(not known)
        return self.args[a][0] if self.ops[a] == "not" else self.node("not", a, kind=BOOL)

    # whole numbers and bit patterns

    def integer(self, op: str, *args: int) -> int:
        """`iadd`, `isub`, `imul`, `iand`, `ior`, `ixor`, `shl`, `ashr`, `lshr`, `idiv` or `irem` (towards zero).

        Results wrap around; shifts are by 0 to 63 bits; the quotient by 0 is -1 and the remainder the dividend.
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
        """The bit pattern of a float as a whole number."""
        if a in self.constants:
            return self.constant(struct.unpack("<q", struct.pack("<d", self.constants[a]))[0])
        return self.args[a][0] if self.ops[a] == "from_bits" else self.node("bits", a, kind=INT)

    def from_bits(self, a: int) -> int:
        """The float that has a bit pattern."""
        if a in self.constants:
            return self.constant(struct.unpack("<d", struct.pack("<q", self.constants[a]))[0])
        return self.args[a][0] if self.ops[a] == "bits" else self.node("from_bits", a)

    def convert(self, a: int, kind: str) -> int:
        """A value as another kind: truth values are 0 or 1, floats are cut towards zero.

        Floats beyond the whole numbers become the largest or smallest of these, and NaN becomes zero.
        """
        own = self.kinds[a]
        if own == kind:
            return a
        known = self.constants.get(a)
        if known is not None:
            return self.constant({FLOAT: float, INT: saturate_to_int64, BOOL: bool}[kind](known))
        if own == BOOL:
            one, zero = (self.constant(v) for v in ((1.0, 0.0) if kind == FLOAT else (1, 0)))
            return self.select(a, one, zero)
        if kind == BOOL:
            return self.compare("ne", a, self.constant(0.0 if own == FLOAT else 0))
        return self.node("to_float" if kind == FLOAT else "to_int", a, kind=kind)

    # whole graphs

    def sum(self, nodes: Sequence[int]) -> int:
        """A sum of many nodes as a balanced tree, which rounds less than a chain and waits less for its terms."""
        nodes = [n for n in nodes if self.constants.get(n) != 0.0]
        if not nodes:
            return self.constant(0.0)
        while len(nodes) > 1:
            pairs = [self.add(a, b) for a, b in zip(nodes[::2], nodes[1::2], strict=False)]
            nodes = pairs + ([nodes[-1]] if len(nodes) % 2 else [])
        return nodes[0]

    def live(self, outputs: Iterable[int]) -> list[int]:
        """The nodes that outputs depend on, in order."""
        alive, waiting, args = set(), list(outputs), self.args
        while waiting:
            node = waiting.pop()
            if node not in alive:
                alive.add(node)
                waiting.extend(args[node])
        return sorted(alive)

    def op_counts(self, outputs: Iterable[int]) -> Counter:
        """How often each operation occurs in what the outputs need."""
        return Counter(self.ops[node] for node in self.live(outputs))


_EXACT_IN_FLOAT32 = {"neg", "abs", "select", "floor", "ceil", "rint", "trunc"}
"""Operations that need no rounding if their arguments are of single precision."""
_MIN_NORMAL = 2.0**-1022
_ODD = {"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "cbrt", "erf"}
_EVEN = {"cos", "cosh"}
