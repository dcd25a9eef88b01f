"""Boxes against boxes.

The direction in which two boxes overlap least is a normal of a face or a cross product of two edges (the separating
axis theorem). A face meets the part of the other box's most opposite face that lies above it, of which four corners
are kept; two edges meet in one point.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from hybridsim.contact.balls import nearest_on_segments
from hybridsim.contact.plane import lowest_face
from hybridsim.contact.points import FAR, SIGNS_2, Placed, Points
from hybridsim.contact.spread import spread_indices
from hybridsim.core.numerics import cross, safe_divide
from hybridsim.core.types import AnyArray, Scalar, Vec3

EDGE_ADVANTAGE = 1e-3
"""How much more two edges must separate than any face, by the boxes' size, to count: faces bear better."""
WITHIN = 1e-9
"""How far beyond an edge a corner still lies on a face, by the face's size: stacked boxes have corners on edges."""


class _Face(NamedTuple):
    """A face of a box and the other box, in the world."""

    middle: Vec3
    normal: Vec3
    """Away from its box."""
    u: Vec3
    v: Vec3
    """Half edges of the face."""
    other: Vec3
    """The other box's centre."""
    other_edges: Float[AnyArray, "3 3"]
    """The other box's half edges, as rows."""


def box_box(a: Placed, b: Placed) -> Points:
    """Four points."""
    edges_a, edges_b = (box.size[:, None] * box.X_WG.R.T for box in (a, b))
    axes_a, axes_b, d = a.X_WG.R.T, b.X_WG.R.T, a.X_WG.p - b.X_WG.p

    def reach(axes: Float[AnyArray, "n 3"]) -> Float[AnyArray, " n"]:
        return jnp.abs(axes @ edges_a.T).sum(axis=1) + jnp.abs(axes @ edges_b.T).sum(axis=1)

    faces = jnp.concatenate([axes_a, axes_b])
    face_gaps = jnp.abs(faces @ d) - reach(faces)
    pairs = jax.vmap(lambda u: jax.vmap(lambda v: cross(u, v))(axes_b))(axes_a).reshape(9, 3)
    squared = jnp.sum(pairs * pairs, axis=1)
    is_parallel = squared < 1e-6
    pairs = jnp.where(is_parallel[:, None], 0.0, pairs) / jnp.sqrt(jnp.where(is_parallel, 1.0, squared))[:, None]
    edge_gaps = jnp.where(is_parallel, -np.inf, jnp.abs(pairs @ d) - reach(pairs))

    best_face, best_edges = jnp.argmax(face_gaps), jnp.argmax(edge_gaps)
    by_face = _by_face(best_face, a, b, edges_a, edges_b, d)
    by_edges = _by_edges(best_edges, pairs[best_edges], edge_gaps[best_edges], a, b, edges_a, edges_b, d)
    margin = EDGE_ADVANTAGE * (a.size.sum() + b.size.sum())
    edges_count = edge_gaps[best_edges] > face_gaps[best_face] + margin
    return jax.tree.map(lambda x, y: jnp.where(edges_count, x, y), by_edges, by_face)


def _by_face(best, a: Placed, b: Placed, edges_a, edges_b, d: Vec3) -> Points:
    """Contacts on a face of the first box (0 to 2) or the second (3 to 5)."""
    on_a = best < 3
    own, other = (jnp.where(on_a, x, y) for x, y in ((edges_a, edges_b), (edges_b, edges_a)))
    center, other_center = (jnp.where(on_a, x, y) for x, y in ((a.X_WG.p, b.X_WG.p), (b.X_WG.p, a.X_WG.p)))
    axis = jnp.where(on_a, best, best - 3)
    out, u, v = (own[(axis + k) % 3] for k in range(3))
    out = jnp.where(out @ (other_center - center) < 0.0, -out, out)
    normal = out / jnp.sqrt(out @ out)
    heights, places, there = _overlap(_Face(center + out, normal, u, v, other_center, other))
    gap = jnp.where(there, heights, FAR)
    on_other, on_own = places, places - heights[:, None] * normal
    # normals point from the second box to the first
    toward_a = jnp.broadcast_to(jnp.where(on_a, -normal, normal), places.shape)
    return Points(gap, toward_a, jnp.where(on_a, on_own, on_other), jnp.where(on_a, on_other, on_own))


