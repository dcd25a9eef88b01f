"""The entries of θ that a `Free` specifies, with initial values, bounds, map and prior; or a list of problems."""

from dataclasses import dataclass

import numpy as np

from hybridsim.core.errors import ParameterError, Problem
from hybridsim.core.parameter_field import Sign
from hybridsim.params.address import scalar_parameters
from hybridsim.params.catalogue import ParameterForm
from hybridsim.params.free import Free
from hybridsim.params.inactive_parameters import inactive_parameter_problems
from hybridsim.params.leaves import leaf_at
from hybridsim.params.maps import Interval, Linear, Log, ParameterMap, compact, power_of_two
from hybridsim.params.scalar_parameter import GroupMember, ScalarParameter, current_values
from hybridsim.params.setup import Setup

MIN_POSITIVE_RATIO = 1e-6
"""Lower bound on a positive parameter relative to its initial value."""
TIED_TOLERANCE = 1e-9
"""Relative difference up to which tied values count as equal."""


@dataclass(frozen=True, eq=False)
class ResolvedFree:
    """The entries of θ that a `Free` specifies; all arrays have one physical value per entry."""

    free: Free
    parameters: tuple[ScalarParameter, ...]
    factors: tuple[float, ...]
    """Factor of each parameter if they are tied to a single entry; else empty."""
    initial: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    map: ParameterMap

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each entry."""
        return (self.free.label,) if self.free.is_tied else tuple(c.name for c in self.parameters)

    def theta_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the entries of θ; infinite for the interval map."""
        if isinstance(self.map, Interval):
            return np.full(self.initial.shape, -np.inf), np.full(self.initial.shape, np.inf)
        lower = self.map.theta(self.lower)
        return np.where(np.isnan(lower), -np.inf, lower), self.map.theta(self.upper)

    def theta_prior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the entries of θ; without a prior, initial value and infinity."""
        if self.free.prior is None:
            return self.map.theta(self.initial), np.full(self.initial.shape, np.inf)
        mean, std = np.full(self.initial.shape, self.free.prior[0]), self.free.prior[1]
        return self.map.theta(mean), std / self.map.derivative(mean)


def resolve(free: Free, setup: Setup) -> ResolvedFree | list[Problem]:
    """The entries of θ that a `Free` specifies in a setup, or all problems with it."""
    selections: list[tuple[ScalarParameter, ...]] = []
    problems: list[Problem] = []
    for address in free.names:
        try:
            selections.append(scalar_parameters(address, setup))
        except ParameterError as error:
            problems.append(free_problem(error.message, error.fix))
    if problems:
        return problems
    parameters = tuple(p for selection in selections for p in selection)
    problems = [*_incompatible_options(free, parameters), *inactive_parameter_problems(parameters, setup)]
    factor_per_name = free.tied if isinstance(free.tied, tuple | list) else (1.0,) * len(selections)
    factors = np.array([f for f, s in zip(factor_per_name, selections, strict=True) for _ in s], dtype=float)
    initial = _initial_values(free, parameters, factors, setup, problems)
    if problems:
        return problems
    lower, upper = _bounds(free, parameters, factors, initial, problems)
    mapping = _map(free, parameters, setup, initial, lower, upper, problems)
    if problems or mapping is None:
        return problems
    tie_factors = tuple(factors.tolist()) if free.is_tied else ()
    return ResolvedFree(free, parameters, tie_factors, initial, lower, upper, mapping)


def free_problem(message: str, fix: str) -> Problem:
    """A problem with free parameters."""
    return Problem(message, fix, code="project.free")


def _incompatible_options(free: Free, parameters: tuple[ScalarParameter, ...]) -> list[Problem]:
    """Problems with options that do not apply to these parameters."""
    if free.map is None and len({c.kind.default_map for c in parameters}) > 1:
        return [free_problem(f"{free.label!r} selects parameters with different default maps", "specify map")]
    if not any(c.kind.form is ParameterForm.RELATIVE for c in parameters):
        return []
    prefix = f"{free.label!r}: the inertial parameters of a body"
    problems = []
    if free.is_tied:
        fix = "tie inertial[...].mass or scalar parameters such as body.mass"
        problems.append(free_problem(f"{prefix} cannot be tied", fix))
    if free.initial not in (None, "current"):
        message = f"{prefix} always have the model's values as initial values"
        problems.append(free_problem(message, "change the model instead of initial"))
    if free.map not in (None, "linear"):
        problems.append(free_problem(f"{prefix} have their own parametrization", f"omit the map {free.map!r}"))
    return problems


def _initial_values(
    free: Free, parameters: tuple[ScalarParameter, ...], factors: np.ndarray, setup: Setup, problems: list[Problem]
) -> np.ndarray:
    """Initial values, one per entry of θ."""
    entries = 1 if free.is_tied else len(parameters)
    if free.initial is not None and free.initial != "current":
        return np.full(entries, float(free.initial))
    current = current_values(setup, parameters)
    for parameter, value in zip(parameters, current, strict=True):
        if not np.isfinite(value):
            message = f"{parameter.name!r} is {value}, which cannot be an initial value"
            problems.append(free_problem(message, "specify initial"))
    if not free.is_tied or problems:
        return current
    shared = current / factors
    if np.ptp(shared) > TIED_TOLERANCE * np.abs(shared).max():
        listed = ", ".join(f"{c.name} = {value:g}" for c, value in list(zip(parameters, current, strict=True))[:6])
        message = f"{free.label!r}: tied parameters have different values ({listed})"
        problems.append(free_problem(message, "specify initial"))
    return shared[:1]


def _bounds(
    free: Free,
    parameters: tuple[ScalarParameter, ...],
    factors: np.ndarray,
    initial: np.ndarray,
    problems: list[Problem],
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the values, one pair per entry of θ: those of the user, within the physical limits."""
    kinds = [p.kind for p in parameters]
    limits = np.array([(-np.inf if k.sign is Sign.NONE else 0.0, k.upper_limit) for k in kinds])
    is_positive = np.array([k.sign is Sign.POSITIVE for k in kinds])
    names, reasons = [p.name for p in parameters], [k.reason for k in kinds]
    if free.is_tied:
        reasons = [next(filter(None, reasons), "")]
        scaled = np.sort(limits / factors[:, None], axis=1)
        limits, is_positive, names = (
            np.array([[scaled[:, 0].max(), scaled[:, 1].min()]]),
            is_positive.any(),
            [free.label],
        )
    for name, reason, (minimum, maximum) in zip(names, reasons, limits, strict=True):
        if minimum > free.lower > -np.inf or maximum < free.upper < np.inf:
            message = f"{name!r} must be between {minimum:g} and {maximum:g} ({reason})"
            problems.append(free_problem(message, "specify bounds within these limits"))
    lower, upper = np.maximum(free.lower, limits[:, 0]), np.minimum(free.upper, limits[:, 1])
    # a bound of zero on a positive parameter stands for a value close to zero
    lower = np.where(is_positive & (lower == 0.0), MIN_POSITIVE_RATIO * np.maximum(initial, 0.0), lower)
    upper = np.where(is_positive & (upper == 0.0), MIN_POSITIVE_RATIO * np.minimum(initial, 0.0), upper)
    for name, value, low, high in zip(names, initial, lower, upper, strict=True):
        if not low <= value <= high:
            message = f"{name!r} has the initial value {value:g}, outside its bounds {low:g} and {high:g}"
            problems.append(free_problem(message, "specify initial or other bounds"))
    return lower, upper


