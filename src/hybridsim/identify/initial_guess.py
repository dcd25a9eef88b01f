"""First guesses of where windows start, from what was measured around their starts.

Channels that measure coordinates or velocities tell them directly: a cubic through the samples around the start gives
value and rate of change. What no channel measures is taken from the model's home configuration, at rest, and named.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.data.derivative import centred_windows
from hybridsim.data.local_polynomial import local_fit
from hybridsim.data.recording import Recording
from hybridsim.data.series import Series
from hybridsim.identify.initial_states import InitialStates
from hybridsim.identify.windows import Windows
from hybridsim.sim.sensors import Sensors

DEGREE = 3
SAMPLES = 9
"""Samples that are smoothed over, at least."""


class InitialGuess(NamedTuple):
    """States at the starts of windows."""

    q: Float[np.ndarray, "W nq"]
    qd: Float[np.ndarray, "W nv"]
    unseen: tuple[str, ...]
    """Coordinates of which no channel tells anything."""


def initial_guess(
    starts: InitialStates,
    sensors: Sensors,
    recordings: Sequence[Recording],
    windows: Windows,
    *,
    span: float = 0.02,
    smooth: bool = True,
) -> InitialGuess:
    """States at the starts of windows, as far as channels measure coordinates and velocities.

    Args:
        starts: of the model.
        sensors: what the channels measure.
        recordings: that the windows are pieces of.
        windows: whose starts are wanted.
        span: time over which samples are smoothed [s], if that is more than a few of them.
        smooth: are values smoothed, or taken as they were measured? Rates of change always are.
    """
    model = starts.model
    home = np.tile(np.asarray(model.home, dtype=float), (windows.count, 1))
    read = {name: _Read(name, sensors, recordings, windows, span, smooth) for name in ("joint.q", "joint.qd")}
    q, seen_q = read["joint.q"].solved(home, rate=False)
    rate, _ = read["joint.q"].solved(np.zeros_like(home), rate=True)
    q = starts.normalized(q)
    qd, _ = read["joint.qd"].solved(starts.velocities(q, rate), rate=False)
    unseen = tuple(name for name, seen in zip(model.topology.coordinate_names, seen_q, strict=True) if not seen)
    return InitialGuess(q, qd, unseen)


class _Read:
    """Channels that measure coordinates, or velocities, or sums of them."""

    def __init__(self, quantity: str, sensors: Sensors, recordings, windows: Windows, span: float, smooth: bool):
        self.rows: list[dict[int, float]] = []
        self.values: list[np.ndarray] = []
        self.rates: list[np.ndarray] = []
        for k, channel in enumerate(sensors.terms):
            if any(place.quantity != quantity for place in channel):
                continue
            gain, bias, delay = (float(x[k]) for x in (sensors.gain, sensors.bias, sensors.delay))
            value, rate = _around(sensors.names[k], recordings, windows, delay, span, smooth)
            self.rows.append({place.entry: place.sign for place in channel})
            self.values.append((value - bias) / gain)
            self.rates.append(rate / gain)

    def solved(self, otherwise: Float[np.ndarray, "W n"], *, rate: bool) -> tuple[np.ndarray, np.ndarray]:
        """Entries that fit the channels, the others as they would be otherwise, and which were seen."""
        seen = np.zeros(otherwise.shape[1], dtype=bool)
        if not self.rows:
            return otherwise, seen
        matrix = np.zeros((len(self.rows), otherwise.shape[1]))
        for row, terms in enumerate(self.rows):
            matrix[row, list(terms)] = list(terms.values())
        told = np.stack(self.rates if rate else self.values, axis=1)
        change = np.linalg.lstsq(matrix, (told - otherwise @ matrix.T).T, rcond=None)[0]
        return otherwise + change.T, np.asarray(np.abs(matrix).any(axis=0))


def _around(
    name: str, recordings: Sequence[Recording], windows: Windows, delay: float, span: float, smooth: bool
) -> tuple[Float[np.ndarray, " W"], Float[np.ndarray, " W"]]:
    """Value and rate of change of a channel at the start of every window."""
    value, slope = np.zeros(windows.count), np.zeros(windows.count)
    for run in np.unique(windows.run):
        series = recordings[run].series[name]
        which = np.flatnonzero(windows.run == run)
        at = np.clip(windows.start[which] + delay, series.t[0], series.t[-1])
        value[which], slope[which] = _smoothed(series, at, span)
        if not smooth:
            value[which] = np.interp(at, series.t, series.values)
    return value, slope


def _smoothed(
    series: Series, at: Float[np.ndarray, " k"], span: float
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Value and slope at some times: cubics between samples, from polynomials through the samples around each."""
    count = len(series)
    samples = min(max(SAMPLES, round(span / series.median_step) + 1), count)
    start, end = centred_windows(count, samples)
    before = np.clip(np.searchsorted(series.t, at, side="right") - 1, 0, count - 2)
    # of a long recording, only the samples beside the starts of windows are needed
    needed = np.concatenate([before, before + 1])
    fit = local_fit(series.t, series.values, start[needed], end[needed], min(DEGREE, samples - 1), at=needed)
    (left, right), (rate, next_rate) = fit.value.reshape(2, -1), fit.first.reshape(2, -1)
    h = series.t[before + 1] - series.t[before]
    s = (at - series.t[before]) / h
    value = (1.0 + 2.0 * s) * (1.0 - s) ** 2 * left + s**2 * (3.0 - 2.0 * s) * right
    value += h * s * (1.0 - s) * ((1.0 - s) * rate - s * next_rate)
    slope = (
        6.0 * s * (1.0 - s) * (right - left) / h + (1.0 - s) * (1.0 - 3.0 * s) * rate + s * (3.0 * s - 2.0) * next_rate
    )
    return value, slope
