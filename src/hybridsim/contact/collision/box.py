"""Spheres and capsules against boxes. The box is the second shape."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.contact.collision.contact_points import FAR, ContactPoints, PlacedShape, from_second, pick
from hybridsim.contact.collision.reduce_manifold import COINCIDENT, HEIGHT_WEIGHT
from hybridsim.core.numerics import clamp, unit
from hybridsim.core.types import AnyArray, Scalar, Vec3


def box_distance(p: Vec3, half: Vec3) -> tuple[Scalar, Vec3, Vec3]:
    """Signed distance of a point from a box, the direction away from it, and the nearest point of its surface.

    Args:
        p: the point, in the box's frame [m].
        half: the box's half extents [m].
    """
    inside = clamp(p, -half, half)
    outward, outside = unit(p - inside, jnp.zeros(3))
    # within, the nearest face counts
    depth = half - jnp.abs(p)
    x_wins = (depth[0] <= depth[1]) & (depth[0] <= depth[2])
    y_wins = ~x_wins & (depth[1] <= depth[2])
    face = jnp.stack([x_wins, y_wins, ~x_wins & ~y_wins]).astype(float) * jnp.where(p < 0.0, -1.0, 1.0)
    shallow = jnp.where(x_wins, depth[0], jnp.where(y_wins, depth[1], depth[2]))
    is_outside = outside > 0.0
    normal = jnp.where(is_outside, outward, face)
    surface = jnp.where(is_outside, inside, jnp.where(face != 0.0, face * half, p))
    return jnp.where(is_outside, outside, -shallow), normal, surface


def balls_box(centers: Float[AnyArray, "k 3"], radius: Scalar | float, box: PlacedShape) -> ContactPoints:
    """Balls against a box."""
    distance, normal, surface = jax.vmap(lambda p: box_distance(p, box.size))(box.to_shape(centers))
    return from_second(distance - radius, normal @ box.X_WG.R.T, box.to_world(surface))


EDGE_WIDTH = 1e-9
"""How wide the edges of a face are [m]: stacked boxes have corners on edges, and rounding must not take them off. What
moves by less than that along a face stands still."""

SIDEWAYS = 1e-6
"""How much less far aside a corner must lie, by how much lower it is, to count as lower: of equally low ones, rounding
would choose now one and now the other."""


def across_face(
    start: Float[AnyArray, "n 2"], step: Float[AnyArray, "n 2"], half: Float[AnyArray, "2"]
) -> tuple[Float[AnyArray, "2 n"], Bool[AnyArray, "2 n"]]:
    """Where lines enter and leave a rectangle, by their steps, and whether they do so on the way.

    Args:
        start: where the lines start, in the rectangle's plane from its middle [m].
        step: from there to their ends [m].
        half: the rectangle's half extents [m].
    """
    moves = jnp.abs(step) > EDGE_WIDTH
    per_step = 1.0 / jnp.where(moves, step, 1.0)
    one, other = (half[None] - start) * per_step, (-half[None] - start) * per_step
    # along what a line does not move, it is within all the way, or never
    within = jnp.abs(start) <= half[None] + EDGE_WIDTH
    enter = jnp.where(moves, jnp.minimum(one, other), jnp.where(within, -1.0, 2.0)).max(axis=1)
    leave = jnp.where(moves, jnp.maximum(one, other), jnp.where(within, 2.0, -1.0)).min(axis=1)
    passes = enter < leave
    enters, leaves = passes & (enter > 0.0) & (enter < 1.0), passes & (leave > 0.0) & (leave < 1.0)
    return jnp.stack([enter, leave]), jnp.stack([enters, leaves])


def sphere_box(sphere: PlacedShape, box: PlacedShape) -> ContactPoints:
    """One point."""
    return balls_box(sphere.X_WG.p[None], sphere.size[0], box)


def capsule_box(capsule: PlacedShape, box: PlacedShape) -> ContactPoints:
    """Two points: towards either end of the capsule the outermost one that is low; the nearest of all is one of them.

    The second is absent where the capsule touches in one point only. The gap is exact as long as the axis is outside
    the box; an axis inside is pushed out through the faces nearest to these points, which can be less than all the way.
    """
    X = box.X_WG
    middle, along = X.inv_point(capsule.X_WG.p), capsule.size[1] * (X.R.T @ capsule.X_WG.R[:, 2])
    nearest, kinks = nearest_to_box(middle, along, box.size)
    # between its kinks the distance runs straight or curves upwards, so there is no need to look elsewhere
    places = jnp.concatenate([kinks, nearest[None]])
    upper, lower = _outermost(places, middle, along, box.size, capsule.size[1])
    centers = middle[None] + jnp.stack([pick(places, upper), pick(places, lower)])[:, None] * along[None]
    points = balls_box(box.to_world(centers), capsule.size[0], box)
    is_one = jnp.abs(pick(places, upper) - pick(places, lower)) * capsule.size[1] < COINCIDENT
    there = jnp.stack([jnp.asarray(True), ~is_one])
    return eqx.tree_at(lambda p: p.gap, points, jnp.where(there, points.gap, FAR))


SAME_HEIGHT = 1e-9
"""Points whose distances differ by less than this [m] are equally near: rounding must not choose between them."""


def _outermost(
    places: Float[AnyArray, " n"], middle: Vec3, along: Vec3, half: Vec3, half_length: Scalar
) -> tuple[Int[AnyArray, ""], Int[AnyArray, ""]]:
    """Of some places on a segment, the last of which is nearest to a box, two that lie far apart and low."""
    # a choice has no derivative
    places, middle, along, half, half_length = jax.lax.stop_gradient((places, middle, along, half, half_length))
    distances = jax.vmap(lambda t: box_distance(middle + t * along, half)[0])(places)
    outward = places * half_length / HEIGHT_WEIGHT
    upper, lower = jnp.argmin(distances - outward), jnp.argmin(distances + outward)
    above, below = pick(distances, upper), pick(distances, lower)
    # across an edge, both can be higher than the nearest, which then replaces the higher one
    last = places.shape[0] - 1
    is_bent = distances[last] < jnp.minimum(above, below) - SAME_HEIGHT
    is_higher = above > below - SAME_HEIGHT
    return jnp.where(is_bent & is_higher, last, upper), jnp.where(is_bent & ~is_higher, last, lower)


LEAST_APPROACH = 1e-9
"""A segment that approaches a plane by less than this, by its length, never reaches it: where it would is rounding."""
LEVEL_SLOPE = 1e-12
"""Slopes of half the squared distance below this [m], by the segment's length, are none: along a face, rounding."""
INWARD = 1e-10
"""How far within a box's face, by its half extent, a segment is taken to cross it: on the face itself, rounding would
decide on which side of it the point of the crossing lies, and might do so differently for each derivative."""

