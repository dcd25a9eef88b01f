"""Expansions of trigonometric functions: sin, cos, tan.

x = k·π/2 + r with |r| ≤ π/4, and polynomials for sin r and cos r; sin and cos of the same x differ in their final
selects only. The range reduction is accurate to 2 ulp for |x| ≤ 10⁶, also near multiples of π/2. Beyond that, the
absolute error of r is of the order of the rounding error of x, and sine and cosine stay within ±1 up to 10¹⁵. Larger
arguments give NaN.
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
"""Bit pattern of 10¹⁵, beyond which the spacing of floats makes a sine meaningless."""
TWO_OVER_PI = 0.6366197723675814
HALF_PI_FUSED = (1.5707963267948966, 6.12323399538461e-17, 3.5215598651832e-27)
"""π/2 as a sum of terms of at most 53, 33 and 53 bits, for fused multiply-adds."""
HALF_PI_PLAIN = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
"""π/2 as a sum of terms of at most 33, 33, 33 and 53 bits; products of the first three with k < 2²⁰ are exact."""

SIN = (
    0.1666666666666663,
    -0.00833333333332184,
    0.00019841269829358512,
    -2.755731353850383e-06,
    2.5050734387068012e-08,
    -1.5895433138991056e-10,
)
"""(r − sin r)/r³ in r² on |r| ≤ π/4; the error of sin r is 2⁻⁵⁷."""
COS = (
    0.041666666666666595,
    -0.0013888888888873325,
    2.4801587288983512e-05,
    -2.755731420996454e-07,
    2.0875704247358715e-09,
    -1.1358681682203405e-11,
)
"""(cos r − 1 + r²/2)/r⁴ in r² on |r| ≤ π/4; the error of cos r is 2⁻⁶³."""


def sin(x: Expr) -> Expr:
    """Sine of an angle in radians."""
    s, c, magic_sum = _sin_cos(x)
    return _nan_beyond_max_angle(x, where(_is_odd(magic_sum), c, s).flip_sign((magic_sum.bits << 62) & SIGN_BIT))


def cos(x: Expr) -> Expr:
    """Cosine of an angle in radians."""
    s, c, magic_sum = _sin_cos(x)
    return _nan_beyond_max_angle(
        x, where(_is_odd(magic_sum), s, c).flip_sign(((magic_sum.bits << 62) ^ (magic_sum.bits << 63)) & SIGN_BIT)
    )


def tan(x: Expr) -> Expr:
    """Tangent of an angle in radians: tan r or −1/tan r, compensated for the rounding errors of sine and cosine."""
    r, r_minus_sin, z, cos_tail, magic_sum = _reduced_parts(x)
    s, c, _ = _sin_cos(x)
    s_error = (r - s) - r_minus_sin
    c_error = mad(z * z, cos_tail, mad(z, -0.5, 1.0 - c))
    odd = _is_odd(magic_sum)
    numerator, numerator_error = where(odd, c, s), where(odd, c_error, s_error)
    denominator, denominator_error = where(odd, s, c), where(odd, s_error, c_error)
    reciprocal = 1.0 / denominator
    quotient = numerator * reciprocal
    excess = multiply_subtract(quotient, denominator, numerator) + (quotient * denominator_error - numerator_error)
    return _nan_beyond_max_angle(x, mad(excess, -reciprocal, quotient).flip_sign((magic_sum.bits << 63) & SIGN_BIT))


def _nan_beyond_max_angle(x: Expr, result: Expr) -> Expr:
    """The result, or NaN (all bits set) if |x| is too large; integer operations keep this off the critical path."""
    too_large = (x.constant(MAX_ANGLE_BITS) - (x.bits & ~SIGN_BIT)).sign_mask
    return (result.bits | too_large).as_float


def _is_odd(magic_sum: Expr) -> Expr:
    """Whether the integer in the lowest bits is odd."""
    return (magic_sum.bits << 63) < 0


def _sin_cos(x: Expr) -> tuple[Expr, Expr, Expr]:
    """Sine and cosine of r, and the sum whose lowest bits hold k."""
    r, r_minus_sin, z, cos_tail, magic_sum = _reduced_parts(x)
    return r - r_minus_sin, mad(z, mad(z, cos_tail, -0.5), 1.0), magic_sum


def _reduced_parts(x: Expr) -> tuple[Expr, Expr, Expr, Expr, Expr]:
    """r, r − sin r, z = r², (cos r − 1 + z/2)/z² and the sum k + ROUND_MAGIC."""
    magic_sum = mad(x, TWO_OVER_PI, ROUND_MAGIC)
    r, low = _reduce_range(x, magic_sum - ROUND_MAGIC)
    z = r * r
    return r, mad(r * z, polynomial(z, SIN), low), z, polynomial(z, COS), magic_sum


def _reduce_range(x: Expr, k: Expr) -> tuple[Expr, Expr]:
    """Reduced angle x − k·π/2 as r − low; `low` matters only near multiples of π/2."""
    if x.fma:
        first, second, third = HALF_PI_FUSED
        return mad(k, -second, mad(k, -first, x)), k * third
    first, second, third, fourth = HALF_PI_PLAIN
    remainder, error = fast_two_sum(x - k * first, k * -second)
    return remainder + (error - k * third), k * fourth
