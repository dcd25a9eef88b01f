"""A table of everything in a setup that can be free."""

from collections.abc import Iterator
from dataclasses import dataclass

from hybridsim.core.errors import ParameterError
from hybridsim.params.address import OPEN_PARTS, coordinates_at
from hybridsim.params.catalog import CATALOG, INERTIAL, Rows
from hybridsim.params.rows import rows_of
from hybridsim.params.scalar_parameter import current_values
from hybridsim.params.setup import Setup


@dataclass(frozen=True)
class Listed:
    """One row of the table."""

    address: str
    value: float | None
    """Current one; none where an address means many numbers."""
    unit: str
    text: str


def listing(setup: Setup) -> list[Listed]:
    """Every number with a name; a network's arrays and a body's inertia as a whole have one row each."""
    return [*_numbers(setup), *_inertias(setup), *_open_parts(setup)]


def _numbers(setup: Setup) -> Iterator[Listed]:
    for parameter in CATALOG:
        if not rows_of(parameter.rows, setup):
            continue
        try:
            coordinates = coordinates_at(parameter.name, setup)
        except ParameterError:
            continue  # without gravity it has no magnitude
        for coordinate, value in zip(coordinates, current_values(setup, coordinates).tolist(), strict=True):
            yield Listed(coordinate.name, value, coordinate.unit, parameter.text)


def _inertias(setup: Setup) -> Iterator[Listed]:
    for row in rows_of(Rows.BODY, setup):
        try:
            count = len(coordinates_at(f"{INERTIAL.name}[{row.name}]", setup))
        except ParameterError:
            continue  # a body without mass, or an impossible one
        yield Listed(f"{INERTIAL.name}[{row.name}]", None, INERTIAL.unit, f"{INERTIAL.text} {count} numbers.")


def _open_parts(setup: Setup) -> Iterator[Listed]:
    for find in OPEN_PARTS.values():
        for leaf in find(setup):
            if leaf.parameter.is_weight:
                shape = "×".join(map(str, leaf.shape)) or "1"
                yield Listed(leaf.name, None, leaf.parameter.unit, f"{leaf.parameter.text} {shape} numbers.")
                continue
            coordinates = coordinates_at(leaf.name, setup)
            for coordinate, value in zip(coordinates, current_values(setup, coordinates).tolist(), strict=True):
                yield Listed(coordinate.name, value, coordinate.unit, leaf.parameter.text)
