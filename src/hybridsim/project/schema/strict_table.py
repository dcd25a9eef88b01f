"""Base of all tables of a project: strict validation, constrained types, and errors of keys."""

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

KEY_ERROR = "key_error"
"""Error type of `key_error`."""


class StrictTable(BaseModel):
    """A table of a project: no unknown keys, no type conversion, finite values, immutable."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )


def key_error(key: str, message: str, fix: str, code: str = "project.conflict") -> PydanticCustomError:
    """Error of a key, by default one that conflicts with others; of the whole table if the key is empty."""
    # pydantic fills in the braces from the context
    return PydanticCustomError(KEY_ERROR, "{message}", {"key": key, "message": message, "fix": fix, "code": code})
