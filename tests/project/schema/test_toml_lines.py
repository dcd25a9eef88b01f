"""The scanner finds the line of every key, however it is written."""

import tomllib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hybridsim.project.schema.toml_lines import KeyPath, toml_lines
from hybridsim.project.schema.toml_text import quote


def test_keys_of_every_form_have_their_line():
    text = """# a comment = [1]
top = 1
dotted."with space".key = [1,
  2, # [ not a bracket
  [3]]

[table.inner] # comment
long = \"\"\"
[not_a_table]
"key" = 1 \\\"\"\"
\"\"\"
inline = { a = 1, b.c = ']}', d = [{ e = '#' }] }

[[entry]]
literal = 'C:\\'
[[entry]]
time = 1979-05-27T07:32:00Z
[entry.sub]
x = -inf
[[entry.list]]
y = 1
[[entry.list]]
y = 2
["quoted.table"]
z = ''''''
"""
    lines = toml_lines(text)
    for key_path, line in (
        (("top",), 2),
        (("dotted", "with space", "key", 0), 3),
        (("dotted", "with space", "key", 1), 4),
        (("dotted", "with space", "key", 2, 0), 5),
        (("table",), 7),
        (("table", "inner", "long"), 8),
        (("table", "inner", "inline", "d", 0, "e"), 12),
        (("entry",), 14),
        (("entry", 0, "literal"), 15),
        (("entry", 1), 16),
        (("entry", 1, "time"), 17),
        (("entry", 1, "sub", "x"), 19),
        (("entry", 1, "list", 1, "y"), 23),
        (("quoted.table", "z"), 25),
    ):
        assert lines.line(key_path) == line, key_path


def test_missing_keys_have_the_line_of_their_parent():
    lines = toml_lines("\n[[channel]]\nname = 'a'\n\n[[channel]]\n")
    assert lines.line(("channel", 0, "unit")) == 2
    assert lines.line(("channel", 1, "unit", 3)) == 5
    assert lines.line(("model", "file")) == 1


def test_windows_line_ends_count_once():
    assert toml_lines("a = 1\r\n\r\nb = 2\r\n").line(("b",)) == 3


def key_paths_of(content: Any, key_path: KeyPath = ()) -> Iterator[KeyPath]:
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in pairs:
        yield (*key_path, key)
        yield from key_paths_of(value, (*key_path, key))


@pytest.mark.parametrize("seed", range(20))
def test_all_keys_of_random_texts_are_found(seed):
    rng = np.random.default_rng(seed)
    scalars = ["1", "-1.5e3", "true", "inf", '"a # ] } = \\" b"', "'''x\n[y]\n'''", "07:32:00", '""', "[]", "{}"]

    def value(depth: int) -> str:
        kind = rng.integers(4) if depth else 3
        if kind == 0:
            return "[" + ",\n ".join(value(depth - 1) for _ in range(rng.integers(3))) + " # end ]\n]"
        if kind == 1:
            return "{" + ", ".join(f"k{k} = {flat(depth - 1)}" for k in range(rng.integers(3))) + "}"
        return scalars[rng.integers(len(scalars))]

    def flat(depth: int) -> str:
        return "{ x.y = 1 }" if depth and rng.integers(2) else scalars[rng.integers(5)]

    lines = []
    for table in range(5):
        lines.append(f"[[many]] # {table}" if rng.integers(2) else f"[one{table}.'in ner']")
        lines += [f'a{k} . "b" = {value(2)} # [c]' for k in range(3)]
    text = "\n".join(lines)
    found = toml_lines(text).by_key_path
    content = tomllib.loads(text)
    assert set(key_paths_of(content)) == set(found)
    numbered = text.split("\n")
    for key_path, line in found.items():
        if isinstance(key_path[-1], str) and key_path[-1].startswith("a"):
            assert numbered[line - 1].startswith(key_path[-1])


@pytest.mark.parametrize("text", ["plain", 'with "quotes" and \\', "new\nline\ttab", "\x7f\x00\x1f", "grün 漢字 🙂"])
def test_quoted_text_round_trips(text):
    assert tomllib.loads(f"x = {quote(text)}")["x"] == text
