"""Loading a project file: one TOML file that says everything about a fit, and runs no code."""

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
from hybridsim.core.messages import name_hint
from hybridsim.data.assemble import RecordingOptions
from hybridsim.data.channel import Channel, channel_problems
from hybridsim.project.schema.content import Content
from hybridsim.project.schema.data import ChannelEntry, CommandEntry
from hybridsim.project.schema.errors import schema_problems
from hybridsim.project.schema.location import Place, shown
from hybridsim.project.schema.project_error import ProjectError
from hybridsim.project.schema.toml_lines import Way, toml_lines

MOST_BYTES = 2**20
"""A longer file is something else than a project."""
WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class Project:
    """A project that is right in itself. Two are equal if their place and text are."""

    path: Path
    """The file, absolute."""
    text: str
    content: Content = field(compare=False, repr=False)
    place: Place = field(compare=False, repr=False)
    """Where in the file things are; for messages."""
    model_file: Path | None = field(compare=False, default=None)
    """None for a built-in mechanism."""
    data_files: tuple[tuple[Path, ...], ...] = field(compare=False, default=())
    """Files of every run, or of every set of runs, in order."""

    @property
    def folder(self) -> Path:
        """Where relative paths begin."""
        return self.path.parent

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.content.run.name or self.path.stem

    @property
    def out(self) -> Path:
        """Folder for the run's record."""
        return self.folder / (self.content.run.out or Path("runs", self.name))

    @property
    def sha256(self) -> str:
        """Of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def reading(self) -> dict[str, Any]:
        """How to read the model file; arguments of `load_model`."""
        model = self.content.model
        return {
            "base": model.base,
            "inertia": model.inertia,
            "packages": {name: self.folder / path for name, path in model.packages.items()},
            "allowed": tuple(self.folder / path for path in model.allowed),
            "lenient": model.lenient,
        }

    @property
    def channels(self) -> tuple[Channel, ...]:
        """What is read from the data files: measured channels, then what drives the simulation."""
        return tuple(entry.recorded for _, entry in recorded_entries(self.content))


def load_project(path: str | Path) -> Project:
    """Load a project file.

    Neither the model nor the recordings are opened: `build` does that.

    Raises:
        ProjectError: the project cannot be used; carries every problem, each with its line.
    """
    text, place, valid = read_toml(Path(path), Content)
    absolute = Path(path).absolute()
    folder = absolute.parent
    problems = [*_data_problems(valid, place), *_place_problems(valid, folder, place)]
    files = []
    for number, pattern in enumerate(valid.data.files):
        found = _matching(pattern, folder, number, place)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            files += found
    if problems:
        raise ProjectError(in_order(problems))
    model_file = folder / valid.model.file if valid.model.file else None
    return Project(absolute, text, valid, place, model_file, tuple(dict.fromkeys(files)))


Table = TypeVar("Table", bound=BaseModel)


def read_toml(path: Path, schema: type[Table]) -> tuple[str, Place, Table]:
    """The text of a file, where things are in it, and its content.

    Raises:
        ProjectError: it is not what it should be; carries every problem, each with its line.
    """
    text = _text(path)
    content = _parsed(text, str(path))
    place = Place(str(path), toml_lines(text), content, schema)
    if zeros := [_zero_problem(way, place) for way in _ways_to_zeros(content)]:
        raise ProjectError(in_order(zeros))
    try:
        return text, place, schema.model_validate(_with_tuples(content))
    except ValidationError as error:
        raise ProjectError(in_order(schema_problems(error, place))) from None


def in_order(problems: Sequence[Problem]) -> list[Problem]:
    """Problems as a reader of the file meets them, none twice."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.file, problem.line))


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        names = [entry.name for entry in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        fix = name_hint(path.name, names) if names else "`hybridsim init MODEL DATA...` writes one"
        problem = Problem("there is no such file", fix, str(path), code="file.missing")
    except IsADirectoryError:
        problem = Problem("this is a folder", "name the project file in it", str(path), code="file.directory")
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        problem = Problem(message, "check path and permissions", str(path), code="file.unreadable")
    else:
        if len(raw) > MOST_BYTES:
            message = f"the file has {len(raw)} bytes, more than the {MOST_BYTES} that a project may have"
            raise ProjectError([Problem(message, "name a project file", str(path), code="project.syntax")])
        try:
            return raw.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            fix = "save the file as UTF-8"
            problem = Problem("this is not UTF-8 text", fix, str(path), line, code="project.syntax")
    raise ProjectError([problem])


def _parsed(text: str, file: str) -> dict[str, Any]:
    lines = text.splitlines()
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"^(.*) \(at (?:line (\d+), column \d+|end of document)\)$", str(error), re.DOTALL)
        reason, number = found.groups() if found else (str(error), None)
        line = int(number) if number else max(len(lines), 1)
        message, fix = f"this is not TOML: {_lowered(reason)}", _syntax_advice(lines, line)
        if re.match("cannot overwrite a value|duplicate inline table key", _lowered(reason)):
            fix = "the key is there twice; leave one of them out"
    except RecursionError:
        message, fix, line = "tables and lists are nested too deeply", "write sections and keys", 1
    raise ProjectError([Problem(message, fix, file, line, code="project.syntax")])


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]


