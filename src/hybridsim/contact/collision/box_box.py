"""Boxes against boxes.

The axis of least penetration is a face normal or a cross product of two edges (separating axis theorem). In face
contact, the incident face of the other box is clipped against the reference face, and the manifold is reduced to four
points; edge contact is a single point.

The depth of overlapping boxes is exact up to the larger of `FIRST_FACE_MARGIN` and `EDGE_MARGIN`. Boxes that do not
overlap along an axis lateral to the normal, or overlap there by less than `MIN_LATERAL_OVERLAP`, are not in contact:
their points have the gap `FAR`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.contact.collision.box import EDGE_TOLERANCE, LATERAL_WEIGHT, clip_to_face
from hybridsim.contact.collision.contact_points import FAR, SQUARE_CORNERS, ContactPoints, PlacedShape, cycle_axes, pick
from hybridsim.contact.collision.reduce_manifold import reduce_manifold
from hybridsim.contact.collision.sphere_capsule import nearest_points_on_segments
from hybridsim.core.numerics import cross
from hybridsim.core.types import AnyArray, Scalar, Vec3

EDGE_MARGIN = 1e-3
"""Margin by which the gap of an edge axis must exceed that of any face, relative to the sum of the smaller box's half
extents: a face manifold supports the box better than a single point."""
PARALLEL_EDGES = 1e-6
"""Squared sine of the angle below which two edges count as parallel: their cross product then separates no better than
a face normal."""
FIRST_FACE_MARGIN = 1e-3
"""Margin by which the gap of a face of the second box must exceed that of the first, relative to the sum of the smaller
box's half extents: without it, vibrations of stacked boxes would switch the reference face and with it the manifold."""
MIN_LATERAL_OVERLAP = 0.01
"""Lateral overlap, relative to the smaller box's smallest half extent, below which shapes are not in contact: otherwise
a box that slides over the seam of two flush ones, penetrating by micrometres, would hit the side of the second one."""
MAX_LATERAL_COSINE = 0.5
"""Largest cosine between the normal and an axis that counts as lateral to it."""


CORNER_CYCLE = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
"""Corners of a square in cyclic order."""


class _Box(NamedTuple):
    """A box in the world."""

    centre: Vec3
    axes: Float[AnyArray, "3 3"]
    """Unit vectors along its edges, as rows."""
    half: Vec3

    def with_first_axis(self, axis: Int[AnyArray, ""]) -> "_Box":
        """The same box with its axes cycled so that the given one is first."""
        return _Box(self.centre, cycle_axes(self.axes, axis), cycle_axes(self.half, axis))


def box_box(a: PlacedShape, b: PlacedShape) -> ContactPoints:
    """Contact at four points; absent ones have the gap `FAR`."""
    first, second = (_Box(box.X_WG.p, box.X_WG.R.T, box.size) for box in (a, b))
    d = first.centre - second.centre

    def gaps(axes: Float[AnyArray, "n 3"]) -> Float[AnyArray, " n"]:
        radii = jnp.abs(axes @ first.axes.T) @ first.half + jnp.abs(axes @ second.axes.T) @ second.half
        return jnp.abs(axes @ d) - radii

    size = jnp.minimum(first.half.sum(), second.half.sum())
    faces = jnp.concatenate([first.axes, second.axes])
    face_gaps = gaps(faces)
    edge_axes = jax.vmap(lambda u: jax.vmap(lambda v: cross(u, v))(second.axes))(first.axes).reshape(9, 3)
    squared = jnp.sum(edge_axes * edge_axes, axis=1)
    is_parallel = squared < PARALLEL_EDGES
    edge_axes = (
        jnp.where(is_parallel[:, None], 0.0, edge_axes) / jnp.sqrt(jnp.where(is_parallel, 1.0, squared))[:, None]
    )
    edge_gaps = jnp.where(is_parallel, -FAR, gaps(edge_axes))

    best_face = jnp.argmax(face_gaps + size * np.repeat([FIRST_FACE_MARGIN, 0.0], 3))
    best_edges = jnp.argmax(edge_gaps)
    face_gap, edge_gap = pick(face_gaps, best_face), pick(edge_gaps, best_edges)
    min_overlap = MIN_LATERAL_OVERLAP * jnp.minimum(first.half.min(), second.half.min())
    face_contacts = _face_contacts(
        first, second, best_face, is_separated_laterally(faces, face_gaps, pick(faces, best_face), min_overlap)
    )
    edge_contact = _edge_contact(first, second, best_edges, pick(edge_axes, best_edges), edge_gap)
    return jax.tree.map(
        lambda x, y: jnp.where(edge_gap > face_gap + EDGE_MARGIN * size, x, y), edge_contact, face_contacts
    )


def is_separated_laterally(
    directions: Float[AnyArray, "n 3"], gaps: Float[AnyArray, " n"], normal: Vec3, min_overlap: Scalar
) -> Bool[AnyArray, ""]:
    """Whether two shapes overlap by less than a minimum [m] along one of these directions lateral to the normal."""
    is_lateral = jnp.abs(directions @ normal) < MAX_LATERAL_COSINE
    return (is_lateral & (gaps > -min_overlap)).any()


