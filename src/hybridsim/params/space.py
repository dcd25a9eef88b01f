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
from hybridsim.core.types import AnyArray, Numbers
from hybridsim.params.catalog import BY_NAME
from hybridsim.params.free import Free
from hybridsim.params.leaves import Number, leaf_at
from hybridsim.params.parametrization import Family
from hybridsim.params.resolve import Resolved, resolved
from hybridsim.params.scalar_parameter import Coordinate, Part, current_values
from hybridsim.params.setup import Setup
from hybridsim.params.unflatten import Piece, Placing, memberships_of, targets_of

AT_BOUND = 1e-9
"""Distance to a bound, by the distance between both, up to which a value counts as being there."""
REACHED = 1e-9
"""By how much of the largest number of an array its numbers may differ from what θ makes of them."""


@dataclass(frozen=True)
class Change:
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
            part = resolved(free, setup)
            if isinstance(part, Resolved):
                parts.append(part)
            else:
                problems += part
        problems += claimed_twice([c for part in parts for c in part.coordinates])
        if problems:
            raise ParameterError("\n".join(problems))
        self._parts: tuple[Resolved, ...] = tuple(parts)
        self.placing = _placing(self._parts, setup)
        self.labels = tuple(label for part in parts for label in part.labels)
        self.units = tuple(c.unit for part in parts for c in part.coordinates[: len(part.start)])
        self.start = _joined([part.map.theta(part.start) for part in parts])
        bounds, priors = [part.theta_bounds() for part in parts], [part.theta_prior() for part in parts]
        self.lower, self.upper = (_joined([pair[k] for pair in bounds]) for k in range(2))
        self.prior_mean, self.prior_std = (_joined([pair[k] for pair in priors]) for k in range(2))
        sizes = [len(part.start) for part in parts]
        self.l1, self.l2 = (
            np.repeat([float(getattr(part.free, option)) for part in parts], sizes) for option in ("l1", "l2")
        )
        self.groups = tuple(part.free.group for part, size in zip(parts, sizes, strict=True) for _ in range(size))
        weights = [c.parameter.is_weight for part in parts for c in part.coordinates[: len(part.start)]]
        self.is_weight = np.array(weights, dtype=bool)
        self.is_per_run = np.repeat(np.array([part.free.per == "run" for part in parts], dtype=bool), sizes)
        self._before = self._shown([current_values(setup, part.coordinates) for part in parts])

    @property
    def names(self) -> tuple[str, ...]:
        """The labels."""
        return self.labels

    @property
    def size(self) -> int:
        """Length of θ."""
        return self.placing.size

    def started_at(self, values: Mapping[str, float]) -> "ParameterSpace":
        """The same space with another θ to start from: what an earlier fit, maybe of fewer numbers, has found.

        Args:
            values: entries of θ by their labels; others start where they do.
        """
        return self.started([values.get(label, own) for label, own in zip(self.labels, self.start, strict=True)])

    def started(self, theta: Numbers) -> "ParameterSpace":
        """The same space with another θ to start from."""
        found = copy(self)
        found.start = np.array(theta, dtype=float)
        return found

    def held(self, entries: Sequence[int], theta: Numbers) -> "ParameterSpace":
        """The same space with some entries of θ held at a value, or at one each."""
        found = copy(self)
        for name in ("start", "lower", "upper"):
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
        return self.placing.put(setup, theta)

    def values(self, theta: Float[AnyArray, " n"]) -> dict[str, float]:
        """Every physical number that θ decides about, by name; of an inertia as a whole all that follow from it."""
        return self._shown(self.placing.coordinates(np.asarray(theta, dtype=float)))

    def run_values(self, theta: Float[AnyArray, " n"]) -> dict[str, float]:
        """Of these numbers those that every run has its own of."""
        return self._shown(self.placing.coordinates(np.asarray(theta, dtype=float)), per="run")

    def deviations(self, theta: Float[AnyArray, " n"], deviation: Float[AnyArray, " n"]) -> np.ndarray:
        """Standard deviations of θ as those of values: half the way that values go along two of them."""
        found, first = [], 0
        for part in self._parts:
            own = slice(first, first + len(part.start))
            ends = (part.map.value(theta[own] + sign * deviation[own]) for sign in (1.0, -1.0))
            found.append(0.5 * np.abs(np.subtract(*ends)))
            first = own.stop
        return _joined(found)

    def theta_of(self, setup: Setup) -> np.ndarray:
        """The θ that puts a setup's own numbers into it.

        Raises:
            ParameterError: there is none, because tied numbers differ, a logarithm does not exist and the like.
        """
        theta = []
        for part, values in zip(self._parts, _read(self.placing, self._parts, setup), strict=True):
            single = (values / np.array(part.factors))[:1] if part.factors else values
            theta.append(part.map.theta(single))
        found = _joined(theta)
        for label, value in zip(self.labels, found, strict=True):
            if not np.isfinite(value):
                raise ParameterError(f"{label!r} has a value in this setup that its map cannot give")
        self._check_reached(setup, found)
        return found

    def table(self, theta: Float[AnyArray, " n"]) -> list[Change]:
        """What θ makes of every number, one row each."""
        rows, told = [], self._entries_by_name()
        for name, after in self.values(theta).items():
            if name not in told:
                unit = BY_NAME[name.partition("[")[0]].unit
                rows.append(Change(name, self._before[name], after, unit, -np.inf, np.inf, ""))
                continue
            part, k, entry, factor = told[name]
            lower, upper = sorted((factor * float(part.lower[entry]), factor * float(part.upper[entry])))
            at_bound = "lower" if _is_at(after, lower, upper - lower) else ""
            at_bound = "upper" if _is_at(after, upper, upper - lower) else at_bound
            unit = part.coordinates[k].unit
            rows.append(Change(name, self._before[name], after, unit, lower, upper, at_bound))
        return rows

    def _entries_by_name(self) -> dict[str, tuple[Resolved, int, int, float]]:
        """For every coordinate its part, number in it, entry of that part's arrays, and factor."""
        return {
            c.name: (part, k, 0 if part.factors else k, part.factors[k] if part.factors else 1.0)
            for part in self._parts
            for k, c in enumerate(part.coordinates)
        }

    def _shown(self, values: list[np.ndarray], per: str | None = None) -> dict[str, float]:
        """Numbers that users want to see, by name, for values of the coordinates of every part, or of some parts."""
        found: dict[str, float] = {}
        shown = {m.family: m.family.shown(m.coordinates(values)) for m in self.placing.memberships}
        for part, numbers in zip(self._parts, values, strict=True):
            if per not in (None, part.free.per):
                continue
            for coordinate, value in zip(part.coordinates, numbers.tolist(), strict=True):
                place = coordinate.place
                instead = shown[place.family] if isinstance(place, Part) else {}
                found |= instead or {coordinate.name: value}
        return found

    def _check_reached(self, setup: Setup, theta: np.ndarray) -> None:
        """Raise if θ does not lead to the setup that it was read from."""
        reached = self.put(setup, theta)
        for label, number in self._numbers():
            given, got = (np.ravel(leaf_at(tree, number.path)) for tree in (setup, reached))
            if abs(given[number.index] - got[number.index]) > REACHED * np.abs(given[np.isfinite(given)]).max():
                raise ParameterError(
                    f"{label!r} has values in this setup that no theta gives: numbers that are tied, or that follow "
                    "from others, do not fit each other"
                )

    def _numbers(self) -> Iterator[tuple[str, Number]]:
        """Numbers of a setup that do not just have an entry of θ for themselves, and whose they are."""
        for member in self.placing.memberships:
            yield from ((member.family.name, number) for number in member.family.places)
        for part in self._parts:
            if part.factors:
                yield from ((part.free.label, number) for c in part.coordinates for number in c.numbers)


