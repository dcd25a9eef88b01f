"""Free: specification of free parameters, with initial values, bounds, maps to θ, priors and penalties."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from hybridsim.core.specification import Names, Nonnegative, Positive, setting_error, specification


def _reject_nan(value: float) -> float:
    if math.isnan(value):
        raise setting_error("", "must not be nan", "write inf or -inf where there is no bound", "project.value")
    return value


if TYPE_CHECKING:
    # what users may write; lists are stored as tuples
    Bounds = Sequence[float | None]
    Prior = Sequence[float]
    Tie = bool | Sequence[float]
else:
    Bound = Annotated[float, Field(allow_inf_nan=True), AfterValidator(_reject_nan)] | None
    Bounds = tuple[Bound, Bound]
    Prior = tuple[float, Positive]
    Tie = bool | tuple[float, ...]


@specification
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

    name: Names
    """Address, such as `joint.damping[*]`, `body.mass[link1]` or `inertial[link2]`; or several."""
    bounds: Bounds | None = None
    """Lower and upper bound, infinite where there is none; by default the physical limits of the catalogue."""
    initial: float | Literal["current"] | None = None
    """Initial value; by default, or with `"current"`, that of the model."""
    map: Literal["linear", "log", "interval"] | None = None
    """Map from the parameter to θ; by default `linear`, but `log` for `inertial[BODY].mass`."""
    prior: Prior | None = None
    """Mean and standard deviation of a Gaussian prior."""
    scale: Positive | None = None
    """Parameter value at θ = 1, for the map `log` at θ = 0; by default derived from bounds, initial value, or typical
    changes."""
    l1: Nonnegative = 0.0
    """Weight of the sum of absolute values of θ, a lasso penalty, which yields exact zeros; solver lm only."""
    l2: Nonnegative = 0.0
    """Weight of half the sum of squares of θ."""
    group: str = ""
    """Group lasso: l1 is the weight of the norm of all parameters of the group, which become zero jointly."""
    tied: Tie = False
    """`true`: one value for all matching parameters; or a list with one factor per name, by which the shared value is
    multiplied."""
    per: Literal["fit", "run"] = "fit"
    """One estimate for all runs (`fit`), or a separate estimate for each run (`run`), for instance of an encoder offset
    or a payload."""

    @model_validator(mode="after")
    def _check_values(self):
        if self.bounds is not None and not self.lower < self.upper:
            message = f"has the lower bound {self.lower:g}, which is not below the upper bound {self.upper:g}"
            raise setting_error("bounds", message, "write lower, then upper bound", "project.value")
        if not isinstance(self.tied, bool) and (len(self.tied) != len(self.names) or 0.0 in self.tied):
            message = "must be true or one nonzero factor for each name"
            raise setting_error("tied", message, "write as many factors as names", "project.value")
        if any(not name.strip() for name in self.names):
            raise setting_error("name", "must be one or more addresses", "name a parameter", "project.value")
        return self

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
        return -np.inf if self.bounds is None or self.bounds[0] is None else self.bounds[0]

    @property
    def upper(self) -> float:
        """Upper bound specified by the user."""
        return np.inf if self.bounds is None or self.bounds[1] is None else self.bounds[1]
