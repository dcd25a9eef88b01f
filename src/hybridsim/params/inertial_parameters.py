"""Coordinates of a body's inertia as a whole: `inertial[BODY]` and its variants `.mass`, `.com` and `.diagonal`."""

from collections.abc import Sequence

import numpy as np

from hybridsim.core.errors import ParameterError
from hybridsim.params.catalog import BY_NAME, INERTIAL, INERTIAL_MASS, SYMMETRIC, XYZ
from hybridsim.params.inertial import nominal_body
from hybridsim.params.leaves import Number, leaf_at
from hybridsim.params.parametrization import COM, INERTIA, MASS, GrowingMass, PossibleBody
from hybridsim.params.rows import Row
from hybridsim.params.scalar_parameter import Coordinate, Part
from hybridsim.params.setup import Setup

VARIANTS = ("", "mass", "com", "diagonal")

_START = ("mass", *(f"com.{c}" for c in XYZ))
COMPONENTS = {
    "": (*_START, *(f"spread.{c}" for c in SYMMETRIC)),
    "diagonal": (*_START, "spread.1", "spread.2", "spread.3"),
}
"""Names of the numbers of a possible body: log mass, centre of mass, and how its mass spreads about that."""


def inertial_coordinates(address: str, rows: Sequence[Row], variant: str, setup: Setup) -> tuple[Coordinate, ...]:
    """The coordinates of these bodies; raises `ParameterError` for bodies that cannot be."""
    if variant not in VARIANTS:
        raise ParameterError(
            f"{address!r}: an inertia as a whole has the variants .mass, .com and .diagonal, not {variant!r}; single "
            "numbers are body.mass, body.com and body.inertia"
        )
    return tuple(c for row in rows for c in _of_body(row, variant, setup))


def _of_body(row: Row, variant: str, setup: Setup) -> list[Coordinate]:
    mass, com, inertia = (np.asarray(leaf_at(setup, path))[row.index] for path in (MASS, COM, INERTIA))
    if variant == "com":
        parameter = BY_NAME["body.com"]
        return [
            Coordinate(f"body.com[{row.name}].{c}", parameter.unit, parameter, Number(COM, 3 * row.index + k))
            for k, c in enumerate(XYZ)
        ]
    name = f"inertial[{row.name}]"
    if variant == "mass":
        if not mass > 0.0:
            raise ParameterError(f"body {row.name!r} has no mass, so that nothing can grow with it; leave it out")
        family = GrowingMass(f"{name}.mass", row.index, (float(mass),), tuple(inertia.tolist()), row.name)
        return [Coordinate(family.name, INERTIAL_MASS.unit, INERTIAL_MASS, Part(family, 0))]
    body = nominal_body(row.name, float(mass), com, inertia, diagonal=variant == "diagonal")
    whole = PossibleBody(name, row.index, (0.0,) * body.size, body, row.name)
    return [
        Coordinate(f"{name}.{c}", INERTIAL.unit, INERTIAL, Part(whole, k)) for k, c in enumerate(COMPONENTS[variant])
    ]
