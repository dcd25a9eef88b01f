"""Base of all sections of a project: strict validation, constrained types, and errors of conflicting keys."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Positive = Annotated[float, Field(gt=0.0)]
Nonnegative = Annotated[float, Field(ge=0.0)]
Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
"""A fraction in [0, 1)."""
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
NonemptyText = Annotated[str, Field(min_length=1)]

CONFLICT = "conflict"
"""Error type of `conflict`."""


class Section(BaseModel):
    """A table of a project: no unknown keys, no type conversion, finite values, immutable."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )


def conflict(key: str, message: str, fix: str) -> PydanticCustomError:
    """Error of a key that conflicts with others, or of the whole section if the key is empty."""
    # pydantic fills in the braces from the context
    return PydanticCustomError(CONFLICT, "{message}", {"key": key, "message": message, "fix": fix})
