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

    def __init__(self, message: str, *, address: str = ""):
        """Describe the error; `address` is the address at fault, if there is one."""
        self.address = address
        super().__init__(message)


class SettingError(ValueError):
    """An invalid setting of a component, such as a contact model or a network."""

    def __init__(self, message: str, setting: str):
        """Describe the error and name the setting."""
        self.setting = setting
        super().__init__(message)


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
    path: tuple[str | int, ...] = ()
    """Place in a specification: `("channel", 1, "unit")`; empty for problems elsewhere."""

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


class SpecificationError(ProblemsError):
    """Arguments that cannot be used: an invalid value, a name that the model or a recording does not have."""


class FileError(ProblemsError):
    """A file that cannot be written."""

    def __init__(self, problems: Iterable[Problem], reason: str = ""):
        """Carry the problems; `reason` is that of the operating system."""
        self.reason = reason
        super().__init__(problems)


class FolderError(HybridsimError):
    """A run folder that cannot be used as requested."""

    def __init__(self, message: str, *, python: str, command: str):
        """Describe the error, with advice for Python and for the command line."""
        self.message, self.command_advice = message, command
        super().__init__(f"{message}: {python}" if python else message)

    def for_command_line(self) -> str:
        """The message with advice for the command line."""
        return f"{self.message}: {self.command_advice}"


class DivergedError(HybridsimError):
    """A simulation diverged where a finite result is required."""


class ParameterError(HybridsimError):
    """A parameter that the model does not have, or that cannot be fitted as specified."""

    def __init__(self, message: str, fix: str = ""):
        """Describe the error and how to fix it."""
        self.message, self.fix = message, fix
        super().__init__(f"{message}; {fix}" if fix else message)


class ModelWarning(UserWarning):
    """A model or an estimate that can be used, but has suspicious properties."""
