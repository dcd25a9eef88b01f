"""Problems of a specification, from pydantic's validation errors: what is wrong, where, and how to fix it.

The place of a problem is a key path, such as `("channel", 1, "unit")`. A locator renders it for the user: as an
argument in Python, as a line of a TOML file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, get_args, get_origin, runtime_checkable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hybridsim.core.errors import Problem, SpecificationError
from hybridsim.core.key_path import KeyPath, format_key_path, format_value, value_at
from hybridsim.core.messages import name_hint, spelling_suggestion
from hybridsim.core.specification import SETTING_ERROR, Choice, is_table, setting_fields, tables_of

DISCRIMINATORS = ("kind", "name")
"""Keys that select the class of a table."""

NAMING_KEYS = ("name", "measures", "outputs")
"""Keys whose value names a table in messages."""

_TYPES = {
    "float_type": "a number",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "string_type": "text",
    "bool_type": "True or False",
    "tuple_type": "a list",
    "sequence_type": "a list",
    "mapping_type": "a dictionary",
    "dict_type": "an instance, or a dictionary of its settings",
    "model_type": "an instance, or a dictionary of its settings",
    "finite_number": "finite",
    "too_short": "a nonempty list",
    "string_too_short": "nonempty text",
}
"""Required types, in words."""
_TOML_TYPES = {
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "tuple_type": "a list in brackets",
    "sequence_type": "a list in brackets",
    "mapping_type": "a table",
    "dict_type": "a table",
    "model_type": "a table",
}
"""Required types in the words of a TOML file, where they differ."""
_RANGES = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
_MISSING_KEY = ("missing", "missing_argument")


@runtime_checkable
class Locator(Protocol):
    """Rendering of key paths for the user."""

    @property
    def parsed(self) -> Any:
        """The validated data."""
        ...

    @property
    def schema(self) -> type:
        """Class that they were validated against."""
        ...

    @property
    def is_file(self) -> bool:
        """Whether they are the sections of a file."""
        ...

    @property
    def renamed_keys(self) -> Mapping[str, str]:
        """Current names of keys of earlier versions."""
        ...

    def problem(self, key_path: KeyPath, message: str, fix: str, code: str) -> Problem:
        """A problem at a key or section."""
        ...

    def section(self, key_path: KeyPath) -> str:
        """Name of a table."""
        ...

    def key(self, key_path: KeyPath) -> str:
        """Name of a key."""
        ...


class ArgumentLocator(NamedTuple):
    """Names of arguments in Python."""

    schema: type
    parsed: Mapping[str, Any]
    is_file: bool = False
    renamed_keys: Mapping[str, str] = {}

    def problem(self, key_path: KeyPath, message: str, fix: str, code: str) -> Problem:
        """A problem with an argument."""
        return Problem(message, fix, code=code, element=format_key_path(key_path), path=key_path)

    def section(self, key_path: KeyPath) -> str:
        """Name of a record: `Free('joint.damping[*]')`, `solver of Stage`."""
        names = [self.parsed[key] for key in NAMING_KEYS if isinstance(self.parsed.get(key), str)]
        record = f"{self.schema.__name__}({names[0]!r})" if names and names[0] else self.schema.__name__
        record = getattr(self.schema, "python_name", record)
        return f"{format_key_path(key_path)} of {record}" if key_path else record

    def key(self, key_path: KeyPath) -> str:
        """Name of an argument: `window of Stage`."""
        return self.section(key_path)


def specification_error(error: ValidationError, schema: type, arguments: Mapping[str, Any]) -> SpecificationError:
    """Error of a specification with invalid arguments."""
    return SpecificationError(specification_problems(error, ArgumentLocator(schema, arguments)))


def unknown_argument_error(schema: type, names: Sequence[str]) -> SpecificationError:
    """Error of arguments that a specification does not have."""
    valid = list(setting_fields(schema))
    return SpecificationError(
        Problem(f"{schema.__name__} has no argument {name!r}", name_hint(name, valid), code="project.key", path=(name,))
        for name in names
    )


def specification_problems(error: ValidationError, locator: Locator) -> list[Problem]:
    """Problems of a specification, one per key."""
    groups: dict[KeyPath, list[tuple[KeyPath, ErrorDetails]]] = {}
    for details in error.errors(include_url=False):
        key_path = _parsed_key_path(locator.parsed, details)
        groups.setdefault(_entry(key_path, locator).key_path, []).append((key_path, details))
    return [problem for field, errors in groups.items() for problem in _field_problems(field, errors, locator)]


def section_header(section: str, schema: type) -> str:
    """Header of a section of a file: `[model]`, or `[[channel]]` for a section with several entries."""
    return f"[[{section}]]" if section in list_sections(schema) else f"[{section}]"


def list_sections(schema: type) -> list[str]:
    """Sections with several entries, written with two brackets."""
    return [
        name
        for name, field in setting_fields(schema).items()
        if get_origin(field.annotation) is tuple and any(True for _ in tables_of(field.annotation, field.metadata))
    ]


def _parsed_key_path(parsed: Any, error: ErrorDetails) -> KeyPath:
    """Key path of an error in the parsed data, without the names of union members that pydantic inserts."""
    key_path: list[str | int] = []
    for part in error["loc"]:
        if isinstance(parsed, Mapping) and part in parsed:
            parsed = parsed[part]
        elif isinstance(parsed, Sequence) and not isinstance(parsed, str) and isinstance(part, int):
            parsed = parsed[part] if part < len(parsed) else None
        else:
            continue
        key_path.append(part)
    if error["type"] in _MISSING_KEY and isinstance(error["loc"][-1], str):
        key_path.append(error["loc"][-1])
    return tuple(key_path)


class _Entry(NamedTuple):
    """Class and documentation of the key at a key path."""

    key_path: KeyPath
    """Path up to the key, without indices into its value."""
    table: type
    """Class of the table that contains the key."""
    description: str
    """Documentation of the key; empty for entries of sections and for unknown keys."""
    choice: Choice | None = None
    """Choice that selected the class of the table."""

    @property
    def keys(self) -> list[str]:
        """Valid keys of the table."""
        keys = list(setting_fields(self.table))
        return keys if self.choice is None or self.choice.key in keys else [self.choice.key, *keys]


def _entry(key_path: KeyPath, locator: Locator) -> _Entry:
    table, choice = locator.schema, None
    for k, part in enumerate(key_path):
        if isinstance(part, int):
            continue
        field = setting_fields(table).get(part)
        inner = list(tables_of(field.annotation, field.metadata)) if field else []
        is_entry = k == 0 and len(key_path) == 2 and part in list_sections(table)
        if k + 1 == len(key_path) or is_entry or not inner:
            end = k + 2 if is_entry else k + 1
            description = _sentence(field.description or "") if field and not is_entry else ""
            return _Entry(key_path[:end], table, description, choice)
        table, choice = _select_table(inner, locator.parsed, key_path[: k + 1])
    return _Entry(key_path, table, "", choice)


def _select_table(
    tables: list[tuple[type, Choice | None]], parsed: Any, key_path: KeyPath
) -> tuple[type, Choice | None]:
    """Select the class of a table by its name or kind; the first one if it has none."""
    if len(tables) == 1:
        return tables[0]
    table, choice = value_at(parsed, key_path), tables[0][1]
    if choice is not None:
        name = table.get(choice.key, choice.default) if isinstance(table, Mapping) else table
        return (choice.table(name) if name in choice.names else tables[0][0]), choice
    key = next(key for key in DISCRIMINATORS if key in setting_fields(tables[0][0]))
    value = table.get(key) if isinstance(table, Mapping) else table
    return next((t for t in tables if value in get_args(setting_fields(t[0])[key].annotation)), tables[0])


def _sentence(text: str) -> str:
    """A docstring in one line and without its final period."""
    return text.replace("\n", " ").rstrip(".")


def _field_problems(field: KeyPath, errors: list[tuple[KeyPath, ErrorDetails]], locator: Locator) -> Iterator[Problem]:
    is_value = bool(_entry(field, locator).description)
    if not is_value or len(errors) == 1 or any(details["type"] == SETTING_ERROR for _, details in errors):
        for key_path, details in errors:
            yield _problem(key_path, details, locator)
        return
    present = [(key_path, details) for key_path, details in errors if details["type"] not in _MISSING_KEY]
    if not present:
        yield _problem(*errors[0], locator)
        return
    # no member of the union matches; the member whose error is deepest was probably intended
    deepest = max((key_path for key_path, _ in present), key=len)
    requirements = dict.fromkeys(_requirement(details, locator) for key_path, details in present if key_path == deepest)
    yield _wrong_value(deepest, " or ".join(filter(None, requirements)), locator)


def _requirement(error: ErrorDetails, locator: Locator) -> str:
    """Requirement that a value violates, in words; empty if there is no short form."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _RANGES:
        words, key = _RANGES[kind]
        return f"{words} {context[key]:g}"
    if kind == "is_instance_of":
        return f"an instance of {context['class']}"
    if kind == "literal_error":
        return str(context["expected"])
    return (_TOML_TYPES if locator.is_file and kind in _TOML_TYPES else _TYPES).get(kind, "")


