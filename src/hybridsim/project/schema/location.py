"""Source locations of keys, and their names in messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from hybridsim.core.advice import advice_in_toml
from hybridsim.core.errors import Problem
from hybridsim.core.key_path import KeyPath, format_key_path, value_at
from hybridsim.core.specification_errors import NAMING_KEYS
from hybridsim.project.schema.renamed_keys import MOVED_KEYS, RENAMED_KEYS
from hybridsim.project.schema.toml_lines import TomlLines


@dataclass(frozen=True)
class SourceLocator:
    """Source locations of the keys of a project or blueprint file."""

    file: str
    lines: TomlLines
    parsed: Mapping[str, Any]
    """Parsed TOML."""
    schema: type[BaseModel]
    """Schema of the file."""
    is_file: bool = True
    renamed_keys: Mapping[str, str] = field(default_factory=lambda: RENAMED_KEYS)
    """Current names of keys of earlier versions."""

    def problem(self, key_path: KeyPath, message: str, fix: str, code: str) -> Problem:
        """A problem at a key or section."""
        line, fix = self.lines.line(key_path), self._advice(key_path, code) or advice_in_toml(fix)
        return Problem(message, fix, self.file, line, code=code, element=format_key_path(key_path), path=key_path)

    def _advice(self, key_path: KeyPath, code: str) -> str:
        """Advice for an unknown key that is now elsewhere."""
        names = tuple(str(part) for part in key_path if isinstance(part, str))
        return MOVED_KEYS.get(names, "") if code == "project.key" else ""

    def section(self, key_path: KeyPath) -> str:
        """Name of a section or of a table in one: `[model.contact]`, `[[channel]] 2 ('elbow')`."""
        if len(key_path) < 2 or not isinstance(key_path[1], int):
            return f"[{'.'.join(map(str, key_path))}]"
        entry = value_at(self.parsed, key_path[:2])
        names = [entry[key] for key in NAMING_KEYS if key in entry] if isinstance(entry, dict) else []
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
