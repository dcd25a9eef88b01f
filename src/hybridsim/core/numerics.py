"""Functions that are safe to differentiate at their singularities, and thresholds and lower bounds near zero.

`norm(x)` has a NaN gradient at zero, and so has `where(c, f(x), g(x))` if the branch that is not selected divides by
zero. The norms, quotients and series below have finite values and derivatives, forward and reverse, also at zero.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hybridsim.core.types import AnyArray, Mat3, Scalar, Vec3

SMALL_ANGLE_SQUARED = 1e-6
"""Squared angle [rad²] below which trigonometric quotients are replaced by their Taylor series.

At this angle the relative truncation error of the series in `sinc_of_square` is 3e-30.
"""
SMALL_SINE = 1e-3
"""Sine of the half angle below which the logarithm of a rotation is a series, of truncation error 1e-25."""
LIMIT_RAMP = 0.01
"""Excess over a joint limit [rad or m] over which its damping is ramped up, so that its force is continuous."""
TINY_COMPLIANCE = 1e-10
"""CFM added to every row of a contact problem [1/kg]; prevents division by zero where J M⁻¹ Jᵀ is zero."""
TINY_SQUARED_NORM = 1e-200
"""Squared norm below which `safe_norm` is zero; the norm, 1e-100, is far below any length."""
TINY_LENGTH_SQUARED = 1e-24
"""Squared length [m²] below which the direction of a vector is undefined; the length is one picometre."""
TINY_AREA_SQUARED = 1e-24
"""Squared area [m⁴] below which the normal of a face is undefined; the area is one square micrometre."""
MIN_HALF_EXTENT = 1e-9
"""Lower bound on the half extents [m] by which a shape's coordinates are divided."""


def safe_norm(x: Float[AnyArray, " n"]) -> Scalar:
    """Euclidean norm whose gradient at zero is zero."""
    squared = jnp.sum(x * x)
    is_zero = squared < TINY_SQUARED_NORM
    return jnp.where(is_zero, 0.0, jnp.sqrt(jnp.where(is_zero, 1.0, squared)))


def direction_and_length(
    vector: Float[AnyArray, " n"], fallback: Float[AnyArray, " n"]
) -> tuple[Float[AnyArray, " n"], Scalar]:
    """Direction and length of a vector [m]; for a vector of zero length, `fallback` with zero derivatives."""
    squared = jnp.sum(vector * vector)
    is_zero = squared < TINY_LENGTH_SQUARED
    length = jnp.sqrt(jnp.where(is_zero, 1.0, squared))
    return jnp.where(is_zero, fallback, vector / length), jnp.where(is_zero, 0.0, length)


def safe_divide(x: AnyArray, y: AnyArray) -> Array:
    """`x / y`, and zero where `y` is zero."""
    is_zero = y == 0.0
    return jnp.where(is_zero, 0.0, x / jnp.where(is_zero, 1.0, y))


def sinc_of_square(angle_squared: Scalar) -> Scalar:
    """sin(a)/a as a function of a²."""
    small = angle_squared < SMALL_ANGLE_SQUARED
    angle = jnp.sqrt(jnp.where(small, 1.0, angle_squared))
    series = 1.0 - angle_squared / 6.0 * (1.0 - angle_squared / 20.0 * (1.0 - angle_squared / 42.0))
    return jnp.where(small, series, jnp.sin(angle) / angle)


def one_minus_cos_over_square(angle_squared: Scalar) -> Scalar:
    """(1 - cos(a))/a² as a function of a²."""
    # the half-angle form 2 sin²(a/2)/a² has no cancellation at small angles
    half = sinc_of_square(0.25 * angle_squared)
    return 0.5 * half * half


def solve_symmetric_3(A: Mat3, b: Float[AnyArray, " 3 *columns"]) -> Float[AnyArray, " 3 *columns"]:
    """Solution x of `A x = b` for a symmetric positive definite 3×3 `A`, by LDLᵀ without square roots.

    Unrolled by hand because for a matrix this small the overhead of a library factorization exceeds the arithmetic,
    and because the native back-end compiles these lines to a few dozen instructions.
    """
    d0 = A[0, 0]
    l10, l20 = A[1, 0] / d0, A[2, 0] / d0
    d1 = A[1, 1] - l10 * A[1, 0]
    l21 = (A[2, 1] - l20 * A[1, 0]) / d1
    d2 = A[2, 2] - l20 * A[2, 0] - l21 * l21 * d1
    # forward substitution, scaling, back substitution
    y0 = b[0]
    y1 = b[1] - l10 * y0
    y2 = b[2] - l20 * y0 - l21 * y1
    x2 = y2 / d2
    x1 = y1 / d1 - l21 * x2
    x0 = y0 / d0 - l10 * x1 - l20 * x2
    return jnp.stack([x0, x1, x2])


def clamp(x: AnyArray, lower: AnyArray | float, upper: AnyArray | float) -> Array:
    """`x` clamped to an interval; NaN stays NaN, and on a bound the derivative is that of `x`.

    Implemented with selects, which native code removes where a bound is infinite.
    """
    return jnp.where(x < lower, lower, jnp.where(x > upper, upper, x))


def excess(x: AnyArray, bound: AnyArray | float) -> Array:
    """max(x − bound, 0), which native code removes where the bound is infinite."""
    return jnp.where(x > bound, x - bound, 0.0)


def smooth_sign(x: AnyArray, width: AnyArray) -> Array:
    """Smooth sign tanh(x/width), whose slope at zero is 1/width."""
    return jnp.tanh(x / width)


@jax.jit  # traced once for all uses: tracing dominates the compile time of gradients
def cross(a: Vec3, b: Vec3) -> Vec3:
    """Cross product of two vectors."""
    a_yzx, b_yzx = jnp.concatenate([a[1:], a[:1]]), jnp.concatenate([b[1:], b[:1]])
    a_b = a * b_yzx - a_yzx * b  # components in the order z, x, y
    return jnp.concatenate([a_b[1:], a_b[:1]])
