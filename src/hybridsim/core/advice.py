"""Advice that names settings, spelled as in Python (`unit="deg"`) or as in a TOML file (`unit = "deg" in [data]`)."""

import json
from typing import Any, NamedTuple


class Setting(NamedTuple):
    """A setting and its recommended value."""

    name: str
    value: Any
    section: str = ""
    """Section of a project file that contains it; empty for the section at fault."""

    def in_python(self) -> str:
        """Spelling as an argument."""
        return f"{self.name}={self.value!r}"

    def in_toml(self) -> str:
        """Spelling as a key."""
        suffix = f" in [{self.section}]" if self.section else ""
        return f"{self.name} = {json.dumps(self.value, ensure_ascii=False)}{suffix}"


class Advice(str):
    """Text of a fix, spelled for Python, that can be spelled for TOML as well."""

    template: str
    settings: tuple[Setting, ...]

    def __new__(cls, template: str, *settings: Setting) -> "Advice":
        """Make advice from a format string with one pair of braces for each setting."""
        made = super().__new__(cls, template.format(*(setting.in_python() for setting in settings)))
        made.template, made.settings = template, settings
        return made

    def in_toml(self) -> str:
        """The text, spelled for a TOML file."""
        return self.template.format(*(setting.in_toml() for setting in self.settings))


def advice_in_toml(fix: str) -> str:
    """The text of a fix, spelled for a TOML file."""
    return fix.in_toml() if isinstance(fix, Advice) else fix
