"""Exponentials by arithmetic: exp, exp2, expm1, sinh, cosh, tanh, logistic.

eˣ = 2ᵏ·eʳ with a whole k and |r| ≤ ln2/2, and eʳ − 1 = r + r²·Q(r). Powers of two are written straight into the bits of
the exponent.
"""

from typing import NamedTuple

from hybridsim.native.graph.functions_expr import ROUND_MAGIC, Expr, mad, polynomial, where

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
LN2_HIGH, LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
"""ln 2 as a number of 42 bits, whose product with any exponent is exact, and the rest."""

Q = (
    0.5000000000000006,
    0.166666666666666,
    0.04166666666657365,
    0.008333333333381982,
    0.00138888889323778,
    0.00019841269737012752,
    2.4801504430262485e-05,
    2.755739039288415e-06,
    2.7626339881948744e-07,
    2.5059482033563228e-08,
)
"""(eʳ − 1 − r)/r² on |r| ≤ ln2/2: eʳ − 1 is right to 2⁻⁵⁵ of itself."""


Q_OF_DOUBLE = tuple(2.0 ** (k + 1) * q for k, q in enumerate(Q))
"""The same for half of e²ʳ − 1, which is r + r²·Q(r); powers of two leave the digits as they are."""


def exp(x: Expr) -> Expr:
    """eˣ."""
    return _exp(x.at_least(-1000.0).at_most(1000.0))


def exp2(x: Expr) -> Expr:
    """2ˣ."""
    x = x.at_least(-1500.0).at_most(1500.0)
    carrier = x + (ROUND_MAGIC + _TWICE_BIAS)
    return _scale_by_power_of_two(_expm1((x - (carrier - (ROUND_MAGIC + _TWICE_BIAS))) * LN2), carrier)


def expm1(x: Expr) -> Expr:
    """eˣ − 1."""
    _, high, low, r, carrier = _reduce_range(x.at_least(-40.0).at_most(710.0), 1022.0)
    half_scale = carrier.power_of_two
    half = mad(half_scale, mad(r * r, polynomial(r, Q), low), mad(half_scale, high, half_scale - 0.5))
    # tiny numbers are their own result, which also keeps the sign of zero
    return where(abs(x) < 2.0**-54, x, half + half)


def tanh(x: Expr) -> Expr:
    """h/(h + 1) with h = (e²ˣ − 1)/2, of the size of x: right to 2.6 units of the last place.

    Networks are full of it, and this is half as long as a formula that is right to one.
    """
    size = abs(x).at_most(20.0)
    carrier = mad(size, 2.0 * LOG2_E, ROUND_MAGIC + 1023.0)
    scale = carrier.power_of_two
    r = mad(carrier - (ROUND_MAGIC + 1023.0), -0.5 * LN2, size)
    h = mad(scale, mad(r * r, polynomial(r, Q_OF_DOUBLE), r), mad(scale, 0.5, -0.5))
    return (h / (h + 1.0)).flip_sign(x.sign_bit)


def logistic(x: Expr) -> Expr:
    """1/(1 + e⁻ˣ): with e = e⁻ˡˣˡ and w = e/(1 + e) this is 1 − w for positive x and e − e·w for negative x."""
    e = _exp((-abs(x)).at_least(-1000.0))
    start = where(x < 0.0, e, 1.0)
    return mad(-start, e / (1.0 + e), start)


def sinh(x: Expr) -> Expr:
    """(eˣ − e⁻ˣ)/2."""
    high, sinh_rest, cosh_rest, scale, even, odd = _hyperbolic_parts(x)
    return (scale * (mad(even, high, odd) + mad(even, sinh_rest, odd * cosh_rest))).flip_sign(x.sign_bit)


def cosh(x: Expr) -> Expr:
    """(eˣ + e⁻ˣ)/2."""
    high, sinh_rest, cosh_rest, scale, even, odd = _hyperbolic_parts(x)
    return scale * (mad(odd, high, even) + mad(odd, sinh_rest, even * cosh_rest))


def exp_of_sum(x: Expr, low: Expr) -> Expr:
    """e^(x + low) for |x| ≤ 1000 and a `low` that is tiny beside 1."""
    k, high, _, _, carrier = _reduce_range(x, _TWICE_BIAS)
    low = mad(k, -LN2_LOW, low)
    r = high + low
    return _scale_by_power_of_two(high + mad(r * r, polynomial(r, Q), low), carrier)


_TWICE_BIAS = 2046.0
"""Twice the bias of an exponent: see `_scaled`."""


def _exp(x: Expr) -> Expr:
    """eˣ for |x| ≤ 1000."""
    reduced = _reduce_range(x, _TWICE_BIAS)
    return _scale_by_power_of_two(_expm1(reduced.r), reduced.carrier)


class _RangeReduction(NamedTuple):
    """x = k·ln2 + r."""

    k: Expr
    high: Expr
    low: Expr
    """r = high + low without rounding; high is x − k·LN2_HIGH."""
    r: Expr
    carrier: Expr
    """k + bias + ROUND, whose lowest bits are k + bias."""


def _reduce_range(x: Expr, bias: float) -> _RangeReduction:
    carrier = mad(x, LOG2_E, ROUND_MAGIC + bias)
    k = carrier - (ROUND_MAGIC + bias)
    high = mad(k, -LN2_HIGH, x)
    return _RangeReduction(k, high, k * -LN2_LOW, mad(k, -LN2_LOW, high), carrier)


def _expm1(r: Expr) -> Expr:
    """eʳ − 1 for |r| ≤ ln2/2."""
    return mad(r * r, polynomial(r, Q), r)


def _scale_by_power_of_two(s: Expr, carrier: Expr) -> Expr:
    """(1 + s)·2ᵏ from k + 2046 + ROUND, in two halves: 2ᵏ itself may be too large or too small for a float."""
    first = carrier.bits >> 1
    half = (first << 52).as_float
    return mad(half, s, half) * ((carrier.bits - first) << 52).as_float


def _hyperbolic_parts(x: Expr) -> tuple[Expr, Expr, Expr, Expr, Expr, Expr]:
    """Parts of sinh x and cosh x for |x| = k·ln2 + r, which are sums of products of those of k·ln2 and r.

    Returns `high` (r to the first digits), sinh r − high, cosh r − 1, 2ᵏ⁻², 2 + 2·4⁻ᵏ and 2 − 2·4⁻ᵏ.
    """
    k, high, low, r, carrier = _reduce_range(abs(x).at_most(710.5), 1021.0)
    # beyond k = 64 the falling exponential is nothing beside the rising one
    q = mad(k.at_most(64.0), -2.0, ROUND_MAGIC + 1023.0).power_of_two
    z = r * r
    sinh_rest = mad(r * z, polynomial(z, Q[1::2]), low)
    cosh_rest = z * polynomial(z, Q[::2])
    return high, sinh_rest, cosh_rest, carrier.power_of_two, mad(q, 2.0, 2.0), mad(q, -2.0, 2.0)
