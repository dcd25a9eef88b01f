"""In which line of a TOML text each key stands, which Python's own reader does not tell.

A way to a value is a tuple of keys and, in arrays and arrays of tables, numbers counted from 0: `("channel", 1,
"unit")`. The text has been read by `tomllib` before, so that nothing here is checked again.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Way = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}#\n]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


@dataclass(frozen=True)
class TomlLines:
    """Lines of keys, counted from 1."""

    by_way: Mapping[Way, int] = field(default_factory=dict)

    def line(self, way: Way) -> int:
        """The line of a value; of one that is not in the text, the line of what it would be in, at least 1."""
        for end in range(len(way), 0, -1):
            if way[:end] in self.by_way:
                return self.by_way[way[:end]]
        return 1


def toml_lines(text: str) -> TomlLines:
    """The lines of all keys, tables and entries of arrays of a valid TOML text; of a table, where it first appears."""
    found: dict[Way, int] = {}
    for way, line in _Scanner(text.replace("\r\n", "\n")).found():
        for end in range(1, len(way) + 1):
            found.setdefault(way[:end], line)
    return TomlLines(found)


class _Scanner:
    """Walks through a text once; `place` is how far it is."""

    def __init__(self, text: str):
        self.text, self.place = text, 0
        self.line, self._counted = 1, 0
        self.lengths: dict[Way, int] = {}
        """Of arrays of tables so far."""

    def found(self) -> Iterator[tuple[Way, int]]:
        table: Way = ()
        while self._skip_blank():
            line = self._line_here()
            if self.text.startswith("[[", self.place):
                table = self._next_entry(self._header(2))
                yield table, line
            elif self.text[self.place] == "[":
                table = self._inside(self._header(1))
                yield table, line
            else:
                yield from self._pair(table)

    def _line_here(self) -> int:
        self.line += self.text.count("\n", self._counted, self.place)
        self._counted = self.place
        return self.line

    def _skip_blank(self) -> bool:
        """Go to the next sign that matters; is there any?"""
        self.place = self._match(_BLANK).end()
        return self.place < len(self.text)

    def _match(self, pattern: re.Pattern) -> re.Match:
        match = pattern.match(self.text, self.place)
        assert match is not None, "tomllib accepts what this does not know"
        return match

    def _header(self, brackets: int) -> Way:
        self.place += brackets
        keys = self._keys()
        self.place += brackets
        return keys

    def _keys(self) -> Way:
        """A key with its dots, and what follows it up to the next sign that matters."""
        keys: list[str] = []
        while True:
            self._skip_blank()
            match = self._match(_STRING if self.text[self.place] in "\"'" else _BARE)
            keys.append(_unquoted(match.group()))
            self.place = match.end()
            self._skip_blank()
            if self.text[self.place] != ".":
                return tuple(keys)
            self.place += 1

    def _inside(self, keys: Way) -> Way:
        """The way of a table: keys that name an array of tables mean its last entry."""
        way: Way = ()
        for key in keys:
            way = (*way, key)
            if way in self.lengths:
                way = (*way, self.lengths[way] - 1)
        return way

    def _next_entry(self, keys: Way) -> Way:
        way = (*self._inside(keys[:-1]), keys[-1])
        self.lengths[way] = self.lengths.get(way, 0) + 1
        return (*way, self.lengths[way] - 1)

    def _pair(self, table: Way) -> Iterator[tuple[Way, int]]:
        line, keys = self._line_here(), self._keys()
        yield (*table, *keys), line
        self.place += 1  # the sign =
        yield from self._value((*table, *keys))

    def _value(self, way: Way) -> Iterator[tuple[Way, int]]:
        self._skip_blank()
        match self.text[self.place]:
            case "[":
                yield from self._several(way, "]")
            case "{":
                yield from self._several(way, "}")
            case '"' | "'":
                self.place = self._match(_STRING).end()
            case _:
                self.place = self._match(_SCALAR).end()

    def _several(self, way: Way, closing: str) -> Iterator[tuple[Way, int]]:
        """Entries of an array, or pairs of an inline table."""
        self.place += 1
        number = 0
        while self._skip_blank() and self.text[self.place] != closing:
            if closing == "}":
                yield from self._pair(way)
            else:
                yield (*way, number), self._line_here()
                yield from self._value((*way, number))
            number += 1
            self._skip_blank()
            if self.text[self.place] == ",":
                self.place += 1
        self.place += 1


def _unquoted(key: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    return tomllib.loads(f"key = {key}")["key"] if key[0] == '"' else key


def quoted(text: str) -> str:
    """A text as TOML writes it, in double quotes."""
    # JSON escapes what TOML does, but for the one sign that it takes for printable
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
