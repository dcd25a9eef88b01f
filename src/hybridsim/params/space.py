"""ParameterSpace: the free parameters of a setup as one vector θ, the variables of a solver.

    space = ParameterSpace(setup, [Free("body.mass[link*]"), Free("joint.damping[*]", map="log"), Free("graft[0]")])
    fitted = space.put(setup, theta)

Entries of θ are ordered as in the list, and within each `Free` as the parameters that it matches.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from hybridsim.core.errors import ParameterError, Problem
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.params.catalogue import BY_NAME
from hybridsim.params.free import Free
from hybridsim.params.leaves import LeafEntry, leaf_at
from hybridsim.params.parametrization import ParameterGroup
from hybridsim.params.resolve import ResolvedFree, free_problem, resolve
from hybridsim.params.scalar_parameter import GroupMember, ScalarParameter, current_values
from hybridsim.params.setup import Setup
from hybridsim.params.theta_map import ThetaMap, ThetaSlice, group_inputs, leaf_slices

BOUND_TOLERANCE = 1e-9
"""Distance to a bound, relative to the width of the interval, up to which a value counts as at the bound."""
ROUND_TRIP_TOLERANCE = 1e-9
"""Largest difference after a round trip through θ, relative to the largest entry of the array."""


@dataclass(frozen=True)
class ParameterChange:
    """One physical value in the setup from which the space was built, and at some θ."""

    name: str
    before: float
    """Value in the setup, which is also the initial value of a fit unless another one is specified."""
    after: float
    unit: str
    lower: float
    upper: float
    at_bound: str
    """`lower`, `upper`, or empty."""


class ParameterSpace:
    """Free parameters as one vector θ; all arrays have one value per entry of θ.

    Attributes:
        theta_map: the map from θ to a setup; hashable, and equal for equal spaces.
        names: unique name of each entry.
        units: units of the values.
        initial: initial θ.
        lower: lower bounds of θ, minus infinity where unbounded.
        upper: upper bounds of θ, infinity where unbounded.
        prior_mean: mean of θ; the initial θ where there is no prior.
        prior_std: standard deviation of θ, infinity where there is no prior.
        l1: weights of the absolute values, as specified.
        l2: weights of the squares, as specified.
        groups: names of the group-lasso groups, as specified.
        is_weight: mask of the entries that are network weights.
        is_per_run: mask of the entries that are estimated separately for each run.
    """

    def __init__(self, setup: Setup, free_parameters: Sequence[Free]):
        """Build the space of these parameters of a setup.

        Raises:
            ParameterError: lists the problems of all free parameters.
        """
        if not isinstance(setup, Setup):
            raise TypeError(f"ParameterSpace needs a Setup, not {type(setup).__name__}")
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(setup)):
            raise ParameterError("a ParameterSpace needs concrete values; build it outside jit, grad and vmap")
        parts, problems = [], []
        for free in free_parameters:
            if not isinstance(free, Free):
                raise TypeError(f"free_parameters must be a list of Free(...), not of {type(free).__name__}")
            part = resolve(free, setup)
            if isinstance(part, ResolvedFree):
                parts.append(part)
            else:
                problems += part
        problems += ownership_conflicts([c for part in parts for c in part.parameters])
        if problems:
            raise ParameterError("\n".join(f"{problem.message}; {problem.fix}" for problem in problems))
        self._parts: tuple[ResolvedFree, ...] = tuple(parts)
        self.theta_map = _theta_map(self._parts, setup)
        self.names = tuple(name for part in parts for name in part.names)
        self.units = tuple(c.unit for part in parts for c in part.parameters[: len(part.initial)])
        self.initial = _concatenate([part.map.theta(part.initial) for part in parts])
        bounds, priors = [part.theta_bounds() for part in parts], [part.theta_prior() for part in parts]
        self.lower, self.upper = (_concatenate([pair[k] for pair in bounds]) for k in range(2))
        self.prior_mean, self.prior_std = (_concatenate([pair[k] for pair in priors]) for k in range(2))
        sizes = [len(part.initial) for part in parts]
        self.l1, self.l2 = (
            np.repeat([float(getattr(part.free, option)) for part in parts], sizes) for option in ("l1", "l2")
        )
        self.groups = tuple(part.free.group for part, size in zip(parts, sizes, strict=True) for _ in range(size))
        weights = [c.kind.is_weight for part in parts for c in part.parameters[: len(part.initial)]]
        self.is_weight = np.array(weights, dtype=bool)
        self.is_per_run = np.repeat(np.array([part.free.per == "run" for part in parts], dtype=bool), sizes)
        self._values_before = self._display_values([current_values(setup, part.parameters) for part in parts])

    @property
    def size(self) -> int:
        """Length of θ."""
        return self.theta_map.size

    def with_initial_entries(self, entries: Mapping[str, float]) -> "ParameterSpace":
        """This space with another initial θ, such as the estimate of an earlier fit, possibly of fewer parameters.

        Args:
            entries: new initial entries of θ by name; the others are unchanged.
        """
        return self.with_initial([entries.get(name, x) for name, x in zip(self.names, self.initial, strict=True)])

    def with_initial(self, theta: ArrayLike) -> "ParameterSpace":
        """This space with another initial θ."""
        space = copy(self)
        space.initial = np.array(theta, dtype=float)
        return space

    def with_fixed(self, entries: Sequence[int], theta: ArrayLike) -> "ParameterSpace":
        """This space with some entries of θ fixed at a common value or at one value each."""
        space = copy(self)
        for name in ("initial", "lower", "upper"):
            setattr(space, name, getattr(self, name).copy())
            getattr(space, name)[list(entries)] = theta
        return space

    def put(self, setup: Setup, theta: Float[AnyArray, " n"]) -> Setup:
        """A setup with the values of θ; fixed parameters are unchanged.

        With NumPy arrays the result is NumPy and nothing is compiled; with JAX arrays it can be traced.

        Args:
            setup: a setup of the same structure as the one from which the space was built.
            theta: one value per entry.
        """
        return self.theta_map.put(setup, theta)

    def values(self, theta: Float[AnyArray, " n"]) -> dict[str, float]:
        """All physical values that θ determines, by name; for `inertial[BODY]`, mass, centre of mass and inertia."""
        return self._display_values(self.theta_map.values(np.asarray(theta, dtype=float)))

    def run_values(self, theta: Float[AnyArray, " n"]) -> dict[str, float]:
        """The values that are estimated separately for each run."""
        return self._display_values(self.theta_map.values(np.asarray(theta, dtype=float)), per="run")

    def value_std(self, theta: Float[AnyArray, " n"], theta_std: Float[AnyArray, " n"]) -> np.ndarray:
        """Standard deviations of the values: half their change over ± one standard deviation of θ."""
        std, first = [], 0
        for part in self._parts:
            entries = slice(first, first + len(part.initial))
            ends = (part.map.value(theta[entries] + sign * theta_std[entries]) for sign in (1.0, -1.0))
            std.append(0.5 * np.abs(np.subtract(*ends)))
            first = entries.stop
        return _concatenate(std)

    def theta_of(self, setup: Setup) -> np.ndarray:
        """The θ that reproduces a setup: the inverse of `put`.

        Raises:
            ParameterError: no θ reproduces it, for example because tied values differ or a value has no logarithm.
        """
        parts = []
        for part, values in zip(self._parts, _read(self.theta_map, self._parts, setup), strict=True):
            single = (values / np.array(part.factors))[:1] if part.factors else values
            parts.append(part.map.theta(single))
        theta = _concatenate(parts)
        for name, value in zip(self.names, theta, strict=True):
            if not np.isfinite(value):
                raise ParameterError(f"{name!r} has a value in this setup that is outside the range of its map")
        self._check_round_trip(setup, theta)
        return theta

    def table(self, theta: Float[AnyArray, " n"]) -> list[ParameterChange]:
        """All values that θ determines, in the setup from which the space was built and at θ, with units and bounds."""
        rows, locations = [], self._locate_by_name()
        for name, after in self.values(theta).items():
            if name not in locations:
                unit = BY_NAME[name.partition("[")[0]].unit
                rows.append(ParameterChange(name, self._values_before[name], after, unit, -np.inf, np.inf, ""))
                continue
            part, k, entry, factor = locations[name]
            lower, upper = sorted((factor * float(part.lower[entry]), factor * float(part.upper[entry])))
            at_bound = "lower" if _is_at_bound(after, lower, upper - lower) else ""
            at_bound = "upper" if _is_at_bound(after, upper, upper - lower) else at_bound
            unit = part.parameters[k].unit
            rows.append(ParameterChange(name, self._values_before[name], after, unit, lower, upper, at_bound))
        return rows

    def _locate_by_name(self) -> dict[str, tuple[ResolvedFree, int, int, float]]:
        """For each parameter its part, its index in the part, the entry of the part's arrays, and its factor."""
        return {
            p.name: (part, k, 0 if part.factors else k, part.factors[k] if part.factors else 1.0)
            for part in self._parts
            for k, p in enumerate(part.parameters)
        }

    def _display_values(self, values: list[np.ndarray], per: str | None = None) -> dict[str, float]:
        """Physical values to report, by name, from the parameter values of all parts, or of those with this `per`."""
        displayed: dict[str, float] = {}
        values_of_groups = {
            inputs.group: inputs.group.display_values(inputs.values(values)) for inputs in self.theta_map.group_inputs
        }
        for part, part_values in zip(self._parts, values, strict=True):
            if per not in (None, part.free.per):
                continue
            for parameter, value in zip(part.parameters, part_values.tolist(), strict=True):
                location = parameter.location
                values_of_group = values_of_groups[location.group] if isinstance(location, GroupMember) else {}
                displayed |= values_of_group or {parameter.name: value}
        return displayed

    def _check_round_trip(self, setup: Setup, theta: np.ndarray) -> None:
        """Raise if θ does not reproduce the setup that it was read from."""
        reproduced = self.put(setup, theta)
        for name, entry in self._shared_entries():
            before, after = (np.ravel(leaf_at(tree, entry.path)) for tree in (setup, reproduced))
            if (
                abs(before[entry.index] - after[entry.index])
                > ROUND_TRIP_TOLERANCE * np.abs(before[np.isfinite(before)]).max()
            ):
                raise ParameterError(
                    f"{name!r} has values in this setup that no theta reproduces: tied or dependent values are "
                    "inconsistent"
                )

    def _shared_entries(self) -> Iterator[tuple[str, LeafEntry]]:
        """Array entries that share an entry of θ or depend on several, with the name of their group or `Free`."""
        for inputs in self.theta_map.group_inputs:
            yield from ((inputs.group.name, entry) for entry in inputs.group.entries)
        for part in self._parts:
            if part.factors:
                yield from ((part.free.label, entry) for p in part.parameters for entry in p.entries)


