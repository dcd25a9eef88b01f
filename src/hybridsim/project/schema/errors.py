"""What pydantic finds wrong with a project, in words that name the key, the section and the line."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hybridsim.core.errors import Problem
from hybridsim.core.messages import did_you_mean, name_hint
from hybridsim.project.schema.content import Content
from hybridsim.project.schema.location import Place, shown, value_at
from hybridsim.project.schema.section import CONFLICT
from hybridsim.project.schema.toml_lines import Way

LIST_SECTIONS = tuple(name for name, field in Content.model_fields.items() if get_args(field.annotation))
"""Sections with several entries, which have two brackets."""

_KINDS = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "tuple_type": "a list in brackets",
    "dict_type": "a table",
    "model_type": "a table",
    "finite_number": "finite",
    "too_short": "a list that is not empty",
    "string_too_short": "text that is not empty",
}
_RANGES = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def schema_problems(error: ValidationError, place: Place) -> list[Problem]:
    """Everything that is wrong, one problem for each key."""
    groups: dict[Way, list[tuple[Way, ErrorDetails]]] = {}
    for one in error.errors(include_url=False):
        way = _way_in(place.content, one)
        groups.setdefault(_found(way, place).way, []).append((way, one))
    return [problem for field, errors in groups.items() for problem in _of_field(field, errors, place)]


def _way_in(content: Any, error: ErrorDetails) -> Way:
    """The way to an error in the content; pydantic names the members of unions in between."""
    way: list[str | int] = []
    for part in error["loc"]:
        if isinstance(content, Mapping) and part in content:
            content = content[part]
        elif isinstance(content, Sequence) and not isinstance(content, str) and isinstance(part, int):
            content = content[part] if part < len(content) else None
        else:
            continue
        way.append(part)
    if error["type"] == "missing" and isinstance(error["loc"][-1], str):
        way.append(error["loc"][-1])
    return tuple(way)


TELLING = ("kind", "name")
"""Keys that tell which of several kinds a table is of."""


class _Found(NamedTuple):
    """What the schema knows of a way."""

    way: Way
    """Up to the key; what follows is inside of its value."""
    section: type[BaseModel]
    """That the key is in."""
    meaning: str
    """The sentence that documents the key; empty for sections' entries and for keys that there are not."""


def _found(way: Way, place: Place) -> _Found:
    section: type[BaseModel] = place.schema or Content
    for k, part in enumerate(way):
        if isinstance(part, int):
            continue
        field = section.model_fields.get(part)
        inner = list(_sections_in(field.annotation)) if field else []
        is_entry = k + 2 == len(way) and part in LIST_SECTIONS
        if k + 1 == len(way) or is_entry or not inner:
            end = k + 2 if is_entry else k + 1
            return _Found(way[:end], section, _sentence(field.description or "") if field and not is_entry else "")
        section = _chosen(inner, place.content, way[: k + 1])
    return _Found(way, section, "")


def _sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)


def _chosen(sections: list[type[BaseModel]], content: Any, way: Way) -> type[BaseModel]:
    """The one of several kinds of a table that its name or kind tells; the first one if it has none."""
    if len(sections) == 1:
        return sections[0]
    table = value_at(content, way)
    key = next(key for key in TELLING if key in sections[0].model_fields)
    told = table.get(key) if isinstance(table, dict) else table
    return next((one for one in sections if told in get_args(one.model_fields[key].annotation)), sections[0])


def _sentence(text: str) -> str:
    """A sentence as the end of another one."""
    return text.replace("\n", " ").rstrip(".")


def _of_field(field: Way, errors: list[tuple[Way, ErrorDetails]], place: Place) -> Iterator[Problem]:
    is_value = bool(_found(field, place).meaning) and len(field) > 1
    if not is_value or len(errors) == 1 or any(one["type"] == CONFLICT for _, one in errors):
        for way, one in errors:
            yield _problem(way, one, place)
        return
    present = [(way, one) for way, one in errors if one["type"] != "missing"]
    if not present:
        yield _problem(*errors[0], place)
        return
    # it may be one thing or another, and is none of them; what got farthest is what was meant
    meant = max((way for way, _ in present), key=len)
    musts = dict.fromkeys(_must_be(one) for way, one in present if way == meant)
    yield _wrong_value(meant, " or ".join(filter(None, musts)) or "something else", place)


