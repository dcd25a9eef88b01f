"""A recording: what was measured in one run, each quantity with its own time stamps."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.data.series import Series


@dataclass(frozen=True, eq=False)
class Recording:
    """Measured series of one run."""

    name: str
    series: Mapping[str, Series]
    """By name. They need not be sampled at the same times."""
    sources: tuple[tuple[str, str], ...] = ()
    """Files that they come from, each with the SHA-256 of its bytes."""
    problems: tuple[Problem, ...] = ()
    """Doubts and notes about the data; errors are raised instead."""
    piece_of: str = ""
    """Name of the run that it is a piece of, if it was cut out of one."""

    @property
    def run(self) -> str:
        """Name of the run as it was recorded."""
        return self.piece_of or self.name

    @classmethod
    def from_arrays(
        cls,
        name: str,
        t,
        channels: Mapping[str, np.ndarray],
        *,
        on_nan: Literal["error", "drop"] = "error",
        on_disorder: Literal["error", "drop"] = "error",
    ) -> "Recording":
        """A recording of arrays in memory, in SI units, checked like a file.

        Args:
            name: of the recording.
            t: times of the samples [s].
            channels: samples by name.
            on_nan: see `load_recording`.
            on_disorder: see `load_recording`.

        Raises:
            DataError: the arrays cannot be used; carries every problem found.
        """
        # assembling makes recordings, so it cannot be loaded before this class is there
        from hybridsim.data.assemble import recording_of_arrays

        return recording_of_arrays(name, t, channels, on_nan, on_disorder)

    @property
    def start(self) -> float:
        """Time from which every series has samples [s]."""
        return max(float(one.t[0]) for one in self.series.values())

    @property
    def end(self) -> float:
        """Time up to which every series has samples [s]."""
        return min(float(one.t[-1]) for one in self.series.values())

    def between(self, start: float, end: float) -> "Recording":
        """The part from `start` to `end` [s], both included.

        Raises:
            DataError: a series has fewer than 2 samples there.
        """
        parts, short = {}, []
        for name, one in self.series.items():
            first, last = np.searchsorted(one.t, start, side="left"), np.searchsorted(one.t, end, side="right")
            if last - first < 2:
                short.append(name)
            else:
                parts[name] = replace(one, t=one.t[first:last], values=one.values[first:last])
        if short:
            raise DataError(
                Problem(
                    f"series {name!r} of {self.name!r} has fewer than 2 samples between {start:.15g} and {end:.15g} s",
                    f"it goes from {self.series[name].t[0]:.15g} to {self.series[name].t[-1]:.15g} s",
                    code="data.empty",
                    element=name,
                )
                for name in short
            )
        return replace(self, series=parts)
