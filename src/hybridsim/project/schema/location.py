"""Where in a project something is, and how messages call it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from hybridsim.core.errors import Problem
from hybridsim.project.schema.toml_lines import TomlLines, Way

LONGEST_VALUE = 60
"""Signs of a value that a message shows."""


@dataclass(frozen=True)
class Place:
    """Where in a project something is."""

    file: str
    lines: TomlLines
    content: Mapping[str, Any]
    """As the reader of TOML gives it."""
    schema: type[BaseModel] | None = None
    """What it should be, where it is no project."""

    def problem(self, way: Way, message: str, fix: str, code: str) -> Problem:
        """A problem at a key or section."""
        return Problem(message, fix, self.file, self.lines.line(way), code=code, element=spelled(way))

    def section(self, way: Way) -> str:
        """How messages call a section, or a table in one: `[model.contact]`, `[[channel]] 2 ('elbow')`."""
        if len(way) < 2 or not isinstance(way[1], int):
            return f"[{'.'.join(map(str, way))}]"
        entry = value_at(self.content, way[:2])
        names = (
            [entry[key] for key in ("name", "measures", "outputs") if key in entry] if isinstance(entry, dict) else []
        )
        name = names[0] if names else ""
        called = f" ({name!r})" if name and isinstance(name, str) else ""
        inside = f"{'.'.join(map(str, way[2:]))} of " if len(way) > 2 else ""
        return f"{inside}[[{way[0]}]] {way[1] + 1}{called}"

    def key(self, way: Way) -> str:
        """How messages call a key."""
        end = max(k for k, part in enumerate(way) if isinstance(part, str))
        if end == 0:
            return self.section(way)
        number = "".join(f"[{part}]" for part in way[end + 1 :])
        return f"{way[end]}{number} of {self.section(way[:end])}"


def spelled(way: Way) -> str:
    """A way in words: `channel[1].unit`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in way).lstrip(".")


def value_at(content: Any, way: Way) -> Any:
    """What stands at a way."""
    for part in way:
        content = content[part]
    return content


def shown(value: Any) -> str:
    """A value as a message shows it."""
    match value:
        case bool():
            text = str(value).lower()
        case list() | tuple():
            text = f"[{', '.join(map(shown, value))}]"
        case dict():
            text = "a table"
        case _:
            text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
