"""Time series of one measured quantity."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import DataError, Problem


@dataclass(frozen=True, eq=False)
class Series:
    """Samples of one quantity: strictly increasing time stamps and finite values, in read-only arrays."""

    name: str
    t: Float[np.ndarray, " n"]
    """Time stamps [s]."""
    values: Float[np.ndarray, " n"]
    """Samples, in SI units."""
    lookahead: float = 0.0
    """Latest time, relative to its time stamp, of the data that a sample depends on [s]: zero for measurements,
    positive for estimates from a window of samples."""

    def __post_init__(self):
        for field in ("t", "values"):
            array = np.asarray(getattr(self, field), dtype=float)
            if array.flags.writeable:
                array = array.copy()
                array.setflags(write=False)
            object.__setattr__(self, field, array)
        reason = ""
        if self.t.ndim != 1 or self.t.shape != self.values.shape:
            reason = f"needs one time stamp per value, but t has shape {self.t.shape}, values {self.values.shape}"
        elif len(self.t) < 2:
            reason = "needs at least 2 samples"
        elif not (np.isfinite(self.t).all() and np.isfinite(self.values).all()):
            reason = "has values or time stamps that are not finite"
        elif not (np.diff(self.t) > 0.0).all():
            reason = "needs strictly increasing time stamps"
        if reason:
            fix = "use Run.from_arrays or load_recording, which report the location"
            raise DataError([Problem(f"series {self.name!r} {reason}", fix, code="data.series", element=self.name)])

    def __len__(self) -> int:
        return len(self.t)

    @property
    def median_sample_interval(self) -> float:
        """Median time between consecutive samples [s]."""
        return float(np.median(np.diff(self.t)))
