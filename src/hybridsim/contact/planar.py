"""Prisms over polygons and ellipses against an upright cylinder: pushing on a table.

Only the outlines in the prism's plane count. The prism is the first shape, the cylinder's axis is taken as parallel to
the prism's, and contact is at the height of the cylinder's lower end or the prism's middle, whichever is higher.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.points import TINY_DISTANCE_SQUARED, Placed, Points, from_first
from hybridsim.core.numerics import clamp, safe_divide
from hybridsim.core.types import AnyArray, Scalar

Vec2 = Float[AnyArray, "2"]

BISECTIONS = 20
"""Halvings of a right angle on the way to the nearest point of an ellipse, before Newton's method takes over."""
ELLIPSE_STEPS = 2
"""Newton steps after them: the first leaves 1e-12 of an angle, the second rounding."""


def polygon_cylinder(polygon: Placed, cylinder: Placed) -> Points:
    """One point; the outline runs counterclockwise and may be indented."""
    outline = jnp.asarray(polygon.data)[:, :2]
    return _planar(polygon, cylinder, lambda p: polygon_distance(outline, p))


def ellipse_cylinder(ellipse: Placed, cylinder: Placed) -> Points:
    """One point."""
    return _planar(ellipse, cylinder, lambda p: ellipse_distance(ellipse.size[:2], p))


def _planar(prism: Placed, cylinder: Placed, distance) -> Points:
    X = prism.X_WG
    p = X.inv_point(cylinder.X_WG.p)
    gap, away = distance(p[:2])
    gap = gap - cylinder.size[0]
    normal = -(X.R[:, :2] @ away)
    height = clamp(p[2] - cylinder.size[1], -prism.size[2], prism.size[2])
    on_tip = jnp.concatenate([p[:2] - cylinder.size[0] * away, height[None]])
    on_prism = X.point(on_tip) + gap * normal
    return from_first(gap[None], normal[None], on_prism[None])


def polygon_distance(outline: Float[AnyArray, "n 2"], p: Vec2) -> tuple[Scalar, Vec2]:
    """Signed distance of a point from a polygon, and the direction away from it."""
    ends = jnp.roll(outline, -1, axis=0)
    along = ends - outline
    from_start = p - outline
    t = clamp(safe_divide(jnp.sum(from_start * along, axis=1), jnp.sum(along * along, axis=1)), 0.0, 1.0)
    to_edge = from_start - t[:, None] * along
    squared = jnp.sum(to_edge * to_edge, axis=1)
    # a point is inside if a ray from it crosses the outline an odd number of times
    spans = (outline[:, 1] > p[1]) != (ends[:, 1] > p[1])
    at = outline[:, 0] + safe_divide((p[1] - outline[:, 1]) * along[:, 0], along[:, 1])
    is_inside = jnp.sum(jnp.where(spans & (p[0] < at), 1, 0)) % 2 == 1
    sign = jnp.where(is_inside, -1.0, 1.0)
    nearest = jnp.argmin(squared)
    outward = jnp.stack([along[nearest, 1], -along[nearest, 0]])
    outward = outward / jnp.sqrt(jnp.maximum(outward @ outward, TINY_DISTANCE_SQUARED))
    on_edge = squared[nearest] < TINY_DISTANCE_SQUARED
    length = jnp.sqrt(jnp.where(on_edge, 1.0, squared[nearest]))
    away = jnp.where(on_edge, outward, sign * to_edge[nearest] / length)
    return jnp.where(on_edge, 0.0, sign * length), away


def ellipse_distance(half: Vec2, p: Vec2) -> tuple[Scalar, Vec2]:
    """Signed distance of a point from an ellipse, and the direction away from it.

    The nearest point is (a cos φ, b sin φ) where the line to `p` is normal to the ellipse. Bisection on that condition
    over the quadrant of `p` brackets φ, and Newton steps, through which the derivative goes, finish.
    """
    q = jnp.abs(p)
    a, b = half[0], half[1]

    def condition(angle: Scalar) -> Scalar:
        s, c = jnp.sin(angle), jnp.cos(angle)
        return (a * a - b * b) * c * s - q[0] * a * s + q[1] * b * c

    def halve(bracket, _):
        low, high = bracket
        middle = 0.5 * (low + high)
        is_before = condition(middle) > 0.0
        return (jnp.where(is_before, middle, low), jnp.where(is_before, high, middle)), None

    bracket = (jnp.asarray(0.0), jnp.asarray(0.5 * np.pi))
    low, high = jax.lax.stop_gradient(jax.lax.scan(halve, bracket, length=BISECTIONS)[0])
    angle = 0.5 * (low + high)
    for _ in range(ELLIPSE_STEPS):
        value, slope = jax.jvp(condition, (angle,), (jnp.ones_like(angle),))
        # inside, where several points are equally near, the slope vanishes: never leave the bracket
        angle = clamp(angle - safe_divide(value, slope), low, high)
    s, c = jnp.sin(angle), jnp.cos(angle)
    signs = jnp.where(p < 0.0, -1.0, 1.0)
    outward = jnp.stack([b * c, a * s]) * signs
    outward = outward / jnp.sqrt(outward @ outward)
    return (p - signs * jnp.stack([a * c, b * s])) @ outward, outward