def claimed_twice(coordinates: Sequence[Coordinate]) -> list[str]:
    """Numbers that two coordinates decide about, in words."""
    names: set[str] = set()
    owners: dict[Number, tuple[str | Family, str]] = {}
    problems: dict[str, None] = {}
    for coordinate in coordinates:
        if coordinate.name in names:
            problems[f"{coordinate.name!r} is free twice; name it once"] = None
            continue
        names.add(coordinate.name)
        for number in coordinate.numbers:
            owner, name = owners.setdefault(number, (coordinate.owner, coordinate.name))
            if owner != coordinate.owner:
                problems[f"{name!r} and {coordinate.name!r} decide about the same number; free one of them"] = None
    return list(problems)


def _placing(parts: Sequence[Resolved], setup: Setup) -> Placing:
    pieces, done = [], 0
    for part in parts:
        stop = done + len(part.start)
        pieces.append(Piece(done, stop, part.map, part.factors, targets_of(part.coordinates, setup)))
        done = stop
    return Placing(done, tuple(pieces), memberships_of([part.coordinates for part in parts]))


def _read(placing: Placing, parts: Sequence[Resolved], setup: Setup) -> list[np.ndarray]:
    """Values that the coordinates of every part have in any setup."""
    found = [current_values(setup, part.coordinates) for part in parts]
    for member in placing.memberships:
        try:
            with np.errstate(invalid="ignore", divide="ignore"):
                values = member.family.read(setup, member.is_free)
        except np.linalg.LinAlgError:
            raise ParameterError(f"{member.family.name!r}: this setup has an inertia that no body has") from None
        for source, value in zip(member.sources, values, strict=True):
            if source is not None:
                found[source[0]][source[1]] = value
    return found


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *parts])


def _is_at(value: float, bound: float, width: float) -> bool:
    """Is a value at a bound, for all that a solver can tell?"""
    if not np.isfinite(bound):
        return False
    return abs(value - bound) <= AT_BOUND * (width if np.isfinite(width) else max(abs(value), abs(bound)))
