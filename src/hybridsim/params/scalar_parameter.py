"""Coordinate: one number that can be free, with its name and its place in a setup."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.params.catalog import Parameter
from hybridsim.params.leaves import Number, Path, leaf_at
from hybridsim.params.parametrization import Family


@dataclass(frozen=True)
class Part:
    """One of the coordinates of a family."""

    family: Family
    index: int


@dataclass(frozen=True)
class Coordinate:
    """One number that can be free."""

    name: str
    """Its address: `body.mass[link1]`."""
    unit: str
    parameter: Parameter
    place: Number | Part

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Numbers of a setup that depend on it."""
        return (self.place,) if isinstance(self.place, Number) else self.place.family.places

    @property
    def owner(self) -> str | Family:
        """What decides about these numbers: the coordinate itself, or its family."""
        return self.name if isinstance(self.place, Number) else self.place.family


def current_values(setup: Any, coordinates: Sequence[Coordinate]) -> np.ndarray:
    """Values of coordinates in the setup that they were found in."""
    leaves: dict[Path, np.ndarray] = {}
    values = np.empty(len(coordinates))
    for k, coordinate in enumerate(coordinates):
        place = coordinate.place
        if isinstance(place, Part):
            values[k] = place.family.nominal[place.index]
            continue
        if place.path not in leaves:
            leaves[place.path] = np.ravel(leaf_at(setup, place.path))
        values[k] = leaves[place.path][place.index]
    return values
