"""Local polynomial regression: least-squares polynomials in windows of samples, which may be unevenly spaced.

The basis polynomials of a window are orthogonal on its samples and built by the three-term recurrence (Forsythe 1957).
No normal equations are solved, so the fit is well-conditioned, and all windows are vectorized.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

BLOCK_ELEMENTS = 1_000_000
"""Array elements per block; bounds memory."""


@dataclass(frozen=True, eq=False)
class LocalFit:
    """Fitted polynomials, evaluated at the requested times."""

    value: Float[np.ndarray, " n"]
    first_derivative: Float[np.ndarray, " n"]
    second_derivative: Float[np.ndarray, " n"]
    leverage: Float[np.ndarray, " n"]
    """Derivative of the value with respect to the sample at its time, 0 to 1."""


def local_fit(
    t: Float[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    start: Int[np.ndarray, " k"],
    end: Int[np.ndarray, " k"],
    degree: int,
    indices: Int[np.ndarray, " k"] | None = None,
) -> LocalFit:
    """Fit a polynomial around each sample, or around those in `indices`, to a window of samples.

    A window contains the samples from `start` up to, but excluding, `end`.

    Args:
        t: times of the samples, increasing [s].
        values: the samples.
        start: first sample of each window.
        end: one past the last sample of each window; each window holds more than `degree` samples.
        degree: degree of the polynomials.
        indices: samples to fit around, one per window; all by default.
    """
    times = t if indices is None else t[indices]
    width = int((end - start).max())
    block_size = max(1, BLOCK_ELEMENTS // width)
    result = np.empty((4, len(times)))
    for first in range(0, len(times), block_size):
        part = slice(first, first + block_size)
        result[:, part] = _fit_block(t, values, start[part], end[part], times[part], width, degree)
    return LocalFit(*result)


def _fit_block(t, values, start, end, evaluation_times, width: int, degree: int) -> np.ndarray:
    """Value, first and second derivative, and leverage (4, rows) for a block of windows."""
    index = start[:, None] + np.arange(width)
    weight = (index < end[:, None]).astype(float)
    index = np.minimum(index, len(t) - 1)
    # time normalized to [-1, 1] in each window
    middle, half = (t[start] + t[end - 1]) / 2, (t[end - 1] - t[start]) / 2
    time = (t[index] - middle[:, None]) / half[:, None] * weight
    x = (evaluation_times - middle) / half

    residual = values[index] * weight
    previous, polynomial = np.zeros_like(time), weight
    # value and derivatives of both basis polynomials at the evaluation time
    previous_at, polynomial_at = np.zeros((3, len(x))), np.zeros((3, len(x)))
    polynomial_at[0] = 1.0
    previous_norm = np.ones(len(x))
    result = np.zeros((4, len(x)))
    for _ in range(degree + 1):
        norm = (polynomial**2).sum(axis=1)
        coefficient = (residual * polynomial).sum(axis=1) / norm
        residual = residual - coefficient[:, None] * polynomial
        result[:3] += coefficient * polynomial_at
        result[3] += polynomial_at[0] ** 2 / norm
        alpha = (time * polynomial**2).sum(axis=1) / norm
        beta = norm / previous_norm
        shifted = time - alpha[:, None]
        previous, polynomial = polynomial, shifted * polynomial - beta[:, None] * previous
        next_at = (x - alpha) * polynomial_at - beta * previous_at
        next_at[1] += polynomial_at[0]
        next_at[2] += 2 * polynomial_at[1]
        previous_at, polynomial_at, previous_norm = polynomial_at, next_at, norm
    result[1] /= half
    result[2] /= half**2
    return result
