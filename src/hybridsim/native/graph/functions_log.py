"""Logarithms and powers by arithmetic: log, log1p, pow.

x = 2ᵉ·(1 + f) with 1 + f between √½ and √2, and ln(1 + f) = f − f²·G(f) without a division. A power needs the logarithm
to about 65 bits, so `pow` carries it as a sum of two floats.
"""

import math

from hybridsim.native.graph.functions_exp import LN2_HIGH, LN2_LOW, exp_of_sum
from hybridsim.native.graph.functions_expr import (
    SIGN_BIT,
    Expr,
    bit_pattern,
    fast_two_mad,
    fast_two_sum,
    mad,
    multiply_subtract,
    polynomial,
    where,
)

G = (
    0.5,
    -0.33333333333332804,
    0.2499999999998735,
    -0.20000000000151624,
    0.1666666666997641,
    -0.1428571427221122,
    0.12499999676532063,
    -0.11111111517361381,
    0.1000001599266502,
    -0.09090914089449674,
    0.08332889447147956,
    -0.07691682814841719,
    0.07149880706640889,
    -0.06683263512936015,
    0.06191926324993581,
    -0.05673446388305908,
    0.05705534314648167,
    -0.06506892222604772,
    0.059139397007429886,
    -0.02554733955240031,
)
"""(f − ln(1 + f))/f² on √½ ≤ 1 + f ≤ √2: the logarithm is right to 2⁻⁵⁶."""
R = (
    0.20000000000001125,
    0.1428571428505107,
    0.11111111259742561,
    0.09090892201861407,
    0.07693377859946031,
    0.06628426811316332,
    0.0659800507615231,
)
"""(atanh s/s − 1 − z/3)/z² in z = s² on |s| ≤ 0.1716: atanh s is right to 2⁻⁶⁶."""
THIRD, THIRD_LOW = 0.3333333333333333, 1.850371707708594e-17

MIN_NORMAL = 2.0**-1022
_MANTISSA = 2**52 - 1
_ROOT_HALF = bit_pattern(math.sqrt(0.5))
_SHIFT = bit_pattern(1.0) - _ROOT_HALF
"""Added to a bit pattern, it makes the exponent change at √2 instead of 2."""


def log(x: Expr) -> Expr:
    """The natural logarithm."""
    minus_e, m = _exponent_and_mantissa(x)
    return _with_special_cases(x, x, _log(minus_e, m - 1.0))


def log1p(x: Expr) -> Expr:
    """ln(1 + x), right for small x too: 1 + f = 2⁻ᵉ + 2⁻ᵉ·x is rounded once, and not at all for e = 0."""
    u = x + 1.0
    shifted = u.bits + _SHIFT
    minus_e = (2.0**52 + 1023.0) - _exponent_field_as_float(shifted)
    # four times 2⁻ᵉ, which is a normal number for the largest x
    scale = (SIGN_BIT - (shifted & ~_MANTISSA)).as_float
    return _with_special_cases(x, u, _log(minus_e, (x * scale - (4.0 - scale)) * 0.25))


def power(x: Expr, y: Expr) -> Expr:
    """The power xʸ, with the special cases of C's `pow`."""
    known = y.graph.constants.get(y.node)
    if known is not None and known in _CHEAP_POWERS:
        return _CHEAP_POWERS[known](x)
    size = abs(x)
    high, low = _log_double_double(*_exponent_and_mantissa(size))
    # an exponent beyond the bound gives 0, 1 or ∞ like the bound itself, and its products stay finite
    bounded = y.at_least(-(2.0**65)).at_most(2.0**65)
    product = bounded * high
    rest = mad(bounded, low, multiply_subtract(bounded, high, product))
    result = exp_of_sum(product.at_least(-1000.0).at_most(1000.0), where(abs(product) < 1000.0, rest, 0.0))
    finite = size < math.inf
    result = where((size > 0.0) & finite, result, where((size < 1.0) ^ (y < 0.0), 0.0, math.inf))
    half = y * 0.5
    whole = y.rint().equals(y)
    odd = whole & ~half.rint().equals(half)
    root = (x < 0.0) & finite & ~whole
    number = x.equals(x) & y.equals(y) & ~root
    result = where(number, result.flip_sign(where(odd, x.sign_bit, 0)), math.nan)
    return where(y.equals(0.0) | x.equals(1.0), 1.0, result)


_CHEAP_POWERS = {
    0.5: lambda x: where(x.equals(-math.inf), math.inf, abs(x.sqrt())),
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    -1.0: lambda x: 1.0 / x,
}
"""Powers with a constant exponent that are one operation, or two to treat −0 and −∞ as `pow` does."""


def _with_special_cases(x: Expr, u: Expr, result: Expr) -> Expr:
    """The logarithm of u, with the cases that its arithmetic does not know; x is u or u − 1."""
    return where(u > 0.0, where(x < math.inf, result, x), where(u.equals(0.0), -math.inf, math.nan))


def _exponent_and_mantissa(x: Expr) -> tuple[Expr, Expr]:
    """−e and m of x = 2ᵉ·m for a positive x, denormal or not."""
    denormal = x < MIN_NORMAL
    shifted = where(denormal, x * 2.0**54, x).bits + _SHIFT
    bias = where(denormal, 2.0**52 + (1023.0 + 54.0), 2.0**52 + 1023.0)
    return bias - _exponent_field_as_float(shifted), ((shifted & _MANTISSA) + _ROOT_HALF).as_float


def _exponent_field_as_float(shifted: Expr) -> Expr:
    """2⁵² + the exponent field of a bit pattern."""
    return ((shifted >> 52) | bit_pattern(2.0**52)).as_float


def _log(minus_e: Expr, f: Expr) -> Expr:
    """e·ln2 + ln(1 + f). Signs are such that a zero keeps its own."""
    return mad(minus_e, -LN2_HIGH, f) - mad(f * f, polynomial(f, G), minus_e * LN2_LOW)


def _log_double_double(minus_e: Expr, m: Expr) -> tuple[Expr, Expr]:
    """e·ln2 + ln m as a sum of two floats, right to 2⁻⁶⁵: ln m = 2·atanh s with s = (m − 1)/(m + 1)."""
    above = m - 1.0
    below, below_low = fast_two_sum(m.constant(1.0), m)
    inverse = 1.0 / below
    s = above * inverse
    s_low = mad(s, below_low, multiply_subtract(s, below, above)) * -inverse
    twice, twice_low = s * 2.0, s_low * 2.0
    z = s * s
    z_low = mad(twice, s_low, multiply_subtract(s, s, z))
    # atanh s = s·(1 + t), t = z/3 + z²·R(z)
    third = m.constant(THIRD)
    t = z * third
    tail = z * polynomial(z, R)
    t_low = mad(z_low, mad(tail, 2.0, THIRD), mad(z, THIRD_LOW, multiply_subtract(z, third, t)))
    t_low = mad(z, tail, t_low)
    high, lost = fast_two_sum(minus_e * -LN2_HIGH, twice)
    high, lost_too = fast_two_mad(twice, t, high)
    low = mad(twice_low, t + 1.0, mad(twice, t_low, minus_e * -LN2_LOW))
    return fast_two_sum(high, (lost + lost_too) + low)
