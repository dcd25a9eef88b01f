"""Sampling of simulated readings at the time stamps of the measurements, shifted by the sensor delays."""

from functools import cached_property

import numpy as np
from jaxtyping import Float

from hybridsim.identify.interpolate import Stencil, cubic_stencil, stencil
from hybridsim.identify.windows import Windows

Array = np.ndarray


class Sampling:
    """Sampling of the readings of windows."""

    def __init__(self, windows: Windows, delay: Float[Array, " m"], *, has_free_delay: bool):
        """Precompute stencils if the delays are fixed.

        Args:
            windows: windows whose samples are simulated.
            delay: delay of each sensor, in time steps.
            has_free_delay: whether delays are free, so that every call specifies them.
        """
        self.windows, self.has_free_delay = windows, has_free_delay
        times = windows.time_in_steps - np.where(windows.weight > 0.0, delay[windows.channel], 0.0)
        is_integer = not has_free_delay and np.all(np.abs(times - np.round(times)) < 1e-6)
        last = np.round(times).max() if is_integer else np.ceil(windows.time_in_steps.max())
        self.reading_rows = int(last) + 1
        """Number of rows of readings that the samples require; sensors are read once before each step."""
        clipped = np.clip(times, 0.0, self.reading_rows - 1)
        self._stencil = None if has_free_delay else stencil(clipped, self.reading_rows)

    @cached_property
    def _first_dense_row(self) -> int | None:
        """First row from which the samples of every window equal all readings in row-major order, if there is one."""
        w, fixed = self.windows, self._stencil
        if fixed is None or fixed.weights.shape[-1] > 1 or not (w.weight > 0.0).all():
            return None
        channels = w.channel.max() + 1
        row = self.reading_rows - w.channel.shape[1] // channels
        expected = np.arange(row * channels, self.reading_rows * channels)
        same = w.channel.shape[1] == len(expected) and bool(np.all(fixed.first * channels + w.channel == expected))
        return row if same else None

    def sample(self, readings: Float[Array, "b *d rows m"], index: Array) -> Float[Array, "b *d M"]:
        """Sample the readings, or tangents of the readings, of some windows.

        Args:
            readings: at least `reading_rows` rows, with one column per sensor.
            index: indices of the windows.
        """
        assert self._stencil is not None, "free delays require sample_delayed"
        if self._first_dense_row is not None and readings.shape[-2] == self.reading_rows:
            return readings[..., self._first_dense_row :, :].reshape(*readings.shape[:-2], -1)
        selected = Stencil(*(x[index] for x in self._stencil))
        return _weighted_sum(readings, selected.first, selected.weights, self.windows.channel[index])

    def sample_delayed(
        self, readings: Float[Array, "b *d rows m"], index: Array, delay: Float[Array, "b m"]
    ) -> tuple[Float[Array, "b *d M"], Float[Array, "b *d M"]]:
        """Sample the readings at the given delays [steps]; also returns the derivative with respect to the delay."""
        w = self.windows
        sample_delay = np.take_along_axis(delay, w.channel[index], axis=1)
        times = np.clip(w.time_in_steps[index] - sample_delay, 0.0, readings.shape[-2] - 1.0)
        selected = cubic_stencil(times, readings.shape[-2])
        channel = w.channel[index]
        value = _weighted_sum(readings, selected.first, selected.weights, channel)
        return value, -_weighted_sum(readings, selected.first, selected.slopes, channel)

    def scatter(self, cotangents: Float[Array, "b M"], index: Array, rows: int, width: int) -> Float[Array, "b r m"]:
        """Scatter cotangents of samples to cotangents of readings: the transpose of `sample`."""
        assert self._stencil is not None
        result = np.zeros((len(cotangents), rows, width))
        lane = np.arange(len(cotangents))[:, None]
        selected = Stencil(*(x[index] for x in self._stencil))
        channel = self.windows.channel[index]
        for k in range(selected.weights.shape[-1]):
            np.add.at(result, (lane, selected.first + k, channel), selected.weights[..., k] * cotangents)
        return result


def _weighted_sum(readings: Array, first: Array, weights: Array, channel: Array) -> Array:
    """Σ weights[k] · readings[first + k] of each sample's channel."""
    lane = np.arange(len(readings))[:, None]
    directions_last = readings if readings.ndim == 3 else np.moveaxis(readings, 1, -1)
    total = None
    for k in range(weights.shape[-1]):
        term = directions_last[lane, first + k, channel]
        weight = weights[..., k] if directions_last.ndim == 3 else weights[..., k, None]
        if weights.shape[-1] > 1:
            term = weight * term
        total = term if total is None else total + term
    assert total is not None
    return total if readings.ndim == 3 else np.moveaxis(total, -1, 1)
