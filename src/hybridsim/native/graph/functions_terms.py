"""Graph nodes with operators, so that the formulas of elementary functions read like formulas.

Every operation here is one SIMD instruction on any lane count. What is missing is missing on purpose: AVX2 converts no
int64 and shifts none arithmetically, so whole numbers are made with `ROUND` and read from the bits of the sum.
"""

import struct
from collections.abc import Sequence
from typing import Self

from hybridsim.native.graph.graph import BOOL, INT, Graph

ROUND = 1.5 * 2.0**52
"""x + ROUND rounds x to a whole number (|x| < 2⁵¹), which the sum's lowest bits then hold in two's complement."""
SIGN = -(2**63)
"""The bit pattern of the sign alone."""


def pattern(x: float) -> int:
    """The bit pattern of a number, as int64."""
    return struct.unpack("<q", struct.pack("<d", x))[0]


class Term:
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

    def node_of(self, other: "Term | float") -> int:
        return other.node if isinstance(other, Term) else self.graph.constant(other)

    def _op(self, of_floats, of_integers: str, a: "Term | float", b: "Term | float") -> Self:
        a, b = self.node_of(a), self.node_of(b)
        whole = self.graph.kinds[self.node] == INT
        return self.like(self.graph.integer(of_integers, a, b) if whole else of_floats(a, b))

    def __add__(self, other: "Term | float") -> Self:
        return self._op(self.graph.add, "iadd", self, other)

    def __sub__(self, other: "Term | float") -> Self:
        return self._op(self.graph.sub, "isub", self, other)

    def __rsub__(self, other: float) -> Self:
        return self._op(self.graph.sub, "isub", other, self)

    def __mul__(self, other: "Term | float") -> Self:
        return self._op(self.graph.mul, "imul", self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __truediv__(self, other: "Term") -> Self:
        return self.like(self.graph.div(self.node, other.node))

    def __rtruediv__(self, other: float) -> Self:
        return self.like(self.graph.div(self.node_of(other), self.node))

    def __neg__(self) -> Self:
        return self.like(self.graph.neg(self.node))

    def __abs__(self) -> Self:
        return self.like(self.graph.abs(self.node))

    def sqrt(self) -> Self:
        return self.like(self.graph.sqrt(self.node))

    def rint(self) -> Self:
        return self.like(self.graph.rounded("rint", self.node))

    def at_least(self, bound: float) -> Self:
        """The term, or the bound if that is larger; NaN stays NaN."""
        return self.like(self.graph.max(self.node, self.node_of(bound)))

    def at_most(self, bound: float) -> Self:
        """The term, or the bound if that is smaller; NaN stays NaN."""
        return self.like(self.graph.min(self.node, self.node_of(bound)))

    # comparisons and truth values

    def __lt__(self, other: "Term | float") -> Self:
        return self.like(self.graph.less(self.node, self.node_of(other)))

    def __gt__(self, other: "Term | float") -> Self:
        return self.like(self.graph.less(self.node_of(other), self.node))

    def equals(self, other: "Term | float") -> Self:
        return self.like(self.graph.equal(self.node, self.node_of(other)))

    def __invert__(self) -> Self:
        return self.like(self.graph.invert(self.node))

    def __and__(self, other: "Term | int") -> Self:
        return self._logic("and", "iand", other)

    def __or__(self, other: "Term | int") -> Self:
        return self._logic("or", "ior", other)

    def __xor__(self, other: "Term | int") -> Self:
        return self._logic("xor", "ixor", other)

    def _logic(self, of_truths: str, of_integers: str, other: "Term | int") -> Self:
        b = self.node_of(other)
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
        return self.like(self.graph.integer("shl", self.node, self.node_of(count)))

    def __rshift__(self, count: int) -> Self:
        """A shift that brings in zeros."""
        return self.like(self.graph.integer("lshr", self.node, self.node_of(count)))

    @property
    def filled_with_sign(self) -> Self:
        """All bits of a whole number those of its sign."""
        return self.like(self.graph.integer("ashr", self.node, self.node_of(63)))

    @property
    def sign(self) -> Self:
        """The bit of the sign, as a whole number."""
        return self.bits & SIGN

    def flipped(self, sign: "Term") -> Self:
        """The term with its sign changed where the bit of the sign is set in `sign`."""
        return (self.bits ^ sign).as_float

    @property
    def power_of_two(self) -> Self:
        """2ᵏ for a sum `k + 1023 + ROUND`, with 0 < k + 1023 < 2047."""
        return (self.bits << 52).as_float


def where(condition: Term, yes: Term | float, no: Term | float) -> Term:
    """`yes` where the condition holds, else `no`."""
    return condition.like(condition.graph.select(condition.node, condition.node_of(yes), condition.node_of(no)))


def mad(a: Term, b: Term | float, c: Term | float) -> Term:
    """a·b + c, rounded once if the machine can."""
    if a.fused:
        return a.like(a.graph.fma(a.node, a.node_of(b), a.node_of(c)))
    return a * b + c


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """Σ cᵢ·xⁱ, neighbours first (Estrin): the wait grows with the logarithm of the degree."""
    terms: list[Term | float] = list(coefficients)
    while len(terms) > 3:
        pairs: list[Term | float] = [mad(x, b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
        x = x * x
    result = mad(x, terms[-1], terms[-2])
    return result if len(terms) == 2 else mad(x, result, terms[0])


def product_minus(a: Term, b: Term, c: Term) -> Term:
    """The difference a·b − c for a c next to a·b, without rounding the product."""
    if a.fused:
        return mad(a, b, -c)
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return ((a1 * b1 - c) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Term) -> tuple[Term, Term]:
    """A number as a sum of two with half its digits each."""
    high = (a.bits & -(2**27)).as_float
    return high, a - high


def exact_sum(a: Term, b: Term) -> tuple[Term, Term]:
    """The sum a + b rounded, and what the rounding lost; |a| must be at least |b|, or zero."""
    total = a + b
    return total, b - (total - a)


def exact_mad(a: Term, b: Term, c: Term) -> tuple[Term, Term]:
    """The sum a·b + c rounded, and what the roundings lost; |c| must be at least |a·b|."""
    if a.fused:
        total = mad(a, b, c)
        return total, mad(a, b, c - total)
    product = a * b
    total, lost = exact_sum(c, product)
    return total, lost + product_minus(a, b, product)
