"""Free: which numbers a fit may change, within which bounds, and how the solver sees them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hybridsim.params.maps import MAPS

PER = ("all", "run")


@dataclass(frozen=True)
class Free:
    """Numbers that are free. What is not listed is frozen: a solver never sees it.

        Free("body.mass[link*]", bounds=(0.1, 5.0))
        Free("joint.damping[*]", tie=True)                                        one number for all joints
        Free(("joint.placement[left].y", "joint.placement[right].y"), tie=(1.0, -1.0))    mirrored
        Free("inertial[link2]")                                                   ten numbers, always possible
        Free("sensor.bias[*]", per="run")                                         other numbers in every run

    Options hold for every number that the name matches. Values are physical; those of `inertial[BODY]` and
    `inertial[BODY].diagonal` have no unit and are zero for the model's own body, their bounds and priors too.
    """

    name: str | tuple[str, ...]
    """Address, or several."""
    bounds: Sequence[float | None] | None = None
    """Least and largest value; none where there is None. By default what makes sense, by the catalogue."""
    start: float | str | None = None
    """Value to start from; by default, or with `current`, the one in the setup."""
    map: str | None = None
    """`identity`, `log` or `interval`; by default `identity`, but `log` for `inertial[BODY].mass`."""
    prior: Sequence[float] | None = None
    """Expected value and its standard deviation."""
    scale: float | None = None
    """Value at which the solver sees a one; by default from bounds, start, or what is usual."""
    l1: float = 0.0
    """Weight of the sum of absolute values, in θ: it makes exact zeros of what the data does not need."""
    l2: float = 0.0
    """Weight of half the sum of squares, in θ."""
    group: str = ""
    """Numbers of one group cost `l1` times their norm instead, and are zero together or not at all."""
    tie: bool | Sequence[float] = False
    """One number for all that match, or for each name a factor that it is multiplied by."""
    per: str = "all"
    """Is a number the same in `all` runs, or one for each `run`: where an encoder was zeroed, what was carried?"""

    @property
    def names(self) -> tuple[str, ...]:
        """All addresses."""
        return (self.name,) if isinstance(self.name, str) else tuple(self.name)

    @property
    def is_tied(self) -> bool:
        """Does one number drive all?"""
        return self.tie is not False

    @property
    def label(self) -> str:
        """How messages call it."""
        return " & ".join(self.names)

    @property
    def lower(self) -> float:
        """Least value that the user allows."""
        return -np.inf if self.bounds is None or self.bounds[0] is None else float(self.bounds[0])

    @property
    def upper(self) -> float:
        """Largest value that the user allows."""
        return np.inf if self.bounds is None or self.bounds[1] is None else float(self.bounds[1])


def option_problems(free: Free) -> Iterator[str]:
    """Everything that is wrong with the options themselves, whatever they are for."""

    def is_number(x: object) -> bool:
        return isinstance(x, int | float | np.number) and not isinstance(x, bool) and bool(np.isfinite(x))

    if not free.names or not all(isinstance(name, str) and name.strip() for name in free.names):
        yield f"the name of a free parameter is an address or several, not {free.name!r}"
        return
    what = f"{free.label!r}:"
    if free.map is not None and free.map not in MAPS:
        yield f"{what} unknown map {free.map!r}; choose one of {', '.join(MAPS)}"
    if free.bounds is not None:
        try:
            lower, upper = free.lower, free.upper
            if len(free.bounds) != 2:
                raise ValueError
            if not lower < upper:
                yield f"{what} the bounds {lower:g} and {upper:g} are in the wrong order; write (least, largest)"
        except (TypeError, ValueError, IndexError):
            yield f"{what} bounds are two numbers, or None where there is none, not {free.bounds!r}"
    if not (free.start is None or free.start == "current" or is_number(free.start)):
        yield f"{what} start is a finite number or 'current', not {free.start!r}"
    if free.scale is not None and not (is_number(free.scale) and free.scale > 0.0):
        yield f"{what} scale is a positive number, not {free.scale!r}"
    if free.prior is not None:
        prior = free.prior if isinstance(free.prior, tuple | list) else ()
        if not (len(prior) == 2 and all(map(is_number, prior)) and prior[1] > 0.0):
            yield f"{what} a prior is the expected value and a positive standard deviation, not {free.prior!r}"
    for option, value in (("l1", free.l1), ("l2", free.l2)):
        if not (is_number(value) and value >= 0.0):
            yield f"{what} {option} is a number that is not negative, not {value!r}"
    if free.per not in PER:
        yield f"{what} a number is per 'all' or per 'run', not {free.per!r}"
    if not isinstance(free.group, str):
        yield f"{what} group is a name, not {free.group!r}"
    if not isinstance(free.tie, bool):
        tie = free.tie if isinstance(free.tie, tuple | list) else ()
        if not (len(tie) == len(free.names) and all(is_number(f) and f != 0.0 for f in tie)):
            yield f"{what} tie is True or one factor other than zero for each name, not {free.tie!r}"
