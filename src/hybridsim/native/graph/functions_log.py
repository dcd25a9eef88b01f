"""Expansions of logarithms and powers: log, log1p, pow.

x = 2ᵉ·(1 + f) with 1 + f between √½ and √2, and ln(1 + f) = f − f²·G(f) without a division. A power needs the logarithm
to about 65 bits, so `pow` computes it in double-double arithmetic.
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
"""(f − ln(1 + f))/f² on √½ ≤ 1 + f ≤ √2; the error of the logarithm is 2⁻⁵⁶."""
R = (
    0.20000000000001125,
    0.1428571428505107,
    0.11111111259742561,
    0.09090892201861407,
    0.07693377859946031,
    0.06628426811316332,
    0.0659800507615231,
)
"""(atanh s/s − 1 − z/3)/z² in z = s² on |s| ≤ 0.1716; the error of atanh s is 2⁻⁶⁶."""
THIRD, THIRD_LOW = 0.3333333333333333, 1.850371707708594e-17

MIN_NORMAL = 2.0**-1022
_MANTISSA = 2**52 - 1
_ROOT_HALF = bit_pattern(math.sqrt(0.5))
_SHIFT = bit_pattern(1.0) - _ROOT_HALF
"""Offset of bit patterns that makes the exponent field change at √2·2ᵏ instead of 2ᵏ."""


def log(x: Expr) -> Expr:
    """Natural logarithm."""
    minus_e, m = _exponent_and_mantissa(x)
    return _with_special_cases(x, x, _log(minus_e, m - 1.0))


def log1p(x: Expr) -> Expr:
    """ln(1 + x), accurate for small x too: f = 2⁻ᵉ·x − (1 − 2⁻ᵉ) is rounded once, and not at all for e = 0."""
    u = x + 1.0
    shifted = u.bits + _SHIFT
    minus_e = (2.0**52 + 1023.0) - _exponent_field_as_float(shifted)
    # 4·2⁻ᵉ, which is a normal number even for the largest x
    scale = (SIGN_BIT - (shifted & ~_MANTISSA)).as_float
    return _with_special_cases(x, u, _log(minus_e, (x * scale - (4.0 - scale)) * 0.25))


def power(x: Expr, y: Expr) -> Expr:
    """Power xʸ, with the special cases of `pow` in C."""
    exponent = y.graph.constants.get(y.node)
    if exponent is not None and exponent in _CHEAP_POWERS:
        return _CHEAP_POWERS[exponent](x)
    magnitude = abs(x)
    high, low = _log_double_double(*_exponent_and_mantissa(magnitude))
    # exponents beyond the bound give the same 0, 1 or ∞ as the bound, whose products stay finite
    clamped = y.max(-(2.0**65)).min(2.0**65)
    product = clamped * high
    low_product = mad(clamped, low, multiply_subtract(clamped, high, product))
    result = exp_of_sum(product.max(-1000.0).min(1000.0), where(abs(product) < 1000.0, low_product, 0.0))
    is_finite = magnitude < math.inf
    result = where((magnitude > 0.0) & is_finite, result, where((magnitude < 1.0) ^ (y < 0.0), 0.0, math.inf))
    half = y * 0.5
    is_integer = y.rint().equals(y)
    is_odd = is_integer & ~half.rint().equals(half)
    is_undefined = (x < 0.0) & is_finite & ~is_integer
    is_valid = x.equals(x) & y.equals(y) & ~is_undefined
    result = where(is_valid, result.flip_sign(where(is_odd, x.sign_bit, 0)), math.nan)
    return where(y.equals(0.0) | x.equals(1.0), 1.0, result)


_CHEAP_POWERS = {
    0.5: lambda x: where(x.equals(-math.inf), math.inf, abs(x.sqrt())),
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    -1.0: lambda x: 1.0 / x,
}
"""Constant exponents that take one operation, or a few more to treat −0 and −∞ as `pow` does."""


def _with_special_cases(x: Expr, u: Expr, result: Expr) -> Expr:
    """Logarithm of u with special cases: NaN, infinity, zero and negative arguments; x is u or u − 1."""
    return where(u > 0.0, where(x < math.inf, result, x), where(u.equals(0.0), -math.inf, math.nan))


def _exponent_and_mantissa(x: Expr) -> tuple[Expr, Expr]:
    """−e and m of x = 2ᵉ·m for positive x, denormals included."""
    is_denormal = x < MIN_NORMAL
    shifted = where(is_denormal, x * 2.0**54, x).bits + _SHIFT
    bias = where(is_denormal, 2.0**52 + (1023.0 + 54.0), 2.0**52 + 1023.0)
    return bias - _exponent_field_as_float(shifted), ((shifted & _MANTISSA) + _ROOT_HALF).as_float


def _exponent_field_as_float(shifted: Expr) -> Expr:
    """2⁵² + the exponent field of a bit pattern."""
    return ((shifted >> 52) | bit_pattern(2.0**52)).as_float


def _log(minus_e: Expr, f: Expr) -> Expr:
    """e·ln2 + ln(1 + f), written such that the sign of zero is preserved."""
    return mad(minus_e, -LN2_HIGH, f) - mad(f * f, polynomial(f, G), minus_e * LN2_LOW)


def _log_double_double(minus_e: Expr, m: Expr) -> tuple[Expr, Expr]:
    """e·ln2 + ln m as a double-double with an error of 2⁻⁶⁵: ln m = 2·atanh s with s = (m − 1)/(m + 1)."""
    numerator = m - 1.0
    denominator, denominator_low = fast_two_sum(m.constant(1.0), m)
    reciprocal = 1.0 / denominator
    s = numerator * reciprocal
    s_low = mad(s, denominator_low, multiply_subtract(s, denominator, numerator)) * -reciprocal
    twice, twice_low = s * 2.0, s_low * 2.0
    z = s * s
    z_low = mad(twice, s_low, multiply_subtract(s, s, z))
    # atanh s = s·(1 + t), t = z/3 + z²·R(z)
    third = m.constant(THIRD)
    t = z * third
    tail = z * polynomial(z, R)
    t_low = mad(z_low, mad(tail, 2.0, THIRD), mad(z, THIRD_LOW, multiply_subtract(z, third, t)))
    t_low = mad(z, tail, t_low)
    high, error = fast_two_sum(minus_e * -LN2_HIGH, twice)
    high, other_error = fast_two_mad(twice, t, high)
    low = mad(twice_low, t + 1.0, mad(twice, t_low, minus_e * -LN2_LOW))
    return fast_two_sum(high, (error + other_error) + low)
