"""From a `Free` to entries of θ: its coordinates, their start, bounds, map and prior, or what is wrong with it."""

from dataclasses import dataclass

import numpy as np

from hybridsim.core.errors import ParameterError
from hybridsim.params.address import scalar_parameters
from hybridsim.params.catalog import ParameterForm, Sign
from hybridsim.params.free import Free, option_problems
from hybridsim.params.inactive_parameters import inactive_parameters
from hybridsim.params.leaves import leaf_at
from hybridsim.params.maps import Identity, Interval, Log, ParameterMap, compact, power_of_two
from hybridsim.params.scalar_parameter import GroupMember, ScalarParameter, current_values
from hybridsim.params.setup import Setup

MIN_POSITIVE_RATIO = 1e-6
"""Share of its start down to which a number may fall that must stay above zero."""
TIED_TOLERANCE = 1e-9
"""Relative difference up to which tied numbers count as the same."""


@dataclass(frozen=True, eq=False)
class ResolvedFree:
    """Entries of θ that one `Free` stands for; all arrays have one number per entry, in physical values."""

    free: Free
    parameters: tuple[ScalarParameter, ...]
    factors: tuple[float, ...]
    """Of the single entry, if they are tied."""
    initial: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    map: ParameterMap

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each entry."""
        return (self.free.label,) if self.free.is_tied else tuple(c.name for c in self.parameters)

    def theta_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the entries; an interval needs none."""
        if isinstance(self.map, Interval):
            return np.full(self.initial.shape, -np.inf), np.full(self.initial.shape, np.inf)
        lower = self.map.theta(self.lower)
        return np.where(np.isnan(lower), -np.inf, lower), self.map.theta(self.upper)

    def theta_prior(self) -> tuple[np.ndarray, np.ndarray]:
        """Expected values and standard deviations of the entries; without a prior the start and infinity."""
        if self.free.prior is None:
            return self.map.theta(self.initial), np.full(self.initial.shape, np.inf)
        mean, deviation = np.full(self.initial.shape, self.free.prior[0]), self.free.prior[1]
        return self.map.theta(mean), deviation / self.map.derivative(mean)


def resolve(free: Free, setup: Setup) -> ResolvedFree | list[str]:
    """The entries of θ that a `Free` stands for in a setup, or everything that is wrong with it."""
    if problems := list(option_problems(free)):
        return problems
    found: list[tuple[ScalarParameter, ...]] = []
    for address in free.names:
        try:
            found.append(scalar_parameters(address, setup))
        except ParameterError as error:
            problems.append(str(error))
    if problems:
        return problems
    coordinates = tuple(c for group in found for c in group)
    problems = [*_incompatible_options(free, coordinates), *inactive_parameters(coordinates, setup)]
    each = free.tied if isinstance(free.tied, tuple | list) else (1.0,) * len(found)
    factors = np.array([f for f, group in zip(each, found, strict=True) for _ in group], dtype=float)
    start = _initial_values(free, coordinates, factors, setup, problems)
    if problems:
        return problems
    lower, upper = _bounds(free, coordinates, factors, start, problems)
    chosen = _map(free, coordinates, setup, start, lower, upper, problems)
    if problems or chosen is None:
        return problems
    kept = tuple(factors.tolist()) if free.is_tied else ()
    return ResolvedFree(free, coordinates, kept, start, lower, upper, chosen)


def _incompatible_options(free: Free, coordinates: tuple[ScalarParameter, ...]) -> list[str]:
    """Options that make no sense for what is free."""
    if free.map is None and len({c.parameter.default_map for c in coordinates}) > 1:
        return [f"{free.label!r} has numbers that are usually seen through different maps; give map="]
    if not any(c.parameter.form is ParameterForm.RELATIVE for c in coordinates):
        return []
    what = f"{free.label!r}: an inertia as a whole"
    found = []
    if free.is_tied:
        found.append(f"{what} cannot be tied; tie inertial[...].mass, or single numbers such as body.mass")
    if free.initial not in (None, "current"):
        found.append(f"{what} starts from the model's own; change the model instead of giving start")
    if free.map not in (None, "identity"):
        found.append(f"{what} has a map of its own; leave map={free.map!r} out")
    return found


def _initial_values(
    free: Free, coordinates: tuple[ScalarParameter, ...], factors: np.ndarray, setup: Setup, problems: list[str]
) -> np.ndarray:
    """Values to start from, one per entry of θ."""
    entries = 1 if free.is_tied else len(coordinates)
    if free.initial is not None and free.initial != "current":
        return np.full(entries, float(free.initial))
    now = current_values(setup, coordinates)
    for coordinate, value in zip(coordinates, now, strict=True):
        if not np.isfinite(value):
            problems.append(f"{coordinate.name!r} is {value} now, which is no value to start from; give start=")
    if not free.is_tied or problems:
        return now
    single = now / factors
    if np.ptp(single) > TIED_TOLERANCE * np.abs(single).max():
        listed = ", ".join(f"{c.name} = {value:g}" for c, value in list(zip(coordinates, now, strict=True))[:6])
        problems.append(f"{free.label!r}: numbers that are to be tied differ ({listed}); give start=")
    return single[:1]


