"""ParameterSpace: the free numbers of a setup as one vector θ, which is what a solver sees.

    space = ParameterSpace(setup, [Free("body.mass[link*]"), Free("joint.damping[*]", map="log"), Free("graft[0]")])
    fitted = space.put(setup, theta)

Entries of θ come in the order of the list, and for each of its members in the order of what it matches.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from hybridsim.core.errors import ParameterError
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.params.catalog import BY_NAME
from hybridsim.params.free import Free
from hybridsim.params.leaves import LeafEntry, leaf_at
from hybridsim.params.parametrization import ParameterGroup
from hybridsim.params.resolve import ResolvedFree, resolve
from hybridsim.params.scalar_parameter import GroupMember, ScalarParameter, current_values
from hybridsim.params.setup import Setup
from hybridsim.params.unflatten import ThetaSlice, Unflatten, group_inputs, leaf_slices

BOUND_TOLERANCE = 1e-9
"""Distance to a bound, by the distance between both, up to which a value counts as being there."""
ROUND_TRIP_TOLERANCE = 1e-9
"""By how much of the largest number of an array its numbers may differ from what θ makes of them."""


@dataclass(frozen=True)
class ParameterChange:
    """One number before and after a fit."""

    name: str
    before: float
    after: float
    unit: str
    lower: float
    upper: float
    at_bound: str
    """`lower`, `upper`, or nothing."""


class ParameterSpace:
    """Free numbers as one vector; all arrays have one number per entry of it.

    Attributes:
        placing: what `put` needs; hashable, and equal for equal spaces.
        labels: name of each entry, no two the same.
        units: of the values.
        start: θ to start from.
        lower: least θ, minus infinity where there is none.
        upper: largest θ, infinity where there is none.
        prior_mean: expected θ; the start where there is no prior.
        prior_std: standard deviation of θ, infinity where there is no prior.
        l1: weights of absolute values, as told.
        l2: weights of squares, as told.
        groups: names of groups, as told.
        is_weight: which entries are numbers of networks.
        is_per_run: which entries have another value in every run.
    """

    def __init__(self, setup: Setup, frees: Sequence[Free]):
        """Make numbers of a setup free.

        Raises:
            ParameterError: with everything that is wrong.
        """
        if not isinstance(setup, Setup):
            raise TypeError(f"ParameterSpace needs a Setup, not {type(setup).__name__}")
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(setup)):
            raise ParameterError("a ParameterSpace is made of known numbers; make it outside of jit, grad and vmap")
        parts, problems = [], []
        for free in frees:
            if not isinstance(free, Free):
                raise TypeError(f"ParameterSpace takes a list of Free(...), not of {type(free).__name__}")
            part = resolve(free, setup)
            if isinstance(part, ResolvedFree):
                parts.append(part)
            else:
                problems += part
        problems += ownership_conflicts([c for part in parts for c in part.parameters])
        if problems:
            raise ParameterError("\n".join(problems))
        self._frees: tuple[ResolvedFree, ...] = tuple(parts)
        self.unflatten = _unflatten(self._frees, setup)
        self.labels = tuple(label for part in parts for label in part.labels)
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
        weights = [c.parameter.is_weight for part in parts for c in part.parameters[: len(part.initial)]]
        self.is_weight = np.array(weights, dtype=bool)
        self.is_per_run = np.repeat(np.array([part.free.per == "run" for part in parts], dtype=bool), sizes)
        self._values_before = self._display_values([current_values(setup, part.parameters) for part in parts])

    @property
    def names(self) -> tuple[str, ...]:
        """The labels."""
        return self.labels

    @property
    def size(self) -> int:
        """Length of θ."""
        return self.unflatten.size

    def with_initial_values(self, values: Mapping[str, float]) -> "ParameterSpace":
        """The same space with another θ to start from: what an earlier fit, maybe of fewer numbers, has found.

        Args:
            values: entries of θ by their labels; others start where they do.
        """
        return self.with_initial([values.get(label, own) for label, own in zip(self.labels, self.initial, strict=True)])

    def with_initial(self, theta: ArrayLike) -> "ParameterSpace":
        """The same space with another θ to start from."""
        found = copy(self)
        found.initial = np.array(theta, dtype=float)
        return found

    def with_fixed(self, entries: Sequence[int], theta: ArrayLike) -> "ParameterSpace":
        """The same space with some entries of θ held at a value, or at one each."""
        found = copy(self)
        for name in ("initial", "lower", "upper"):
            setattr(found, name, getattr(self, name).copy())
            getattr(found, name)[list(entries)] = theta
        return found

    def put(self, setup: Setup, theta: Float[AnyArray, " n"]) -> Setup:
        """A setup with the numbers that θ means, all others as they are.

        With NumPy's numbers, the result has NumPy's and nothing is compiled; with JAX's, it can be traced.

        Args:
            setup: of the form that the space was made for.
            theta: one number per entry.
        """
        return self.unflatten.put(setup, theta)

    def values(self, theta: Float[AnyArray, " n"]) -> dict[str, float]:
        """Every physical number that θ decides about, by name; of an inertia as a whole all that follow from it."""
        return self._display_values(self.unflatten.values(np.asarray(theta, dtype=float)))

    def run_values(self, theta: Float[AnyArray, " n"]) -> dict[str, float]:
        """Of these numbers those that every run has its own of."""
        return self._display_values(self.unflatten.values(np.asarray(theta, dtype=float)), per="run")

    def value_std(self, theta: Float[AnyArray, " n"], deviation: Float[AnyArray, " n"]) -> np.ndarray:
        """Standard deviations of θ as those of values: half the way that values go along two of them."""
        found, first = [], 0
        for part in self._frees:
            own = slice(first, first + len(part.initial))
            ends = (part.map.value(theta[own] + sign * deviation[own]) for sign in (1.0, -1.0))
            found.append(0.5 * np.abs(np.subtract(*ends)))
            first = own.stop
        return _concatenate(found)

    def theta_of(self, setup: Setup) -> np.ndarray:
        """The θ that puts a setup's own numbers into it.

        Raises:
            ParameterError: there is none, because tied numbers differ, a logarithm does not exist and the like.
        """
        theta = []
        for part, values in zip(self._frees, _read(self.unflatten, self._frees, setup), strict=True):
            single = (values / np.array(part.factors))[:1] if part.factors else values
            theta.append(part.map.theta(single))
        found = _concatenate(theta)
        for label, value in zip(self.labels, found, strict=True):
            if not np.isfinite(value):
                raise ParameterError(f"{label!r} has a value in this setup that its map cannot give")
        self._check_round_trip(setup, found)
        return found

    def table(self, theta: Float[AnyArray, " n"]) -> list[ParameterChange]:
        """What θ makes of every number, one row each."""
        rows, told = [], self._locate_by_name()
        for name, after in self.values(theta).items():
            if name not in told:
                unit = BY_NAME[name.partition("[")[0]].unit
                rows.append(ParameterChange(name, self._values_before[name], after, unit, -np.inf, np.inf, ""))
                continue
            part, k, entry, factor = told[name]
            lower, upper = sorted((factor * float(part.lower[entry]), factor * float(part.upper[entry])))
            at_bound = "lower" if _is_at_bound(after, lower, upper - lower) else ""
            at_bound = "upper" if _is_at_bound(after, upper, upper - lower) else at_bound
            unit = part.parameters[k].unit
            rows.append(ParameterChange(name, self._values_before[name], after, unit, lower, upper, at_bound))
        return rows

    def _locate_by_name(self) -> dict[str, tuple[ResolvedFree, int, int, float]]:
        """For every coordinate its part, number in it, entry of that part's arrays, and factor."""
        return {
            c.name: (part, k, 0 if part.factors else k, part.factors[k] if part.factors else 1.0)
            for part in self._frees
            for k, c in enumerate(part.parameters)
        }

    def _display_values(self, values: list[np.ndarray], per: str | None = None) -> dict[str, float]:
        """Numbers that users want to see, by name, for values of the coordinates of every part, or of some parts."""
        found: dict[str, float] = {}
        shown = {m.group: m.group.display_values(m.values(values)) for m in self.unflatten.groups}
        for part, numbers in zip(self._frees, values, strict=True):
            if per not in (None, part.free.per):
                continue
            for coordinate, value in zip(part.parameters, numbers.tolist(), strict=True):
                place = coordinate.location
                instead = shown[place.group] if isinstance(place, GroupMember) else {}
                found |= instead or {coordinate.name: value}
        return found

    def _check_round_trip(self, setup: Setup, theta: np.ndarray) -> None:
        """Raise if θ does not lead to the setup that it was read from."""
        reached = self.put(setup, theta)
        for label, number in self._shared_entries():
            given, got = (np.ravel(leaf_at(tree, number.path)) for tree in (setup, reached))
            if (
                abs(given[number.index] - got[number.index])
                > ROUND_TRIP_TOLERANCE * np.abs(given[np.isfinite(given)]).max()
            ):
                raise ParameterError(
                    f"{label!r} has values in this setup that no theta gives: numbers that are tied, or that follow "
                    "from others, do not fit each other"
                )

    def _shared_entries(self) -> Iterator[tuple[str, LeafEntry]]:
        """Numbers of a setup that do not just have an entry of θ for themselves, and whose they are."""
        for member in self.unflatten.groups:
            yield from ((member.group.name, number) for number in member.group.entries)
        for part in self._frees:
            if part.factors:
                yield from ((part.free.label, number) for c in part.parameters for number in c.entries)


