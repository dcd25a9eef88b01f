"""Spheres and capsules against boxes. The box is the second shape."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.points import Placed, Points, from_second, unit_rows
from hybridsim.core.numerics import clamp, safe_divide
from hybridsim.core.types import AnyArray, Scalar, Vec3


def box_distance(p: Vec3, half: Vec3) -> tuple[Scalar, Vec3, Vec3]:
    """Signed distance of a point from a box, the direction away from it, and the nearest point of its surface.

    Args:
        p: the point, in the box's frame [m].
        half: the box's half extents [m].
    """
    inside = clamp(p, -half, half)
    outward, outside = unit_rows((p - inside)[None], jnp.zeros((1, 3)))
    # within, the nearest face counts
    depth = half - jnp.abs(p)
    x_wins = (depth[0] <= depth[1]) & (depth[0] <= depth[2])
    y_wins = ~x_wins & (depth[1] <= depth[2])
    face = jnp.stack([x_wins, y_wins, ~x_wins & ~y_wins]).astype(float) * jnp.where(p < 0.0, -1.0, 1.0)
    shallow = jnp.where(x_wins, depth[0], jnp.where(y_wins, depth[1], depth[2]))
    is_outside = outside[0] > 0.0
    normal = jnp.where(is_outside, outward[0], face)
    surface = jnp.where(is_outside, inside, jnp.where(face != 0.0, face * half, p))
    return jnp.where(is_outside, outside[0], -shallow), normal, surface


def balls_box(centers: Float[AnyArray, "k 3"], radius: Scalar | float, box: Placed) -> Points:
    """Balls against a box."""
    X = box.X_WG
    distance, normal, surface = jax.vmap(lambda p: box_distance(p, box.size))((centers - X.p) @ X.R)
    return from_second(distance - radius, normal @ X.R.T, X.p + surface @ X.R.T)


def sphere_box(sphere: Placed, box: Placed) -> Points:
    """One point."""
    return balls_box(sphere.X_WG.p[None], sphere.size[0], box)


def capsule_box(capsule: Placed, box: Placed) -> Points:
    """Two points: the ends of what lies above the face that the capsule's nearest point is on."""
    X = box.X_WG
    middle, along = X.inv_point(capsule.X_WG.p), capsule.size[1] * (X.R.T @ capsule.X_WG.R[:, 2])
    nearest = nearest_to_box(middle, along, box.size)
    _, normal, _ = box_distance(middle + nearest * along, box.size)
    ends = stretch_above_face(middle, along, box.size, normal, nearest)
    centers = X.p + (middle + ends[:, None] * along) @ X.R.T
    return balls_box(centers, capsule.size[0], box)


def nearest_to_box(middle: Vec3, along: Vec3, half: Vec3) -> Scalar:
    """Where between -1 and 1 on a segment the point nearest to a box lies.

    Half the squared distance is convex along the segment, and its slope a broken line: between the two of its kinks
    where it changes sign, the zero follows from two values.
    """

    def slope(t: Scalar) -> Scalar:
        p = middle + t * along
        return (p - clamp(p, -half, half)) @ along

    crossings = [safe_divide(side * half - middle, along) for side in (-1.0, 1.0)]
    kinks = jnp.concatenate([*(clamp(c, -1.0, 1.0) for c in crossings), np.array([-1.0, 1.0])])
    slopes = jax.vmap(slope)(kinks)
    low, high = jnp.max(jnp.where(slopes < 0.0, kinks, -1.0)), jnp.min(jnp.where(slopes > 0.0, kinks, 1.0))
    falls, rises = slope(low), slope(high)
    crossing = low + clamp(safe_divide(-falls, rises - falls), 0.0, 1.0) * (high - low)
    # through the box the slope is zero all along: there take the middle
    is_flat = slopes == 0.0
    first, last = jnp.min(jnp.where(is_flat, kinks, 1.0)), jnp.max(jnp.where(is_flat, kinks, -1.0))
    return jnp.where(is_flat.any(), 0.5 * (first + last), crossing)


def stretch_above_face(middle: Vec3, along: Vec3, half: Vec3, normal: Vec3, nearest: Scalar) -> Float[AnyArray, "2"]:
    """The ends of the part of a segment that lies above a box's face; both at the nearest point if there is none."""
    size = jnp.abs(normal)
    is_up = size >= jnp.max(size)  # the face's own direction does not limit
    low, high = -1.0, 1.0
    for k in range(3):
        one, other = (safe_divide(side * half[k] - middle[k], along[k]) for side in (-1.0, 1.0))
        crosses = (along[k] != 0.0) & ~is_up[k]
        low = jnp.where(crosses, jnp.maximum(low, jnp.minimum(one, other)), low)
        high = jnp.where(crosses, jnp.minimum(high, jnp.maximum(one, other)), high)
    is_there = (low < high) & (low <= nearest) & (nearest <= high)
    return jnp.where(is_there, jnp.stack([low, high]), nearest)
