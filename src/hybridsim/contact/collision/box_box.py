"""Boxes against boxes.

The direction in which two boxes overlap least is a normal of a face or a cross product of two edges (the separating
axis theorem). A face meets the part of the other box's most opposite face that lies above it, of which four corners
are kept; two edges meet in one point.

Boxes that overlap get the exact depth, up to `EDGE_ADVANTAGE`. Boxes that pass each other, because they do not overlap
beside the best of those directions or only by a lip, do not touch: their points have the gap `FAR`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.contact.collision.box import EDGE_WIDTH, SIDEWAYS, across_face
from hybridsim.contact.collision.contact_points import FAR, SQUARE_CORNERS, ContactPoints, PlacedShape, cycle_axes, pick
from hybridsim.contact.collision.reduce_manifold import reduce_manifold
from hybridsim.contact.collision.sphere_capsule import nearest_on_segments
from hybridsim.core.numerics import cross
from hybridsim.core.types import AnyArray, Scalar, Vec3

EDGE_ADVANTAGE = 1e-3
"""How much more two edges must separate than any face, by the smaller box's size, to count: faces bear better."""
PARALLEL_EDGES = 1e-6
"""Squared sine of the angle below which two edges count as parallel: parallel ones separate no better than faces."""
FIRST_FACE = 1e-3
"""How much more a face of the second box must separate than one of the first to count, by the smaller box's half edges:
otherwise the ripples of stacked boxes would choose now one and now the other, and with it other points."""
LIP = 0.01
"""Overlap beside the normal, by the smaller box's smallest half edge, that does not count: boxes that slide over the
seam of two flush ones, sunk in by micrometres, would crash into the second one's side otherwise."""
BESIDE = 0.5
"""Largest cosine between a normal and a direction beside it."""


ROUND = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
"""Corners of a square, one after the other."""


class _Box(NamedTuple):
    """A box in the world."""

    center: Vec3
    axes: Float[AnyArray, "3 3"]
    """Unit vectors along its edges, as rows."""
    half: Vec3

    def turned(self, axis: Int[AnyArray, ""]) -> "_Box":
        """The same box with another axis first."""
        return _Box(self.center, cycle_axes(self.axes, axis), cycle_axes(self.half, axis))


def box_box(a: PlacedShape, b: PlacedShape) -> ContactPoints:
    """Four points; those that are not there have the gap `FAR`."""
    first, second = (_Box(box.X_WG.p, box.X_WG.R.T, box.size) for box in (a, b))
    d = first.center - second.center

    def gaps(axes: Float[AnyArray, "n 3"]) -> Float[AnyArray, " n"]:
        reach = jnp.abs(axes @ first.axes.T) @ first.half + jnp.abs(axes @ second.axes.T) @ second.half
        return jnp.abs(axes @ d) - reach

    size = jnp.minimum(first.half.sum(), second.half.sum())
    faces = jnp.concatenate([first.axes, second.axes])
    face_gaps = gaps(faces)
    pairs = jax.vmap(lambda u: jax.vmap(lambda v: cross(u, v))(second.axes))(first.axes).reshape(9, 3)
    squared = jnp.sum(pairs * pairs, axis=1)
    is_parallel = squared < PARALLEL_EDGES
    pairs = jnp.where(is_parallel[:, None], 0.0, pairs) / jnp.sqrt(jnp.where(is_parallel, 1.0, squared))[:, None]
    edge_gaps = jnp.where(is_parallel, -FAR, gaps(pairs))

    best_face = jnp.argmax(face_gaps + size * np.repeat([FIRST_FACE, 0.0], 3))
    best_edges = jnp.argmax(edge_gaps)
    face_gap, edge_gap = pick(face_gaps, best_face), pick(edge_gaps, best_edges)
    lip = LIP * jnp.minimum(first.half.min(), second.half.min())
    by_face = _by_face(first, second, best_face, pass_by(faces, face_gaps, pick(faces, best_face), lip))
    by_edges = _by_edges(first, second, best_edges, pick(pairs, best_edges), edge_gap)
    return jax.tree.map(lambda x, y: jnp.where(edge_gap > face_gap + EDGE_ADVANTAGE * size, x, y), by_edges, by_face)


def pass_by(
    directions: Float[AnyArray, "n 3"], gaps: Float[AnyArray, " n"], normal: Vec3, lip: Scalar
) -> Bool[AnyArray, ""]:
    """Do shapes pass each other, because they hardly overlap in one of these directions beside their normal?"""
    beside = jnp.abs(directions @ normal) < BESIDE
    return (beside & (gaps > -lip)).any()


