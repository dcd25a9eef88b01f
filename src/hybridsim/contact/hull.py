"""Convex hulls of meshes against spheres and boxes. The hull is the first shape."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.points import Placed, Points, from_first, tangents, unit_rows
from hybridsim.contact.spread import spread_indices
from hybridsim.core.numerics import clamp, cross, safe_divide
from hybridsim.core.types import AnyArray, Scalar, Vec3


def _triangles(hull: Placed) -> tuple[Float[AnyArray, "n 3 3"], Float[AnyArray, "n 3"]]:
    """Corners of the hull's triangles in its own frame, and their outward normals."""
    corners = jnp.asarray(hull.data)[np.array(hull.faces)]
    normals = jax.vmap(lambda t: cross(t[1] - t[0], t[2] - t[0]))(corners)
    return corners, unit_rows(normals, jnp.zeros(3))[0]


def hull_sphere(hull: Placed, sphere: Placed) -> Points:
    """One point."""
    X, center = hull.X_WG, hull.X_WG.inv_point(sphere.X_WG.p)
    distance, away, nearest = hull_distance(hull, center)
    gap = distance - sphere.size[0]
    return from_first(gap[None], -(X.R @ away)[None], X.point(nearest)[None])


def hull_distance(hull: Placed, p: Vec3) -> tuple[Scalar, Vec3, Vec3]:
    """Signed distance of a point from a hull, the direction away from it, and the nearest point, in its frame."""
    corners, normals = _triangles(hull)
    heights = jnp.sum((p - corners[:, 0]) * normals, axis=1)
    nearest = jax.vmap(lambda t: _nearest_on_triangle(p, t))(corners)
    squared = jnp.sum((p - nearest) ** 2, axis=1)
    outer, inner = jnp.argmin(squared), jnp.argmax(heights)
    direction, length = unit_rows((p - nearest[outer])[None], normals[outer])
    is_outside = heights[inner] > 0.0
    return (
        jnp.where(is_outside, length[0], heights[inner]),
        jnp.where(is_outside, direction[0], normals[inner]),
        jnp.where(is_outside, nearest[outer], p - heights[inner] * normals[inner]),
    )


def _nearest_on_triangle(p: Vec3, corners: Float[AnyArray, "3 3"]) -> Vec3:
    """The point of a triangle nearest to `p`: above its inside the foot of the perpendicular, else on an edge."""
    a, b, c = corners
    u, v, w = b - a, c - a, p - a
    uu, uv, vv, uw, vw = u @ u, u @ v, v @ v, u @ w, v @ w
    scale = uu * vv - uv * uv
    s, t = safe_divide(uw * vv - vw * uv, scale), safe_divide(vw * uu - uw * uv, scale)
    inside = (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0) & (scale > 0.0)

    def on_edge(start: Vec3, end: Vec3) -> Vec3:
        along = end - start
        return start + clamp(safe_divide((p - start) @ along, along @ along), 0.0, 1.0) * along

    edges = jnp.stack([on_edge(a, b), on_edge(b, c), on_edge(c, a)])
    nearest = edges[jnp.argmin(jnp.sum((p - edges) ** 2, axis=1))]
    return jnp.where(inside, a + s * u + t * v, nearest)


def hull_box(hull: Placed, box: Placed) -> Points:
    """Four points, along the normal of a face: corners of the hull on a face of the box, or the other way round.

    Edges that cross away from all corners are met late: as deep as the nearest corner allows.
    """
    X_BH = box.X_WG.inverse() @ hull.X_WG
    corners = X_BH.p + hull.data @ X_BH.R.T
    # how far the hull is above each of the box's faces, and the box above each of the hull's
    sides = np.concatenate([np.eye(3), -np.eye(3)])
    above_box = (sides @ corners.T).min(axis=1) - jnp.concatenate([box.size, box.size])
    triangles, normals = _triangles(hull)
    normals_B = normals @ X_BH.R.T
    starts_B = X_BH.p + triangles[:, 0] @ X_BH.R.T
    above_hull = -jnp.sum(starts_B * normals_B, axis=1) - jnp.abs(normals_B) @ box.size
    side, face = jnp.argmax(above_box), jnp.argmax(above_hull)
    on_box = above_box[side] >= above_hull[face]

    box_corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, 8).T * box.size
    normal = jnp.where(on_box, jnp.asarray(sides)[side], -normals_B[face])  # from the box towards the hull
    of_hull = _chosen(corners, normal, (corners @ normal) - box.size[side % 3])
    of_box = _chosen(box_corners, normal, (box_corners - starts_B[face]) @ -normal)
    (near_hull, gaps_hull), (near_box, gaps_box) = of_hull, of_box
    gap = jnp.where(on_box, gaps_hull, gaps_box)
    on_first = jnp.where(on_box, near_hull, near_box + gaps_box[:, None] * normal)
    world = box.X_WG
    rows = jnp.broadcast_to(world.R @ normal, (4, 3))
    return from_first(gap, rows, world.p + on_first @ world.R.T)


def _chosen(
    points: Float[AnyArray, "n 3"], normal: Vec3, heights: Float[AnyArray, " n"]
) -> tuple[Float[AnyArray, "4 3"], Float[AnyArray, "4"]]:
    """Four of some points and their heights."""
    chosen = spread_indices(points @ jnp.stack(tangents(normal), axis=1), heights)
    return points[chosen], heights[chosen]