def _map(
    free: Free,
    parameters: tuple[ScalarParameter, ...],
    setup: Setup,
    initial: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    problems: list[Problem],
) -> ParameterMap | None:
    """Map of the entries of θ."""
    map_name = free.map or parameters[0].kind.default_map
    names = (free.label,) if free.is_tied else tuple(c.name for c in parameters)
    if map_name == "interval":
        for name, value, low, high in zip(names, initial, lower, upper, strict=True):
            if not np.isfinite([low, high]).all():
                message = f"{name!r}: map 'interval' needs two finite bounds, not {low:g} and {high:g}"
                problems.append(free_problem(message, "specify bounds"))
            elif not low < value < high:
                message = (
                    f"{name!r} has the initial value {value:g} at one of its bounds {low:g} and {high:g}, which map "
                    "'interval' never reaches"
                )
                problems.append(free_problem(message, "specify initial between them, or use map 'linear'"))
        mapping = Interval(compact(lower), compact(upper))
    elif map_name == "log":
        for name, value in zip(names, initial, strict=True):
            if not value > 0.0:
                message = f"{name!r} has the initial value {value:g}, which has no logarithm"
                problems.append(free_problem(message, "use another map or initial value"))
        scale = initial if free.scale is None else np.full(initial.shape, free.scale)
        positive = np.where(scale > 0.0, scale, 1.0)
        mapping = Log(compact(positive if free.scale else np.array([power_of_two(x) for x in positive])))
    else:
        mapping = Linear(_scales(free, parameters, setup, initial, lower, upper))
    if problems or free.prior is None:
        return None if problems else mapping
    if not np.isfinite(mapping.theta(np.full(initial.shape, free.prior[0]))).all():
        message = f"{free.label!r}: the prior mean {free.prior[0]:g} is outside the range of the map"
        problems.append(free_problem(message, "use another map or prior"))
    return None if problems else mapping


def _scales(
    free: Free,
    parameters: tuple[ScalarParameter, ...],
    setup: Setup,
    initial: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> tuple[float, ...]:
    """Magnitudes by which values are divided to obtain θ of order one."""
    if free.scale is not None:
        return (float(free.scale),)
    if all(c.kind.is_weight or c.kind.form is ParameterForm.RELATIVE for c in parameters):
        return (1.0,)
    scales = []
    for parameter, value, low, high in zip(parameters, initial, lower, upper, strict=False):
        bounds = [abs(bound) for bound in (low, high) if np.isfinite(bound) and bound != 0.0]
        size = max(abs(value), _magnitude(parameter, setup)) or max(bounds, default=parameter.kind.typical)
        scales.append(power_of_two(min(size, 0.5 * (high - low))))
    return compact(np.array(scales))


def _magnitude(parameter: ScalarParameter, setup: Setup) -> float:
    """Scale of the vector or parameter group that a parameter belongs to; zero for a scalar stored directly.

    It is the largest absolute component, since the parameter itself may be zero.
    """
    location = parameter.location
    if isinstance(location, GroupMember):
        return float(np.abs(location.group.nominal).max())
    leaf = np.asarray(leaf_at(setup, location.path))
    if not parameter.kind.components:
        return 0.0
    row = leaf.reshape(-1, leaf.shape[-1])[location.index // leaf.shape[-1]]
    return float(np.abs(row[np.isfinite(row)]).max(initial=0.0))