def _by_face(first: _Box, second: _Box, best: Int[AnyArray, ""], passing: Bool[AnyArray, ""]) -> ContactPoints:
    """Contacts on a face of the first box (0 to 2) or the second (3 to 5); none for boxes that pass each other."""
    on_first = best < 3
    own, other = (
        jax.tree.map(lambda x, y: jnp.where(on_first, x, y), *boxes) for boxes in ((first, second), (second, first))
    )
    own = own.turned(jnp.where(on_first, best, best - 3))
    # the face's normal, away from its box
    normal = jnp.where(own.axes[0] @ (other.center - own.center) < 0.0, -own.axes[0], own.axes[0])
    other = other.turned(jnp.argmax(jnp.abs(other.axes @ normal)))
    heights, on_other, there = _overlap(own, normal, other)
    on_own = on_other - heights[:, None] * normal[None]
    # normals point from the second box to the first
    toward_first = jnp.broadcast_to(jnp.where(on_first, -normal, normal), on_own.shape)
    return ContactPoints(
        jnp.where(there & ~passing, heights, FAR),
        toward_first,
        jnp.where(on_first, on_own, on_other),
        jnp.where(on_first, on_other, on_own),
    )


def _overlap(
    own: _Box, normal: Vec3, other: _Box
) -> tuple[Float[AnyArray, "4"], Float[AnyArray, "4 3"], Bool[AnyArray, "4"]]:
    """Heights and places of the four outermost corners of what of another box's face lies above a face of a box.

    Args:
        own: the box, its first axis normal to the face.
        normal: of the face, away from the box.
        other: the other box, its first axis normal to the face that is turned towards the first one.
    """
    middle = own.center + own.half[0] * normal
    facing, u, v = other.half[:, None] * other.axes
    other_middle = other.center + jnp.where(other.axes[0] @ normal > 0.0, -facing, facing)
    # round the other face, and along this one in metres
    corners = other_middle[None] + ROUND @ jnp.stack([u, v])
    edges = jnp.roll(corners, -1, axis=0) - corners
    flat, steps = (corners - middle[None]) @ own.axes[1:].T, edges @ own.axes[1:].T
    is_above = (jnp.abs(flat) <= own.half[None, 1:] + EDGE_WIDTH).all(axis=1)
    times, on_the_way = across_face(flat, steps, own.half[1:])
    crossings = corners[None] + times[:, :, None] * edges[None]

    # corners of this face beneath the other one; the other face is never steep, being the most opposite one
    mine = middle[None] + SQUARE_CORNERS @ (own.half[1:, None] * own.axes[1:])
    lift = ((other_middle[None] - mine) @ other.axes[0]) / (normal @ other.axes[0])
    raised = mine + lift[:, None] * normal[None]
    beneath = jnp.abs((raised - other_middle[None]) @ other.axes[1:].T)
    is_beneath = (beneath <= other.half[None, 1:] + EDGE_WIDTH).all(axis=1)

    places = jnp.concatenate([corners, *crossings, raised])
    there = jnp.concatenate([is_above, *on_the_way, is_beneath])
    heights = (places - middle[None]) @ normal
    # where nothing lies above the face, the lowest corner tells how far the boxes are apart at least
    lowest = jnp.argmin(heights[:4] + SIDEWAYS * jnp.sqrt(jnp.sum(flat * flat, axis=1)))
    there = there | (~there.any() & (np.arange(16) == lowest))
    chosen, counts = reduce_manifold((places - middle[None]) @ own.axes[1:].T, heights, there)
    rows = jnp.stack([pick(jnp.concatenate([heights[:, None], places], axis=1), chosen[k]) for k in range(4)])
    return rows[:, 0], rows[:, 1:], counts


def _by_edges(first: _Box, second: _Box, best: Int[AnyArray, ""], axis: Vec3, gap: Scalar) -> ContactPoints:
    """One contact between an edge of each box; the other three are far away."""
    normal = jnp.where(axis @ (first.center - second.center) < 0.0, -axis, axis)

    def edge(box: _Box, toward: Vec3) -> tuple[Vec3, Vec3, Scalar]:
        """The edge along the first axis that reaches farthest: its middle, direction and half length."""
        across = (box.half[:, None] * box.axes)[1:]
        return (
            box.center + jnp.where((across @ toward < 0.0)[:, None], -across, across).sum(0),
            box.axes[0],
            box.half[0],
        )

    near = nearest_on_segments(*edge(first.turned(best // 3), -normal), *edge(second.turned(best % 3), normal))
    # between boxes that are apart the edges' nearest points can lie elsewhere, the gap cannot
    middle, half_way = 0.5 * (near[0] + near[1]), 0.5 * gap * normal
    gaps = jnp.concatenate([gap[None], jnp.full(3, FAR)])
    return ContactPoints(gaps, *(jnp.broadcast_to(x, (4, 3)) for x in (normal, middle + half_way, middle - half_way)))
