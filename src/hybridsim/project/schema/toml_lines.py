"""Line numbers of the keys of a TOML text, which Python's `tomllib` does not report.

A key path is a tuple of keys and, for arrays and arrays of tables, indices from 0: `("channel", 1, "unit")`. The text
has been parsed by `tomllib` before, so its syntax is not checked again.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hybridsim.core.key_path import KeyPath

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
    """Line numbers of keys, from 1."""

    by_key_path: Mapping[KeyPath, int] = field(default_factory=dict)

    def line(self, key_path: KeyPath) -> int:
        """Line of a value; for a missing value, the line of its closest existing parent, or 1."""
        for end in range(len(key_path), 0, -1):
            if key_path[:end] in self.by_key_path:
                return self.by_key_path[key_path[:end]]
        return 1


def toml_lines(text: str) -> TomlLines:
    """Lines of all keys, tables and array entries of a valid TOML text; of a table, its first occurrence."""
    lines: dict[KeyPath, int] = {}
    for key_path, line in _Scanner(text.replace("\r\n", "\n")).scan():
        for end in range(1, len(key_path) + 1):
            lines.setdefault(key_path[:end], line)
    return TomlLines(lines)


class _Scanner:
    """Single pass over a text; `position` is the current offset."""

    def __init__(self, text: str):
        self.text, self.position = text, 0
        self.line, self._counted = 1, 0
        self.lengths: dict[KeyPath, int] = {}
        """Current lengths of arrays of tables."""

    def scan(self) -> Iterator[tuple[KeyPath, int]]:
        table: KeyPath = ()
        while self._skip_blank():
            line = self._current_line()
            if self.text.startswith("[[", self.position):
                table = self._next_entry(self._header(2))
                yield table, line
            elif self.text[self.position] == "[":
                table = self._table_path(self._header(1))
                yield table, line
            else:
                yield from self._pair(table)

    def _current_line(self) -> int:
        self.line += self.text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self.line

    def _skip_blank(self) -> bool:
        """Advance to the next significant character; returns whether there is one."""
        self.position = self._match(_BLANK).end()
        return self.position < len(self.text)

    def _match(self, pattern: re.Pattern) -> re.Match:
        match = pattern.match(self.text, self.position)
        assert match is not None, "tomllib accepts syntax that this scanner does not know"
        return match

    def _header(self, brackets: int) -> KeyPath:
        self.position += brackets
        keys = self._keys()
        self.position += brackets
        return keys

    def _keys(self) -> KeyPath:
        """Parse a dotted key and skip the blanks after it."""
        keys: list[str] = []
        while True:
            self._skip_blank()
            match = self._match(_STRING if self.text[self.position] in "\"'" else _BARE)
            keys.append(_unquote(match.group()))
            self.position = match.end()
            self._skip_blank()
            if self.text[self.position] != ".":
                return tuple(keys)
            self.position += 1

    def _table_path(self, keys: KeyPath) -> KeyPath:
        """Key path of a table; keys of an array of tables refer to its last entry."""
        key_path: KeyPath = ()
        for key in keys:
            key_path = (*key_path, key)
            if key_path in self.lengths:
                key_path = (*key_path, self.lengths[key_path] - 1)
        return key_path

    def _next_entry(self, keys: KeyPath) -> KeyPath:
        key_path = (*self._table_path(keys[:-1]), keys[-1])
        self.lengths[key_path] = self.lengths.get(key_path, 0) + 1
        return (*key_path, self.lengths[key_path] - 1)

    def _pair(self, table: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        line, keys = self._current_line(), self._keys()
        yield (*table, *keys), line
        self.position += 1  # the equals sign
        yield from self._value((*table, *keys))

    def _value(self, key_path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        self._skip_blank()
        match self.text[self.position]:
            case "[":
                yield from self._collection(key_path, "]")
            case "{":
                yield from self._collection(key_path, "}")
            case '"' | "'":
                self.position = self._match(_STRING).end()
            case _:
                self.position = self._match(_SCALAR).end()

    def _collection(self, key_path: KeyPath, closing: str) -> Iterator[tuple[KeyPath, int]]:
        """Scan the entries of an array or the pairs of an inline table."""
        self.position += 1
        index = 0
        while self._skip_blank() and self.text[self.position] != closing:
            if closing == "}":
                yield from self._pair(key_path)
            else:
                yield (*key_path, index), self._current_line()
                yield from self._value((*key_path, index))
            index += 1
            self._skip_blank()
            if self.text[self.position] == ",":
                self.position += 1
        self.position += 1


def _unquote(key: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    return tomllib.loads(f"key = {key}")["key"] if key[0] == '"' else key