def _face_contacts(
    first: _Box, second: _Box, best: Int[AnyArray, ""], is_separated: Bool[AnyArray, ""]
) -> ContactPoints:
    """Face contacts; the reference face is one of the first box (0 to 2) or the second (3 to 5)."""
    on_first = best < 3
    reference, incident = (
        jax.tree.map(lambda x, y: jnp.where(on_first, x, y), *boxes) for boxes in ((first, second), (second, first))
    )
    reference = reference.with_first_axis(jnp.where(on_first, best, best - 3))
    # outward normal of the reference face
    normal = jnp.where(
        reference.axes[0] @ (incident.centre - reference.centre) < 0.0, -reference.axes[0], reference.axes[0]
    )
    incident = incident.with_first_axis(jnp.argmax(jnp.abs(incident.axes @ normal)))
    gaps, on_incident, exists = _clipped_manifold(reference, normal, incident)
    on_reference = on_incident - gaps[:, None] * normal[None]
    # normals point from the second box to the first
    normals_to_first = jnp.broadcast_to(jnp.where(on_first, -normal, normal), on_reference.shape)
    return ContactPoints(
        jnp.where(exists & ~is_separated, gaps, FAR),
        normals_to_first,
        jnp.where(on_first, on_reference, on_incident),
        jnp.where(on_first, on_incident, on_reference),
    )


def _clipped_manifold(
    reference: _Box, normal: Vec3, incident: _Box
) -> tuple[Float[AnyArray, "4"], Float[AnyArray, "4 3"], Bool[AnyArray, "4"]]:
    """Gaps and positions of four points of the incident face clipped against the reference face, and which exist.

    Args:
        reference: the box with the reference face, its first axis normal to that face.
        normal: outward normal of the reference face.
        incident: the other box, its first axis normal to the incident face.
    """
    middle = reference.centre + reference.half[0] * normal
    facing, u, v = incident.half[:, None] * incident.axes
    incident_middle = incident.centre + jnp.where(incident.axes[0] @ normal > 0.0, -facing, facing)
    # corners of the incident face in cyclic order [m]
    corners = incident_middle[None] + CORNER_CYCLE @ jnp.stack([u, v])
    edges = jnp.roll(corners, -1, axis=0) - corners
    # their coordinates along the reference face
    lateral_corners, steps = (corners - middle[None]) @ reference.axes[1:].T, edges @ reference.axes[1:].T
    is_above = (jnp.abs(lateral_corners) <= reference.half[None, 1:] + EDGE_TOLERANCE).all(axis=1)
    parameters, is_crossing = clip_to_face(lateral_corners, steps, reference.half[1:])
    crossings = corners[None] + parameters[:, :, None] * edges[None]

    # reference corners projected onto the incident face, which is the most antiparallel one and therefore never steep
    reference_corners = middle[None] + SQUARE_CORNERS @ (reference.half[1:, None] * reference.axes[1:])
    lift = ((incident_middle[None] - reference_corners) @ incident.axes[0]) / (normal @ incident.axes[0])
    projected = reference_corners + lift[:, None] * normal[None]
    lateral = jnp.abs((projected - incident_middle[None]) @ incident.axes[1:].T)
    is_beneath = (lateral <= incident.half[None, 1:] + EDGE_TOLERANCE).all(axis=1)

    positions = jnp.concatenate([corners, *crossings, projected])
    exists = jnp.concatenate([is_above, *is_crossing, is_beneath])
    gaps = (positions - middle[None]) @ normal
    # where nothing lies above the face, the lowest corner gives a lower bound on the distance
    lowest = jnp.argmin(gaps[:4] + LATERAL_WEIGHT * jnp.sqrt(jnp.sum(lateral_corners * lateral_corners, axis=1)))
    exists = exists | (~exists.any() & (np.arange(16) == lowest))
    chosen, is_valid = reduce_manifold((positions - middle[None]) @ reference.axes[1:].T, gaps, exists)
    rows = jnp.stack([pick(jnp.concatenate([gaps[:, None], positions], axis=1), chosen[k]) for k in range(4)])
    return rows[:, 0], rows[:, 1:], is_valid


def _edge_contact(first: _Box, second: _Box, best: Int[AnyArray, ""], axis: Vec3, gap: Scalar) -> ContactPoints:
    """One contact between an edge of each box; the other three rows have the gap `FAR`."""
    normal = jnp.where(axis @ (first.centre - second.centre) < 0.0, -axis, axis)

    def edge(box: _Box, direction: Vec3) -> tuple[Vec3, Vec3, Scalar]:
        """Support edge in a direction, parallel to the first axis: its middle, unit vector and half length."""
        across = (box.half[:, None] * box.axes)[1:]
        return (
            box.centre + jnp.where((across @ direction < 0.0)[:, None], -across, across).sum(0),
            box.axes[0],
            box.half[0],
        )

    near = nearest_points_on_segments(
        *edge(first.with_first_axis(best // 3), -normal), *edge(second.with_first_axis(best % 3), normal)
    )
    # for separated boxes the nearest points of the edges need not lie along the axis, but the gap is measured along it
    middle, half_gap = 0.5 * (near[0] + near[1]), 0.5 * gap * normal
    gaps = jnp.concatenate([gap[None], jnp.full(3, FAR)])
    return ContactPoints(gaps, *(jnp.broadcast_to(x, (4, 3)) for x in (normal, middle + half_gap, middle - half_gap)))
