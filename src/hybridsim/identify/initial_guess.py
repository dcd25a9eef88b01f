"""Initial guesses of the initial states of windows, from measurements near the beginning of each window.

Measured coordinates and velocities are values and rates of local cubic fits to their channels. Coordinates that
no channel measures are initialized at the model's home configuration, at rest, and are reported.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.data.derivative import centred_windows
from hybridsim.data.local_polynomial import local_fit
from hybridsim.data.run import Run
from hybridsim.data.series import Series
from hybridsim.identify.initial_state_layout import InitialStateLayout
from hybridsim.identify.windows import Windows
from hybridsim.sim.sensors import Sensors

DEGREE = 3
MIN_SAMPLES = 9
"""Minimum number of samples of a local fit."""


class InitialGuess(NamedTuple):
    """Initial guess of the initial states of windows."""

    q: Float[np.ndarray, "W nq"]
    qd: Float[np.ndarray, "W nv"]
    unmeasured: tuple[str, ...]
    """Coordinates that no channel depends on."""


def initial_guess(
    state_layout: InitialStateLayout,
    sensors: Sensors,
    recordings: Sequence[Run],
    windows: Windows,
    *,
    span: float = 0.02,
    smooth: bool = True,
) -> InitialGuess:
    """Initial guess of the initial states of windows, from the channels that measure coordinates and velocities.

    Args:
        state_layout: conversion of the model's states to deltas.
        sensors: sensors of the channels.
        recordings: recordings that the windows are cut from.
        windows: windows to initialize.
        span: time span of a local fit [s]; extended if it contains fewer than `MIN_SAMPLES` samples.
        smooth: smooth the values; rates are always taken from local fits.
    """
    model = state_layout.model
    home = np.tile(np.asarray(model.home, dtype=float), (windows.count, 1))
    position, velocity = (
        _LinearSystem(name, sensors, recordings, windows, span, smooth) for name in ("joint.q", "joint.qd")
    )
    q, is_measured = position.solve(home, rate=False)
    rate, _ = position.solve(np.zeros_like(home), rate=True)
    q = state_layout.normalize(q)
    qd, _ = velocity.solve(state_layout.velocities(q, rate), rate=False)
    names = model.topology.coordinate_names
    unmeasured = tuple(name for name, measured in zip(names, is_measured, strict=True) if not measured)
    return InitialGuess(q, qd, unmeasured)


class _LinearSystem:
    """Linear equations of the channels that measure coordinates (or velocities), or sums of them."""

    def __init__(self, quantity: str, sensors: Sensors, recordings, windows: Windows, span: float, smooth: bool):
        self.rows: list[dict[int, float]] = []
        self.values: list[np.ndarray] = []
        self.rates: list[np.ndarray] = []
        for k, terms in enumerate(sensors.terms):
            if any(term.quantity != quantity for term in terms):
                continue
            gain, bias, delay = (float(x[k]) for x in (sensors.gain, sensors.bias, sensors.delay))
            value, rate = _initial_readings(sensors.names[k], recordings, windows, delay, span, smooth)
            self.rows.append({term.entry: term.sign for term in terms})
            self.values.append((value - bias) / gain)
            self.rates.append(rate / gain)

    def solve(self, default: Float[np.ndarray, "W n"], *, rate: bool) -> tuple[np.ndarray, np.ndarray]:
        """Least-squares solution closest to `default`, and which entries the channels depend on.

        Args:
            default: values of entries that are not measured.
            rate: solve for rates instead of values.
        """
        if not self.rows:
            return default, np.zeros(default.shape[1], dtype=bool)
        matrix = np.zeros((len(self.rows), default.shape[1]))
        for row, terms in enumerate(self.rows):
            matrix[row, list(terms)] = list(terms.values())
        measured = np.stack(self.rates if rate else self.values, axis=1)
        correction = np.linalg.lstsq(matrix, (measured - default @ matrix.T).T, rcond=None)[0]
        return default + correction.T, np.asarray(np.abs(matrix).any(axis=0))


def _initial_readings(
    name: str, recordings: Sequence[Run], windows: Windows, delay: float, span: float, smooth: bool
) -> tuple[Float[np.ndarray, " W"], Float[np.ndarray, " W"]]:
    """Value and rate of a channel at the beginning of every window."""
    value, rate = np.zeros(windows.count), np.zeros(windows.count)
    for recording in np.unique(windows.recording):
        series = recordings[recording].series[name]
        index = np.flatnonzero(windows.recording == recording)
        times = np.clip(windows.start[index] + delay, series.t[0], series.t[-1])
        value[index], rate[index] = _local_fit_at(series, times, span)
        if not smooth:
            value[index] = np.interp(times, series.t, series.values)
    return value, rate


def _local_fit_at(
    series: Series, times: Float[np.ndarray, " k"], span: float
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Value and rate at some times: Hermite cubics between samples, from local polynomial fits at the samples."""
    count = len(series)
    samples = min(max(MIN_SAMPLES, round(span / series.median_sample_interval) + 1), count)
    start, end = centred_windows(count, samples)
    before = np.clip(np.searchsorted(series.t, times, side="right") - 1, 0, count - 2)
    # local fits only at the two samples next to each time
    indices = np.concatenate([before, before + 1])
    fit = local_fit(series.t, series.values, start[indices], end[indices], min(DEGREE, samples - 1), indices=indices)
    (left, right), (left_rate, right_rate) = fit.value.reshape(2, -1), fit.first_derivative.reshape(2, -1)
    h = series.t[before + 1] - series.t[before]
    s = (times - series.t[before]) / h
    value = (1.0 + 2.0 * s) * (1.0 - s) ** 2 * left + s**2 * (3.0 - 2.0 * s) * right
    value += h * s * (1.0 - s) * ((1.0 - s) * left_rate - s * right_rate)
    rate = (
        6.0 * s * (1.0 - s) * (right - left) / h
        + (1.0 - s) * (1.0 - 3.0 * s) * left_rate
        + s * (3.0 * s - 2.0) * right_rate
    )
    return value, rate
