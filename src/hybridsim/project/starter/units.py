"""Units of columns, guessed from their values where their names do not specify one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hybridsim.data.units import UNITS

Runs = Sequence[Float[np.ndarray, " n"]]
"""Samples of a column by run."""

MAX_REVOLUTIONS = 3.0
"""Revolutions beyond which values are assumed to be degrees, not radians."""
WRAP_RANGE = (0.9, 1.1)
"""Range of jumps that are attributed to wrapping [full turns]."""
MAX_SAMPLE_INTERVAL = {"s": 1.0, "ms": 500.0, "us": 3e5, "ns": np.inf}
"""Largest median difference of time stamps at which a unit is assumed; units are tried in this order."""
VELOCITY_TOLERANCE = 0.2
"""Relative tolerance for comparing a measured velocity with the derivative of the position."""


@dataclass(frozen=True)
class Guess:
    """A unit and the reason for guessing it.

    The reason is empty if the name specifies the unit or the default is assumed.
    """

    unit: str
    reason: str = ""


def time_unit(unit: str, times: Runs) -> Guess:
    """Unit of a time column."""
    if unit:
        return Guess(unit)
    interval = _median_magnitude([np.diff(t) for t in times])
    name = next(name for name, limit in MAX_SAMPLE_INTERVAL.items() if interval <= limit)
    return Guess(name, "" if name == "s" else f"the median sample interval is {interval:.4g}")


def position_unit(unit: str, values: Runs, *, prismatic: bool, limits: tuple[float, float]) -> Guess:
    """Unit of a position, from its name or else from its range.

    Args:
        unit: unit in the name, if any.
        values: values of the column.
        prismatic: whether the joint is prismatic.
        limits: joint limits [rad or m]; infinite where there are none.
    """
    if unit:
        return Guess(unit)
    peak = max(float(np.max(np.abs(run), initial=0.0, where=np.isfinite(run))) for run in values)
    limit = max(abs(limits[0]), abs(limits[1]))
    default, alternative = ("m", "mm") if prismatic else ("rad", "deg")
    # far beyond the limits in one unit and within them in the other
    if np.isfinite(limit) and peak > 2.0 * limit and peak * UNITS[alternative].factor <= 1.1 * limit:
        return Guess(alternative, f"its maximum is {peak:.4g}, and the joint limit is {limit:.4g} {default}")
    if not prismatic and not np.isfinite(limit) and peak > MAX_REVOLUTIONS * 2 * np.pi:
        return Guess(alternative, f"its maximum is {peak:.4g}")
    return Guess(default)


def velocity_unit(unit: str, values: Runs, position: tuple[str, Runs, Runs] | None, *, prismatic: bool) -> Guess:
    """Unit of a velocity, from its name or else by comparison with the derivative of the position, if available.

    Args:
        unit: unit in the name, if any.
        values: values of the column.
        position: unit, values and times [s] of the position of the same joint.
        prismatic: whether the joint is prismatic.
    """
    default = "m/s" if prismatic else "rad/s"
    if unit or position is None:
        return Guess(unit or default)
    position_unit, positions, times = position
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = [np.diff(x) / np.diff(t) for x, t in zip(positions, times, strict=True)]
    rate, speed = _median_magnitude(rates) * UNITS[position_unit].factor, _median_magnitude(values)
    if rate == 0.0:
        return Guess(default)
    for candidate in ("m/s", "mm/s") if prismatic else ("rad/s", "deg/s", "rpm", "rev/s"):
        if abs(speed * UNITS[candidate].factor / rate - 1.0) < VELOCITY_TOLERANCE:
            reason = f"in {candidate}, it agrees with the derivative of the position"
            return Guess(candidate, "" if candidate == default else reason)
    return Guess(default)


def _median_magnitude(runs: Runs) -> float:
    """Median of the magnitudes of all finite values, which is robust against jumps of wrapped angles."""
    values = np.concatenate(list(runs))
    values = np.abs(values[np.isfinite(values)])
    return float(np.median(values)) if len(values) else 0.0


def has_wraps(unit: str, values: Runs) -> bool:
    """Whether an angle jumps by full turns."""
    turn = UNITS[unit].period
    if not turn:
        return False
    jumps = [np.abs(np.diff(run)) / turn for run in values]
    return any(bool(((jump > WRAP_RANGE[0]) & (jump < WRAP_RANGE[1])).any()) for jump in jumps)
