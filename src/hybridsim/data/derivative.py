"""Numerical derivatives of measured series, which may be sampled unevenly."""

from typing import Literal

import numpy as np
from jaxtyping import Int

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import pluralize
from hybridsim.data.local_polynomial import local_fit
from hybridsim.data.series import Series

DEGREE = 3
"""Degree of the polynomials: derivatives of cubic motions are exact."""


def derivative(series: Series, *, filter_window: int | float, order: Literal[1, 2] = 1) -> Series:
    """Time derivative from local cubic polynomials fitted to the samples in a window around each time.

    A longer window attenuates more noise, but also smooths out fast motion. Near the ends the window is shifted to
    lie within the series, so the estimate is noisier there. Windows extend across gaps: split the recording with
    `segments` first.

    Args:
        series: series to differentiate.
        filter_window: samples if an `int`, at least 4; if a `float`, the longest time from the first sample of a window
            to its last one [s].
        order: 1 or 2, the order of the derivative.

    Raises:
        DataError: a window holds fewer samples than a cubic polynomial needs.
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, not {order!r}")
    start, end = _windows(series, filter_window)
    fit = local_fit(series.t, series.values, start, end, DEGREE)
    prime = "'" * order
    lookahead = series.lookahead + float(np.max(series.t[end - 1] - series.t))
    return Series(
        f"{series.name}{prime}", series.t, fit.first_derivative if order == 1 else fit.second_derivative, lookahead
    )


def filter_window_text(window: int | float) -> str:
    """`9 samples` or `0.02 s`."""
    return pluralize(int(window), "sample") if isinstance(window, int | np.integer) else f"{window:g} s"


def centred_windows(count: int, samples: int) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """First and one-past-last sample of the windows centred on each of `count` samples."""
    start = np.clip(np.arange(count) - samples // 2, 0, count - samples)
    return start, start + samples


def _windows(series: Series, window: int | float) -> tuple[np.ndarray, np.ndarray]:
    count, text = len(series), filter_window_text(window)
    if isinstance(window, int | np.integer):
        if window <= DEGREE:
            fix = f"use at least {DEGREE + 1} samples; for seconds write {window}.0"
            raise DataError([_window_problem(series, f"a window of {text} is too short", fix)])
        if count < window:
            fix = "use a shorter window"
            raise DataError(
                [_window_problem(series, f"it has {pluralize(count, 'sample')}, but the window is {text}", fix)]
            )
        return centred_windows(count, window)
    t = series.t
    if not window > 0.0:
        raise DataError([_window_problem(series, f"a window of {text} is too short", "use a longer one")])
    # rounding of the time stamps must not decide whether a sample is inside
    half = window / 2 * (1.0 + 1e-9)
    centre = np.clip(t, t[0] + min(half, (t[-1] - t[0]) / 2), t[-1] - min(half, (t[-1] - t[0]) / 2))
    start = np.searchsorted(t, centre - half, side="left")
    end = np.searchsorted(t, centre + half, side="right")
    sparse = np.flatnonzero(end - start <= DEGREE)
    if len(sparse):
        k = sparse[0]
        samples = pluralize(int(end[k] - start[k]), "sample")
        typical = DEGREE * series.median_sample_interval
        fix = f"use a longer window; it needs {DEGREE + 1} samples, which typically span {typical:.3g} s"
        raise DataError([_window_problem(series, f"the window of {text} at {t[k]:.15g} s holds {samples}", fix)])
    return start, end


def _window_problem(series: Series, reason: str, fix: str) -> Problem:
    message = f"series {series.name!r} cannot be differentiated: {reason}"
    return Problem(message, fix, code="data.window", element=series.name)
