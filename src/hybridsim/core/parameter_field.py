"""Declaration of a component's parameter on its field: unit, description and physical limits.

kd: PerActuator = eqx.field(converter=as_floats, metadata=parameter("N·m·s/rad", "Gain.", reason=ADDS_ENERGY))
"""

from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

ADDS_ENERGY = "a negative value would add energy"
NOT_RESTORING = "a negative value would make the equilibrium unstable"
NO_ADHESION = "a negative value would make the contact adhesive"
SYMMETRIC = "it is a symmetric limit"
DIVIDES = "it is a divisor"
IS_TIME = "it is a time"
"""Reasons of limits."""
_KEY = "parameter"


class Sign(StrEnum):
    """Physical constraint on the sign of a parameter."""

    NONE = "any"
    NONNEGATIVE = "nonnegative"
    POSITIVE = "positive"


@dataclass(frozen=True)
class ParameterField:
    """What is known about the parameter in a field."""

    unit: str = ""
    description: str = ""
    """One sentence, for tables."""
    sign: Sign = Sign.NONE
    reason: str = ""
    """Why the sign is constrained or there is an upper limit."""
    upper_limit: float = float("inf")
    """Largest physically meaningful value."""
    typical: float = 1.0
    """Magnitude of a typical change, used where neither value nor bounds provide a scale."""


def parameter(unit: str, description: str, sign: Sign = Sign.NONNEGATIVE, reason: str = "", **options) -> dict:
    """Metadata of a field that holds a parameter; the arguments are the fields of `ParameterField`."""
    return {_KEY: ParameterField(unit, description, sign, reason, **options)}


def parameter_field(component: type, name: str) -> ParameterField | None:
    """Declaration of a field; None if there is none."""
    own_fields = fields(component) if is_dataclass(component) else ()
    found: Any = next((field.metadata.get(_KEY) for field in own_fields if field.name == name), None)
    return found
