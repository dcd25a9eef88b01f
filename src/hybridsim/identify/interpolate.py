"""Interpolation of simulated readings to the time stamps of measurements.

Measurements need not be equidistant or synchronous, and are never resampled: the simulated reading is interpolated to
their time stamps by the cubic through the four nearest time steps. If all stamps coincide with steps, readings are used
without interpolation.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

STEP_TOLERANCE = 1e-6
"""Distance from a time step up to which a measurement counts as coinciding with it, in steps."""


class Stencil(NamedTuple):
    """Interpolation weights: each sample is `Σ weights[k] · reading[first + k]`."""

    first: Int[np.ndarray, "*samples"]
    weights: Float[np.ndarray, "*samples k"]
    slopes: Float[np.ndarray, "*samples k"]
    """Derivatives of the weights with respect to the position, per time step."""


def stencil(position: Float[np.ndarray, "*samples"], rows: int) -> Stencil:
    """Interpolation stencil at positions in time steps, over `rows` rows of readings.

    Raises:
        ValueError: a position is outside of the rows.
    """
    if position.size and not (position.min() >= -STEP_TOLERANCE and position.max() <= rows - 1 + STEP_TOLERANCE):
        raise ValueError(f"positions {position.min():g} to {position.max():g} are not within {rows} rows")
    nearest = np.round(position)
    if np.all(np.abs(position - nearest) <= STEP_TOLERANCE):
        ones = np.ones((*position.shape, 1))
        return Stencil(nearest.astype(np.intp), ones, np.zeros_like(ones))
    return cubic_stencil(position, rows)


def cubic_stencil(position: Float[np.ndarray, "*samples"], rows: int) -> Stencil:
    """Lagrange weights of the cubic through the four rows around each position; of lower degree with fewer rows."""
    count = min(4, rows)
    first = np.clip(np.floor(position).astype(np.intp) - (count - 1) // 2, 0, rows - count)
    s = position - first
    weights, slopes = [], []
    for k in range(count):
        nodes = [j for j in range(count) if j != k]
        denominator = np.prod([k - j for j in nodes], initial=1.0)
        factors = [s - j for j in nodes]
        weights.append(_product(factors, s) / denominator)
        slopes.append(
            sum((_product([f for j, f in enumerate(factors) if j != i], s) for i in range(len(factors))), 0.0 * s)
            / denominator
        )
    return Stencil(first, np.stack(weights, axis=-1), np.stack(slopes, axis=-1))


def _product(factors: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    product = np.ones_like(like)
    for factor in factors:
        product = product * factor
    return product
