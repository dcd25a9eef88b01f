"""One measured quantity over time."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import DataError, Problem


@dataclass(frozen=True, eq=False)
class Series:
    """Samples of one quantity. Times increase strictly, all numbers are finite; the arrays cannot be written to."""

    name: str
    t: Float[np.ndarray, " n"]
    """Times [s]."""
    values: Float[np.ndarray, " n"]
    """Samples, in SI units."""
    reach: float = 0.0
    """How much later than itself a sample knows something of [s]: zero for what was measured, not for estimates."""

    def __post_init__(self):
        for field in ("t", "values"):
            array = np.asarray(getattr(self, field), dtype=float)
            if array.flags.writeable:
                array = array.copy()
                array.setflags(write=False)
            object.__setattr__(self, field, array)
        reason = ""
        if self.t.ndim != 1 or self.t.shape != self.values.shape:
            reason = f"needs as many times as values, not arrays of shape {self.t.shape} and {self.values.shape}"
        elif len(self.t) < 2:
            reason = "needs at least 2 samples"
        elif not (np.isfinite(self.t).all() and np.isfinite(self.values).all()):
            reason = "has numbers that are not finite"
        elif not (np.diff(self.t) > 0.0).all():
            reason = "needs times that increase"
        if reason:
            fix = "Recording.from_arrays and load_recording say where"
            raise DataError([Problem(f"series {self.name!r} {reason}", fix, code="data.series", element=self.name)])

    def __len__(self) -> int:
        return len(self.t)

    @property
    def median_step(self) -> float:
        """The usual time between samples [s]."""
        return float(np.median(np.diff(self.t)))