def _wrong_value(key_path: KeyPath, requirement: str, locator: Locator) -> Problem:
    value = format_value(value_at(locator.parsed, key_path))
    message = f"must be {requirement}, not {value}" if requirement else f"has the invalid value {value}"
    fix = _documentation(_entry(key_path, locator))
    return locator.problem(key_path, f"{locator.key(key_path)} {message}", fix, "project.value")


def _documentation(entry: _Entry) -> str:
    """Documentation of a key, if there is any."""
    return f"{entry.key_path[-1]} is documented as: {entry.description}" if entry.description else "correct the value"


def _problem(key_path: KeyPath, error: ErrorDetails, locator: Locator) -> Problem:
    kind, entry = error["type"], _entry(key_path, locator)
    if kind in _UNKNOWN_KEY:
        return _unknown_key(key_path, entry, locator)
    if kind == SETTING_ERROR:
        return _setting_problem(key_path, error.get("ctx", {}), locator)
    if kind in ("literal_error", "choice"):
        return _wrong_choice(key_path, error, entry, locator)
    if kind == "too_long" or (kind in _MISSING_KEY and isinstance(key_path[-1], int)):
        count = len(value_at(locator.parsed, entry.key_path))
        message = f"{locator.key(entry.key_path)} has {count} {'entry' if count == 1 else 'entries'}"
        return locator.problem(entry.key_path, message, _documentation(entry), "project.value")
    if kind in _MISSING_KEY:
        message = f"{locator.section(key_path[:-1])} has no {key_path[-1]!r}"
        if len(key_path) == 1 and locator.is_file:
            message = f"there is no section {section_header(str(key_path[0]), locator.schema)}"
        fix = f"add it: {entry.description}" if entry.description else "add it"
        return locator.problem(key_path, message, fix, "project.missing")
    if locator.is_file and (len(key_path) == 1 or (len(key_path) == 2 and isinstance(key_path[1], int))):
        value = value_at(locator.parsed, key_path)
        written = "a single table" if isinstance(value, dict) else format_value(value)
        fix = f"write {section_header(str(key_path[0]), locator.schema)} and its keys below"
        return locator.problem(key_path, f"section {key_path[0]!r} is written as {written}", fix, "project.value")
    return _wrong_value(key_path, _requirement(error, locator) or error["msg"], locator)


