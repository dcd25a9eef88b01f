"""Polygonal prisms and elliptic cylinders against an upright cylinder, for planar pushing.

Only the outlines in the base plane matter, at any height. The prism or elliptic cylinder is the first shape. The axis
of the upright cylinder is assumed parallel to its axis; the contact is at the middle of the common range of heights.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from hybridsim.contact.collision.contact_points import ContactPoints, PlacedShape, contacts_from_second, pick
from hybridsim.core.numerics import MIN_HALF_EXTENT, TINY_LENGTH_SQUARED, clamp, direction_and_length
from hybridsim.core.types import AnyArray, Scalar

Vec2 = Float[AnyArray, "2"]

BISECTION_STEPS = 20
"""Bisection steps over a quadrant for the nearest point of an ellipse, before Newton's method."""
NEWTON_STEPS = 2
"""Newton steps after bisection: the first leaves an error of 1e-12 rad, the second rounding error."""
MIN_SLOPE = 1e-9
"""Minimum magnitude of the slope of the optimality condition in a Newton step, relative to the sum of the squared half
axes: the slope vanishes at some interior points."""


def polygon_cylinder(polygon: PlacedShape, cylinder: PlacedShape) -> ContactPoints:
    """Contact at one point; the outline may be concave but must not intersect itself."""
    outline = jnp.asarray(polygon.data)[:, :2]
    return _prism_contact(polygon, cylinder, lambda p: polygon_distance(outline, p))


def ellipse_cylinder(ellipse: PlacedShape, cylinder: PlacedShape) -> ContactPoints:
    """Contact at one point."""
    return _prism_contact(ellipse, cylinder, lambda p: ellipse_distance(ellipse.size[:2], p))


def _prism_contact(prism: PlacedShape, cylinder: PlacedShape, distance) -> ContactPoints:
    X = prism.X_WG
    p = X.inv_point(cylinder.X_WG.p)
    gap, outward = distance(p[:2])
    gap = gap - cylinder.size[0]
    normal = -(X.R[:, :2] @ outward)
    half, half_prism = cylinder.size[1], prism.size[2]
    height = 0.5 * (clamp(p[2] - half, -half_prism, half_prism) + clamp(p[2] + half, -half_prism, half_prism))
    on_cylinder = X.point(jnp.concatenate([p[:2] - cylinder.size[0] * outward, height[None]]))
    return contacts_from_second(gap[None], normal[None], on_cylinder[None])


def polygon_distance(outline: Float[AnyArray, "n 2"], p: Vec2) -> tuple[Scalar, Vec2]:
    """Signed distance of a point from a polygon, and the outward direction."""
    ends = jnp.roll(outline, -1, axis=0)
    along, from_start = ends - outline, p[None] - outline
    squared = jnp.sum(along * along, axis=1)
    has_length = squared > TINY_LENGTH_SQUARED
    length = jnp.sqrt(jnp.where(has_length, squared, 1.0))
    t = jnp.sum(from_start * along, axis=1) / (length * length)
    to_edge = from_start - clamp(t, 0.0, 1.0)[:, None] * along
    nearest = jnp.argmin(jnp.sum(to_edge * to_edge, axis=1))

    # beside an edge the direction is its normal, which has a derivative even on the edge
    orientation = jnp.where(_doubled_area(outline) < 0.0, -1.0, 1.0)
    outward = orientation * jnp.stack([along[:, 1], -along[:, 0]], axis=1) / length[:, None]
    edge_distance, normal = pick(jnp.sum(from_start * outward, axis=1), nearest), pick(outward, nearest)
    is_beside = pick((t >= 0.0) & (t <= 1.0) & has_length, nearest)

    # beyond a corner the direction points away from it, or towards it inside a concave outline
    sign = jnp.where(_is_inside(outline, ends, p), -1.0, 1.0)
    direction, distance = direction_and_length(pick(to_edge, nearest), sign * normal)
    return jnp.where(is_beside, edge_distance, sign * distance), jnp.where(is_beside, normal, sign * direction)


def _doubled_area(outline: Float[AnyArray, "n 2"]) -> Scalar:
    """Twice the signed area of an outline [m²], negative if it runs clockwise."""
    x, y = (outline - outline[:1]).T
    return jnp.sum(x * jnp.roll(y, -1) - y * jnp.roll(x, -1))


def _is_inside(starts: Float[AnyArray, "n 2"], ends: Float[AnyArray, "n 2"], p: Vec2) -> Bool[AnyArray, ""]:
    """Whether a ray from a point crosses an outline an odd number of times."""
    along = ends - starts
    spans = (starts[:, 1] > p[1]) != (ends[:, 1] > p[1])
    crossing = starts[:, 0] + (p[1] - starts[:, 1]) * along[:, 0] / jnp.where(spans, along[:, 1], 1.0)
    return jnp.sum(jnp.where(spans & (p[0] < crossing), 1, 0)) % 2 == 1


def ellipse_distance(half: Vec2, p: Vec2) -> tuple[Scalar, Vec2]:
    """Signed distance of a point from an ellipse, and the outward direction.

    The nearest point is (a cos φ, b sin φ) where the line to `p` is normal to the ellipse. Bisection on that condition
    over the quadrant of `p` brackets φ; Newton steps, which are differentiated, converge to it.
    """
    a, b = jnp.maximum(half[0], MIN_HALF_EXTENT), jnp.maximum(half[1], MIN_HALF_EXTENT)

    def optimality(angle: Scalar, p: Vec2) -> Scalar:
        """Minus half the derivative of the squared distance with respect to the angle.

        It is positive before the nearest point.
        """
        s, c = jnp.sin(angle), jnp.cos(angle)
        return (a * a - b * b) * c * s - p[0] * a * s + p[1] * b * c

    def bisect(bracket, _):
        low, high = bracket
        middle = 0.5 * (low + high)
        is_before = optimality(middle, jnp.abs(p)) > 0.0
        return (jnp.where(is_before, middle, low), jnp.where(is_before, high, middle)), None

    bracket = (jnp.asarray(0.0), jnp.asarray(0.5 * np.pi))
    low, high = jax.lax.stop_gradient(jax.lax.scan(bisect, bracket, length=BISECTION_STEPS)[0])
    # back to the quadrant of `p`; steps below do not depend on the quadrant, which avoids discontinuities at the axes
    angle = 0.5 * (low + high)
    angle = jnp.where(p[0] < 0.0, np.pi - angle, angle)
    angle = jnp.where(p[1] < 0.0, -angle, angle)
    max_slope = -MIN_SLOPE * (a * a + b * b)
    for _ in range(NEWTON_STEPS):
        value, slope = jax.jvp(lambda angle: optimality(angle, p), (angle,), (jnp.ones_like(angle),))
        # inside, where several points are equally near, the slope vanishes: limit the step to the bracket
        angle = angle - clamp(value / jnp.where(slope < max_slope, slope, max_slope), low - high, high - low)
    s, c = jnp.sin(angle), jnp.cos(angle)
    outward = jnp.stack([b * c, a * s])
    outward = outward / jnp.sqrt(outward @ outward)
    return (p - jnp.stack([a * c, b * s])) @ outward, outward