def ownership_conflicts(parameters: Sequence[ScalarParameter]) -> list[Problem]:
    """Problems with parameters that are free twice or determine the same array entry."""
    names: set[str] = set()
    owners: dict[LeafEntry, tuple[str | ParameterGroup, str]] = {}
    problems: dict[Problem, None] = {}
    for parameter in parameters:
        if parameter.name in names:
            problems[free_problem(f"{parameter.name!r} is free twice", "list it once")] = None
            continue
        names.add(parameter.name)
        for entry in parameter.entries:
            owner, name = owners.setdefault(entry, (parameter.owner, parameter.name))
            if owner != parameter.owner:
                message = f"{name!r} and {parameter.name!r} determine the same value"
                problems[free_problem(message, "free one of them")] = None
    return list(problems)


def _theta_map(parts: Sequence[ResolvedFree], setup: Setup) -> ThetaMap:
    slices, first = [], 0
    for part in parts:
        stop = first + len(part.initial)
        slices.append(ThetaSlice(first, stop, part.map, part.factors, leaf_slices(part.parameters, setup)))
        first = stop
    return ThetaMap(first, tuple(slices), group_inputs([part.parameters for part in parts]))


def _read(theta_map: ThetaMap, parts: Sequence[ResolvedFree], setup: Setup) -> list[np.ndarray]:
    """Parameter values of each part in any setup, not only in the one from which the space was built."""
    all_values = [current_values(setup, part.parameters) for part in parts]
    for inputs in theta_map.group_inputs:
        try:
            with np.errstate(invalid="ignore", divide="ignore"):
                values = inputs.group.read(setup, inputs.is_free)
        except np.linalg.LinAlgError:
            raise ParameterError(
                f"{inputs.group.name!r}: the inertia in this setup is not physically consistent"
            ) from None
        for source, value in zip(inputs.sources, values, strict=True):
            if source is not None:
                all_values[source[0]][source[1]] = value
    return all_values


def _concatenate(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *parts])


def _is_at_bound(value: float, bound: float, width: float) -> bool:
    """Whether a value is at a bound to within solver precision."""
    if not np.isfinite(bound):
        return False
    return abs(value - bound) <= BOUND_TOLERANCE * (width if np.isfinite(width) else max(abs(value), abs(bound)))
