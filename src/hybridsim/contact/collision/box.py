"""Spheres and capsules against boxes. The box is the second shape."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.contact.collision.contact_points import FAR, ContactPoints, PlacedShape, contacts_from_second, pick
from hybridsim.contact.collision.reduce_manifold import COINCIDENCE_TOLERANCE, GAP_WEIGHT
from hybridsim.core.numerics import clamp, direction_and_length
from hybridsim.core.types import AnyArray, Scalar, Vec3


def box_distance(p: Vec3, half: Vec3) -> tuple[Scalar, Vec3, Vec3]:
    """Signed distance of a point from a box, outward direction, and nearest surface point.

    Args:
        p: the point, in the box's frame [m].
        half: the box's half extents [m].
    """
    clamped = clamp(p, -half, half)
    outward, distance = direction_and_length(p - clamped, jnp.zeros(3))
    # inside the box, distance and direction are those of the nearest face
    depth = half - jnp.abs(p)
    is_x = (depth[0] <= depth[1]) & (depth[0] <= depth[2])
    is_y = ~is_x & (depth[1] <= depth[2])
    face = jnp.stack([is_x, is_y, ~is_x & ~is_y]).astype(float) * jnp.where(p < 0.0, -1.0, 1.0)
    shallow = jnp.where(is_x, depth[0], jnp.where(is_y, depth[1], depth[2]))
    is_outside = distance > 0.0
    normal = jnp.where(is_outside, outward, face)
    surface = jnp.where(is_outside, clamped, jnp.where(face != 0.0, face * half, p))
    return jnp.where(is_outside, distance, -shallow), normal, surface


def spheres_box(centres: Float[AnyArray, "k 3"], radius: Scalar | float, box: PlacedShape) -> ContactPoints:
    """Balls against a box."""
    distance, normal, surface = jax.vmap(lambda p: box_distance(p, box.size))(box.to_shape(centres))
    return contacts_from_second(distance - radius, normal @ box.X_WG.R.T, box.to_world(surface))


EDGE_TOLERANCE = 1e-9
"""Tolerance of the inside test of a face [m]: corners of stacked boxes lie on edges, and rounding must not drop them.
Segments with a shorter component along a face axis count as perpendicular to it."""

LATERAL_WEIGHT = 1e-6
"""Weight of lateral distance against distance along the normal in choosing the lowest corner: rounding must not choose
between equally low corners."""


def clip_to_face(
    start: Float[AnyArray, "n 2"], step: Float[AnyArray, "n 2"], half: Float[AnyArray, "2"]
) -> tuple[Float[AnyArray, "2 n"], Bool[AnyArray, "2 n"]]:
    """Parameters at which segments enter and leave a rectangle, and which of these crossings exist.

    A crossing exists if the segment passes through the rectangle and its parameter lies between 0 (start) and 1 (end).

    Args:
        start: start points of the segments, in the plane of the rectangle, from its centre [m].
        step: displacements from the start to the end points [m].
        half: the rectangle's half extents [m].
    """
    is_transverse = jnp.abs(step) > EDGE_TOLERANCE
    inverse_step = 1.0 / jnp.where(is_transverse, step, 1.0)
    upper, lower = (half[None] - start) * inverse_step, (-half[None] - start) * inverse_step
    # a segment perpendicular to an axis is entirely inside or entirely outside along it
    within = jnp.abs(start) <= half[None] + EDGE_TOLERANCE
    enter = jnp.where(is_transverse, jnp.minimum(upper, lower), jnp.where(within, -1.0, 2.0)).max(axis=1)
    leave = jnp.where(is_transverse, jnp.maximum(upper, lower), jnp.where(within, 2.0, -1.0)).min(axis=1)
    passes = enter < leave
    enters, leaves = passes & (enter > 0.0) & (enter < 1.0), passes & (leave > 0.0) & (leave < 1.0)
    return jnp.stack([enter, leave]), jnp.stack([enters, leaves])


def sphere_box(sphere: PlacedShape, box: PlacedShape) -> ContactPoints:
    """Contact at one point."""
    return spheres_box(sphere.X_WG.p[None], sphere.size[0], box)


def capsule_box(capsule: PlacedShape, box: PlacedShape) -> ContactPoints:
    """Contact at two points, one towards each end of the capsule, chosen for depth and spread.

    One of them is the nearest point; the other is absent where contact is at a single point. The gap is exact as long
    as the axis is outside the box; an axis inside is pushed out through the faces nearest to these points, which may
    not separate the shapes completely.
    """
    X = box.X_WG
    middle, along = X.inv_point(capsule.X_WG.p), capsule.size[1] * (X.R.T @ capsule.X_WG.R[:, 2])
    nearest, kinks = nearest_parameter_to_box(middle, along, box.size)
    # no other parameters are tested: between its kinks the distance is linear, or convex near edges or inside the box,
    # where the nearest point stands for the minimum
    parameters = jnp.concatenate([kinks, nearest[None]])
    upper, lower = _spread_points(parameters, middle, along, box.size, capsule.size[1])
    centres = middle[None] + jnp.stack([pick(parameters, upper), pick(parameters, lower)])[:, None] * along[None]
    points = spheres_box(box.to_world(centres), capsule.size[0], box)
    is_single = jnp.abs(pick(parameters, upper) - pick(parameters, lower)) * capsule.size[1] < COINCIDENCE_TOLERANCE
    exists = jnp.stack([jnp.asarray(True), ~is_single])
    return eqx.tree_at(lambda p: p.gap, points, jnp.where(exists, points.gap, FAR))


SAME_DISTANCE = 1e-9
"""Difference of distances [m] below which points count as equally near: rounding must not choose between them."""


def _spread_points(
    parameters: Float[AnyArray, " n"], middle: Vec3, along: Vec3, half: Vec3, half_length: Scalar
) -> tuple[Int[AnyArray, ""], Int[AnyArray, ""]]:
    """Indices of two points of a segment that are deep and far apart; the last parameter is the nearest point's."""
    # a discrete choice has no derivative
    constants = jax.lax.stop_gradient((parameters, middle, along, half, half_length))
    parameters, middle, along, half, half_length = constants
    distances = jax.vmap(lambda t: box_distance(middle + t * along, half)[0])(parameters)
    outward = parameters * half_length / GAP_WEIGHT
    upper, lower = jnp.argmin(distances - outward), jnp.argmin(distances + outward)
    upper_distance, lower_distance = pick(distances, upper), pick(distances, lower)
    # across an edge, both can be farther than the nearest point, which then replaces the farther one
    last = parameters.shape[0] - 1
    is_across_edge = distances[last] < jnp.minimum(upper_distance, lower_distance) - SAME_DISTANCE
    is_upper_farther = upper_distance > lower_distance - SAME_DISTANCE
    replaced_upper, replaced_lower = is_across_edge & is_upper_farther, is_across_edge & ~is_upper_farther
    return jnp.where(replaced_upper, last, upper), jnp.where(replaced_lower, last, lower)


