"""Load a project: one TOML file that specifies a fit completely and contains no code."""

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hybridsim.core.errors import Problem
from hybridsim.core.files import read_bounded
from hybridsim.core.key_path import KeyPath
from hybridsim.core.messages import name_hint
from hybridsim.core.specification import as_plain, setting_fields
from hybridsim.core.specification_errors import specification_problems
from hybridsim.data.channel import Channel, Command, column_problems
from hybridsim.data.load import matching_files
from hybridsim.io.load_options import LoadOptions
from hybridsim.project.schema.content import Content
from hybridsim.project.schema.location import SourceLocator
from hybridsim.project.schema.project_error import ProjectError
from hybridsim.project.schema.toml_lines import toml_lines

MAX_BYTES = 2**20
MAX_KEY_PARTS, MAX_DEPTH = 30, 30
"""Maximum size of a project file."""


@dataclass(frozen=True)
class Project:
    """A validated project; model and recordings are not loaded yet. Projects are equal if path and text are."""

    path: Path
    """The file, absolute."""
    text: str
    content: Content = field(compare=False, repr=False)
    locator: SourceLocator = field(compare=False, repr=False)
    """Source locations of keys, for messages."""
    model_file: Path | None = field(compare=False, default=None)
    """None for a built-in mechanism."""
    data_files: tuple[tuple[Path, ...], ...] = field(compare=False, default=())
    """Files of every run, or of every set of runs, in order."""

    @property
    def folder(self) -> Path:
        """Folder to which paths are relative."""
        return self.path.parent

    @property
    def name(self) -> str:
        """Name of the fit."""
        return self.content.run.name or self.path.stem

    @property
    def out(self) -> Path:
        """Run folder."""
        return self.folder / (self.content.run.out or Path("runs", self.name))

    @property
    def sha256(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def load_options(self) -> dict[str, Any]:
        """Options for the model file; arguments of `load_model`."""
        model = self.content.model
        options = {name: getattr(model, name) for name in setting_fields(LoadOptions)}
        options["packages"] = {name: self.folder / path for name, path in model.packages.items()}
        options["allowed_folders"] = tuple(self.folder / path for path in model.allowed_folders)
        return options


def load_project(path: str | Path) -> Project:
    """Load a project file.

    Neither the model nor the recordings are opened: `build` does that.

    Raises:
        ProjectError: the project is invalid; carries all problems with their lines.
    """
    text, locator, content = read_toml(Path(path), Content)
    absolute = Path(path).absolute()
    folder = absolute.parent
    problems = [*_data_problems(content, locator), *_output_problems(content, folder, locator)]
    files = []
    for index, pattern in enumerate(content.data.files):
        matches = matching_files(pattern, folder)
        if isinstance(matches, Problem):
            key_path: KeyPath = ("data", "files", index)
            problems.append(locator.problem(key_path, f"files of [data]: {matches.message}", matches.fix, matches.code))
        else:
            files += matches
    if problems:
        raise ProjectError(sort_problems(problems))
    model_file = folder / content.model.file if content.model.file else None
    return Project(absolute, text, content, locator, model_file, tuple(dict.fromkeys(files)))


Table = TypeVar("Table", bound=BaseModel)


def read_toml(path: Path, schema: type[Table]) -> tuple[str, SourceLocator, Table]:
    """Read a TOML file; returns its text, the source locations of its keys, and its validated content.

    Raises:
        ProjectError: the file is invalid; carries all problems with their lines.
    """
    text = _read_text(path)
    parsed = _parse_toml(text, str(path))
    locator = SourceLocator(str(path), toml_lines(text), parsed, schema)
    if problems := [_null_character_problem(key_path, locator) for key_path in _null_character_paths(parsed)]:
        raise ProjectError(sort_problems(problems))
    try:
        return text, locator, schema.model_validate(as_plain(parsed))
    except ValidationError as error:
        raise ProjectError(sort_problems(specification_problems(error, locator))) from None


def sort_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Problems in the order of files and lines, without duplicates."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.file, problem.line))


def _read_text(path: Path) -> str:
    try:
        raw = read_bounded(path, MAX_BYTES)
    except FileNotFoundError:
        names = [entry.name for entry in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        fix = name_hint(path.name, names) if names else "`hybridsim init MODEL DATA...` writes one"
        problem = Problem("the file does not exist", fix, str(path), code="file.missing")
    except IsADirectoryError:
        problem = Problem("this is a folder", "name the project file in it", str(path), code="file.directory")
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        problem = Problem(message, "check path and permissions", str(path), code="file.unreadable")
    else:
        if len(raw) > MAX_BYTES:
            message = f"the file has more than the {MAX_BYTES} bytes allowed for a project"
            raise ProjectError([Problem(message, "specify a project file", str(path), code="project.syntax")])
        try:
            return raw.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            fix = "save the file as UTF-8"
            problem = Problem("this is not UTF-8 text", fix, str(path), line, code="project.syntax")
    raise ProjectError([problem])


def _parse_toml(text: str, file: str) -> dict[str, Any]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        # the parser takes time that grows with the square of the parts of a key
        if line.partition("=")[0].partition("#")[0].count(".") > MAX_KEY_PARTS:
            message = f"a key has more than {MAX_KEY_PARTS} parts"
            fix = "three levels suffice for every setting"
            raise ProjectError([Problem(message, fix, file, number, code="project.syntax")])
    try:
        parsed = tomllib.loads(text)
        _check_depth(parsed)
        return parsed
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"^(.*) \(at (?:line (\d+), column \d+|end of document)\)$", str(error), re.DOTALL)
        reason, number = match.groups() if match else (str(error), None)
        line = int(number) if number else max(len(lines), 1)
        message, fix = f"invalid TOML: {_lowercase_first(reason)}", _syntax_advice(lines, line)
        if re.match("cannot overwrite a value|duplicate inline table key", _lowercase_first(reason)):
            fix = "the key is defined twice; remove one definition"
    except ValueError as error:
        # Python converts no more than 4300 digits
        message = f"invalid TOML: {_lowercase_first(str(error).partition(';')[0])}"
        longest = max(range(len(lines)), key=lambda k: len(lines[k]), default=0)
        fix, line = "write fewer digits", longest + 1
    except RecursionError:
        message, fix, line = "tables and lists are nested too deeply", "flatten them: three levels suffice", 1
    raise ProjectError([Problem(message, fix, file, line, code="project.syntax")])


def _lowercase_first(message: str) -> str:
    return message[:1].lower() + message[1:]


def _syntax_advice(lines: Sequence[str], line: int) -> str:
    """Advice for the most frequent mistakes in a line."""
    text = lines[line - 1].strip() if line <= len(lines) else ""
    key, is_pair, value = (part.strip() for part in text.partition("="))
    if not is_pair and ":" in text:
        return "write key = value, with an equals sign"
    if is_pair and re.fullmatch(r"(True|False|None)\b.*", value):
        return "write true or false; omit the key instead of None"
    if is_pair and re.match(r"[A-Za-z_./*]", value) and value.partition("#")[0].strip() not in ("true", "false"):
        return f'put text in quotes: {key} = "{value.partition("#")[0].strip()}"'
    return 'a section begins with [name] or [[name]], a pair is key = 1.0, key = "text", key = true or key = [1, 2]'


def _null_character_paths(value: Any, key_path: KeyPath = ()) -> Iterator[KeyPath]:
    """Key paths of texts with null characters, which are invalid in names of files, columns and joints."""
    if isinstance(value, str) and "\0" in value:
        yield key_path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in pairs:
        yield from _null_character_paths(entry, (*key_path, key))


def _check_depth(parsed: Any) -> None:
    """Raise `RecursionError` for values that are nested deeper than any setting."""
    level = [parsed]
    for _ in range(MAX_DEPTH):
        tables = [value for value in level if isinstance(value, dict | list)]
        if not tables:
            return
        level = [entry for table in tables for entry in (table.values() if isinstance(table, dict) else table)]
    raise RecursionError


def _null_character_problem(key_path: KeyPath, locator: SourceLocator) -> Problem:
    message = f"{locator.key(key_path)} contains a null character"
    return locator.problem(key_path, message, "remove \\u0000", "project.value")


def _data_problems(content: Content, locator: SourceLocator) -> Iterator[Problem]:
    """Problems of channels and times that do not depend on the contents of the files."""
    data = content.data
    for problem in column_problems(content.channel, content.command):
        message = f"{locator.section(problem.path[:2])}: {problem.message}"
        yield locator.problem(problem.path, message, problem.fix, problem.code)
    for problem in data.problems():
        yield locator.problem(("data", "time_unit"), problem.message, problem.fix, problem.code)
    if not data.several_runs:
        return
    for index, names in enumerate(data.files):
        if isinstance(names, tuple):
            message = "files of [data]: a run of several files cannot be combined with several_runs = true"
            yield locator.problem(("data", "files", index), message, "remove the inner brackets", "project.conflict")
    for key_path, entry in column_entries(content):
        for key in ("group", "file"):
            if getattr(entry, key):
                message = f"{key} of {locator.section(key_path)} cannot be combined with several_runs = true"
                fix = "remove it, or set the group of [data]"
                yield locator.problem((*key_path, key), message, fix, "project.conflict")


def _output_problems(content: Content, folder: Path, locator: SourceLocator) -> Iterator[Problem]:
    """Problems of output paths outside the project's folder."""
    root = os.path.realpath(folder)
    inside = Path(os.path.realpath(folder / content.run.out)) if content.run.out else None
    if inside is not None and not inside.is_relative_to(root):
        message = f"out of [run] is outside of the project's folder: {str(inside)!r}"
        fix = "choose a folder inside; `hybridsim fit --out` accepts any folder"
        yield locator.problem(("run", "out"), message, fix, "project.outside")


def column_entries(content: Content) -> list[tuple[KeyPath, Channel | Command]]:
    """Channels and commands with their key paths."""
    channels = [(("channel", index), entry) for index, entry in enumerate(content.channel)]
    return [*channels, *((("command", index), entry) for index, entry in enumerate(content.command))]
