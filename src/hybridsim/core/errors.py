"""Exceptions that name the file, line, body, joint or tap at fault."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class HybridsimError(Exception):
    """Base class of the library's errors; the command line prints them without a traceback."""


class PrecisionError(HybridsimError):
    """JAX is set to float32 where the engine needs float64."""


class TapError(HybridsimError):
    """A blueprint refers to a quantity, element or network that does not match the model."""


class UnsupportedOperationError(HybridsimError):
    """A function uses an operation that the native back-end does not support."""


class Severity(StrEnum):
    """Severity of a problem."""

    ERROR = "error"
    """The model or the data cannot be used."""
    WARNING = "warning"
    """The model or the data can be used, but are probably not what their author intended."""
    NOTE = "note"
    """Harmless; reported only when a file is inspected."""


@dataclass(frozen=True)
class Problem:
    """A problem in a file or a model, and how to fix it."""

    message: str
    """Description of the problem, with the name of the element."""
    fix: str = ""
    """Suggested fix."""
    file: str = ""
    """Path of the file, as given by the user; empty for models built in Python."""
    line: int = 0
    """Line in the file, or row of a table, counted from 1; 0 if none."""
    severity: Severity = Severity.ERROR
    code: str = ""
    """Short stable identifier, e.g. `mass.negative`, for scripts and for `--tolerate`; listed in `core.codes`."""
    element: str = ""
    """Name of the body, joint or other element at fault, for programs; the message contains it too."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        fix = f"\n    fix: {self.fix}" if self.fix else ""
        return f"{where}{self.severity}: {self.message}{fix}"


class ProblemsError(HybridsimError):
    """Input that cannot be used; carries all problems found in one pass."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ModelError(ProblemsError):
    """A model that cannot be used."""


class DataError(ProblemsError):
    """Recorded data that cannot be used."""


class FileError(ProblemsError):
    """A file that cannot be written."""


class DivergedError(HybridsimError):
    """A simulation diverged where a finite result is required."""


class ParameterError(HybridsimError):
    """A parameter that the model does not have, or that cannot be fitted as specified."""


class ModelWarning(UserWarning):
    """A model or an estimate that can be used, but has suspicious properties."""
