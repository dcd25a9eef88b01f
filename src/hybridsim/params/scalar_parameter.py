"""ScalarParameter: one scalar that can be free, with its name and its location in a setup."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.params.catalogue import ParameterKind
from hybridsim.params.leaves import LeafEntry, Path, leaf_at
from hybridsim.params.parametrization import ParameterGroup


@dataclass(frozen=True)
class GroupMember:
    """One of the parameters of a group."""

    group: ParameterGroup
    index: int


@dataclass(frozen=True)
class ScalarParameter:
    """One scalar that can be free."""

    name: str
    """Its address: `body.mass[link1]`."""
    unit: str
    kind: ParameterKind
    location: LeafEntry | GroupMember

    @property
    def entries(self) -> tuple[LeafEntry, ...]:
        """Array entries of a setup that depend on it."""
        return (self.location,) if isinstance(self.location, LeafEntry) else self.location.group.entries

    @property
    def owner(self) -> str | ParameterGroup:
        """The group, or the name of the parameter, that determines `entries`."""
        return self.name if isinstance(self.location, LeafEntry) else self.location.group


def current_values(setup: Any, parameters: Sequence[ScalarParameter]) -> np.ndarray:
    """Values of parameters in the setup that they were resolved in."""
    leaves: dict[Path, np.ndarray] = {}
    values = np.empty(len(parameters))
    for k, parameter in enumerate(parameters):
        location = parameter.location
        if isinstance(location, GroupMember):
            values[k] = location.group.nominal[location.index]
            continue
        if location.path not in leaves:
            leaves[location.path] = np.ravel(leaf_at(setup, location.path))
        values[k] = leaves[location.path][location.index]
    return values
