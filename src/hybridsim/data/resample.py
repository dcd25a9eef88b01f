"""Interpolation of a series."""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import DataError, Problem
from hybridsim.data.series import Series

Interpolation = Literal["linear", "hold", "cubic"]
"""Linear interpolation; zero-order hold, as for commands; or a cubic spline."""
TIME_TOLERANCE = 1e-6
"""Tolerance outside the series, as a fraction of the median sample interval: accumulated times are subject to
rounding."""


def resample(series: Series, t, kind: Interpolation = "linear") -> Float[np.ndarray, " m"]:
    """Values of a series at times `t`, which must lie within it.

    Args:
        series: series to interpolate.
        t: times [s], in any order.
        kind: interpolation.

    Raises:
        DataError: a time lies before the first sample or after the last one.
    """
    if kind not in get_args(Interpolation):
        raise ValueError(f"kind must be one of {', '.join(get_args(Interpolation))}, not {kind!r}")
    times = np.asarray(t, dtype=float)
    first, last = series.t[0], series.t[-1]
    slack = TIME_TOLERANCE * series.median_sample_interval
    # negated so that NaN counts as outside
    outside = ~((times >= first - slack) & (times <= last + slack))
    if outside.any():
        message = (
            f"series {series.name!r} extends from {first:.15g} to {last:.15g} s and does not contain "
            f"{times[outside][0]:.15g} s"
        )
        raise DataError([Problem(message, "use times within this interval", code="data.range", element=series.name)])
    times = np.clip(times, first, last)
    if kind == "linear":
        return np.interp(times, series.t, series.values)
    if kind == "hold":
        return series.values[np.searchsorted(series.t, times, side="right") - 1]
    from scipy.interpolate import CubicSpline  # slow to import

    return CubicSpline(series.t, series.values)(times)
