"""Noise level of a measured series."""

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.data.derivative import centred_windows
from hybridsim.data.local_polynomial import local_fit
from hybridsim.data.series import Series

WINDOW, DEGREE = 9, 3
"""Cubic polynomials over nine samples follow the motion at any useful sampling rate, but hardly the noise."""
MIN_SAMPLES = 6
"""Minimum number of samples for an estimate."""
MIN_DISTINCT_VALUES = 10
"""Minimum number of distinct values of a quantized sensor; with fewer it may be a switched signal."""
INTEGER_TOLERANCE = 1e-3
"""Tolerance on integer multiples of the quantization step, as recorded values are rounded."""
MAD_TO_STD = 1.482602218505602
"""Standard deviation of Gaussian noise divided by its median absolute deviation."""


def noise_level(series: Series) -> float:
    """Standard deviation of the noise: median absolute deviation from local polynomials, scaled for Gaussian noise.

    Robust to outliers. Noise is assumed to be white, so it is underestimated for filtered signals. For quantized
    sensors such as encoders it is at least the quantization noise, even if they are mostly at rest, unless there are
    fewer than `MIN_DISTINCT_VALUES` distinct values; for a constant series it is zero.

    Raises:
        DataError: there are too few samples.
    """
    if len(series) < MIN_SAMPLES:
        message = f"series {series.name!r} has {len(series)} samples, too few to estimate its noise"
        raise DataError([Problem(message, "specify the noise", code="data.noise", element=series.name)])
    start, end = centred_windows(len(series), min(WINDOW, len(series)))
    fit = local_fit(series.t, series.values, start, end, DEGREE)
    # residuals at high leverage are smaller than the noise by this factor
    ratio = np.sqrt(np.maximum(1.0 - fit.leverage, 0.0))
    usable = ratio > 0.1  # at uneven times, some samples may have leverage near one
    if not usable.any():
        usable = ratio == ratio.max()
    level = MAD_TO_STD * float(np.median(np.abs(series.values - fit.value)[usable] / ratio[usable]))
    return max(level, _quantization_std(series.values))


def _quantization_std(values: np.ndarray) -> float:
    """Quantization noise if all changes are integer multiples of a step; else zero."""
    changes = np.abs(np.diff(values))
    nonzero = changes[changes > 0.0]
    # quantized readings sometimes repeat; so does a switched command, but it has few distinct values
    if len(nonzero) == len(changes) or len(np.unique(values)) < MIN_DISTINCT_VALUES:
        return 0.0
    step = nonzero.min()
    counts = nonzero / step
    return float(step / np.sqrt(12.0)) if np.abs(counts - np.round(counts)).max() < INTEGER_TOLERANCE else 0.0
