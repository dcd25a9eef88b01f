"""Convex hulls of meshes against spheres and boxes. The hull is the first shape.

Against a box, what `box_box` says holds: the direction is a normal of a face of either shape or a cross product of two
edges. Of a face of the box and the hull above it, four outermost points are kept; two edges meet in one point.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from hybridsim.contact.collision.box import EDGE_WIDTH, SIDEWAYS, across_face
from hybridsim.contact.collision.box_box import EDGE_ADVANTAGE, LIP, PARALLEL_EDGES, pass_by
from hybridsim.contact.collision.contact_points import (
    FAR,
    SQUARE_CORNERS,
    ContactPoints,
    PlacedShape,
    cycle_axes,
    from_first,
    pick,
)
from hybridsim.contact.collision.reduce_manifold import reduce_manifold
from hybridsim.contact.collision.sphere_capsule import nearest_on_segments
from hybridsim.core.numerics import TINY_AREA_SQUARED, TINY_LENGTH_SQUARED, clamp, cross, unit
from hybridsim.core.types import AnyArray, Scalar, Vec3
from hybridsim.model.geometry import Faces

BOX_FIRST = 1e-3
"""How much more [m] a face of the hull must separate than one of the box to count: ripples must not choose."""


def _triangles(
    corners: Float[AnyArray, "v 3"], faces: Faces
) -> tuple[Float[AnyArray, "n 3 3"], Float[AnyArray, "n 3"], Bool[AnyArray, " n"]]:
    """Corners of triangles, their outward normals, and which of them have one."""
    triangles = jnp.asarray(corners)[np.array(faces)]
    normals = jax.vmap(lambda t: cross(t[1] - t[0], t[2] - t[0]))(triangles)
    squared = jnp.sum(normals * normals, axis=1)
    has_area = squared > TINY_AREA_SQUARED
    return triangles, normals / jnp.sqrt(jnp.where(has_area, squared, 1.0))[:, None], has_area


def hull_sphere(hull: PlacedShape, sphere: PlacedShape) -> ContactPoints:
    """One point."""
    X, center = hull.X_WG, hull.X_WG.inv_point(sphere.X_WG.p)
    distance, away, nearest = hull_distance(hull, center)
    gap = distance - sphere.size[0]
    return from_first(gap[None], -(X.R @ away)[None], X.point(nearest)[None])


def hull_distance(hull: PlacedShape, p: Vec3) -> tuple[Scalar, Vec3, Vec3]:
    """Signed distance of a point from a hull, the direction away from it, and the nearest point, in its frame."""
    triangles, normals, has_area = _triangles(hull.data, hull.faces)
    heights = jnp.where(has_area, jnp.sum((p[None] - triangles[:, 0]) * normals, axis=1), -FAR)
    nearest, above = jax.vmap(lambda t, ok: _nearest_on_triangle(p, t, ok))(triangles, has_area)
    outer, inner = jnp.argmin(jnp.sum((p[None] - nearest) ** 2, axis=1)), jnp.argmax(heights)
    is_outside = pick(heights, inner) > 0.0
    # beside a triangle the direction is that to an edge or corner, above or within the hull a normal
    direction, length = unit(p - pick(nearest, outer), pick(normals, outer))
    is_beside = is_outside & ~pick(above, outer)
    face = jnp.where(is_outside, outer, inner)
    height, normal = pick(heights, face), pick(normals, face)
    return (
        jnp.where(is_beside, length, height),
        jnp.where(is_beside, direction, normal),
        jnp.where(is_beside, pick(nearest, outer), p - height * normal),
    )


def _nearest_on_triangle(
    p: Vec3, corners: Float[AnyArray, "3 3"], has_area: Bool[AnyArray, ""]
) -> tuple[Vec3, Bool[AnyArray, ""]]:
    """The point of a triangle nearest to `p`, and whether `p` is above the inside and not beside it."""
    a, b, c = corners
    u, v, w = b - a, c - a, p - a
    uu, uv, vv, uw, vw = u @ u, u @ v, v @ v, u @ w, v @ w
    scale = jnp.where(has_area, uu * vv - uv * uv, 1.0)
    s, t = (uw * vv - vw * uv) / scale, (vw * uu - uw * uv) / scale
    above = (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0) & has_area

    def on_edge(start: Vec3, end: Vec3) -> Vec3:
        along = end - start
        squared = along @ along
        is_long = squared > TINY_LENGTH_SQUARED
        return start + clamp((p - start) @ along / jnp.where(is_long, squared, 1.0), 0.0, 1.0) * along

    edges = jnp.stack([on_edge(a, b), on_edge(b, c), on_edge(c, a)])
    beside = pick(edges, jnp.argmin(jnp.sum((p[None] - edges) ** 2, axis=1)))
    return jnp.where(above, a + s * u + t * v, beside), above


LEAST_SLANT = 1e-9
"""Faces whose normals have less than this along a direction are walls: a line in it meets them nowhere, or anywhere."""
BETWEEN_NORMALS = 1e-9
"""How far [rad²] beyond the normals of its two faces a direction still belongs to an edge: a flat one has one."""


class _Hull(NamedTuple):
    """A hull in the frame of a box."""

    corners: Float[AnyArray, "v 3"]
    starts: Float[AnyArray, "n 3"]
    """One corner of every triangle."""
    normals: Float[AnyArray, "n 3"]
    has_area: Bool[AnyArray, " n"]
    """Which triangles have a normal."""


def hull_box(hull: PlacedShape, box: PlacedShape) -> ContactPoints:
    """Four points; those that are not there have the gap `FAR`."""
    X_BH = box.X_WG.inverse() @ hull.X_WG
    corners = X_BH.p[None] + hull.data @ X_BH.R.T
    triangles, normals, has_area = _triangles(corners, hull.faces)
    seen = _Hull(corners, triangles[:, 0], normals, has_area)
    extent = 0.5 * (corners.max(axis=0) - corners.min(axis=0))
    lip = LIP * jnp.minimum(extent.min(), box.size.min())
    normal, face_gap, passing = _best_normal(seen, box.size, lip)
    by_face = _by_face(seen, box.size, np.array(_edges(hull.faces)), normal, face_gap, passing)
    edge_gap, by_edges = _by_edges(seen, box.size, np.array(_edges(hull.faces)))
    margin = EDGE_ADVANTAGE * jnp.minimum(extent.sum(), box.size.sum())
    best = jax.tree.map(lambda x, y: jnp.where(edge_gap > face_gap + margin, x, y), by_edges, by_face)
    R = box.X_WG.R
    return ContactPoints(best.gap, best.normal @ R.T, box.to_world(best.on_first), box.to_world(best.on_second))


def _edges(faces: Faces) -> list[tuple[int, int, int, int]]:
    """Every edge of some triangles, once: the corners that it connects, and the two triangles beside it."""
    beside: dict[tuple[int, int], list[int]] = {}
    for number, face in enumerate(faces):
        for a, b in zip(face, (*face[1:], face[0]), strict=True):
            beside.setdefault((min(a, b), max(a, b)), []).append(number)
    return [(*corners, numbers[0], numbers[-1]) for corners, numbers in sorted(beside.items())]


def _best_normal(hull: _Hull, size: Vec3, lip: Scalar) -> tuple[Vec3, Scalar, Bool[AnyArray, ""]]:
    """The face's normal along which a hull and a box are farthest apart, from the box to the hull, and how far.

    Also whether they pass each other beside it.
    """
    above_box = jnp.concatenate([hull.corners.min(axis=0) - size, -hull.corners.max(axis=0) - size])
    above_hull = -jnp.sum(hull.starts * hull.normals, axis=1) - jnp.abs(hull.normals) @ size
    above_hull = jnp.where(hull.has_area, above_hull, -FAR)
    side, face = jnp.argmax(above_box), jnp.argmax(above_hull)
    of_box, of_hull = pick(above_box, side), pick(above_hull, face)
    on_box = of_box + BOX_FIRST >= of_hull
    sides = np.concatenate([np.eye(3), -np.eye(3)])
    normal = jnp.where(on_box, pick(sides, side), -pick(hull.normals, face))
    passing = pass_by(jnp.concatenate([sides, hull.normals]), jnp.concatenate([above_box, above_hull]), normal, lip)
    return normal, jnp.where(on_box, of_box, of_hull), passing


def _by_face(
    hull: _Hull, size: Vec3, edges: np.ndarray, normal: Vec3, apart: Scalar, passing: Bool[AnyArray, ""]
) -> ContactPoints:
    """Contacts along a normal between the box's face that looks along it and the part of a hull above that face.

    Args:
        hull: the hull.
        size: half extents of the box [m].
        edges: of the hull.
        normal: from the box to the hull.
        apart: how far the two are apart along the normal [m].
        passing: do they pass each other? Then there are none.
    """
    axis = jnp.argmax(jnp.abs(normal))
    sign = jnp.where(pick(normal, axis) < 0.0, -1.0, 1.0)
    # everything with the face's axis first
    n, half = cycle_axes(normal, axis), cycle_axes(size, axis)
    x, starts, normals = (cycle_axes(vectors.T, axis).T for vectors in (hull.corners, hull.starts, hull.normals))
    heights = (sign * x[:, 0] - half[0]) / (sign * n[0])
    flat = x[:, 1:] - heights[:, None] * n[None, 1:]
    corners = jnp.concatenate([heights[:, None], flat, x], axis=1)

    start, end = edges[:, 0], edges[:, 1]
    times, on_the_way = across_face(flat[start], flat[end] - flat[start], half[1:])
    crossings = corners[start][None] + times[:, :, None] * (corners[end] - corners[start])[None]

    mine = jnp.concatenate([jnp.broadcast_to(sign * half[0], (4, 1)), SQUARE_CORNERS * half[None, 1:]], axis=1)
    lift, covered = _height_above(mine, n, _Hull(x, starts, normals, hull.has_area))
    raised = jnp.concatenate([lift[:, None], mine[:, 1:], mine + lift[:, None] * n[None]], axis=1)

    is_above = (jnp.abs(flat) <= half[None, 1:] + EDGE_WIDTH).all(axis=1)
    there = jnp.concatenate([is_above, *on_the_way, covered])
    # where nothing lies above the face, the lowest corner tells how far the shapes are apart at least
    nothing = ~there.any()
    lowest = jnp.argmin(x @ n + SIDEWAYS * jnp.sqrt(jnp.sum(flat * flat, axis=1)))
    there = there | (nothing & (np.arange(len(there)) == lowest))
    rows = jnp.concatenate([corners, *crossings, raised])
    chosen, counts = reduce_manifold(rows[:, 1:3], rows[:, 0], there)
    best = jnp.stack([pick(rows, chosen[k]) for k in range(4)])
    gap = jnp.where(nothing, apart, best[:, 0])
    points = from_first(gap, jnp.broadcast_to(normal, (4, 3)), cycle_axes(best[:, 3:].T, (3 - axis) % 3).T)
    return ContactPoints(jnp.where(counts & ~passing, gap, FAR), points.normal, points.on_first, points.on_second)


def _height_above(
    points: Float[AnyArray, "4 3"], up: Vec3, hull: _Hull
) -> tuple[Float[AnyArray, "4"], Bool[AnyArray, "4"]]:
    """How far above some points a hull begins, along a direction, and whether it is above them at all."""
    steepness = hull.normals @ up
    is_under, is_over = hull.has_area & (steepness < -LEAST_SLANT), hull.has_area & (steepness > LEAST_SLANT)
    is_slanted = is_under | is_over

    def above(point: Vec3) -> tuple[Scalar, Bool[AnyArray, ""]]:
        outside = jnp.sum((point[None] - hull.starts) * hull.normals, axis=1)
        at = -outside / jnp.where(is_slanted, steepness, 1.0)
        begin, end = jnp.where(is_under, at, -FAR).max(), jnp.where(is_over, at, FAR).min()
        is_between_walls = (is_slanted | ~hull.has_area | (outside <= EDGE_WIDTH)).all()
        return begin, is_between_walls & (begin <= end + EDGE_WIDTH)

    return jax.vmap(above)(points)


def _by_edges(hull: _Hull, size: Vec3, edges: np.ndarray) -> tuple[Scalar, ContactPoints]:
    """How far a hull and a box are apart along the best cross product of their edges, and the contact there.

    A cross product counts only if it lies between the normals of the two faces beside the hull's edge: then the edge
    is what of the hull reaches farthest along it.
    """
    start, along = hull.corners[edges[:, 0]], hull.corners[edges[:, 1]] - hull.corners[edges[:, 0]]
    squared = jnp.sum(along * along, axis=1)
    is_long = squared > TINY_LENGTH_SQUARED
    length = jnp.sqrt(jnp.where(is_long, squared, 1.0))
    along = along / length[:, None]
    left, right = hull.normals[edges[:, 2]], hull.normals[edges[:, 3]]
    widest = jnp.sum(left * right, axis=1) - BETWEEN_NORMALS
    usable = is_long & hull.has_area[edges[:, 2]] & hull.has_area[edges[:, 3]]

    def with_box_edge(direction: Vec3) -> tuple[Float[AnyArray, " e"], Float[AnyArray, "e 3"]]:
        """Gaps along the cross products with one of the box's directions, and these, away from the hull."""
        away = jax.vmap(lambda u: cross(u, direction))(along)
        squared = jnp.sum(away * away, axis=1)
        crosses = squared > PARALLEL_EDGES
        away = away / jnp.sqrt(jnp.where(crosses, squared, 1.0))[:, None]
        away = jnp.where((jnp.sum(away * (left + right), axis=1) < 0.0)[:, None], -away, away)
        is_between = (jnp.sum(away * left, axis=1) >= widest) & (jnp.sum(away * right, axis=1) >= widest)
        gaps = -jnp.sum(away * start, axis=1) - jnp.abs(away) @ size
        return jnp.where(usable & crosses & is_between, gaps, -FAR), away

    gaps, aways = jax.vmap(with_box_edge)(jnp.eye(3))
    best = jnp.argmax(gaps.reshape(-1))
    gap, away = pick(gaps.reshape(-1), best), pick(aways.reshape(-1, 3), best)
    row = pick(jnp.concatenate([start, along, length[:, None]], axis=1), best % len(edges))
    is_own = np.arange(3) == best // len(edges)
    corner = jnp.where(away < 0.0, size, -size)  # of the box, the one that comes nearest
    on_hull = (row[:3] + 0.5 * row[6] * row[3:6], row[3:6], 0.5 * row[6])
    on_box = (jnp.where(is_own, 0.0, corner), jnp.where(is_own, 1.0, 0.0), jnp.where(is_own, size, 0.0).sum())
    near = nearest_on_segments(*on_hull, *on_box)
    # between shapes that are apart the edges' nearest points can lie elsewhere, the gap cannot
    middle, half_way = 0.5 * (near[0] + near[1]), -0.5 * gap * away
    rows = (jnp.broadcast_to(x, (4, 3)) for x in (-away, middle + half_way, middle - half_way))
    return gap, ContactPoints(jnp.concatenate([gap[None], jnp.full(3, FAR)]), *rows)
