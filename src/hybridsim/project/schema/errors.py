"""Conversion of pydantic's validation errors to problems that name the key, section and line of a project."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hybridsim.core.errors import Problem
from hybridsim.core.messages import name_hint, spelling_suggestion
from hybridsim.project.schema.content import Content
from hybridsim.project.schema.location import SourceLocator, format_value, value_at
from hybridsim.project.schema.strict_table import KEY_ERROR
from hybridsim.project.schema.toml_lines import KeyPath

LIST_SECTIONS = tuple(name for name, field in Content.model_fields.items() if get_args(field.annotation))
"""Sections with several entries, written with two brackets."""

RENAMED_KEYS = {
    "start": "initial",
    "tie": "tied",
    "between": "interpolation",
    "starts": "initial_states",
    "start_noise": "initial_state_std",
    "ties": "continuity",
    "most_steps": "max_steps",
    "slope_tolerance": "gradient_tolerance",
    "first_damping": "initial_damping",
    "most_slope": "max_gradient_norm",
    "step": "sample_interval",
    "validation": "held_out",
    "longest_gap": "max_sample_interval",
    "on_disorder": "on_out_of_order",
    "window": "filter_window",
    "upper_layers": "l2",
    "batch": "batch_size",
    "several": "several_runs",
    "allowed": "allowed_folders",
    "lenient": "tolerate",
}
"""Renamed keys of projects of earlier versions, for error messages."""

_TYPES = {
    "float_type": "a number",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "tuple_type": "a list in brackets",
    "dict_type": "a table",
    "model_type": "a table",
    "finite_number": "finite",
    "too_short": "a nonempty list",
    "string_too_short": "nonempty text",
}
_RANGES = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def schema_problems(error: ValidationError, locator: SourceLocator) -> list[Problem]:
    """Problems of a project, one per key."""
    groups: dict[KeyPath, list[tuple[KeyPath, ErrorDetails]]] = {}
    for details in error.errors(include_url=False):
        key_path = _parsed_key_path(locator.parsed, details)
        groups.setdefault(_schema_entry(key_path, locator).key_path, []).append((key_path, details))
    return [problem for field, errors in groups.items() for problem in _field_problems(field, errors, locator)]


def _parsed_key_path(parsed: Any, error: ErrorDetails) -> KeyPath:
    """Key path of an error in the parsed TOML, without the names of union members that pydantic inserts."""
    key_path: list[str | int] = []
    for part in error["loc"]:
        if isinstance(parsed, Mapping) and part in parsed:
            parsed = parsed[part]
        elif isinstance(parsed, Sequence) and not isinstance(parsed, str) and isinstance(part, int):
            parsed = parsed[part] if part < len(parsed) else None
        else:
            continue
        key_path.append(part)
    if error["type"] == "missing" and isinstance(error["loc"][-1], str):
        key_path.append(error["loc"][-1])
    return tuple(key_path)


DISCRIMINATORS = ("kind", "name")
"""Keys that select the schema of a table."""


class _SchemaEntry(NamedTuple):
    """Schema entry of a key path."""

    key_path: KeyPath
    """Path up to the key, without indices into its value."""
    section: type[BaseModel]
    """Section that contains the key."""
    description: str
    """Documentation of the key; empty for entries of sections and for unknown keys."""


def _schema_entry(key_path: KeyPath, locator: SourceLocator) -> _SchemaEntry:
    section: type[BaseModel] = locator.schema or Content
    for k, part in enumerate(key_path):
        if isinstance(part, int):
            continue
        field = section.model_fields.get(part)
        inner = list(_sections_in(field.annotation)) if field else []
        is_entry = k + 2 == len(key_path) and part in LIST_SECTIONS
        if k + 1 == len(key_path) or is_entry or not inner:
            end = k + 2 if is_entry else k + 1
            return _SchemaEntry(
                key_path[:end], section, _sentence(field.description or "") if field and not is_entry else ""
            )
        section = _select_section(inner, locator.parsed, key_path[: k + 1])
    return _SchemaEntry(key_path, section, "")


def _sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)


def _select_section(sections: list[type[BaseModel]], parsed: Any, key_path: KeyPath) -> type[BaseModel]:
    """Select the schema of a table by its name or kind; the first one if it has none."""
    if len(sections) == 1:
        return sections[0]
    table = value_at(parsed, key_path)
    key = next(key for key in DISCRIMINATORS if key in sections[0].model_fields)
    value = table.get(key) if isinstance(table, dict) else table
    return next((s for s in sections if value in get_args(s.model_fields[key].annotation)), sections[0])


def _sentence(text: str) -> str:
    """A docstring in one line and without its final period."""
    return text.replace("\n", " ").rstrip(".")


def _field_problems(
    field: KeyPath, errors: list[tuple[KeyPath, ErrorDetails]], locator: SourceLocator
) -> Iterator[Problem]:
    is_value = bool(_schema_entry(field, locator).description) and len(field) > 1
    if not is_value or len(errors) == 1 or any(details["type"] == KEY_ERROR for _, details in errors):
        for key_path, details in errors:
            yield _problem(key_path, details, locator)
        return
    present = [(key_path, details) for key_path, details in errors if details["type"] != "missing"]
    if not present:
        yield _problem(*errors[0], locator)
        return
    # no member of the union matches; the member whose error is deepest was probably intended
    deepest = max((key_path for key_path, _ in present), key=len)
    requirements = dict.fromkeys(_requirement(details) for key_path, details in present if key_path == deepest)
    yield _wrong_value(deepest, " or ".join(filter(None, requirements)), locator)


def _requirement(error: ErrorDetails) -> str:
    """Requirement that a value violates, in words; empty if there is no short form."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _RANGES:
        words, key = _RANGES[kind]
        return f"{words} {context[key]:g}"
    return str(context["expected"]) if kind == "literal_error" else _TYPES.get(kind, "")


