"""Inertial parameters of a body: `inertial[BODY]` and its variants `.mass`, `.com` and `.diagonal`."""

from collections.abc import Sequence

import numpy as np

from hybridsim.core.errors import ParameterError
from hybridsim.params.catalogue import BY_NAME, INERTIAL, INERTIAL_MASS, SYMMETRIC, XYZ
from hybridsim.params.leaves import LeafEntry, leaf_at
from hybridsim.params.log_cholesky import nominal_body
from hybridsim.params.parametrization import COM, INERTIA, MASS, LogCholeskyInertia, ProportionalInertia
from hybridsim.params.rows import RowName
from hybridsim.params.scalar_parameter import GroupMember, ScalarParameter
from hybridsim.params.setup import Setup

VARIANTS = ("", "mass", "com", "diagonal")

_MASS_AND_COM = ("log_mass_ratio", *(f"com_shift.{c}" for c in XYZ))
COMPONENTS = {
    "": (*_MASS_AND_COM, *(f"cholesky.{c}" for c in SYMMETRIC)),
    "diagonal": (*_MASS_AND_COM, "cholesky.1", "cholesky.2", "cholesky.3"),
}
"""Names of the log-Cholesky parameters: logarithm of the mass ratio, scaled displacement of the centre of mass, and
entries of the factor A of the second moments (`log_cholesky.py`): the logarithms of its diagonal, then the off-diagonal
entries. All are zero for the nominal body."""


def scalar_inertial_parameters(
    address: str, rows: Sequence[RowName], variant: str, setup: Setup
) -> tuple[ScalarParameter, ...]:
    """Inertial parameters of the bodies in `rows`; raises `ParameterError` for physically inconsistent bodies."""
    if variant not in VARIANTS:
        raise ParameterError(
            f"{address!r}: inertial[BODY] has the variants .mass, .com and .diagonal, not {variant!r}; "
            "scalar parameters are body.mass, body.com and body.inertia"
        )
    return tuple(p for row in rows for p in _body_parameters(row, variant, setup))


def _body_parameters(row: RowName, variant: str, setup: Setup) -> list[ScalarParameter]:
    mass, com, inertia = (np.asarray(leaf_at(setup, path))[row.index] for path in (MASS, COM, INERTIA))
    if variant == "com":
        kind = BY_NAME["body.com"]
        return [
            ScalarParameter(f"body.com[{row.name}].{c}", kind.unit, kind, LeafEntry(COM, 3 * row.index + k))
            for k, c in enumerate(XYZ)
        ]
    name = f"inertial[{row.name}]"
    if variant == "mass":
        if not mass > 0.0:
            raise ParameterError(
                f"body {row.name!r} has no positive mass, so its inertia cannot scale with it; leave it out"
            )
        group = ProportionalInertia(f"{name}.mass", row.index, (float(mass),), tuple(inertia.tolist()), row.name)
        return [ScalarParameter(group.name, INERTIAL_MASS.unit, INERTIAL_MASS, GroupMember(group, 0))]
    body = nominal_body(row.name, float(mass), com, inertia, diagonal=variant == "diagonal")
    group = LogCholeskyInertia(name, row.index, (0.0,) * body.size, body, row.name)
    return [
        ScalarParameter(f"{name}.{c}", INERTIAL.unit, INERTIAL, GroupMember(group, k))
        for k, c in enumerate(COMPONENTS[variant])
    ]
