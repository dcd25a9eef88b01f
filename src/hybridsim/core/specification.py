"""Specifications: immutable records that a user writes in Python or as a table of a TOML file, with checked fields.

    @specification
    class Stage:
        window: Nonnegative | None = None
        \"\"\"Window length [s]; whole runs by default.\"\"\"

A TOML table is validated against the same class that Python calls, so that both have the same keys, defaults, checks
and documentation. Values are neither converted nor guessed: text is not a number, a truth value is not a number.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import ArgsKwargs, CoreSchema, PydanticCustomError, core_schema

Positive = Annotated[float, Field(gt=0.0)]
Nonnegative = Annotated[float, Field(ge=0.0)]
Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
"""A fraction in [0, 1)."""
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
NonemptyText = Annotated[str, Field(min_length=1)]
if TYPE_CHECKING:
    # what users may write; lists are stored as tuples
    Names = str | Sequence[str]
    Pair = Sequence[float]
else:
    Names = NonemptyText | Annotated[tuple[NonemptyText, ...], Field(min_length=1)]
    Pair = tuple[Positive, Positive]
"""One name or several; two positive numbers."""

STRICT = ConfigDict(
    extra="forbid",
    strict=True,
    allow_inf_nan=False,
    use_attribute_docstrings=True,
    hide_input_in_errors=True,
    arbitrary_types_allowed=True,
)
"""No unknown keys, no conversion of types, finite values."""

SETTING_ERROR = "setting_error"
"""Error type of `setting_error`."""

Class = TypeVar("Class", bound=type)


class StrictTable(BaseModel):
    """A table of a TOML file that is no specification in Python."""

    model_config = STRICT | ConfigDict(frozen=True)


@dataclass_transform(frozen_default=True, field_specifiers=(Field, field))
def specification(cls: Class) -> Class:
    """Turn a class into a specification; invalid arguments raise `SpecificationError`.

    A method `check_consistency` of the class is called for instances that are made in Python, not for tables of a file,
    whose problems are collected.
    """
    made: Any = pydantic_dataclass(cls, config=STRICT, frozen=True)
    for base in made.__mro__[1:]:
        for name, inherited in setting_fields(base).items():
            field = made.__pydantic_fields__[name]
            field.description = field.description or inherited.description
    validate, signature = made.__init__, inspect.signature(made)

    def __init__(self, *args, **kwargs):
        from hybridsim.core.specification_errors import specification_error, unknown_argument_error

        if unknown := [name for name in kwargs if name not in signature.parameters]:
            raise unknown_argument_error(type(self), unknown)
        arguments = {name: as_plain(value) for name, value in signature.bind(*args, **kwargs).arguments.items()}
        try:
            validate(self, **arguments)
        except ValidationError as error:
            raise specification_error(error, type(self), arguments) from None
        if (check := getattr(self, "check_consistency", None)) is not None:
            check()

    __init__.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    made.__init__ = __init__
    made.__get_pydantic_core_schema__ = classmethod(_nested_schema)
    return made


def _nested_schema(cls: type, source: Any, handler: Any) -> CoreSchema:
    """Schema of a specification within another one or in a file: an instance, or a table of its fields."""
    if "__pydantic_validator__" not in vars(cls):
        return handler(source)  # while a subclass is being defined

    def validate(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise PydanticCustomError("dict_type", "must be a table")
        return validate_table(cls, value)

    # pydantic merges a ValidationError that a validator raises into its own, with the path of the value
    return core_schema.no_info_plain_validator_function(validate)


def validate_table(cls: Any, table: Mapping[str, Any]) -> Any:
    """Instance of a specification or a `StrictTable` from a table of its fields; raises pydantic's ValidationError."""
    if issubclass(cls, BaseModel):
        return cls.model_validate(table)
    made = object.__new__(cls)
    vars(cls)["__pydantic_validator__"].validate_python(ArgsKwargs((), dict(table)), self_instance=made)
    return made


def setting_error(setting: str, message: str, fix: str, code: str = "project.conflict") -> PydanticCustomError:
    """Error of a setting, by default one that conflicts with others; of the whole table if `setting` is empty."""
    # pydantic fills in the braces from the context
    context = {"key": setting, "message": message, "fix": fix, "code": code}
    return PydanticCustomError(SETTING_ERROR, "{message}", context)


def as_plain(value: Any) -> Any:
    """Value with lists as tuples, and NumPy and JAX arrays as floats or nested tuples."""
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return tuple(map(as_plain, value))
    if isinstance(value, Mapping):
        return {key: as_plain(entry) for key, entry in value.items()}
    is_array = hasattr(value, "__array__") and hasattr(value, "tolist")
    return as_plain(np.asarray(value).tolist()) if is_array else value