OFF_MIDDLE = 0.1
"""How far off the middle of a stretch within a box, towards the segment's own middle, the point is that counts: in the
very middle both faces that the segment goes through are equally near, and rounding would choose."""


def nearest_to_box(middle: Vec3, along: Vec3, half: Vec3) -> tuple[Scalar, Float[AnyArray, "8"]]:
    """Where between -1 and 1 on a segment the point nearest to a box lies, and where the distance has kinks.

    Half the squared distance is convex along the segment, and its slope a broken line: between the two of its kinks
    where it changes sign, the zero follows from two values. Where it is zero all along, as within the box, the point
    is amid that stretch, or nearly.

    Args:
        middle: of the segment, in the box's frame [m].
        along: half of the segment [m].
        half: the box's half extents [m].
    """

    def slope(t: Scalar) -> Scalar:
        p = middle + t * along
        return (p - clamp(p, -half, half)) @ along

    squared = along @ along
    length = jnp.sqrt(jnp.where(squared > 0.0, squared, 1.0))
    crosses = jnp.abs(along) > LEAST_APPROACH * length
    per_along = 1.0 / jnp.where(crosses, along, 1.0)
    inside = (1.0 - INWARD) * half
    crossings = [jnp.where(crosses, (side * inside - middle) * per_along, side) for side in (-1.0, 1.0)]
    kinks = jnp.concatenate([*(clamp(c, -1.0, 1.0) for c in crossings), np.array([-1.0, 1.0])])
    slopes = jax.vmap(slope)(kinks)
    falls, rises = slopes < -LEVEL_SLOPE * length, slopes > LEVEL_SLOPE * length

    # the last kink before the zero and the first one after it
    before, after = jnp.argmax(jnp.where(falls, kinks, -2.0)), jnp.argmin(jnp.where(rises, kinks, 2.0))
    low, high, fall, rise = (pick(x, k) for x in (kinks, slopes) for k in (before, after))
    changes = falls.any() & rises.any()
    zero = low + (high - low) * jnp.where(changes, -fall, 0.0) / jnp.where(changes, rise - fall, 1.0)
    at_end = jnp.where(falls.any(), 1.0, -1.0)

    is_level = ~falls & ~rises
    first, last = jnp.min(jnp.where(is_level, kinks, 1.0)), jnp.max(jnp.where(is_level, kinks, -1.0))
    amid = (1.0 - OFF_MIDDLE) * 0.5 * (first + last) + OFF_MIDDLE * clamp(jnp.zeros(()), first, last)
    return jnp.where(is_level.any(), amid, jnp.where(changes, zero, at_end)), kinks
