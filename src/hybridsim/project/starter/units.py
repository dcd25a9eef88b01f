"""Units of columns, guessed from their numbers where their names do not tell."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hybridsim.data.units import UNITS

Runs = Sequence[Float[np.ndarray, " n"]]
"""Samples of a column, run by run."""

MANY_TURNS = 3.0
"""Turns in radians beyond which numbers are taken for degrees."""
WRAP = (0.9, 1.1)
"""Jumps between these parts of a full turn are those of an angle that starts again."""
MOST_STEPS = {"s": 1.0, "ms": 500.0, "us": 3e5, "ns": np.inf}
"""Largest usual step of a time column in each unit: nobody records joints at less than a few samples per second."""
AGREEMENT = 0.2
"""Relative difference up to which a measured velocity has the size of the rate of change of the position."""


@dataclass(frozen=True)
class Guess:
    """A unit, and what it was guessed from; empty where the name says it."""

    unit: str
    reason: str = ""


def time_unit(unit: str, times: Runs) -> Guess:
    """Unit of a time column."""
    if unit:
        return Guess(unit)
    step = _median([np.diff(t) for t in times])
    found = next(name for name, most in MOST_STEPS.items() if step <= most)
    return Guess(found, "" if found == "s" else f"a usual step is {step:.4g}")


def position_unit(unit: str, values: Runs, *, sliding: bool, limits: tuple[float, float]) -> Guess:
    """Unit of a position: what its name says, or else what its range suggests.

    Args:
        unit: from the name.
        values: numbers of the column.
        sliding: whether the joint slides.
        limits: of the joint [rad or m]; infinite where there are none.
    """
    if unit:
        return Guess(unit)
    most = max(float(np.max(np.abs(run), initial=0.0, where=np.isfinite(run))) for run in values)
    largest = max(abs(limits[0]), abs(limits[1]))
    usual, other = ("m", "mm") if sliding else ("rad", "deg")
    # far beyond the stops in one unit and well within them in the other
    if np.isfinite(largest) and most > 2.0 * largest and most * UNITS[other].factor <= 1.1 * largest:
        return Guess(other, f"it reaches {most:.4g}, and the joint only {largest:.4g} {usual}")
    if not sliding and not np.isfinite(largest) and most > MANY_TURNS * 2 * np.pi:
        return Guess(other, f"it reaches {most:.4g}")
    return Guess(usual)


def velocity_unit(unit: str, values: Runs, position: tuple[str, Runs, Runs] | None, *, sliding: bool) -> Guess:
    """Unit of a velocity: the one in which it has the size of the rate of change of the position, if that is known.

    Args:
        unit: from the name.
        values: numbers of the column.
        position: unit, numbers and times [s] of the position of the same joint.
        sliding: whether the joint slides.
    """
    usual = "m/s" if sliding else "rad/s"
    if unit or position is None:
        return Guess(unit or usual)
    of_position, positions, times = position
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = [np.diff(x) / np.diff(t) for x, t in zip(positions, times, strict=True)]
    rate, speed = _median(changes) * UNITS[of_position].factor, _median(values)
    if rate == 0.0:
        return Guess(usual)
    for candidate in ("m/s", "mm/s") if sliding else ("rad/s", "deg/s", "rpm", "rev/s"):
        if abs(speed * UNITS[candidate].factor / rate - 1.0) < AGREEMENT:
            reason = f"its size is that of the position's rate of change in {candidate}"
            return Guess(candidate, "" if candidate == usual else reason)
    return Guess(usual)


def _median(runs: Runs) -> float:
    """Median magnitude of all finite numbers: an angle that starts again has a few enormous changes."""
    numbers = np.concatenate(list(runs))
    numbers = np.abs(numbers[np.isfinite(numbers)])
    return float(np.median(numbers)) if len(numbers) else 0.0


def starts_again(unit: str, values: Runs) -> bool:
    """Does an angle jump by full turns?"""
    turn = UNITS[unit].period
    if not turn:
        return False
    jumps = [np.abs(np.diff(run)) / turn for run in values]
    return any(bool(((jump > WRAP[0]) & (jump < WRAP[1])).any()) for jump in jumps)
