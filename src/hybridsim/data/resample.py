"""Values of a series at other times."""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import DataError, Problem
from hybridsim.data.series import Series

Interpolation = Literal["linear", "hold", "cubic"]
"""Straight lines between samples; the last sample, as a command is held; or a smooth curve, of cubic polynomials."""
TIME_TOLERANCE = 1e-6
"""Times may be outside by this part of a step: sums of steps do not end exactly on the last sample."""


def resample(series: Series, t, kind: Interpolation = "linear") -> Float[np.ndarray, " m"]:
    """Values of a series at the times `t` [s], which must lie within it.

    Args:
        series: what was measured.
        t: times, in any order.
        kind: how to get from sample to sample.

    Raises:
        DataError: a time lies before the first sample or after the last one.
    """
    if kind not in get_args(Interpolation):
        raise ValueError(f"kind is one of {', '.join(get_args(Interpolation))}, not {kind!r}")
    times = np.asarray(t, dtype=float)
    first, last = series.t[0], series.t[-1]
    slack = TIME_TOLERANCE * series.median_step
    # written so that NaN is outside, too
    outside = ~((times >= first - slack) & (times <= last + slack))
    if outside.any():
        message = f"series {series.name!r} goes from {first:.15g} to {last:.15g} s, not to {times[outside][0]:.15g} s"
        raise DataError([Problem(message, "ask for times within it", code="data.range", element=series.name)])
    times = np.clip(times, first, last)
    if kind == "linear":
        return np.interp(times, series.t, series.values)
    if kind == "hold":
        return series.values[np.searchsorted(series.t, times, side="right") - 1]
    from scipy.interpolate import CubicSpline  # takes a while to load

    return CubicSpline(series.t, series.values)(times)