def _unknown_key(key_path: KeyPath, entry: _Entry, locator: Locator) -> Problem:
    key, valid = str(key_path[-1]), entry.keys
    if len(key_path) > 1 or not locator.is_file:
        renamed = locator.renamed_keys.get(key)
        fix = f"it is now called {renamed!r}" if renamed in valid else name_hint(key, valid)
        return locator.problem(key_path, f"{locator.section(key_path[:-1])} has no key {key!r}", fix, "project.key")
    headers = ", ".join(section_header(name, locator.schema) for name in valid)
    fix = spelling_suggestion(key, valid) or f"sections are {headers}"
    return locator.problem(key_path, f"there is no section {key!r}", fix, "project.key")


def _setting_problem(key_path: KeyPath, context: Mapping[str, Any], locator: Locator) -> Problem:
    key_or_section = (*key_path, context["key"]) if context["key"] else key_path
    value = locator.parsed if not key_path else value_at(locator.parsed, key_path)
    is_section = not context["key"] and (isinstance(value, Mapping) or is_table(type(value)))
    subject = locator.section(key_path) if is_section else locator.key(key_or_section)
    return locator.problem(key_or_section, f"{subject} {context['message']}", context["fix"], context["code"])


def _wrong_choice(key_path: KeyPath, error: ErrorDetails, entry: _Entry, locator: Locator) -> Problem:
    context, valid = error.get("ctx", {}), []
    if error["type"] == "choice":
        valid = context["valid"]
        if context["key"] and isinstance(value_at(locator.parsed, key_path), Mapping):
            key_path = (*key_path, context["key"])
    else:
        valid = _literals(setting_fields(entry.table)[str(entry.key_path[-1])].annotation)
    table = value_at(locator.parsed, key_path[:-1])
    value = table.get(key_path[-1]) if isinstance(table, Mapping) else table[key_path[-1]]
    name = value if isinstance(value, str) else ""
    fix = " ".join(filter(None, [spelling_suggestion(name, valid), f"valid values are {', '.join(valid)}"]))
    message = f"{locator.key(key_path)} has the invalid value {format_value(value)}"
    return locator.problem(key_path, message, fix, "project.value")


def _literals(annotation: Any) -> list[str]:
    """Texts that an annotation admits."""
    parts = get_args(annotation)
    return [text for part in parts for text in ([part] if isinstance(part, str) else _literals(part))]
