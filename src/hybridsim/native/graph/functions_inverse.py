"""Expansions of inverse trigonometric functions: asin, acos, atan, atan2.

Each is m·π/2 + t + t³·P(t²), with m and t chosen such that |t| is in the interval for which P was fitted.
"""

from hybridsim.native.graph.functions_expr import SIGN_BIT, Expr, fast_two_sum, mad, polynomial, where

HALF_PI, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17

ASIN = (
    0.16666666666665403,
    0.0750000000033858,
    0.044642856826953396,
    0.030381959196411675,
    0.022371756568945196,
    0.017359727851232607,
    0.013885000756218284,
    0.012170792949713535,
    0.006520973500542385,
    0.019547847777255455,
    -0.01625561175646791,
    0.031934178600328864,
)
"""(asin t − t)/t³ in t² on |t| ≤ 1/2; the error of asin t is 2⁻⁵⁵."""
ATAN = (
    -0.33333333333333065,
    0.1999999999995104,
    -0.14285714282554726,
    0.11111111006509675,
    -0.09090906994907522,
    0.07692279753851351,
    -0.06666403413793077,
    0.05880524230840879,
    -0.05253503450071018,
    0.047222732309798,
    -0.04219055381552479,
    0.036639473519660945,
    -0.029900098281311932,
    0.02198033869096626,
    -0.01389638938385248,
    0.00719359788497818,
    -0.0028834432242216225,
    0.0008308068053398785,
    -0.00015205037134013037,
    1.3214098020637572e-05,
)
"""(atan t − t)/t³ in t² on |t| ≤ 1; the error of atan t is 2⁻⁵⁷."""


def asin(x: Expr) -> Expr:
    """Arcsine in [−π/2, π/2]; for |x| > 1/2 as π/2 − 2·asin √((1 − |x|)/2)."""
    magnitude = abs(x)
    is_small = magnitude < 0.5
    z = where(is_small, x * x, 0.5 - magnitude * 0.5)
    t = where(is_small, magnitude, z.sqrt() * -2.0)
    return _angle(where(is_small, 0.0, 1.0), t, z, ASIN).flip_sign(x.sign_bit)


def acos(x: Expr) -> Expr:
    """Arccosine in [0, π]."""
    magnitude = abs(x)
    is_small = magnitude < 0.5
    z = where(is_small, x * x, 0.5 - magnitude * 0.5)
    t = where(is_small, -x, (z.sqrt() * 2.0).flip_sign(x.sign_bit))
    return _angle(where(is_small, 1.0, where(x < 0.0, 2.0, 0.0)), t, z, ASIN)


def atan(x: Expr) -> Expr:
    """Arctangent in [−π/2, π/2]."""
    magnitude = abs(x)
    is_large = magnitude > 1.0
    t = where(is_large, -1.0, magnitude) / where(is_large, magnitude, 1.0)
    return _angle(where(is_large, 1.0, 0.0), t, t * t, ATAN).flip_sign(x.sign_bit)


def atan2(y: Expr, x: Expr) -> Expr:
    """Angle of the point (x, y) in [−π, π], with signed zeros as in C."""
    width, height = abs(x), abs(y)
    is_steep = height > width
    short, long = where(is_steep, width, height), where(is_steep, height, width)
    # 0/0 gives 0 and ∞/∞ gives 1
    t = where(short.equals(long), where(long.equals(0.0), 0.0, 1.0), short / long)
    quarter_turns = where(is_steep, 1.0, where(x.bits < 0, 2.0, 0.0))
    t = t.flip_sign(where(is_steep, x.sign_bit ^ SIGN_BIT, x.sign_bit))
    return _angle(quarter_turns, t, t * t, ATAN).flip_sign(y.sign_bit)


def _angle(quarter_turns: Expr, t: Expr, z: Expr, coefficients: tuple[float, ...]) -> Expr:
    """quarter_turns·π/2 + t + t·z·P(z)."""
    total, error = fast_two_sum(quarter_turns * HALF_PI, t)
    return total + mad(t * z, polynomial(z, coefficients), mad(quarter_turns, HALF_PI_LOW, error))
