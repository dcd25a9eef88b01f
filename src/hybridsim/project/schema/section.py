"""What all sections of a project have in common: strictness, kinds of numbers, and how a section says what is wrong."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
"""A part of something, but not all of it."""
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Text = Annotated[str, Field(min_length=1)]

CONFLICT = "conflict"
"""Type of the errors that are made here."""


class Section(BaseModel):
    """A table of a project: no other keys than its own, nothing converted, finite numbers, nothing changed later."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )


def conflict(key: str, message: str, fix: str) -> PydanticCustomError:
    """What is wrong with a key beside others, or with a section as a whole if the key is empty."""
    # braces are filled in by pydantic, from what is given beside
    return PydanticCustomError(CONFLICT, "{message}", {"key": key, "message": message, "fix": fix})
