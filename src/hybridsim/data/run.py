"""A run: the measurements of a recording by channel, in SI units, each channel with its own time stamps."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.data.series import Series


@dataclass(frozen=True, eq=False)
class Run:
    """Measured time series of one run."""

    name: str
    series: Mapping[str, Series]
    """Series by channel name; their time stamps may differ."""
    sources: tuple[tuple[str, str], ...] = ()
    """Source files, each with the SHA-256 of its bytes."""
    problems: tuple[Problem, ...] = ()
    """Warnings and notes about the data; errors are raised instead."""
    segment_of: str = ""
    """Name of the run that this one is a segment of; empty for a whole run."""

    @property
    def run_name(self) -> str:
        """Name of the whole run, also for a segment of it."""
        return self.segment_of or self.name

    def has_name(self, pattern: str) -> bool:
        """Whether a pattern matches the name of the run, or its name without the indices of run and segment."""
        whole = re.sub(r"(\[\d+\])?(\.\d+)?$", "", self.name)
        # brackets in names of runs are not wildcards
        escaped = pattern.replace("[", "[[]")
        return fnmatchcase(self.name, escaped) or fnmatchcase(whole, escaped)

    @classmethod
    def from_arrays(
        cls,
        name: str,
        t,
        channels: Mapping[str, np.ndarray],
        *,
        on_nan: Literal["error", "drop"] = "error",
        on_out_of_order: Literal["error", "drop"] = "error",
    ) -> "Run":
        """Run of arrays in memory, in SI units, with the same checks as for a file.

        Args:
            name: name of the run.
            t: time stamps of the samples [s].
            channels: samples by channel name.
            on_nan: see `load_recordings`.
            on_out_of_order: see `load_recordings`.

        Raises:
            DataError: the arrays cannot be used; carries every error.
        """
        # circular: assemble needs this class
        from hybridsim.data.assemble import run_from_arrays

        return run_from_arrays(name, t, channels, on_nan, on_out_of_order)

    @property
    def start(self) -> float:
        """First time that all series cover [s]."""
        return max(float(series.t[0]) for series in self.series.values())

    @property
    def end(self) -> float:
        """Last time that all series cover [s]."""
        return min(float(series.t[-1]) for series in self.series.values())

    def slice(self, start: float, end: float) -> "Run":
        """Samples from `start` to `end` [s], both inclusive.

        Raises:
            DataError: a series has fewer than 2 samples in this interval.
        """
        slices, too_short = {}, []
        for name, series in self.series.items():
            first, last = np.searchsorted(series.t, start, side="left"), np.searchsorted(series.t, end, side="right")
            if last - first < 2:
                too_short.append(name)
            else:
                slices[name] = replace(series, t=series.t[first:last], values=series.values[first:last])
        if too_short:
            files = ", ".join(Path(file).name for file, _ in self.sources)
            origin = f"{self.name!r}" + (f" ({files})" if files else "")
            raise DataError(
                Problem(
                    f"series {name!r} of {origin} has fewer than 2 samples between {start:.15g} and {end:.15g} s",
                    f"it was recorded from {self.series[name].t[0]:.15g} to {self.series[name].t[-1]:.15g} s",
                    code="data.empty",
                    element=name,
                )
                for name in too_short
            )
        return replace(self, series=slices)