def _overlap(face: _Face) -> tuple[Float[AnyArray, "4"], Float[AnyArray, "4 3"], Bool[AnyArray, "4"]]:
    """Heights and places of the four outermost corners of what of the other box's face lies above a face."""
    toward, first, second = lowest_face(face.other_edges, face.normal)
    middle = face.other + toward
    corners = (
        middle + np.array([[-1.0], [-1.0], [1.0], [1.0]]) * first + np.array([[-1.0], [1.0], [1.0], [-1.0]]) * second
    )
    # coordinates along the face in halves of its edges
    along = jnp.stack([face.u / (face.u @ face.u), face.v / (face.v @ face.v)], axis=1)
    flat = (corners - face.middle) @ along

    # where the other face's edges enter and leave the strip above this one
    step = jnp.roll(flat, -1, axis=0) - flat
    ahead, behind = (safe_divide(side - flat, step) for side in (1.0, -1.0))
    moves = step != 0.0
    within = jnp.abs(flat) <= 1.0 + WITHIN
    enter = jnp.where(moves, jnp.minimum(ahead, behind), jnp.where(within, -np.inf, np.inf)).max(axis=1)
    leave = jnp.where(moves, jnp.maximum(ahead, behind), jnp.where(within, np.inf, -np.inf)).min(axis=1)
    crosses = (enter < leave) & (enter < 1.0) & (leave > 0.0)
    enter, leave = (jnp.where(jnp.isfinite(t), t, 0.0) for t in (enter, leave))
    edges = jnp.roll(corners, -1, axis=0) - corners
    entering, leaving = corners + enter[:, None] * edges, corners + leave[:, None] * edges

    # corners of this face beneath the other one
    own = face.middle + SIGNS_2[:, :1] * face.u + SIGNS_2[:, 1:] * face.v
    beneath = cross(first, second)
    slope = beneath @ face.normal
    lift = safe_divide((middle - own) @ beneath, slope)
    raised = own + lift[:, None] * face.normal
    inside = jnp.stack([(raised - middle) @ first / (first @ first), (raised - middle) @ second / (second @ second)])
    is_covered = (jnp.abs(inside) <= 1.0).all(axis=0) & (jnp.abs(slope) > 1e-3 * jnp.sqrt(beneath @ beneath))

    candidates = jnp.concatenate([corners, entering, leaving, raised])
    there = jnp.concatenate([within.all(axis=1), crosses & (enter > 0.0), crosses & (leave < 1.0), is_covered])
    heights = (candidates - face.middle) @ face.normal
    scale = jnp.stack([jnp.sqrt(face.u @ face.u), jnp.sqrt(face.v @ face.v)])
    chosen = spread_indices((candidates - face.middle) @ along * scale, heights, there)
    return heights[chosen], candidates[chosen], there[chosen]


def _by_edges(best, axis: Vec3, gap: Scalar, a: Placed, b: Placed, edges_a, edges_b, d: Vec3) -> Points:
    """One contact between an edge of each box, four times over but three of them far away."""
    normal = jnp.where(axis @ d < 0.0, -axis, axis)

    def edge(edges, along, toward: Vec3):
        """The edge with a given direction that reaches farthest."""
        sides = jnp.where(edges @ toward < 0.0, -edges, edges)
        is_own = (jnp.arange(3) == along)[:, None]
        half = jnp.where(is_own, edges, 0.0).sum(axis=0)
        length = jnp.sqrt(half @ half)
        return jnp.where(is_own, 0.0, sides).sum(axis=0), half / length, length

    middle_a, along_a, half_a = edge(edges_a, best // 3, -normal)
    middle_b, along_b, half_b = edge(edges_b, best % 3, normal)
    near_a, near_b = nearest_on_segments(a.X_WG.p + middle_a, along_a, half_a, b.X_WG.p + middle_b, along_b, half_b)
    gaps = jnp.concatenate([gap[None], jnp.full(3, FAR)])
    return Points(gaps, *(jnp.broadcast_to(x, (4, 3)) for x in (normal, near_a, near_b)))
