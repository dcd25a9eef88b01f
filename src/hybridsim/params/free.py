"""Free: specification of free parameters, with initial values, bounds, maps to θ, priors and penalties."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hybridsim.params.maps import MAPS

PER = ("fit", "run")


@dataclass(frozen=True)
class Free:
    """Free parameters. Parameters without a `Free` are fixed and not part of θ.

        Free("body.mass[link*]", bounds=(0.1, 5.0))
        Free("joint.damping[*]", tied=True)                                       one value for all joints
        Free(("joint.placement[left].y", "joint.placement[right].y"), tied=(1.0, -1.0))    mirrored
        Free("inertial[link2]")                                                   ten parameters, physically consistent
        Free("sensor.bias[*]", per="run")                                         estimated separately for each run

    Options apply to every scalar parameter that the name matches. Values are physical; those of `inertial[BODY]` and
    `inertial[BODY].diagonal`, including bounds and priors, are dimensionless and zero for the model's nominal body.
    """

    name: str | tuple[str, ...]
    """One address or several."""
    bounds: Sequence[float | None] | None = None
    """Lower and upper bound, None where unbounded; by default the physical limits of the catalogue."""
    initial: float | str | None = None
    """Initial value; by default, or with `current`, the value in the setup."""
    map: str | None = None
    """`linear`, `log` or `interval`; by default `linear`, but `log` for `inertial[BODY].mass`."""
    prior: Sequence[float] | None = None
    """Mean and standard deviation of a Gaussian prior."""
    scale: float | None = None
    """Value at θ = 1, for `log` at θ = 0; by default derived from bounds, initial value, or typical changes."""
    l1: float = 0.0
    """Weight of the sum of absolute values of θ; a lasso penalty, which makes irrelevant entries exactly zero."""
    l2: float = 0.0
    """Weight of half the sum of squares of θ."""
    group: str = ""
    """Name of a group-lasso group: the penalty is `l1` times the norm of its entries of θ, which vanish jointly."""
    tied: bool | Sequence[float] = False
    """If True, all matches share one value; with one factor per name, a match is the shared value times its factor."""
    per: str = "fit"
    """`fit`: one value for all runs; `run`: one value for each run, for instance of an encoder offset or a payload."""

    @property
    def names(self) -> tuple[str, ...]:
        """All addresses."""
        return (self.name,) if isinstance(self.name, str) else tuple(self.name)

    @property
    def is_tied(self) -> bool:
        """Whether one entry of θ determines all matches."""
        return self.tied is not False

    @property
    def label(self) -> str:
        """Name used in messages."""
        return " & ".join(self.names)

    @property
    def lower(self) -> float:
        """Lower bound specified by the user."""
        return -np.inf if self.bounds is None or self.bounds[0] is None else float(self.bounds[0])

    @property
    def upper(self) -> float:
        """Upper bound specified by the user."""
        return np.inf if self.bounds is None or self.bounds[1] is None else float(self.bounds[1])


def option_problems(free: Free) -> Iterator[str]:
    """Problems with the options themselves, independent of the parameters they apply to."""

    def is_number(x: object) -> bool:
        return isinstance(x, int | float | np.number) and not isinstance(x, bool) and bool(np.isfinite(x))

    if not free.names or not all(isinstance(name, str) and name.strip() for name in free.names):
        yield f"the name of a free parameter must be one or more addresses, not {free.name!r}"
        return
    prefix = f"{free.label!r}:"
    if free.map is not None and free.map not in MAPS:
        yield f"{prefix} unknown map {free.map!r}; choose one of {', '.join(MAPS)}"
    if free.bounds is not None:
        try:
            lower, upper = free.lower, free.upper
            if len(free.bounds) != 2:
                raise ValueError
            if not lower < upper:
                yield f"{prefix} the lower bound {lower:g} is not below the upper bound {upper:g}; write (lower, upper)"
        except (TypeError, ValueError, IndexError):
            yield f"{prefix} bounds must be two numbers, or None where unbounded, not {free.bounds!r}"
    if not (free.initial is None or free.initial == "current" or is_number(free.initial)):
        yield f"{prefix} initial must be a finite number or 'current', not {free.initial!r}"
    if free.scale is not None and not (is_number(free.scale) and free.scale > 0.0):
        yield f"{prefix} scale must be a positive number, not {free.scale!r}"
    if free.prior is not None:
        prior = free.prior if isinstance(free.prior, tuple | list) else ()
        if not (len(prior) == 2 and all(map(is_number, prior)) and prior[1] > 0.0):
            yield f"{prefix} prior must be a mean and a positive standard deviation, not {free.prior!r}"
    for option, value in (("l1", free.l1), ("l2", free.l2)):
        if not (is_number(value) and value >= 0.0):
            yield f"{prefix} {option} must be a nonnegative number, not {value!r}"
    if free.per not in PER:
        yield f"{prefix} per must be 'fit' or 'run', not {free.per!r}"
    if not isinstance(free.group, str):
        yield f"{prefix} group must be a name, not {free.group!r}"
    if not isinstance(free.tied, bool):
        factors = free.tied if isinstance(free.tied, tuple | list) else ()
        if not (len(factors) == len(free.names) and all(is_number(f) and f != 0.0 for f in factors)):
            yield f"{prefix} tied must be True or one nonzero factor for each name, not {free.tied!r}"
