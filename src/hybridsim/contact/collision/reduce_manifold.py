"""Reduction of a contact manifold to four points that span most of its support polygon."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.contact.collision.contact_points import pick
from hybridsim.core.types import AnyArray, Scalar

GAP_WEIGHT = 10.0
"""Weight of the gap against lateral distance: a point whose gap is larger by δ is chosen only if it lies farther out by
at least GAP_WEIGHT · δ."""
FIRST_GAP_WEIGHT = 1000.0
"""The same for the first point, which must be the deepest one unless gaps are nearly equal."""
COINCIDENCE_TOLERANCE = 1e-6
"""Distance [m] below which points count as coincident: the second adds no support, and the two do not define a
line."""
_FIRST_DIRECTION = np.array([0.8, 0.6])
"""Direction that selects the first point among equally deep ones.

Without it, vibrations of bodies at rest would switch between points, and warm starts with them.
"""
_TIE_BREAK = 1e-5 * _FIRST_DIRECTION
"""Added to distances for the same reason: among equally distant points the choice is always the same."""


def reduce_manifold(
    lateral: Float[AnyArray, "n 2"], gaps: Float[AnyArray, " n"], exists: Bool[AnyArray, " n"]
) -> tuple[Int[AnyArray, "4"], Bool[AnyArray, "4"]]:
    """Select four points that span most of the support polygon.

    The first is one of the deepest; the others are in turn the point farthest from it, from the line through these two,
    and from the triangle of these three.

    For a convex quadrilateral these are always the four corners. Distance is traded off against depth; where only a
    corner or an edge is near the surface, fewer than four points remain.

    Args:
        lateral: coordinates of the points along the contact surface [m].
        gaps: gaps of the points [m].
        exists: points to select from.

    Returns:
        Indices of the selected points, and which of them exist and do not coincide with an earlier one.
    """
    # a discrete choice has no derivative
    lateral, gaps = jax.lax.stop_gradient((jnp.asarray(lateral), jnp.asarray(gaps)))

    def best(score: Float[AnyArray, " n"]) -> Int[AnyArray, ""]:
        return jnp.argmax(jnp.where(exists, score, -np.inf))

    excess = gaps - jnp.min(jnp.where(exists, gaps, np.inf))
    first = best(lateral @ _FIRST_DIRECTION - FIRST_GAP_WEIGHT * excess)
    offsets = lateral - pick(lateral, first)[None]
    cost = GAP_WEIGHT * excess - lateral @ _TIE_BREAK
    farthest = best(_length(offsets) - cost)
    line = pick(offsets, farthest)
    length = _length(line)
    along = line / jnp.where(length > COINCIDENCE_TOLERANCE, length, 1.0)
    # coordinates along the line through these two, and perpendicular to it
    x, y = offsets @ along, offsets @ jnp.stack([-along[1], along[0]])
    third = best(jnp.abs(y) - cost)
    y = jnp.where(pick(y, third) < 0.0, -y, y)
    corner = pick(x, third), pick(y, third)
    # distances of the points beyond the sides of the triangle (0, 0), (length, 0), corner
    right, left = (
        _distance_beyond_line(x - length, y, corner[0] - length, corner[1]),
        -_distance_beyond_line(x, y, *corner),
    )
    chosen = jnp.stack([first, farthest, third, best(jnp.maximum(jnp.maximum(right, left), -y) - cost)])

    points = [pick(lateral, chosen[k]) for k in range(4)]
    is_new = [
        jnp.stack([_length(points[k] - points[j]) > COINCIDENCE_TOLERANCE for j in range(k)]).all()
        if k
        else jnp.asarray(True)
        for k in range(4)
    ]
    return chosen, jnp.stack([pick(exists, chosen[k]) & is_new[k] for k in range(4)])


def _length(vectors: Float[AnyArray, "*n 2"]) -> Float[AnyArray, "*n"] | Scalar:
    return jnp.sqrt(jnp.sum(vectors * vectors, axis=-1))


def _distance_beyond_line(
    x: Float[AnyArray, " n"], y: Float[AnyArray, " n"], to_x: Scalar, to_y: Scalar
) -> Float[AnyArray, " n"]:
    """Distance of points to the right of the line from the origin to a point [m]."""
    length = jnp.sqrt(to_x * to_x + to_y * to_y)
    return (x * to_y - y * to_x) / jnp.where(length > COINCIDENCE_TOLERANCE, length, 1.0)