def _must_be(error: ErrorDetails) -> str:
    """What pydantic wants, in words; empty where it is not that simple."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _RANGES:
        words, key = _RANGES[kind]
        return f"{words} {context[key]:g}"
    return str(context["expected"]) if kind == "literal_error" else _KINDS.get(kind, "")


def _wrong_value(way: Way, must: str, place: Place) -> Problem:
    message = f"{place.key(way)} is {shown(value_at(place.content, way))} and must be {must}"
    return place.problem(way, message, f"its meaning: {_found(way, place).meaning}", "project.value")


def _problem(way: Way, error: ErrorDetails, place: Place) -> Problem:
    kind, found = error["type"], _found(way, place)
    if kind == "extra_forbidden":
        return _unknown_key(way, found, place)
    if kind == CONFLICT:
        return _conflict(way, error.get("ctx", {}), place)
    if kind in ("literal_error", "union_tag_invalid"):
        return _wrong_choice(way, error, place)
    if kind == "too_long" or (kind == "missing" and isinstance(way[-1], int)):
        count = len(value_at(place.content, found.way))
        message = f"{place.key(found.way)} has {count} {'entry' if count == 1 else 'entries'}"
        return place.problem(found.way, message, f"its meaning: {found.meaning}", "project.value")
    if kind == "missing":
        what = f"{place.section(way[:-1])} has no {way[-1]!r}"
        if len(way) == 1:
            what = f"there is no section {_in_brackets(str(way[0]))}"
        return place.problem(way, what, f"add it: {found.meaning}", "project.missing")
    if len(way) == 1 or (len(way) == 2 and isinstance(way[1], int)):
        value = value_at(place.content, way)
        written = "a single table" if isinstance(value, dict) else shown(value)
        fix = f"write {_in_brackets(str(way[0]))} and its keys below"
        return place.problem(way, f"section {way[0]!r} is written as {written}", fix, "project.value")
    return _wrong_value(way, _must_be(error) or error["msg"], place)


def _unknown_key(way: Way, found: _Found, place: Place) -> Problem:
    key, valid = str(way[-1]), list(found.section.model_fields)
    if len(way) > 1:
        return place.problem(way, f"{place.section(way[:-1])} has no key {key!r}", name_hint(key, valid), "project.key")
    fix = did_you_mean(key, valid) or f"sections are {', '.join(map(_in_brackets, valid))}"
    return place.problem(way, f"there is no section {key!r}", fix, "project.key")


def _in_brackets(section: str) -> str:
    return f"[[{section}]]" if section in LIST_SECTIONS else f"[{section}]"


def _conflict(way: Way, context: Mapping[str, Any], place: Place) -> Problem:
    whole = (*way, context["key"]) if context["key"] else way
    is_section = not context["key"] and isinstance(value_at(place.content, way), dict)
    called = place.section(way) if is_section else place.key(whole)
    return place.problem(whole, f"{called} {context['message']}", context["fix"], "project.conflict")


def _wrong_choice(way: Way, error: ErrorDetails, place: Place) -> Problem:
    context = error.get("ctx", {})
    if error["type"] == "union_tag_invalid" and isinstance(value_at(place.content, way), dict):
        way = (*way, str(context["discriminator"]).strip("'"))
    value = value_at(place.content, way)
    text = str(context.get("expected") or context.get("expected_tags"))
    valid = [part.strip(" '\"") for part in text.replace(" or ", ",").split(",")]
    given = value if isinstance(value, str) else ""
    fix = " ".join(filter(None, [did_you_mean(given, valid), f"it is one of {', '.join(valid)}"]))
    return place.problem(way, f"{place.key(way)} is {shown(value)}, which it cannot be", fix, "project.value")
