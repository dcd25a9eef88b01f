"""Convex hulls of meshes against spheres and boxes. The hull is the first shape.

Contact with a box works as in `box_box`: the axis of least penetration is a face normal of either shape or a cross
product of two edges. The reference face is always one of the box, with a manifold of four points; edge contact is a
single point.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from hybridsim.contact.collision.box import EDGE_TOLERANCE, LATERAL_WEIGHT, MIN_NORMAL_COMPONENT, clip_to_face
from hybridsim.contact.collision.box_box import EDGE_MARGIN, MIN_LATERAL_OVERLAP, PARALLEL_EDGES, is_separated_laterally
from hybridsim.contact.collision.contact_points import (
    FAR,
    SQUARE_CORNERS,
    ContactPoints,
    PlacedShape,
    contacts_from_first,
    cycle_axes,
    pick,
)
from hybridsim.contact.collision.reduce_manifold import reduce_manifold
from hybridsim.contact.collision.sphere_capsule import nearest_points_on_segments
from hybridsim.core.numerics import TINY_AREA_SQUARED, TINY_LENGTH_SQUARED, clamp, cross, direction_and_length
from hybridsim.core.types import AnyArray, Scalar, Vec3
from hybridsim.model.geometry import Faces

BOX_FACE_MARGIN = 1e-3
"""Margin [m] by which the gap of a face of the hull must exceed that of a face of the box, so that vibrations do not
switch between them."""


def _triangles(
    vertices: Float[AnyArray, "v 3"], faces: Faces
) -> tuple[Float[AnyArray, "n 3 3"], Float[AnyArray, "n 3"], Bool[AnyArray, " n"]]:
    """Vertices and outward normals of triangles, and which of them have an area and thus a normal."""
    triangles = jnp.asarray(vertices)[np.array(faces)]
    normals = jax.vmap(lambda t: cross(t[1] - t[0], t[2] - t[0]))(triangles)
    squared = jnp.sum(normals * normals, axis=1)
    has_area = squared > TINY_AREA_SQUARED
    return triangles, normals / jnp.sqrt(jnp.where(has_area, squared, 1.0))[:, None], has_area


def hull_sphere(hull: PlacedShape, sphere: PlacedShape) -> ContactPoints:
    """Contact at one point."""
    X, centre = hull.X_WG, hull.X_WG.inv_point(sphere.X_WG.p)
    distance, outward, nearest = hull_distance(hull, centre)
    gap = distance - sphere.size[0]
    return contacts_from_first(gap[None], -(X.R @ outward)[None], X.point(nearest)[None])


def hull_distance(hull: PlacedShape, p: Vec3) -> tuple[Scalar, Vec3, Vec3]:
    """Signed distance of a point from a hull, outward direction, and nearest surface point, in the hull's frame."""
    triangles, normals, has_area = _triangles(hull.data, hull.faces)
    face_distances = jnp.where(has_area, jnp.sum((p[None] - triangles[:, 0]) * normals, axis=1), -FAR)
    nearest, is_above = jax.vmap(lambda t, ok: _nearest_point_on_triangle(p, t, ok))(triangles, has_area)
    outer, inner = jnp.argmin(jnp.sum((p[None] - nearest) ** 2, axis=1)), jnp.argmax(face_distances)
    is_outside = pick(face_distances, inner) > 0.0
    # beside a triangle the direction is from its edge or vertex; above a triangle or inside the hull it is a normal
    direction, length = direction_and_length(p - pick(nearest, outer), pick(normals, outer))
    is_beside = is_outside & ~pick(is_above, outer)
    face = jnp.where(is_outside, outer, inner)
    face_distance, normal = pick(face_distances, face), pick(normals, face)
    return (
        jnp.where(is_beside, length, face_distance),
        jnp.where(is_beside, direction, normal),
        jnp.where(is_beside, pick(nearest, outer), p - face_distance * normal),
    )


