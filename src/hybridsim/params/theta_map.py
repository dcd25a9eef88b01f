"""ThetaMap: the map from θ to a setup. Static and hashable, so that it can be part of a cache key.

Each slice of θ is mapped to parameter values by one map. Values stored directly are written to their leaves;
group parameters (of rotations, axes, inertias) are collected first, as a group may span several slices.
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
    """Parameters of a slice of θ that are consecutive and lie in one leaf."""

    path: Path
    indices: tuple[int, ...]
    """Flat indices into the leaf; empty for the whole leaf in order."""
    first: int
    """Position of the first parameter in the slice."""
    size: int


@dataclass(frozen=True)
class ThetaSlice:
    """Entries of θ that share one map."""

    first: int
    stop: int
    """Range of entries of θ."""
    map: ParameterMap
    factors: tuple[float, ...]
    """Factor of each parameter if they are tied to a single entry; else empty."""
    leaf_slices: tuple[LeafSlice, ...]

    def values(self, theta: AnyArray) -> AnyArray:
        """Values of the parameters; a JAX array if θ is."""
        values = self.map.value(theta[self.first : self.stop])
        return np.array(self.factors) * values if self.factors else values


@dataclass(frozen=True)
class GroupInputs:
    """A parameter group and the sources of its group parameters."""

    group: ParameterGroup
    sources: tuple[tuple[int, int] | None, ...]
    """For each group parameter, the index of a slice and the position in it; None for a fixed one."""

    @property
    def is_free(self) -> np.ndarray:
        """Mask of the free group parameters."""
        return np.array([source is not None for source in self.sources])

    def values(self, values: list[AnyArray]) -> AnyArray:
        """Group parameters from the values of all slices."""
        nominal = self.group.nominal
        return stack_scalars([nominal[k] if s is None else values[s[0]][s[1]] for k, s in enumerate(self.sources)])


@dataclass(frozen=True)
class ThetaMap:
    """Map from θ to a setup."""

    size: int
    slices: tuple[ThetaSlice, ...]
    group_inputs: tuple[GroupInputs, ...]

    def values(self, theta: AnyArray) -> list[AnyArray]:
        """Parameter values of each slice."""
        return [part.values(theta) for part in self.slices]

    def put(self, setup: Setup, theta: Float[AnyArray, " n"]) -> Setup:
        """A setup with the values of θ; NumPy arrays unless something is a JAX array."""
        if np.shape(theta) != (self.size,):
            raise ValueError(f"theta has shape {np.shape(theta)}, but there are {self.size} free parameters")
        if is_jax(theta):
            require_float64()
        else:
            theta = np.asarray(theta, dtype=float)
        values, writer = self.values(theta), LeafWriter(setup)
        for part, part_values in zip(self.slices, values, strict=True):
            for target in part.leaf_slices:
                writer.put(target.path, target.indices, part_values[target.first : target.first + target.size])
        for inputs in self.group_inputs:
            inputs.group.write(writer, inputs.values(values))
        return writer.result()


def leaf_slices(parameters: tuple[ScalarParameter, ...], setup: Setup) -> tuple[LeafSlice, ...]:
    """Leaf slices of parameters that are stored directly, i.e. not in groups."""
    entries = [(k, p.location) for k, p in enumerate(parameters) if isinstance(p.location, LeafEntry)]
    slices = []
    for path, group in groupby(entries, key=lambda item: item[1].path):
        members = list(group)
        for run in _consecutive_runs(members):
            indices = tuple(entry.index for _, entry in run)
            is_whole = indices == tuple(range(int(np.size(leaf_at(setup, path)))))
            slices.append(LeafSlice(path, () if is_whole else indices, run[0][0], len(run)))
    return tuple(slices)


def _consecutive_runs(members: list[tuple[int, LeafEntry]]) -> list[list[tuple[int, LeafEntry]]]:
    """Runs of consecutive parameters."""
    runs: list[list[tuple[int, LeafEntry]]] = []
    for member in members:
        if runs and member[0] == runs[-1][-1][0] + 1:
            runs[-1].append(member)
        else:
            runs.append([member])
    return runs


def group_inputs(slices: list[tuple[ScalarParameter, ...]]) -> tuple[GroupInputs, ...]:
    """The groups that the parameters of slices belong to, with the sources of their group parameters."""
    sources: dict[ParameterGroup, dict[int, tuple[int, int]]] = {}
    for s, parameters in enumerate(slices):
        for k, parameter in enumerate(parameters):
            if isinstance(parameter.location, GroupMember):
                sources.setdefault(parameter.location.group, {})[parameter.location.index] = (s, k)
    return tuple(
        GroupInputs(group, tuple(members.get(k) for k in range(len(group.nominal))))
        for group, members in sources.items()
    )