def ownership_conflicts(coordinates: Sequence[ScalarParameter]) -> list[str]:
    """Numbers that two coordinates decide about, in words."""
    names: set[str] = set()
    owners: dict[LeafEntry, tuple[str | ParameterGroup, str]] = {}
    problems: dict[str, None] = {}
    for coordinate in coordinates:
        if coordinate.name in names:
            problems[f"{coordinate.name!r} is free twice; name it once"] = None
            continue
        names.add(coordinate.name)
        for number in coordinate.entries:
            owner, name = owners.setdefault(number, (coordinate.owner, coordinate.name))
            if owner != coordinate.owner:
                problems[f"{name!r} and {coordinate.name!r} decide about the same number; free one of them"] = None
    return list(problems)


def _unflatten(parts: Sequence[ResolvedFree], setup: Setup) -> Unflatten:
    pieces, done = [], 0
    for part in parts:
        stop = done + len(part.initial)
        pieces.append(ThetaSlice(done, stop, part.map, part.factors, leaf_slices(part.parameters, setup)))
        done = stop
    return Unflatten(done, tuple(pieces), group_inputs([part.parameters for part in parts]))


def _read(placing: Unflatten, parts: Sequence[ResolvedFree], setup: Setup) -> list[np.ndarray]:
    """Values that the coordinates of every part have in any setup."""
    found = [current_values(setup, part.parameters) for part in parts]
    for member in placing.groups:
        try:
            with np.errstate(invalid="ignore", divide="ignore"):
                values = member.group.read(setup, member.is_free)
        except np.linalg.LinAlgError:
            raise ParameterError(f"{member.group.name!r}: this setup has an inertia that no body has") from None
        for source, value in zip(member.sources, values, strict=True):
            if source is not None:
                found[source[0]][source[1]] = value
    return found


def _concatenate(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *parts])


def _is_at_bound(value: float, bound: float, width: float) -> bool:
    """Is a value at a bound, for all that a solver can tell?"""
    if not np.isfinite(bound):
        return False
    return abs(value - bound) <= BOUND_TOLERANCE * (width if np.isfinite(width) else max(abs(value), abs(bound)))
