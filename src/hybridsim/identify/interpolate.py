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
    """Derivatives of the weights with respect to time, per time step."""


def stencil(times: Float[np.ndarray, "*samples"], rows: int) -> Stencil:
    """Interpolation stencil at times in time steps, over `rows` rows of readings.

    Raises:
        ValueError: a time is outside of the rows.
    """
    if times.size and not (times.min() >= -STEP_TOLERANCE and times.max() <= rows - 1 + STEP_TOLERANCE):
        raise ValueError(f"times from {times.min():g} to {times.max():g} steps are not within {rows} rows")
    nearest = np.round(times)
    if np.all(np.abs(times - nearest) <= STEP_TOLERANCE):
        ones = np.ones((*times.shape, 1))
        return Stencil(nearest.astype(np.intp), ones, np.zeros_like(ones))
    return cubic_stencil(times, rows)


def cubic_stencil(times: Float[np.ndarray, "*samples"], rows: int) -> Stencil:
    """Lagrange weights of the cubic through the four rows around each time; of lower degree with fewer rows."""
    count = min(4, rows)
    first = np.clip(np.floor(times).astype(np.intp) - (count - 1) // 2, 0, rows - count)
    s = times - first
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
