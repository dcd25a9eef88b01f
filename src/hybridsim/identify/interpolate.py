"""Readings between time steps: what a sensor would have said at the moment of a measurement.

Measurements need not be equally spaced nor taken together, and are left as they are: it is the simulated reading that
is interpolated to their time stamps, by the cubic through the four nearest time steps. Where all of them fall onto
steps, nothing is interpolated.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

ON_A_STEP = 1e-6
"""By how many time steps a measurement may miss one and still be taken to be on it."""


class Stencil(NamedTuple):
    """How each sample is made of rows: `Σ weights[k] · reading[first + k]`."""

    first: Int[np.ndarray, "*samples"]
    weights: Float[np.ndarray, "*samples k"]
    slopes: Float[np.ndarray, "*samples k"]
    """Change of the weights per time step of a later position."""


def stencil(position: Float[np.ndarray, "*samples"], rows: int) -> Stencil:
    """Weights for readings at positions counted in time steps, of `rows` rows.

    Raises:
        ValueError: a position is outside of the rows.
    """
    if position.size and not (position.min() >= -ON_A_STEP and position.max() <= rows - 1 + ON_A_STEP):
        raise ValueError(f"positions {position.min():g} to {position.max():g} are not within {rows} rows")
    nearest = np.round(position)
    if np.all(np.abs(position - nearest) <= ON_A_STEP):
        ones = np.ones((*position.shape, 1))
        return Stencil(nearest.astype(np.intp), ones, np.zeros_like(ones))
    return cubic(position, rows)


def cubic(position: Float[np.ndarray, "*samples"], rows: int) -> Stencil:
    """Weights of the polynomial through the four rows around each position; fewer where there are not so many."""
    count = min(4, rows)
    first = np.clip(np.floor(position).astype(np.intp) - (count - 1) // 2, 0, rows - count)
    s = position - first
    weights, slopes = [], []
    for k in range(count):
        others = [j for j in range(count) if j != k]
        below = np.prod([k - j for j in others], initial=1.0)
        factors = [s - j for j in others]
        weights.append(_product(factors, s) / below)
        slopes.append(
            sum((_product([f for j, f in enumerate(factors) if j != i], s) for i in range(len(factors))), 0.0 * s)
            / below
        )
    return Stencil(first, np.stack(weights, axis=-1), np.stack(slopes, axis=-1))


def _product(factors: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    product = np.ones_like(like)
    for factor in factors:
        product = product * factor
    return product