def _nearest_point_on_triangle(
    p: Vec3, vertices: Float[AnyArray, "3 3"], has_area: Bool[AnyArray, ""]
) -> tuple[Vec3, Bool[AnyArray, ""]]:
    """Nearest point of a triangle, and whether `p` projects into its interior."""
    a, b, c = vertices
    u, v, w = b - a, c - a, p - a
    uu, uv, vv, uw, vw = u @ u, u @ v, v @ v, u @ w, v @ w
    scale = jnp.where(has_area, uu * vv - uv * uv, 1.0)
    s, t = (uw * vv - vw * uv) / scale, (vw * uu - uw * uv) / scale
    is_above = (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0) & has_area

    def nearest_point_on_edge(start: Vec3, end: Vec3) -> Vec3:
        along = end - start
        squared = along @ along
        has_length = squared > TINY_LENGTH_SQUARED
        return start + clamp((p - start) @ along / jnp.where(has_length, squared, 1.0), 0.0, 1.0) * along

    edges = jnp.stack([nearest_point_on_edge(a, b), nearest_point_on_edge(b, c), nearest_point_on_edge(c, a)])
    on_boundary = pick(edges, jnp.argmin(jnp.sum((p[None] - edges) ** 2, axis=1)))
    return jnp.where(is_above, a + s * u + t * v, on_boundary), is_above


NORMAL_CONE_TOLERANCE = 1e-9
"""Tolerance [rad²] of the test that a direction lies between the normals of an edge's two faces: coplanar faces leave
no margin."""


class _Hull(NamedTuple):
    """A hull in the frame of a box."""

    vertices: Float[AnyArray, "v 3"]
    face_points: Float[AnyArray, "n 3"]
    """One vertex of every triangle."""
    normals: Float[AnyArray, "n 3"]
    has_area: Bool[AnyArray, " n"]
    """Triangles that have a normal."""


def hull_box(hull: PlacedShape, box: PlacedShape) -> ContactPoints:
    """Contact at four points; absent ones have the gap `FAR`."""
    X_box_hull = box.X_WG.inverse() @ hull.X_WG
    vertices = X_box_hull.p[None] + hull.data @ X_box_hull.R.T
    triangles, normals, has_area = _triangles(vertices, hull.faces)
    hull_in_box = _Hull(vertices, triangles[:, 0], normals, has_area)
    extent = 0.5 * (vertices.max(axis=0) - vertices.min(axis=0))
    min_overlap = MIN_LATERAL_OVERLAP * jnp.minimum(extent.min(), box.size.min())
    normal, face_gap, is_separated = _best_normal(hull_in_box, box.size, min_overlap)
    face_contacts = _face_contacts(hull_in_box, box.size, np.array(_edges(hull.faces)), normal, face_gap, is_separated)
    edge_gap, edge_contact = _edge_contact(hull_in_box, box.size, np.array(_edges(hull.faces)))
    margin = EDGE_MARGIN * jnp.minimum(extent.sum(), box.size.sum())
    best = jax.tree.map(lambda x, y: jnp.where(edge_gap > face_gap + margin, x, y), edge_contact, face_contacts)
    R = box.X_WG.R
    return ContactPoints(best.gap, best.normal @ R.T, box.to_world(best.on_first), box.to_world(best.on_second))


def _edges(faces: Faces) -> list[tuple[int, int, int, int]]:
    """Edges of triangles: indices of both vertices and of the two adjacent triangles."""
    adjacent: dict[tuple[int, int], list[int]] = {}
    for index, face in enumerate(faces):
        for a, b in zip(face, (*face[1:], face[0]), strict=True):
            adjacent.setdefault((min(a, b), max(a, b)), []).append(index)
    return [(*vertices, indices[0], indices[-1]) for vertices, indices in sorted(adjacent.items())]