def _syntax_advice(lines: Sequence[str], line: int) -> str:
    """What people most often get wrong, if it stands there."""
    here = lines[line - 1].strip() if line <= len(lines) else ""
    key, is_pair, value = (part.strip() for part in here.partition("="))
    if not is_pair and ":" in here:
        return "write key = value, with an equals sign"
    if is_pair and re.fullmatch(r"(True|False|None)\b.*", value):
        return "write true or false; leave a key out instead of None"
    if is_pair and re.match(r"[A-Za-z_./*]", value) and value.partition("#")[0].strip() not in ("true", "false"):
        return f'put text in quotes: {key} = "{value.partition("#")[0].strip()}"'
    return 'a section begins with [name] or [[name]], a pair is key = 1.0, key = "text", key = true or key = [1, 2]'


def _ways_to_zeros(value: Any, way: Way = ()) -> Iterator[Way]:
    """Texts with a sign that no name of a file, column or joint has, and that operating systems trip over."""
    if isinstance(value, str) and "\0" in value:
        yield way
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in pairs:
        yield from _ways_to_zeros(entry, (*way, key))


def _zero_problem(way: Way, place: Place) -> Problem:
    return place.problem(way, f"{place.key(way)} holds the sign zero", "take \\u0000 out", "project.value")


def _with_tuples(value: Any) -> Any:
    """Lists as tuples, so that nothing in a project can be changed."""
    if isinstance(value, dict):
        return {key: _with_tuples(entry) for key, entry in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _data_problems(content: Content, place: Place) -> Iterator[Problem]:
    """What is wrong with channels and times in themselves, whatever the files hold."""
    data, entries = content.data, recorded_entries(content)
    ways = {entry.called: way for way, entry in entries}
    for problem in channel_problems([entry.recorded for _, entry in entries]):
        way = ways.get(problem.element, ("channel",))
        message = f"{place.section(way)}: {problem.message}"
        yield place.problem((*way, *_key_at_fault(problem)), message, problem.fix, problem.code)
    time = data.time if data.step is None else data.step
    for problem in RecordingOptions(time, data.time_unit, data.on_nan, data.on_disorder).problems():
        yield place.problem(("data", "time_unit"), problem.message, problem.fix, problem.code)
    if not data.several:
        return
    for number, names in enumerate(data.files):
        if isinstance(names, tuple):
            message = "files of [data]: a run of files is listed, but every file holds several runs"
            yield place.problem(("data", "files", number), message, "leave out the inner brackets", "project.conflict")
    for way, entry in entries:
        for key in ("group", "file"):
            if getattr(entry, key):
                message = f"{key} of {place.section(way)} is told, but files with several runs are read as a whole"
                yield place.problem((*way, key), message, "leave it out; [data] has a group", "project.conflict")


def _key_at_fault(problem: Problem) -> Way:
    """The key that a problem of a channel is about, as far as it can be told."""
    if problem.code == "data.unit":
        return ("unit",)
    return ("unwrap",) if "unwrapped" in problem.message else ()


def _place_problems(content: Content, folder: Path, place: Place) -> Iterator[Problem]:
    """A project must not write to where its user does not expect it."""
    root = os.path.realpath(folder)
    inside = Path(os.path.realpath(folder / content.run.out)) if content.run.out else None
    if inside is not None and not inside.is_relative_to(root):
        message = f"out of [run] leads out of the project's folder, to {str(inside)!r}"
        fix = "choose a folder inside; `hybridsim fit --out` takes any"
        yield place.problem(("run", "out"), message, fix, "project.outside")
    name = content.run.name
    if name and (Path(name).name != name or name in (".", "..")):
        message = f"name of [run] is {name!r}, which is no name of a folder"
        yield place.problem(("run", "name"), message, "leave out slashes and dots", "project.outside")


def recorded_entries(content: Content) -> list[tuple[Way, ChannelEntry | CommandEntry]]:
    """Channels and commands, with the way to each."""
    channels = [(("channel", number), entry) for number, entry in enumerate(content.channel)]
    return [*channels, *((("command", number), entry) for number, entry in enumerate(content.command))]


def _matching(
    pattern: str | tuple[str, ...], folder: Path, number: int, place: Place
) -> list[tuple[Path, ...]] | Problem:
    """Files of runs that an entry of `files` means."""
    way: Way = ("data", "files", number)
    if isinstance(pattern, tuple):
        if not pattern:
            return place.problem(way, "a run of no files is listed in [data]", "name its files", "project.file")
        return [tuple(folder / name for name in pattern)]
    exact = folder / pattern
    parts = Path(pattern).parts
    plain = next((k for k, part in enumerate(parts) if set(part) & WILDCARDS), len(parts))
    try:
        if exact.exists() or plain == len(parts):
            return [(exact,)]
        found = folder.joinpath(*parts[:plain]).glob(str(Path(*parts[plain:])))
        files = sorted(file for file in found if file.is_file())
    except (OSError, ValueError) as error:
        # names that are too long, and, for some versions of Python, ** within a name
        message = f"files of [data]: {shown(pattern)} cannot be looked for: {error}"
        return place.problem(way, message, "write names with * and ?, or **/ for all folders", "project.file")
    if files:
        return [(file,) for file in files]
    parent = exact.parent
    near = [entry.name for entry in parent.iterdir() if entry.is_file()] if parent.is_dir() else []
    fix = name_hint(exact.name, near) if near else f"there is no such folder as {str(parent)!r}, or it is empty"
    return place.problem(way, f"no file matches {pattern!r} of [data]", fix, "project.file")
