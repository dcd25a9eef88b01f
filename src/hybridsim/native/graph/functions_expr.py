"""Graph nodes with operators, so that the formulas of elementary functions read like formulas.

Every operation here is one SIMD instruction on any lane count. What is missing is missing on purpose: AVX2 converts no
int64 and shifts none arithmetically, so whole numbers are made with `ROUND` and read from the bits of the sum.
"""

import struct
from collections.abc import Sequence
from typing import Self

from hybridsim.native.graph.graph import BOOL, INT, Graph

ROUND_MAGIC = 1.5 * 2.0**52
"""x + ROUND rounds x to a whole number (|x| < 2⁵¹), which the sum's lowest bits then hold in two's complement."""
SIGN_BIT = -(2**63)
"""The bit pattern of the sign alone."""


def bit_pattern(x: float) -> int:
    """The bit pattern of a number, as int64."""
    return struct.unpack("<q", struct.pack("<d", x))[0]


class Expr:
    """A node of a graph with arithmetic on it."""

    __slots__ = ("fused", "graph", "node")

    def __init__(self, graph: Graph, node: int, fused: bool):
        self.graph, self.node, self.fused = graph, node, fused
        """The graph, the node, and whether `mad` rounds once."""

    def like(self, node: int) -> Self:
        """Another node of the same graph."""
        return type(self)(self.graph, node, self.fused)

    def constant(self, value: float | int | bool) -> Self:
        return self.like(self.graph.constant(value))

    def operand(self, other: "Expr | float") -> int:
        return other.node if isinstance(other, Expr) else self.graph.constant(other)

    def _op(self, of_floats, of_integers: str, a: "Expr | float", b: "Expr | float") -> Self:
        a, b = self.operand(a), self.operand(b)
        whole = self.graph.kinds[self.node] == INT
        return self.like(self.graph.integer(of_integers, a, b) if whole else of_floats(a, b))

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
        return self.like(self.graph.div(self.node, other.node))

    def __rtruediv__(self, other: float) -> Self:
        return self.like(self.graph.div(self.operand(other), self.node))

    def __neg__(self) -> Self:
        return self.like(self.graph.neg(self.node))

    def __abs__(self) -> Self:
        return self.like(self.graph.abs(self.node))

    def sqrt(self) -> Self:
        return self.like(self.graph.sqrt(self.node))

    def rint(self) -> Self:
        return self.like(self.graph.round_to_integer("rint", self.node))

    def at_least(self, bound: float) -> Self:
        """The term, or the bound if that is larger; NaN stays NaN."""
        return self.like(self.graph.max(self.node, self.operand(bound)))

    def at_most(self, bound: float) -> Self:
        """The term, or the bound if that is smaller; NaN stays NaN."""
        return self.like(self.graph.min(self.node, self.operand(bound)))

    # comparisons and truth values

    def __lt__(self, other: "Expr | float") -> Self:
        return self.like(self.graph.less(self.node, self.operand(other)))

    def __gt__(self, other: "Expr | float") -> Self:
        return self.like(self.graph.less(self.operand(other), self.node))

    def equals(self, other: "Expr | float") -> Self:
        return self.like(self.graph.equal(self.node, self.operand(other)))

    def __invert__(self) -> Self:
        return self.like(self.graph.invert(self.node))

    def __and__(self, other: "Expr | int") -> Self:
        return self._logic("and", "iand", other)

    def __or__(self, other: "Expr | int") -> Self:
        return self._logic("or", "ior", other)

    def __xor__(self, other: "Expr | int") -> Self:
        return self._logic("xor", "ixor", other)

    def _logic(self, of_truths: str, of_integers: str, other: "Expr | int") -> Self:
        b = self.operand(other)
        if self.graph.kinds[self.node] == BOOL:
            return self.like(self.graph.logic(of_truths, self.node, b))
        return self.like(self.graph.integer(of_integers, self.node, b))

    # bit patterns

    @property
    def bits(self) -> Self:
        """The bit pattern of a float as a whole number."""
        return self.like(self.graph.bits(self.node))

    @property
    def as_float(self) -> Self:
        """The float that has this bit pattern."""
        return self.like(self.graph.from_bits(self.node))

    def __lshift__(self, count: int) -> Self:
        return self.like(self.graph.integer("shl", self.node, self.operand(count)))

    def __rshift__(self, count: int) -> Self:
        """A shift that brings in zeros."""
        return self.like(self.graph.integer("lshr", self.node, self.operand(count)))

    @property
    def sign_mask(self) -> Self:
        """All bits of a whole number those of its sign."""
        return self.like(self.graph.integer("ashr", self.node, self.operand(63)))

    @property
    def sign_bit(self) -> Self:
        """The bit of the sign, as a whole number."""
        return self.bits & SIGN_BIT

    def flip_sign(self, sign: "Expr") -> Self:
        """The term with its sign changed where the bit of the sign is set in `sign`."""
        return (self.bits ^ sign).as_float

    @property
    def power_of_two(self) -> Self:
        """2ᵏ for a sum `k + 1023 + ROUND`, with 0 < k + 1023 < 2047."""
        return (self.bits << 52).as_float


def where(condition: Expr, yes: Expr | float, no: Expr | float) -> Expr:
    """`yes` where the condition holds, else `no`."""
    return condition.like(condition.graph.select(condition.node, condition.operand(yes), condition.operand(no)))


def mad(a: Expr, b: Expr | float, c: Expr | float) -> Expr:
    """a·b + c, rounded once if the machine can."""
    if a.fused:
        return a.like(a.graph.fma(a.node, a.operand(b), a.operand(c)))
    return a * b + c


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Σ cᵢ·xⁱ, neighbours first (Estrin): the wait grows with the logarithm of the degree."""
    terms: list[Expr | float] = list(coefficients)
    while len(terms) > 3:
        pairs: list[Expr | float] = [mad(x, b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
        x = x * x
    result = mad(x, terms[-1], terms[-2])
    return result if len(terms) == 2 else mad(x, result, terms[0])


def multiply_subtract(a: Expr, b: Expr, c: Expr) -> Expr:
    """The difference a·b − c for a c next to a·b, without rounding the product."""
    if a.fused:
        return mad(a, b, -c)
    (a1, a2), (b1, b2) = _split_mantissa(a), _split_mantissa(b)
    return ((a1 * b1 - c) + a1 * b2 + a2 * b1) + a2 * b2


def _split_mantissa(a: Expr) -> tuple[Expr, Expr]:
    """A number as a sum of two with half its digits each."""
    high = (a.bits & -(2**27)).as_float
    return high, a - high


def fast_two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The sum a + b rounded, and what the rounding lost; |a| must be at least |b|, or zero."""
    total = a + b
    return total, b - (total - a)


def fast_two_mad(a: Expr, b: Expr, c: Expr) -> tuple[Expr, Expr]:
    """The sum a·b + c rounded, and what the roundings lost; |c| must be at least |a·b|."""
    if a.fused:
        total = mad(a, b, c)
        return total, mad(a, b, c - total)
    product = a * b
    total, lost = fast_two_sum(c, product)
    return total, lost + multiply_subtract(a, b, product)
