"""The glossary of CONVENTIONS.md, as far as a machine can check it."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import hybridsim
from hybridsim.cli.main import run

SOURCE = Path(hybridsim.__file__).parent
ROOT = Path(__file__).parents[2]
FILES = sorted(SOURCE.rglob("*.py"))
ALL_FILES = [*FILES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "benchmarks").rglob("*.py"))]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]

NAMES = frozenset(
    """
    alone answer begun bears_joints changed chosen closed divided doubt doubts driven eliminated explained felt found
    given held here judged kept looks_back moved most_steps numbers opening otherwise own parted parted_by piece
    pieces predicted promised remembered remembers run_in seen settled shown starts taken ties together told
    touch touches trouble turned turning verdict wanted watched which without
    """.split()
)
"""Functions, classes and modules must not have these names, in the package, its tests and its benchmarks."""

PHRASES = re.compile(
    r"""
    \bdoubt(s|ful)?\b | \bgiv(es|ing)\ way\b | \bhow\ (far\ off|much\ it|easily|often)\b | \brun_in\b |
    \b(is|are|was|were|be|being)\ told\b | \btold\ (at\ once|by|in)\b | \bbears_joints\b | \bcannot\ be\ told\b |
    \bwhat\ (is\ remembered|it\ remembers|touches)\b | \bnumbers?\ of\ its\ own\b | \bits\ own\ numbers\b |
    \bnobody\ (knows|needs)\b | \bmakes?\ no\ sense\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Turns of phrase that the glossary replaces."""


def definitions(file: Path) -> Iterator[tuple[str, int]]:
    """Names of the functions and classes of a file, with their lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno


def prose(file: Path) -> Iterator[tuple[str, int]]:
    """Comments and strings of a file, docstrings and messages among them, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.string, token.start[0]


def test_functions_classes_and_modules_have_names_of_the_field():
    found = [f"{file.relative_to(ROOT)}:{line} {name}" for file in ALL_FILES for name, line in definitions(file)]
    stray = [entry for entry in found if entry.rpartition(" ")[2].strip("_") in NAMES]
    stray += [str(file.relative_to(ROOT)) for file in ALL_FILES if file.stem in NAMES]
    assert not stray, "\n".join(stray)


def test_a_class_name_has_one_meaning():
    files = defaultdict(list)
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(str(file.relative_to(SOURCE)))
    assert not {name: where for name, where in files.items() if len(where) > 1}


def test_prose_uses_the_glossary():
    stray = [
        f"{file.relative_to(ROOT)}:{line} {match.group()!r}"
        for file in FILES
        for text, line in prose(file)
        for match in PHRASES.finditer(text)
    ]
    # the glossary itself lists the words that it replaces
    stray += [
        f"{page.name}: {match.group()!r}"
        for page in PAGES
        if page.name != "CONVENTIONS.md"
        for match in PHRASES.finditer(page.read_text(encoding="utf-8"))
    ]
    assert not stray, "\n".join(stray)


@pytest.mark.parametrize("command", ["fit", "predict", "discover", "init", "check", "simulate", "taps", "audit"])
def test_help_uses_the_glossary(command, capsys):
    with pytest.raises(SystemExit):
        run([command, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "hybridsim" in shown and not PHRASES.search(shown)
