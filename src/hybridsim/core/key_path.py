"""Key paths: places in a specification, such as `("channel", 1, "unit")`, and their rendering for Python."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hybridsim.core.errors import Problem

KeyPath = tuple[str | int, ...]
"""Keys and, for lists, indices from 0."""

MAX_VALUE_LENGTH = 60
"""Characters of a value that a message shows."""
_PLURALS = {"channel": "channels", "command": "commands", "graft": "grafts", "stage": "stages"}
"""Arguments in Python that correspond to sections of a file with another name."""


def format_key_path(key_path: KeyPath) -> str:
    """A key path as text: `channel[1].unit`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key_path).lstrip(".")


def with_place(problem: Problem) -> Problem:
    """Problem whose message begins with its place in Python: `channels[1]`."""
    if not problem.path:
        return problem
    path = list(problem.path)
    if path[0] in ("model", "data") and len(path) > 1:
        del path[0]  # arguments of Experiment and fit
    if path[0] == "blueprint":
        del path[1:]
    words = [_PLURALS.get(str(path[0]), str(path[0]))]
    words += [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path[1:]]
    return replace(problem, message=f"{''.join(words)}: {problem.message}")


def value_at(parsed: Any, key_path: KeyPath) -> Any:
    """Value at a key path."""
    for part in key_path:
        is_record = isinstance(part, str) and not isinstance(parsed, Mapping)
        parsed = getattr(parsed, str(part)) if is_record else parsed[part]
    return parsed


def format_value(value: Any) -> str:
    """A value as text for messages."""
    match value:
        case bool():
            text = str(value).lower()
        case list() | tuple():
            text = f"[{', '.join(map(format_value, value))}]"
        case dict():
            text = "a table"
        case _:
            text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