class OneOf:
    """Annotation of a text that is one of several names: `Annotated[str, OneOf(lambda: INTEGRATORS)]`."""

    def __init__(self, names: Callable[[], Iterable[str]]):
        """Define the names; evaluated on first use."""
        self.names = names

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        del source, handler
        return core_schema.no_info_plain_validator_function(self._validate)

    def _validate(self, value: Any) -> str:
        if not isinstance(value, str):
            raise PydanticCustomError("string_type", "must be text")
        names = list(self.names())
        if value not in names:
            raise PydanticCustomError("choice", "unknown name", {"key": "", "valid": names})
        return value


class TableOf:
    """Annotation of a field whose value is a table of a specification that is loaded on first use."""

    def __init__(self, specification: Callable[[], type]):
        """Name the specification."""
        self.specification = specification

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        del source, handler
        return core_schema.no_info_plain_validator_function(self._validate)

    def _validate(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise PydanticCustomError("dict_type", "must be a table")
        return validate_table(self.specification(), value)


class Choice:
    """Annotation of a field whose value is one of several kinds, selected by a key of its table.

        solver: Annotated[Solver, Choice("name", lambda: SOLVERS, base=lambda: Solver, default="lm")]

    accepts the name of a kind, a table with this key and the settings of the kind, or an instance of the base class.
    """

    def __init__(
        self,
        key: str,
        kinds: Callable[[], Mapping[str, type]],
        *,
        base: Callable[[], type],
        default: str | None = None,
        omit: Callable[[type], Collection[str]] = lambda kind: (),
        as_table: bool = False,
    ):
        """Define a choice.

        Args:
            key: key that selects the kind.
            kinds: the classes by name, evaluated on first use: specifications, or components whose tables are derived.
            base: the class of all instances, also of those that the user defines.
            default: name of the kind of a table without the key.
            omit: arguments of a component that are no settings.
            as_table: validate components as tables, because arguments that are no settings are still missing.
        """
        self.key, self.default = key, default
        self._kinds, self._base, self._omit, self._as_table = kinds, base, omit, as_table

    @property
    def names(self) -> list[str]:
        """Names of the kinds."""
        return list(self._kinds())

    def name_of(self, kind: type) -> str | None:
        """Name of a kind; None for a class of the user's."""
        return next((name for name, entry in self._kinds().items() if entry is kind), None)

    def table(self, name: str) -> type:
        """Specification or table of a kind."""
        from hybridsim.core.derived_table import table_of

        kind = self._kinds()[name]
        return kind if is_table(kind) else table_of(kind, tuple(self._omit(kind)))

    def validate(self, value: Any) -> Any:
        """An instance of one of the kinds, or of the user's own class."""
        if value is None or isinstance(value, str | Mapping):
            table = {self.key: value} if isinstance(value, str) else value or {}
        elif isinstance(value, self._base()):
            return value
        else:
            raise PydanticCustomError("dict_type", "must be a table")
        name = table.get(self.key, self.default)
        if not isinstance(name, str) or name not in self.names:
            raise PydanticCustomError("choice", "unknown kind", {"key": self.key, "valid": self.names})
        made = validate_table(self.table(name), {key: entry for key, entry in table.items() if key != self.key})
        if self._as_table or not isinstance(made, StrictTable):
            return made
        try:
            return made.component(**made.settings)  # pyright: ignore[reportAttributeAccessIssue]
        except (ValueError, TypeError) as error:
            raise setting_error("", f"is invalid: {error}", "correct its settings", "project.value") from None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        del source, handler
        return core_schema.no_info_plain_validator_function(self.validate)


def setting_fields(cls: type) -> dict[str, Any]:
    """Fields of a specification or table by name, with annotation, default and documentation."""
    return dict(getattr(cls, "model_fields", None) or getattr(cls, "__pydantic_fields__", {}))


def is_table(cls: Any) -> bool:
    """Whether a class is a specification or a table."""
    return isinstance(cls, type) and bool(setting_fields(cls))


def tables_of(annotation: Any, metadata: Sequence[Any] = ()) -> Iterator[tuple[type, Choice | None]]:
    """Classes of the tables that a field can hold, each with the choice that selects it."""
    choices = [entry for entry in (*metadata, *getattr(annotation, "__metadata__", ())) if isinstance(entry, Choice)]
    for entry in (*metadata, *getattr(annotation, "__metadata__", ())):
        if isinstance(entry, TableOf):
            yield entry.specification(), None
            return
    if choices:
        yield from ((choices[0].table(name), choices[0]) for name in choices[0].names)
        return
    if is_table(annotation):
        yield annotation, None
    for part in get_args(annotation):
        yield from tables_of(part)