def _best_normal(hull: _Hull, size: Vec3, min_overlap: Scalar) -> tuple[Vec3, Scalar, Bool[AnyArray, ""]]:
    """Face normal of least penetration, from the box to the hull, and its gap [m].

    The third result is whether the shapes are separated along a direction lateral to the normal.
    """
    box_gaps = jnp.concatenate([hull.vertices.min(axis=0) - size, -hull.vertices.max(axis=0) - size])
    hull_gaps = -jnp.sum(hull.face_points * hull.normals, axis=1) - jnp.abs(hull.normals) @ size
    hull_gaps = jnp.where(hull.has_area, hull_gaps, -FAR)
    side, face = jnp.argmax(box_gaps), jnp.argmax(hull_gaps)
    box_gap, hull_gap = pick(box_gaps, side), pick(hull_gaps, face)
    on_box = box_gap + BOX_FACE_MARGIN >= hull_gap
    sides = np.concatenate([np.eye(3), -np.eye(3)])
    normal = jnp.where(on_box, pick(sides, side), -pick(hull.normals, face))
    is_separated = is_separated_laterally(
        jnp.concatenate([sides, hull.normals]), jnp.concatenate([box_gaps, hull_gaps]), normal, min_overlap
    )
    return normal, jnp.where(on_box, box_gap, hull_gap), is_separated


def _face_contacts(
    hull: _Hull,
    size: Vec3,
    edges: np.ndarray,
    normal: Vec3,
    face_gap: Scalar,
    is_separated: Bool[AnyArray, ""],
) -> ContactPoints:
    """Contacts along `normal` between the box's face with the most parallel normal and the part of the hull above it.

    Args:
        hull: the hull, in the frame of the box.
        size: half extents of the box [m].
        edges: edges of the hull.
        normal: direction from the box to the hull.
        face_gap: gap of the two shapes along the normal [m].
        is_separated: whether they are separated laterally; then there are no contacts.
    """
    axis = jnp.argmax(jnp.abs(normal))
    sign = jnp.where(pick(normal, axis) < 0.0, -1.0, 1.0)
    # all components with the face's axis first
    n, half = cycle_axes(normal, axis), cycle_axes(size, axis)
    x, face_points, normals = (
        cycle_axes(vectors.T, axis).T for vectors in (hull.vertices, hull.face_points, hull.normals)
    )
    gaps = (sign * x[:, 0] - half[0]) / (sign * n[0])
    lateral = x[:, 1:] - gaps[:, None] * n[None, 1:]
    vertices = jnp.concatenate([gaps[:, None], lateral, x], axis=1)

    start, end = edges[:, 0], edges[:, 1]
    parameters, is_crossing = clip_to_face(lateral[start], lateral[end] - lateral[start], half[1:])
    crossings = vertices[start][None] + parameters[:, :, None] * (vertices[end] - vertices[start])[None]

    box_corners = jnp.concatenate([jnp.broadcast_to(sign * half[0], (4, 1)), SQUARE_CORNERS * half[None, 1:]], axis=1)
    lift, is_covered = _distance_along(box_corners, n, _Hull(x, face_points, normals, hull.has_area))
    projected = jnp.concatenate([lift[:, None], box_corners[:, 1:], box_corners + lift[:, None] * n[None]], axis=1)

    is_above = (jnp.abs(lateral) <= half[None, 1:] + EDGE_TOLERANCE).all(axis=1)
    exists = jnp.concatenate([is_above, *is_crossing, is_covered])
    # where nothing lies above the face, the lowest vertex gives a lower bound on the distance
    is_empty = ~exists.any()
    lowest = jnp.argmin(x @ n + LATERAL_WEIGHT * jnp.sqrt(jnp.sum(lateral * lateral, axis=1)))
    exists = exists | (is_empty & (np.arange(len(exists)) == lowest))
    rows = jnp.concatenate([vertices, *crossings, projected])
    chosen, is_valid = reduce_manifold(rows[:, 1:3], rows[:, 0], exists)
    best = jnp.stack([pick(rows, chosen[k]) for k in range(4)])
    gap = jnp.where(is_empty, face_gap, best[:, 0])
    points = contacts_from_first(gap, jnp.broadcast_to(normal, (4, 3)), cycle_axes(best[:, 3:].T, (3 - axis) % 3).T)
    return ContactPoints(
        jnp.where(is_valid & ~is_separated, gap, FAR), points.normal, points.on_first, points.on_second
    )


