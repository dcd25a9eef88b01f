"""Samples of simulated readings: at the time stamps of the measurements, later by the sensors' delays."""

from functools import cached_property

import numpy as np
from jaxtyping import Float

from hybridsim.identify.interpolate import Stencil, cubic, stencil
from hybridsim.identify.windows import Windows

Array = np.ndarray


class Sampling:
    """Picks samples out of the readings of windows."""

    def __init__(self, windows: Windows, delay: Float[Array, " m"], *, delay_is_free: bool):
        """Prepare.

        Args:
            windows: whose samples are wanted.
            delay: of each sensor, in time steps.
            delay_is_free: will other delays be asked for?
        """
        self.windows, self.delay_is_free = windows, delay_is_free
        position = windows.position - np.where(windows.weight > 0.0, delay[windows.channel], 0.0)
        whole = not delay_is_free and np.all(np.abs(position - np.round(position)) < 1e-6)
        last = np.round(position).max() if whole else np.ceil(windows.position.max())
        self.rows = int(last) + 1
        """Rows of readings that are needed; a row is made before each step."""
        self._fixed = None if delay_is_free else stencil(np.clip(position, 0.0, self.rows - 1), self.rows)

    @cached_property
    def _all_from(self) -> int | None:
        """The row from which on the samples of every window are all readings, in their order; none if they are not."""
        w, found = self.windows, self._fixed
        if found is None or found.weights.shape[-1] > 1 or not (w.weight > 0.0).all():
            return None
        channels = w.channel.max() + 1
        row = self.rows - w.channel.shape[1] // channels
        wanted = np.arange(row * channels, self.rows * channels)
        same = w.channel.shape[1] == len(wanted) and bool(np.all(found.first * channels + w.channel == wanted))
        return row if same else None

    def picked(self, readings: Float[Array, "b *d rows m"], which: Array) -> Float[Array, "b *d M"]:
        """Samples of the readings, or of derivatives of readings, of some windows.

        Args:
            readings: of at least as many rows as are needed, with as many columns as there are sensors.
            which: the windows.
        """
        assert self._fixed is not None, "with free delays, ask for the samples at a delay"
        if self._all_from is not None and readings.shape[-2] == self.rows:
            return readings[..., self._all_from :, :].reshape(*readings.shape[:-2], -1)
        found = Stencil(*(x[which] for x in self._fixed))
        return _weighted(readings, found.first, found.weights, self.windows.channel[which])

    def delayed(
        self, readings: Float[Array, "b *d rows m"], which: Array, delay: Float[Array, "b m"]
    ) -> tuple[Float[Array, "b *d M"], Float[Array, "b *d M"]]:
        """Samples at delays [steps], and their change per time step of more delay."""
        w = self.windows
        late = np.take_along_axis(delay, w.channel[which], axis=1)
        position = np.clip(w.position[which] - late, 0.0, readings.shape[-2] - 1.0)
        found = cubic(position, readings.shape[-2])
        channel = w.channel[which]
        value = _weighted(readings, found.first, found.weights, channel)
        return value, -_weighted(readings, found.first, found.slopes, channel)

    def spread(self, cotangents: Float[Array, "b M"], which: Array, rows: int, width: int) -> Float[Array, "b r m"]:
        """Cotangents of readings from those of samples: the transpose of picking them."""
        assert self._fixed is not None
        result = np.zeros((len(cotangents), rows, width))
        lane = np.arange(len(cotangents))[:, None]
        found = Stencil(*(x[which] for x in self._fixed))
        for k in range(found.weights.shape[-1]):
            np.add.at(result, (lane, found.first + k, self.windows.channel[which]), found.weights[..., k] * cotangents)
        return result


def _weighted(readings: Array, first: Array, weights: Array, channel: Array) -> Array:
    """Σ weights[k] · readings[first + k] of each sample's channel."""
    lane = np.arange(len(readings))[:, None]
    moved = readings if readings.ndim == 3 else np.moveaxis(readings, 1, -1)  # directions last
    total = None
    for k in range(weights.shape[-1]):
        part = moved[lane, first + k, channel]
        weight = weights[..., k] if moved.ndim == 3 else weights[..., k, None]
        if weights.shape[-1] > 1:
            part = weight * part
        total = part if total is None else total + part
    assert total is not None
    return total if readings.ndim == 3 else np.moveaxis(total, -1, 1)
