"""Choosing few contact points among many so that they bear a body as all of them would."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.core.types import AnyArray

LOW_BEFORE_FAR = 20.0
"""How much farther out a point must be, by how much higher it lies, to be chosen instead of a lower one."""
_ANGLES = np.pi / 8.0 + np.pi / 2.0 * np.arange(4)
DIRECTIONS = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
"""Four directions along none of which the corners of a square, straight or on its tip, lie side by side: with equal
candidates, rounding would choose now one and now the other."""


def spread_indices(
    flat: Float[AnyArray, "n 2"], heights: Float[AnyArray, " n"], there: Bool[AnyArray, " n"] | None = None
) -> Int[AnyArray, "4"]:
    """Of some points the outermost in four directions, where lower ones are preferred to outer ones.

    Args:
        flat: the points' coordinates along the surface that they may touch [m].
        heights: of the points above it [m].
        there: which points count; all of them by default.
    """
    score = DIRECTIONS @ flat.T - LOW_BEFORE_FAR * heights
    if there is not None:
        score = jnp.where(there, score, -np.inf)
    return jnp.argmax(score, axis=1)
