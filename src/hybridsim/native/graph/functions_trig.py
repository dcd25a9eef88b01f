"""Trigonometric functions by arithmetic: sin, cos, tan.

x = k·π/2 + r with |r| ≤ π/4, and polynomials for sin r and cos r; sin and cos of the same x share everything but their
last choices. The reduction is exact enough for |x| ≤ 10⁶ (2 units in the last place, also next to multiples of π/2);
beyond that the angle loses digits as x does, and results stay within ±1 up to 10¹⁵. Farther out they are NaN.
"""

from hybridsim.native.graph.functions_expr import (
    ROUND_MAGIC,
    SIGN_BIT,
    Expr,
    fast_two_sum,
    mad,
    multiply_subtract,
    polynomial,
    where,
)

MAX_ANGLE_BITS = 0x430C6BF526340000
"""The bits of 10¹⁵: from here on neighbouring numbers are so far apart that a sine of them means little."""
TWO_OVER_PI = 0.6366197723675814
HALF_PI_FUSED = (1.5707963267948966, 6.12323399538461e-17, 3.5215598651832e-27)
"""π/2 in parts for fused steps: 53, 33 and 53 bits."""
HALF_PI_PLAIN = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
"""π/2 in parts whose products with k < 2²⁰ are exact: 33, 33, 33 and 53 bits."""

SIN = (
    0.1666666666666663,
    -0.00833333333332184,
    0.00019841269829358512,
    -2.755731353850383e-06,
    2.5050734387068012e-08,
    -1.5895433138991056e-10,
)
"""(r − sin r)/r³ in r² on |r| ≤ π/4: sin r is right to 2⁻⁵⁷."""
COS = (
    0.041666666666666595,
    -0.0013888888888873325,
    2.4801587288983512e-05,
    -2.755731420996454e-07,
    2.0875704247358715e-09,
    -1.1358681682203405e-11,
)
"""(cos r − 1 + r²/2)/r⁴ in r² on |r| ≤ π/4: cos r is right to 2⁻⁶³."""


def sin(x: Expr) -> Expr:
    """The sine of an angle in radians."""
    s, c, carrier = _sin_cos(x)
    return _nan_beyond_max_angle(x, where(_is_odd(carrier), c, s).flip_sign((carrier.bits << 62) & SIGN_BIT))


def cos(x: Expr) -> Expr:
    """The cosine of an angle in radians."""
    s, c, carrier = _sin_cos(x)
    return _nan_beyond_max_angle(
        x, where(_is_odd(carrier), s, c).flip_sign(((carrier.bits << 62) ^ (carrier.bits << 63)) & SIGN_BIT)
    )


def tan(x: Expr) -> Expr:
    """The tangent of an angle in radians, as a quotient that knows what sine and cosine lost in rounding."""
    r, sine_drop, z, cosine_gain, carrier = _reduced_parts(x)
    s, c, _ = _sin_cos(x)
    s_lost = (r - s) - sine_drop
    c_lost = mad(z * z, cosine_gain, mad(z, -0.5, 1.0 - c))
    odd = _is_odd(carrier)
    above, above_lost = where(odd, c, s), where(odd, c_lost, s_lost)
    below, below_lost = where(odd, s, c), where(odd, s_lost, c_lost)
    inverse = 1.0 / below
    quotient = above * inverse
    excess = multiply_subtract(quotient, below, above) + (quotient * below_lost - above_lost)
    return _nan_beyond_max_angle(x, mad(excess, -inverse, quotient).flip_sign((carrier.bits << 63) & SIGN_BIT))


def _nan_beyond_max_angle(x: Expr, result: Expr) -> Expr:
    """The result if x is not too large, else NaN: all bits set. A comparison would be on the way of everything else."""
    too_large = (x.constant(MAX_ANGLE_BITS) - (x.bits & ~SIGN_BIT)).sign_mask
    return (result.bits | too_large).as_float


def _is_odd(carrier: Expr) -> Expr:
    """Whether the whole number in the lowest bits is odd."""
    return (carrier.bits << 63) < 0


def _sin_cos(x: Expr) -> tuple[Expr, Expr, Expr]:
    """The sine and cosine of r, and the sum that holds k."""
    r, sine_drop, z, cosine_gain, carrier = _reduced_parts(x)
    return r - sine_drop, mad(z, mad(z, cosine_gain, -0.5), 1.0), carrier


def _reduced_parts(x: Expr) -> tuple[Expr, Expr, Expr, Expr, Expr]:
    """r, r − sin r, z = r², (cos r − 1 + z/2)/z² and the sum k + ROUND."""
    carrier = mad(x, TWO_OVER_PI, ROUND_MAGIC)
    r, low = _reduce_range(x, carrier - ROUND_MAGIC)
    z = r * r
    return r, mad(r * z, polynomial(z, SIN), low), z, polynomial(z, COS), carrier


def _reduce_range(x: Expr, k: Expr) -> tuple[Expr, Expr]:
    """The angle x − k·π/2 as r − low, where `low` matters only next to multiples of π/2."""
    if x.fused:
        first, second, third = HALF_PI_FUSED
        return mad(k, -second, mad(k, -first, x)), k * third
    first, second, third, fourth = HALF_PI_PLAIN
    nearly, lost = fast_two_sum(x - k * first, k * -second)
    return nearly + (lost - k * third), k * fourth
