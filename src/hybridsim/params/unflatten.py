"""Placing: how a vector θ becomes numbers of a setup. Static and hashable, a program's name can spell it.

A piece turns a slice of θ into coordinates by one map. Coordinates that are numbers of the setup are put in place as
they are; those of families (rotations, axes, inertias) are collected first, because several pieces may have some.
"""

from dataclasses import dataclass
from itertools import groupby

import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray, require_float64
from hybridsim.params.leaves import LeafEntry, LeafWriter, Path, is_jax, leaf_at
from hybridsim.params.maps import ParameterMap
from hybridsim.params.parametrization import ParameterGroup, stack_scalars
from hybridsim.params.scalar_parameter import GroupMember, ScalarParameter
from hybridsim.params.setup import Setup


@dataclass(frozen=True)
class LeafSlice:
    """Coordinates of a piece that lie in one leaf."""

    path: Path
    indices: tuple[int, ...]
    """Their places, or none if they are all numbers of the leaf in order."""
    first: int
    size: int


@dataclass(frozen=True)
class ThetaSlice:
    """Coordinates with one map."""

    first: int
    stop: int
    """Entries of θ."""
    map: ParameterMap
    factors: tuple[float, ...]
    """Of the single entry, for coordinates that are tied; otherwise empty."""
    leaf_slices: tuple[LeafSlice, ...]

    def values(self, theta: AnyArray) -> AnyArray:
        """Values of the coordinates; in JAX if θ is."""
        values = self.map.value(theta[self.first : self.stop])
        return np.array(self.factors) * values if self.factors else values


@dataclass(frozen=True)
class GroupInputs:
    """A family, and where its coordinates come from."""

    group: ParameterGroup
    sources: tuple[tuple[int, int] | None, ...]
    """Piece and position in it; none for a coordinate that stays as it was."""

    @property
    def is_free(self) -> np.ndarray:
        """Which coordinates are free."""
        return np.array([source is not None for source in self.sources])

    def values(self, values: list[AnyArray]) -> AnyArray:
        """Its coordinates from those of all pieces."""
        nominal = self.group.nominal
        return stack_scalars([nominal[k] if s is None else values[s[0]][s[1]] for k, s in enumerate(self.sources)])


@dataclass(frozen=True)
class Unflatten:
    """From θ to a setup."""

    size: int
    slices: tuple[ThetaSlice, ...]
    groups: tuple[GroupInputs, ...]

    def values(self, theta: AnyArray) -> list[AnyArray]:
        """Values of the coordinates of every piece."""
        return [piece.values(theta) for piece in self.slices]

    def put(self, setup: Setup, theta: Float[AnyArray, " n"]) -> Setup:
        """A setup with the numbers that θ means; in NumPy, unless JAX traces something."""
        if np.shape(theta) != (self.size,):
            raise ValueError(f"theta has the shape {np.shape(theta)}, but {self.size} numbers are free")
        if is_jax(theta):
            require_float64()
        else:
            theta = np.asarray(theta, dtype=float)
        values, writing = self.values(theta), LeafWriter(setup)
        for piece, numbers in zip(self.slices, values, strict=True):
            for target in piece.leaf_slices:
                writing.put(target.path, target.indices, numbers[target.first : target.first + target.size])
        for member in self.groups:
            member.group.write(writing, member.values(values))
        return writing.result()


def leaf_slices(coordinates: tuple[ScalarParameter, ...], setup: Setup) -> tuple[LeafSlice, ...]:
    """The leaves that coordinates lie in, those of families left out."""
    places = [(k, c.location) for k, c in enumerate(coordinates) if isinstance(c.location, LeafEntry)]
    found = []
    for path, group in groupby(places, key=lambda item: item[1].path):
        members = list(group)
        for run in _consecutive_runs(members):
            indices = tuple(place.index for _, place in run)
            is_whole = indices == tuple(range(int(np.size(leaf_at(setup, path)))))
            found.append(LeafSlice(path, () if is_whole else indices, run[0][0], len(run)))
    return tuple(found)


def _consecutive_runs(members: list[tuple[int, LeafEntry]]) -> list[list[tuple[int, LeafEntry]]]:
    """Runs of coordinates without others between them."""
    runs: list[list[tuple[int, LeafEntry]]] = []
    for member in members:
        if runs and member[0] == runs[-1][-1][0] + 1:
            runs[-1].append(member)
        else:
            runs.append([member])
    return runs


def group_inputs(pieces: list[tuple[ScalarParameter, ...]]) -> tuple[GroupInputs, ...]:
    """Families that the coordinates of pieces belong to."""
    sources: dict[ParameterGroup, dict[int, tuple[int, int]]] = {}
    for p, coordinates in enumerate(pieces):
        for k, coordinate in enumerate(coordinates):
            if isinstance(coordinate.location, GroupMember):
                sources.setdefault(coordinate.location.group, {})[coordinate.location.index] = (p, k)
    return tuple(
        GroupInputs(family, tuple(places.get(k) for k in range(len(family.nominal))))
        for family, places in sources.items()
    )
