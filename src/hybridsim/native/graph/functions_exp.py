"""Expansions of exponential functions: exp, exp2, expm1, sinh, cosh, tanh, logistic.

eˣ = 2ᵏ·eʳ with integer k and |r| ≤ ln2/2, and eʳ − 1 = r + r²·Q(r). Powers of two are assembled in the exponent bits.
"""

from typing import NamedTuple

from hybridsim.native.graph.functions_expr import ROUND_MAGIC, Expr, mad, polynomial, where

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
LN2_HIGH, LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
"""ln 2 as a sum: the first term has 42 bits, so that its product with any exponent is exact."""

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
"""(eʳ − 1 − r)/r² on |r| ≤ ln2/2; the relative error of eʳ − 1 is 2⁻⁵⁵."""


Q_TWICE_R = tuple(2.0 ** (k + 1) * q for k, q in enumerate(Q))
"""Coefficients of 2·Q(2r) in (e²ʳ − 1)/2 = r + 2 r²·Q(2r); scaling by powers of two is exact."""


def exp(x: Expr) -> Expr:
    """eˣ."""
    return _exp(x.max(-1000.0).min(1000.0))


def exp2(x: Expr) -> Expr:
    """2ˣ."""
    x = x.max(-1500.0).min(1500.0)
    magic_sum = x + (ROUND_MAGIC + _TWICE_BIAS)
    return _scale_by_power_of_two(_expm1((x - (magic_sum - (ROUND_MAGIC + _TWICE_BIAS))) * LN2), magic_sum)


def expm1(x: Expr) -> Expr:
    """eˣ − 1."""
    _, high, low, r, magic_sum = _reduce_range(x.max(-40.0).min(710.0), 1022.0)
    half_scale = magic_sum.power_of_two
    half = mad(half_scale, mad(r * r, polynomial(r, Q), low), mad(half_scale, high, half_scale - 0.5))
    # expm1(x) = x for tiny x, which also preserves the sign of zero
    return where(abs(x) < 2.0**-54, x, half + half)


def tanh(x: Expr) -> Expr:
    """h/(h + 1) with h = (e²ˣ − 1)/2 at |x|, with an error of 2.6 ulp.

    A formula accurate to 1 ulp takes twice as many operations, and networks evaluate tanh often.
    """
    magnitude = abs(x).min(20.0)
    magic_sum = mad(magnitude, 2.0 * LOG2_E, ROUND_MAGIC + 1023.0)
    scale = magic_sum.power_of_two
    r = mad(magic_sum - (ROUND_MAGIC + 1023.0), -0.5 * LN2, magnitude)
    h = mad(scale, mad(r * r, polynomial(r, Q_TWICE_R), r), mad(scale, 0.5, -0.5))
    return (h / (h + 1.0)).flip_sign(x.sign_bit)


def logistic(x: Expr) -> Expr:
    """1/(1 + e⁻ˣ): with z = exp(−|x|) and w = z/(1 + z) this is 1 − w for positive x and z − z·w for negative x."""
    z = _exp((-abs(x)).max(-1000.0))
    offset = where(x < 0.0, z, 1.0)
    return mad(-offset, z / (1.0 + z), offset)


def sinh(x: Expr) -> Expr:
    """(eˣ − e⁻ˣ)/2."""
    high, sinh_tail, cosh_tail, scale, even, odd = _hyperbolic_parts(x)
    return (scale * (mad(even, high, odd) + mad(even, sinh_tail, odd * cosh_tail))).flip_sign(x.sign_bit)


def cosh(x: Expr) -> Expr:
    """(eˣ + e⁻ˣ)/2."""
    high, sinh_tail, cosh_tail, scale, even, odd = _hyperbolic_parts(x)
    return scale * (mad(odd, high, even) + mad(odd, sinh_tail, even * cosh_tail))


def exp_of_sum(x: Expr, low: Expr) -> Expr:
    """e^(x + low) for |x| ≤ 1000 and |low| ≪ 1."""
    k, high, _, _, magic_sum = _reduce_range(x, _TWICE_BIAS)
    low = mad(k, -LN2_LOW, low)
    r = high + low
    return _scale_by_power_of_two(high + mad(r * r, polynomial(r, Q), low), magic_sum)


_TWICE_BIAS = 2046.0
"""Twice the exponent bias; see `_scale_by_power_of_two`."""


def _exp(x: Expr) -> Expr:
    """eˣ for |x| ≤ 1000."""
    reduced = _reduce_range(x, _TWICE_BIAS)
    return _scale_by_power_of_two(_expm1(reduced.r), reduced.magic_sum)


class _RangeReduction(NamedTuple):
    """x = k·ln2 + r."""

    k: Expr
    high: Expr
    low: Expr
    """r = high + low exactly; high is x − k·LN2_HIGH."""
    r: Expr
    magic_sum: Expr
    """k + bias + ROUND_MAGIC, whose lowest bits are k + bias."""


def _reduce_range(x: Expr, bias: float) -> _RangeReduction:
    magic_sum = mad(x, LOG2_E, ROUND_MAGIC + bias)
    k = magic_sum - (ROUND_MAGIC + bias)
    high = mad(k, -LN2_HIGH, x)
    return _RangeReduction(k, high, k * -LN2_LOW, mad(k, -LN2_LOW, high), magic_sum)


def _expm1(r: Expr) -> Expr:
    """eʳ − 1 for |r| ≤ ln2/2."""
    return mad(r * r, polynomial(r, Q), r)


def _scale_by_power_of_two(s: Expr, magic_sum: Expr) -> Expr:
    """(1 + s)·2ᵏ from k + 2046 + ROUND_MAGIC, in two factors, since 2ᵏ itself may over- or underflow."""
    first = magic_sum.bits >> 1
    half = (first << 52).as_float
    return mad(half, s, half) * ((magic_sum.bits - first) << 52).as_float


def _hyperbolic_parts(x: Expr) -> tuple[Expr, Expr, Expr, Expr, Expr, Expr]:
    """Terms of the addition formulas for sinh x and cosh x at |x| = k·ln2 + r.

    Returns `high` (r up to rounding), sinh r − high, cosh r − 1, 2ᵏ⁻², 2 + 2·4⁻ᵏ and 2 − 2·4⁻ᵏ.
    """
    k, high, low, r, magic_sum = _reduce_range(abs(x).min(710.5), 1021.0)
    # beyond k = 64, exp(−|x|) is negligible relative to exp(|x|)
    q = mad(k.min(64.0), -2.0, ROUND_MAGIC + 1023.0).power_of_two
    z = r * r
    sinh_tail = mad(r * z, polynomial(z, Q[1::2]), low)
    cosh_tail = z * polynomial(z, Q[::2])
    return high, sinh_tail, cosh_tail, magic_sum.power_of_two, mad(q, 2.0, 2.0), mad(q, -2.0, 2.0)