def _wrong_value(key_path: KeyPath, requirement: str, locator: SourceLocator) -> Problem:
    value = format_value(value_at(locator.parsed, key_path))
    message = f"must be {requirement}, not {value}" if requirement else f"has the invalid value {value}"
    fix = _documentation(_schema_entry(key_path, locator))
    return locator.problem(key_path, f"{locator.key(key_path)} {message}", fix, "project.value")


def _documentation(entry: _SchemaEntry) -> str:
    return f"{entry.key_path[-1]} is documented as: {entry.description}"


def _problem(key_path: KeyPath, error: ErrorDetails, locator: SourceLocator) -> Problem:
    kind, entry = error["type"], _schema_entry(key_path, locator)
    if kind == "extra_forbidden":
        return _unknown_key(key_path, entry, locator)
    if kind == KEY_ERROR:
        return _key_problem(key_path, error.get("ctx", {}), locator)
    if kind in ("literal_error", "union_tag_invalid"):
        return _wrong_choice(key_path, error, locator)
    if kind == "too_long" or (kind == "missing" and isinstance(key_path[-1], int)):
        count = len(value_at(locator.parsed, entry.key_path))
        message = f"{locator.key(entry.key_path)} has {count} {'entry' if count == 1 else 'entries'}"
        return locator.problem(entry.key_path, message, _documentation(entry), "project.value")
    if kind == "missing":
        message = f"{locator.section(key_path[:-1])} has no {key_path[-1]!r}"
        if len(key_path) == 1:
            message = f"there is no section {_section_header(str(key_path[0]))}"
        return locator.problem(key_path, message, f"add it: {entry.description}", "project.missing")
    if len(key_path) == 1 or (len(key_path) == 2 and isinstance(key_path[1], int)):
        value = value_at(locator.parsed, key_path)
        written = "a single table" if isinstance(value, dict) else format_value(value)
        fix = f"write {_section_header(str(key_path[0]))} and its keys below"
        return locator.problem(key_path, f"section {key_path[0]!r} is written as {written}", fix, "project.value")
    return _wrong_value(key_path, _requirement(error) or error["msg"], locator)


def _unknown_key(key_path: KeyPath, entry: _SchemaEntry, locator: SourceLocator) -> Problem:
    key, valid = str(key_path[-1]), list(entry.section.model_fields)
    if len(key_path) > 1:
        renamed = RENAMED_KEYS.get(key)
        fix = f"it is now called {renamed!r}" if renamed in valid else name_hint(key, valid)
        return locator.problem(key_path, f"{locator.section(key_path[:-1])} has no key {key!r}", fix, "project.key")
    fix = spelling_suggestion(key, valid) or f"sections are {', '.join(map(_section_header, valid))}"
    return locator.problem(key_path, f"there is no section {key!r}", fix, "project.key")


def _section_header(section: str) -> str:
    return f"[[{section}]]" if section in LIST_SECTIONS else f"[{section}]"


def _key_problem(key_path: KeyPath, context: Mapping[str, Any], locator: SourceLocator) -> Problem:
    key_or_section = (*key_path, context["key"]) if context["key"] else key_path
    is_section = not context["key"] and isinstance(value_at(locator.parsed, key_path), dict)
    subject = locator.section(key_path) if is_section else locator.key(key_or_section)
    return locator.problem(key_or_section, f"{subject} {context['message']}", context["fix"], context["code"])


def _wrong_choice(key_path: KeyPath, error: ErrorDetails, locator: SourceLocator) -> Problem:
    context = error.get("ctx", {})
    if error["type"] == "union_tag_invalid" and isinstance(value_at(locator.parsed, key_path), dict):
        key_path = (*key_path, str(context["discriminator"]).strip("'"))
    value = value_at(locator.parsed, key_path)
    text = str(context.get("expected") or context.get("expected_tags"))
    valid = [part.strip(" '\"") for part in text.replace(" or ", ",").split(",")]
    name = value if isinstance(value, str) else ""
    fix = " ".join(filter(None, [spelling_suggestion(name, valid), f"valid values are {', '.join(valid)}"]))
    message = f"{locator.key(key_path)} has the invalid value {format_value(value)}"
    return locator.problem(key_path, message, fix, "project.value")
