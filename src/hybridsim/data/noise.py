"""How noisy a measured series is."""

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.data.derivative import centred_windows
from hybridsim.data.local_polynomial import local_fit
from hybridsim.data.series import Series

WINDOW, DEGREE = 9, 3
"""Cubic polynomials over nine samples follow a mechanism at any useful sampling rate, and little of the noise."""
MIN_SAMPLES = 6
"""Samples without which nothing can be said."""
MIN_DISTINCT_VALUES = 10
"""Different values of a sensor that counts steps; fewer do not tell it from something that is switched."""
INTEGER_TOLERANCE = 1e-3
"""How far a change may be from a whole number of steps: written numbers are rounded themselves."""
MAD_TO_STD = 1.482602218505602
"""Standard deviation of normal noise over its median magnitude."""


def noise_level(series: Series) -> float:
    """Standard deviation of the noise: of what local polynomials cannot follow, judged by its median.

    Outliers count little. The noise of one sample must not depend on that of the next: a filtered signal seems to be
    less noisy than it is. Of a sensor that counts steps, such as an encoder, it is at least the rounding error, even
    at rest; of a constant series it is zero.

    Raises:
        DataError: there are too few samples.
    """
    if len(series) < MIN_SAMPLES:
        message = f"series {series.name!r} has {len(series)} samples, too few to tell its noise"
        raise DataError([Problem(message, "tell the noise", code="data.noise", element=series.name)])
    start, end = centred_windows(len(series), min(WINDOW, len(series)))
    fit = local_fit(series.t, series.values, start, end, DEGREE)
    # a polynomial follows each sample by its leverage, which leaves so much less of the noise
    share = np.sqrt(np.maximum(1.0 - fit.leverage, 0.0))
    judged = share > 0.1  # at uneven times, some samples may be followed nearly all the way
    if not judged.any():
        judged = share == share.max()
    level = MAD_TO_STD * float(np.median(np.abs(series.values - fit.value)[judged] / share[judged]))
    return max(level, _quantisation_std(series.values))


def _quantisation_std(values: np.ndarray) -> float:
    """Standard deviation of rounding, if all values are whole numbers of steps; zero if not."""
    changes = np.abs(np.diff(values))
    moving = changes[changes > 0.0]
    # a sensor that counts stands still at times; a command that is switched does too, but has few values
    if len(moving) == len(changes) or len(np.unique(values)) < MIN_DISTINCT_VALUES:
        return 0.0
    step = moving.min()
    counts = moving / step
    return float(step / np.sqrt(12.0)) if np.abs(counts - np.round(counts)).max() < INTEGER_TOLERANCE else 0.0
