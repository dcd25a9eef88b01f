"""Exceptions that name the file, line, body, joint or tap at fault."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class HybridsimError(Exception):
    """Base of every error that the library raises on purpose; the command line prints it without a traceback."""


class PrecisionError(HybridsimError):
    """JAX is set to float32 where the engine needs float64."""


class TapError(HybridsimError):
    """A blueprint names a quantity, element or network that does not fit the model."""


class UnsupportedPrimitive(HybridsimError):
    """A function uses something that has no native code."""


class Severity(StrEnum):
    """How bad a problem is."""

    ERROR = "error"
    """The model cannot be used."""
    WARNING = "warning"
    """The model can be used, but probably not as its author meant it."""
    NOTE = "note"
    """Nothing to worry about; told only to who asks what is in a file."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a file or a model, and what to do about it."""

    message: str
    """What is wrong, naming the element."""
    fix: str = ""
    """What the user can do about it."""
    file: str = ""
    """Path of the file, as the user gave it; empty for models built in Python."""
    line: int = 0
    """Line (of a table: row) in the file, counted from 1; 0 where there is none."""
    severity: Severity = Severity.ERROR
    code: str = ""
    """Short stable identifier, e.g. `mass.negative`, for scripts and for `--lenient`; all are in `core.codes`."""
    element: str = ""
    """Name of the body, joint or other element at fault, for programs; the message names it too."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        fix = f"\n    fix: {self.fix}" if self.fix else ""
        return f"{where}{self.severity}: {self.message}{fix}"


class ProblemsError(HybridsimError):
    """Something that a user wrote cannot be used; carries every problem found in one pass."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ModelError(ProblemsError):
    """A model that cannot be used."""


class DataError(ProblemsError):
    """Recorded data that cannot be used."""


class DivergedError(HybridsimError):
    """A simulation diverges where it must not."""


class ParameterError(HybridsimError):
    """A parameter that the model does not have, or that cannot be fitted as told."""


class ModelWarning(UserWarning):
    """A model that can be used but deserves a look."""
