"""Polynomials fitted by least squares to the samples around every time, for times that need not be even.

The polynomials of a window are built orthogonal to each other on its samples (Forsythe 1957): each is the last one
times time, less its parts along the last two. No equations are solved, so that nothing is ill-conditioned, and all
windows are treated at once.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

BLOCK_ELEMENTS = 1_000_000
"""Numbers that are worked on at once: bounds memory."""


@dataclass(frozen=True, eq=False)
class LocalFit:
    """Polynomials at the times that they were made for."""

    value: Float[np.ndarray, " n"]
    first: Float[np.ndarray, " n"]
    """First derivative."""
    second: Float[np.ndarray, " n"]
    """Second derivative."""
    leverage: Float[np.ndarray, " n"]
    """How much the value follows the sample at its own time, 0 to 1."""


def local_fit(
    t: Float[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    start: Int[np.ndarray, " k"],
    end: Int[np.ndarray, " k"],
    degree: int,
    at: Int[np.ndarray, " k"] | None = None,
) -> LocalFit:
    """Fit a polynomial for every sample, or for some, to those from `start` up to and without `end`.

    Args:
        t: times of the samples, increasing [s].
        values: the samples.
        start: first sample of each window.
        end: the sample after each window; every window holds more than `degree`.
        degree: of the polynomials.
        at: samples that have a window each; all by default.
    """
    times = t if at is None else t[at]
    width = int((end - start).max())
    rows = max(1, BLOCK_ELEMENTS // width)
    result = np.empty((4, len(times)))
    for first in range(0, len(times), rows):
        part = slice(first, first + rows)
        result[:, part] = _fit_block(t, values, start[part], end[part], times[part], width, degree)
    return LocalFit(*result)


def _fit_block(t, values, start, end, at, width: int, degree: int) -> np.ndarray:
    """Value, two derivatives and leverage (4, rows) of the polynomials of some windows."""
    index = start[:, None] + np.arange(width)
    weight = (index < end[:, None]).astype(float)
    index = np.minimum(index, len(t) - 1)
    # time from -1 to 1 in every window
    middle, half = (t[start] + t[end - 1]) / 2, (t[end - 1] - t[start]) / 2
    time = (t[index] - middle[:, None]) / half[:, None] * weight
    x = (at - middle) / half

    rest = values[index] * weight
    last, polynomial = np.zeros_like(time), weight
    # value and derivatives of the two polynomials at the time in question
    last_at, polynomial_at = np.zeros((3, len(x))), np.zeros((3, len(x)))
    polynomial_at[0] = 1.0
    last_norm = np.ones(len(x))
    result = np.zeros((4, len(x)))
    for _ in range(degree + 1):
        norm = (polynomial**2).sum(axis=1)
        coefficient = (rest * polynomial).sum(axis=1) / norm
        rest = rest - coefficient[:, None] * polynomial
        result[:3] += coefficient * polynomial_at
        result[3] += polynomial_at[0] ** 2 / norm
        along_itself = (time * polynomial**2).sum(axis=1) / norm
        along_last = norm / last_norm
        shifted = time - along_itself[:, None]
        last, polynomial = polynomial, shifted * polynomial - along_last[:, None] * last
        next_at = (x - along_itself) * polynomial_at - along_last * last_at
        next_at[1] += polynomial_at[0]
        next_at[2] += 2 * polynomial_at[1]
        last_at, polynomial_at, last_norm = polynomial_at, next_at, norm
    result[1] /= half
    result[2] /= half**2
    return result
