"""Choosing few contact points among many so that they bear a body as all of them would."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.contact.collision.contact_points import pick
from hybridsim.core.types import AnyArray, Scalar

HEIGHT_WEIGHT = 10.0
"""How much farther out a point must be, by how much higher it lies, to be chosen instead of a lower one."""
FIRST_HEIGHT_WEIGHT = 1000.0
"""The same for the first point, which has to be the lowest one wherever that matters."""
COINCIDENT = 1e-6
"""Points nearer to each other than this [m] are one: two of them bear no more, and have no line through them."""
_FIRST = np.array([0.8, 0.6])
"""The direction in which the first point lies farthest out among equally low ones.

Were it simply the lowest, the ripples of bodies at rest would choose now one and now another, and what contacts
remember of the last step would go to other points.
"""
_LEAN = 1e-5 * _FIRST
"""What is added to distances for the same reason: of points that lie equally far out, always the same is chosen."""


def reduce_manifold(
    flat: Float[AnyArray, "n 2"], heights: Float[AnyArray, " n"], there: Bool[AnyArray, " n"]
) -> tuple[Int[AnyArray, "4"], Bool[AnyArray, "4"]]:
    """Four of some points: one of the lowest, the farthest from it, from the line through both, and from the triangle.

    Of a convex quadrilateral these are always the four corners. The lower a point, the less far out it must be; where
    nothing but a corner or an edge is near the surface, fewer than four points are left.

    Args:
        flat: the points' coordinates along the surface that they may touch [m].
        heights: of the points above it [m].
        there: which points count.

    Returns:
        Numbers of the points, and which of these are there and not at the place of another one before.
    """
    # a choice has no derivative
    flat, heights = jax.lax.stop_gradient((jnp.asarray(flat), jnp.asarray(heights)))

    def best(score: Float[AnyArray, " n"]) -> Int[AnyArray, ""]:
        return jnp.argmax(jnp.where(there, score, -np.inf))

    above = heights - jnp.min(jnp.where(there, heights, np.inf))
    first = best(flat @ _FIRST - FIRST_HEIGHT_WEIGHT * above)
    away = flat - pick(flat, first)[None]
    cost = HEIGHT_WEIGHT * above - flat @ _LEAN
    farthest = best(_length(away) - cost)
    line = pick(away, farthest)
    length = _length(line)
    along = line / jnp.where(length > COINCIDENT, length, 1.0)
    # coordinates along the line through these two, and aside from it
    x, y = away @ along, away @ jnp.stack([-along[1], along[0]])
    third = best(jnp.abs(y) - cost)
    y = jnp.where(pick(y, third) < 0.0, -y, y)
    corner = pick(x, third), pick(y, third)
    # how far a point is beyond the sides of the triangle (0, 0), (length, 0), corner
    right, left = _beyond(x - length, y, corner[0] - length, corner[1]), -_beyond(x, y, *corner)
    chosen = jnp.stack([first, farthest, third, best(jnp.maximum(jnp.maximum(right, left), -y) - cost)])

    places = [pick(flat, chosen[k]) for k in range(4)]
    is_new = [
        jnp.stack([_length(places[k] - places[j]) > COINCIDENT for j in range(k)]).all() if k else jnp.asarray(True)
        for k in range(4)
    ]
    return chosen, jnp.stack([pick(there, chosen[k]) & is_new[k] for k in range(4)])


def _length(vectors: Float[AnyArray, "*n 2"]) -> Float[AnyArray, "*n"] | Scalar:
    return jnp.sqrt(jnp.sum(vectors * vectors, axis=-1))


def _beyond(x: Float[AnyArray, " n"], y: Float[AnyArray, " n"], to_x: Scalar, to_y: Scalar) -> Float[AnyArray, " n"]:
    """How far points are to the right of the line from the origin to a point."""
    length = jnp.sqrt(to_x * to_x + to_y * to_y)
    return (x * to_y - y * to_x) / jnp.where(length > COINCIDENT, length, 1.0)
