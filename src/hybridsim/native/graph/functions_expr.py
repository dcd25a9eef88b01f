"""Graph nodes with operators, so that expansions of elementary functions read like formulas.

Every operation is one or two SIMD instructions for any number of lanes. Others are deliberately omitted. AVX2 has no
conversions of int64; floats are therefore rounded to integers by adding `ROUND_MAGIC`, and the integers are read from
the bits of the sum. Nor has it an arithmetic right shift of int64; only that by 63 is provided, which compiles to a
comparison with zero.
"""

import struct
from collections.abc import Sequence
from typing import Self

from hybridsim.native.graph.graph import BOOL, INT, Graph

ROUND_MAGIC = 1.5 * 2.0**52
"""x + ROUND_MAGIC rounds x to an integer (|x| < 2⁵¹), held in two's complement by the lowest bits of the sum."""
SIGN_BIT = -(2**63)
"""Mask of the sign bit."""


def bit_pattern(x: float) -> int:
    """Bit pattern of a float as int64."""
    return struct.unpack("<q", struct.pack("<d", x))[0]


class Expr:
    """A graph node with arithmetic operators; `fma` tells whether `mad` is rounded once."""

    __slots__ = ("fma", "graph", "node")

    def __init__(self, graph: Graph, node: int, fma: bool):
        self.graph, self.node, self.fma = graph, node, fma

    def with_node(self, node: int) -> Self:
        """Another node of the same graph."""
        return type(self)(self.graph, node, self.fma)

    def constant(self, value: float | int | bool) -> Self:
        return self.with_node(self.graph.constant(value))

    def operand(self, other: "Expr | float") -> int:
        return other.node if isinstance(other, Expr) else self.graph.constant(other)

    def _op(self, float_op, int_op: str, a: "Expr | float", b: "Expr | float") -> Self:
        a, b = self.operand(a), self.operand(b)
        is_integer = self.graph.kinds[self.node] == INT
        return self.with_node(self.graph.integer(int_op, a, b) if is_integer else float_op(a, b))

    def __add__(self, other: "Expr | float") -> Self:
        return self._op(self.graph.add, "iadd", self, other)

    def __sub__(self, other: "Expr | float") -> Self:
        return self._op(self.graph.sub, "isub", self, other)

    def __rsub__(self, other: float) -> Self:
        return self._op(self.graph.sub, "isub", other, self)

    def __mul__(self, other: "Expr | float") -> Self:
        return self._op(self.graph.mul, "imul", self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __truediv__(self, other: "Expr") -> Self:
        return self.with_node(self.graph.div(self.node, other.node))

    def __rtruediv__(self, other: float) -> Self:
        return self.with_node(self.graph.div(self.operand(other), self.node))

    def __neg__(self) -> Self:
        return self.with_node(self.graph.neg(self.node))

    def __abs__(self) -> Self:
        return self.with_node(self.graph.abs(self.node))

    def sqrt(self) -> Self:
        return self.with_node(self.graph.sqrt(self.node))

    def rint(self) -> Self:
        return self.with_node(self.graph.round_to_integer("rint", self.node))

    def max(self, bound: float) -> Self:
        """Maximum of the value and a bound; NaN propagates."""
        return self.with_node(self.graph.max(self.node, self.operand(bound)))

    def min(self, bound: float) -> Self:
        """Minimum of the value and a bound; NaN propagates."""
        return self.with_node(self.graph.min(self.node, self.operand(bound)))

    # comparisons and Booleans

    def __lt__(self, other: "Expr | float") -> Self:
        return self.with_node(self.graph.less(self.node, self.operand(other)))

    def __gt__(self, other: "Expr | float") -> Self:
        return self.with_node(self.graph.less(self.operand(other), self.node))

    def equals(self, other: "Expr | float") -> Self:
        return self.with_node(self.graph.equal(self.node, self.operand(other)))

    def __invert__(self) -> Self:
        return self.with_node(self.graph.invert(self.node))

    def __and__(self, other: "Expr | int") -> Self:
        return self._logic("and", "iand", other)

    def __or__(self, other: "Expr | int") -> Self:
        return self._logic("or", "ior", other)

    def __xor__(self, other: "Expr | int") -> Self:
        return self._logic("xor", "ixor", other)

    def _logic(self, bool_op: str, int_op: str, other: "Expr | int") -> Self:
        b = self.operand(other)
        if self.graph.kinds[self.node] == BOOL:
            return self.with_node(self.graph.logic(bool_op, self.node, b))
        return self.with_node(self.graph.integer(int_op, self.node, b))

    # bit patterns

    @property
    def bits(self) -> Self:
        """Bit pattern of a float as int64."""
        return self.with_node(self.graph.bits(self.node))

    @property
    def as_float(self) -> Self:
        """The float with this bit pattern."""
        return self.with_node(self.graph.from_bits(self.node))

    def __lshift__(self, count: int) -> Self:
        return self.with_node(self.graph.integer("shl", self.node, self.operand(count)))

    def __rshift__(self, count: int) -> Self:
        """Logical right shift."""
        return self.with_node(self.graph.integer("lshr", self.node, self.operand(count)))

    @property
    def sign_mask(self) -> Self:
        """An integer with all bits equal to the sign bit."""
        return self.with_node(self.graph.integer("ashr", self.node, self.operand(63)))

    @property
    def sign_bit(self) -> Self:
        """The sign bit, all other bits zero."""
        return self.bits & SIGN_BIT

    def flip_sign(self, sign: "Expr") -> Self:
        """The value, negated where the sign bit of `sign` is set."""
        return (self.bits ^ sign).as_float

    @property
    def power_of_two(self) -> Self:
        """2ᵏ for a sum `k + 1023 + ROUND_MAGIC`, with 0 < k + 1023 < 2047."""
        return (self.bits << 52).as_float


def where(condition: Expr, yes: Expr | float, no: Expr | float) -> Expr:
    """`yes` if the condition holds, else `no`."""
    return condition.with_node(condition.graph.select(condition.node, condition.operand(yes), condition.operand(no)))


def mad(a: Expr, b: Expr | float, c: Expr | float) -> Expr:
    """a·b + c, rounded once if the target has fused multiply-add."""
    if a.fma:
        return a.with_node(a.graph.fma(a.node, a.operand(b), a.operand(c)))
    return a * b + c


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Polynomial Σ cᵢ·xⁱ by Estrin's scheme, whose latency grows with the logarithm of the degree."""
    terms: list[Expr | float] = list(coefficients)
    while len(terms) > 3:
        pairs: list[Expr | float] = [mad(x, b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
        x = x * x
    result = mad(x, terms[-1], terms[-2])
    return result if len(terms) == 2 else mad(x, result, terms[0])


def multiply_subtract(a: Expr, b: Expr, c: Expr) -> Expr:
    """a·b − c for c close to a·b, without rounding the product."""
    if a.fma:
        return mad(a, b, -c)
    (a1, a2), (b1, b2) = _split_mantissa(a), _split_mantissa(b)
    return ((a1 * b1 - c) + a1 * b2 + a2 * b1) + a2 * b2


def _split_mantissa(a: Expr) -> tuple[Expr, Expr]:
    """A float as a sum of two with half as many mantissa bits each."""
    high = (a.bits & -(2**27)).as_float
    return high, a - high


def fast_two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Rounded sum a + b and its rounding error (Fast2Sum); |a| must be at least |b|, or a must be zero."""
    total = a + b
    return total, b - (total - a)


def fast_two_mad(a: Expr, b: Expr, c: Expr) -> tuple[Expr, Expr]:
    """Rounded sum a·b + c and its rounding error; |c| must be at least |a·b|."""
    if a.fma:
        total = mad(a, b, c)
        return total, mad(a, b, c - total)
    product = a * b
    total, error = fast_two_sum(c, product)
    return total, error + multiply_subtract(a, b, product)