def _bounds(
    free: Free, coordinates: tuple[ScalarParameter, ...], factors: np.ndarray, start: np.ndarray, problems: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the values, one pair per entry of θ: the user's, within what makes sense."""
    parameters = [c.parameter for c in coordinates]
    sensible = np.array([(-np.inf if p.sign is Sign.NONE else 0.0, p.upper_limit) for p in parameters])
    above_zero = np.array([p.sign is Sign.POSITIVE for p in parameters])
    names, reasons = [c.name for c in coordinates], [p.reason for p in parameters]
    if free.is_tied:
        reasons = [next(filter(None, reasons), "")]
        ends = np.sort(sensible / factors[:, None], axis=1)
        sensible, above_zero, names = np.array([[ends[:, 0].max(), ends[:, 1].min()]]), above_zero.any(), [free.label]
    for name, why, (least, most) in zip(names, reasons, sensible, strict=True):
        if least > free.lower > -np.inf or most < free.upper < np.inf:
            problems.append(f"{name!r} makes sense between {least:g} and {most:g} only ({why}); give bounds within")
    lower, upper = np.maximum(free.lower, sensible[:, 0]), np.minimum(free.upper, sensible[:, 1])
    # zero is a usual bound of what must not get there, and stands for a value close to it
    lower = np.where(above_zero & (lower == 0.0), MIN_POSITIVE_RATIO * np.maximum(start, 0.0), lower)
    upper = np.where(above_zero & (upper == 0.0), MIN_POSITIVE_RATIO * np.minimum(start, 0.0), upper)
    for name, value, low, high in zip(names, start, lower, upper, strict=True):
        if not low <= value <= high:
            problems.append(
                f"{name!r} would start at {value:g}, outside of its bounds {low:g} and {high:g}; give start= or other "
                "bounds"
            )
    return lower, upper


def _map(
    free: Free,
    coordinates: tuple[ScalarParameter, ...],
    setup: Setup,
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    problems: list[str],
) -> ParameterMap | None:
    """The map of the entries."""
    name = free.map or coordinates[0].parameter.default_map
    labels = (free.label,) if free.is_tied else tuple(c.name for c in coordinates)
    if name == "interval":
        for label, value, low, high in zip(labels, start, lower, upper, strict=True):
            if not np.isfinite([low, high]).all():
                problems.append(
                    f"{label!r}: the map 'interval' needs two bounds, not {low:g} and {high:g}; give bounds="
                )
            elif not low < value < high:
                problems.append(
                    f"{label!r} would start at {value:g}, on one of its bounds {low:g} and {high:g}, which the map "
                    "'interval' never reaches; give start= between them, or use the map 'identity'"
                )
        chosen = Interval(compact(lower), compact(upper))
    elif name == "log":
        for label, value in zip(labels, start, strict=True):
            if not value > 0.0:
                problems.append(f"{label!r} would start at {value:g}, which has no logarithm; use another map or start")
        scale = start if free.scale is None else np.full(start.shape, free.scale)
        positive = np.where(scale > 0.0, scale, 1.0)
        chosen = Log(compact(positive if free.scale else np.array([power_of_two(x) for x in positive])))
    else:
        chosen = Identity(_scales(free, coordinates, setup, start, lower, upper))
    if problems or free.prior is None:
        return None if problems else chosen
    if not np.isfinite(chosen.theta(np.full(start.shape, free.prior[0]))).all():
        problems.append(f"{free.label!r}: the prior's expected value {free.prior[0]:g} is none that the map can give")
    return None if problems else chosen


def _scales(
    free: Free,
    coordinates: tuple[ScalarParameter, ...],
    setup: Setup,
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> tuple[float, ...]:
    """Magnitudes by which values are divided, so that changes of θ are of order one."""
    if free.scale is not None:
        return (float(free.scale),)
    if all(c.parameter.is_weight or c.parameter.form is ParameterForm.RELATIVE for c in coordinates):
        return (1.0,)
    scales = []
    for coordinate, value, low, high in zip(coordinates, start, lower, upper, strict=False):
        ends = [abs(end) for end in (low, high) if np.isfinite(end) and end != 0.0]
        size = max(abs(value), _magnitude(coordinate, setup)) or max(ends, default=coordinate.parameter.typical)
        scales.append(power_of_two(min(size, 0.5 * (high - low))))
    return compact(np.array(scales))


def _magnitude(coordinate: ScalarParameter, setup: Setup) -> float:
    """Of the largest number beside a component: a coordinate of a point that is nearly zero says nothing of changes."""
    place = coordinate.location
    if isinstance(place, GroupMember):
        return float(np.abs(place.group.nominal).max())
    leaf = np.asarray(leaf_at(setup, place.path))
    if not coordinate.parameter.components:
        return 0.0
    row = leaf.reshape(-1, leaf.shape[-1])[place.index // leaf.shape[-1]]
    return float(np.abs(row[np.isfinite(row)]).max(initial=0.0))
