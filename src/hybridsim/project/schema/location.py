"""Source locations of keys, and their names in messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from hybridsim.core.errors import Problem
from hybridsim.project.schema.toml_lines import KeyPath, TomlLines

MAX_VALUE_LENGTH = 60
"""Characters of a value that a message shows."""


@dataclass(frozen=True)
class SourceLocator:
    """Source locations of the keys of a project or blueprint file."""

    file: str
    lines: TomlLines
    parsed: Mapping[str, Any]
    """Parsed TOML."""
    schema: type[BaseModel] | None = None
    """Schema of the file, if it is not a project."""

    def problem(self, key_path: KeyPath, message: str, fix: str, code: str) -> Problem:
        """A problem at a key or section."""
        return Problem(message, fix, self.file, self.lines.line(key_path), code=code, element=format_key_path(key_path))

    def section(self, key_path: KeyPath) -> str:
        """Name of a section or of a table in one: `[model.contact]`, `[[channel]] 2 ('elbow')`."""
        if len(key_path) < 2 or not isinstance(key_path[1], int):
            return f"[{'.'.join(map(str, key_path))}]"
        entry = value_at(self.parsed, key_path[:2])
        names = (
            [entry[key] for key in ("name", "measures", "outputs") if key in entry] if isinstance(entry, dict) else []
        )
        name = names[0] if names else ""
        suffix = f" ({name!r})" if name and isinstance(name, str) else ""
        prefix = f"{'.'.join(map(str, key_path[2:]))} of " if len(key_path) > 2 else ""
        return f"{prefix}[[{key_path[0]}]] {key_path[1] + 1}{suffix}"

    def key(self, key_path: KeyPath) -> str:
        """Name of a key: `unit of [[channel]] 2 ('elbow')`."""
        end = max(k for k, part in enumerate(key_path) if isinstance(part, str))
        if end == 0:
            return self.section(key_path)
        indices = "".join(f"[{part}]" for part in key_path[end + 1 :])
        return f"{key_path[end]}{indices} of {self.section(key_path[:end])}"


def format_key_path(key_path: KeyPath) -> str:
    """A key path as text: `channel[1].unit`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key_path).lstrip(".")


def value_at(parsed: Any, key_path: KeyPath) -> Any:
    """Value at a key path."""
    for part in key_path:
        parsed = parsed[part]
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