MIN_NORMAL_COMPONENT = 1e-9
"""Normal component, relative to its length, below which a line counts as parallel to a plane: the intersection would be
rounding error."""
LEVEL_SLOPE = 1e-12
"""Magnitude of the slope of half the squared distance, relative to the segment's half length [m], below which it counts
as zero: on a face it is rounding error."""
FACE_INSET = 1e-10
"""Inset of a box's face, relative to the half extent, at which crossings are computed: on the face itself, rounding
would decide on which side the crossing point lies, and might do so differently for each derivative."""

MIDPOINT_SHIFT = 0.1
"""Relative shift of the nearest point from the middle of the interval inside a box towards the segment's own middle: at
the exact middle both faces that the segment crosses are equally near, and rounding would choose between them."""


def nearest_parameter_to_box(middle: Vec3, along: Vec3, half: Vec3) -> tuple[Scalar, Float[AnyArray, "8"]]:
    """Parameter in [-1, 1] of the point of a segment nearest to a box, and the kinks of the distance.

    Half the squared distance is convex along the segment, and its slope piecewise linear: between the two kinks where
    it changes sign, the zero follows by linear interpolation. Where it is zero over an interval, as inside the box, the
    point is near the middle of that interval.

    Args:
        middle: middle of the segment, in the box's frame [m].
        along: vector from there to its end [m].
        half: the box's half extents [m].
    """

    def slope(t: Scalar) -> Scalar:
        p = middle + t * along
        return (p - clamp(p, -half, half)) @ along

    squared = along @ along
    half_length = jnp.sqrt(jnp.where(squared > 0.0, squared, 1.0))
    crosses = jnp.abs(along) > MIN_NORMAL_COMPONENT * half_length
    inverse_along = 1.0 / jnp.where(crosses, along, 1.0)
    inside = (1.0 - FACE_INSET) * half
    crossings = [jnp.where(crosses, (side * inside - middle) * inverse_along, side) for side in (-1.0, 1.0)]
    kinks = jnp.concatenate([*(clamp(c, -1.0, 1.0) for c in crossings), np.array([-1.0, 1.0])])
    slopes = jax.vmap(slope)(kinks)
    falls, rises = slopes < -LEVEL_SLOPE * half_length, slopes > LEVEL_SLOPE * half_length

    # the last kink before the zero and the first one after it
    before, after = jnp.argmax(jnp.where(falls, kinks, -2.0)), jnp.argmin(jnp.where(rises, kinks, 2.0))
    low, high, fall, rise = (pick(x, k) for x in (kinks, slopes) for k in (before, after))
    changes = falls.any() & rises.any()
    zero = low + (high - low) * jnp.where(changes, -fall, 0.0) / jnp.where(changes, rise - fall, 1.0)
    at_end = jnp.where(falls.any(), 1.0, -1.0)

    is_level = ~falls & ~rises
    first, last = jnp.min(jnp.where(is_level, kinks, 1.0)), jnp.max(jnp.where(is_level, kinks, -1.0))
    interior = (1.0 - MIDPOINT_SHIFT) * 0.5 * (first + last) + MIDPOINT_SHIFT * clamp(jnp.zeros(()), first, last)
    return jnp.where(is_level.any(), interior, jnp.where(changes, zero, at_end)), kinks