def _distance_along(
    points: Float[AnyArray, "4 3"], direction: Vec3, hull: _Hull
) -> tuple[Float[AnyArray, "4"], Bool[AnyArray, "4"]]:
    """Distance from points to a hull along a direction, and whether the line in that direction intersects the hull."""
    normal_component = hull.normals @ direction
    is_under = hull.has_area & (normal_component < -MIN_NORMAL_COMPONENT)
    is_over = hull.has_area & (normal_component > MIN_NORMAL_COMPONENT)
    is_crossed = is_under | is_over

    def distance(point: Vec3) -> tuple[Scalar, Bool[AnyArray, ""]]:
        outside = jnp.sum((point[None] - hull.face_points) * hull.normals, axis=1)
        crossing = -outside / jnp.where(is_crossed, normal_component, 1.0)
        begin, end = jnp.where(is_under, crossing, -FAR).max(), jnp.where(is_over, crossing, FAR).min()
        is_within_parallel_faces = (is_crossed | ~hull.has_area | (outside <= EDGE_TOLERANCE)).all()
        return begin, is_within_parallel_faces & (begin <= end + EDGE_TOLERANCE)

    return jax.vmap(distance)(points)


def _edge_contact(hull: _Hull, size: Vec3, edges: np.ndarray) -> tuple[Scalar, ContactPoints]:
    """Gap of a hull and a box along the best cross product of their edges, and the contact there.

    A cross product counts only if it lies between the normals of the two faces adjacent to the hull's edge: then that
    edge is the support feature of the hull in the direction of the product.
    """
    start, along = hull.vertices[edges[:, 0]], hull.vertices[edges[:, 1]] - hull.vertices[edges[:, 0]]
    squared = jnp.sum(along * along, axis=1)
    has_length = squared > TINY_LENGTH_SQUARED
    length = jnp.sqrt(jnp.where(has_length, squared, 1.0))
    along = along / length[:, None]
    left, right = hull.normals[edges[:, 2]], hull.normals[edges[:, 3]]
    min_cosine = jnp.sum(left * right, axis=1) - NORMAL_CONE_TOLERANCE
    is_valid = has_length & hull.has_area[edges[:, 2]] & hull.has_area[edges[:, 3]]

    def edge_gaps(direction: Vec3) -> tuple[Float[AnyArray, " e"], Float[AnyArray, "e 3"]]:
        """Gaps along the cross products with one axis of the box, and these outward directions of the hull."""
        outward = jax.vmap(lambda u: cross(u, direction))(along)
        squared = jnp.sum(outward * outward, axis=1)
        is_skew = squared > PARALLEL_EDGES
        outward = outward / jnp.sqrt(jnp.where(is_skew, squared, 1.0))[:, None]
        outward = jnp.where((jnp.sum(outward * (left + right), axis=1) < 0.0)[:, None], -outward, outward)
        is_between = (jnp.sum(outward * left, axis=1) >= min_cosine) & (jnp.sum(outward * right, axis=1) >= min_cosine)
        gaps = -jnp.sum(outward * start, axis=1) - jnp.abs(outward) @ size
        return jnp.where(is_valid & is_skew & is_between, gaps, -FAR), outward

    gaps, outward_axes = jax.vmap(edge_gaps)(jnp.eye(3))
    best = jnp.argmax(gaps.reshape(-1))
    gap, outward = pick(gaps.reshape(-1), best), pick(outward_axes.reshape(-1, 3), best)
    row = pick(jnp.concatenate([start, along, length[:, None]], axis=1), best % len(edges))
    is_edge = np.arange(3) == best // len(edges)
    corner = jnp.where(outward < 0.0, size, -size)  # support corner of the box
    on_hull = (row[:3] + 0.5 * row[6] * row[3:6], row[3:6], 0.5 * row[6])
    on_box = (
        jnp.where(is_edge, 0.0, corner),
        jnp.where(is_edge, 1.0, 0.0),
        jnp.where(is_edge, size, 0.0).sum(),
    )
    near = nearest_points_on_segments(*on_hull, *on_box)
    # for separated shapes the nearest points of the edges need not lie along the axis, but the gap is along it
    middle, half_gap = 0.5 * (near[0] + near[1]), -0.5 * gap * outward
    rows = (jnp.broadcast_to(x, (4, 3)) for x in (-outward, middle + half_gap, middle - half_gap))
    return gap, ContactPoints(jnp.concatenate([gap[None], jnp.full(3, FAR)]), *rows)
