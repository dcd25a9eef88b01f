"""Problems of a specification, its model and its recordings, relocated to the lines of a project that cause them."""

from collections.abc import Iterable
from dataclasses import replace

from hybridsim.core.advice import advice_in_toml
from hybridsim.core.errors import Problem, Severity
from hybridsim.core.key_path import KeyPath
from hybridsim.project.schema.load import Project, column_entries
from hybridsim.project.schema.location import SourceLocator

COLUMN_PROBLEMS = ("data.missing_column", "data.array", "data.object", "data.text")
"""Codes of problems that a wrong column name causes."""
FILE_PROBLEMS = ("file.missing", "file.directory", "file.special", "data.format")
"""Codes of problems that a wrong file name causes."""
MODEL_KEYS = {"file.missing": "file", "file.directory": "file", "file.unreadable": "file"}
"""Keys of `[model]` that cause problems with these codes."""


def relocate(problems: Iterable[Problem], project: Project) -> list[Problem]:
    """Problems at the lines of the project that cause them; those with the same cause are merged over files."""
    groups: dict[tuple, list[Problem]] = {}
    for problem in problems:
        if problem.path:
            groups[problem,] = [locate(problem, project.locator)]
            continue
        # warnings are about the data, whose lines they name
        key_path = _responsible_key(problem, project) if problem.severity is Severity.ERROR else ()
        groups.setdefault((problem.code, key_path) if key_path else (problem,), []).append(problem)
    return [_merge(group, key[1] if len(key) > 1 else (), project.locator) for key, group in groups.items()]


def relocate_model_problem(problem: Problem, project: Project) -> Problem:
    """A problem of the model file, at the project's line if a key of the project causes it."""
    topic, _, name = problem.code.partition(".")
    key = MODEL_KEYS.get(problem.code) or (name if topic == "option" else "")
    if not key:
        return problem
    message = f"{project.locator.key(('model', key))}: {problem.message}: {problem.file}"
    line = project.locator.lines.line(("model", key))
    return replace(problem, message=message, file=project.locator.file, line=line, path=("model", key))


def locate(problem: Problem, locator: SourceLocator) -> Problem:
    """A problem of a specification at the line of its place."""
    path = problem.path
    if path[0] in ("model", "data", "blueprint") and len(path) > 1:
        place = locator.key(path)
    else:
        place = "" if path == ("free",) else locator.section(path[:2])
    message = f"{place}: {problem.message}" if place else problem.message
    return replace(locator.problem(path, message, problem.fix, problem.code), severity=problem.severity)


def _merge(group: list[Problem], key_path: KeyPath, locator: SourceLocator) -> Problem:
    first = replace(group[0], fix=advice_in_toml(group[0].fix))
    if not key_path:
        return first
    files = dict.fromkeys(problem.file for problem in group if problem.file)
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    origin = f" (in {next(iter(files))}{more})" if files else ""
    message = f"{locator.key(key_path)}: {first.message}{origin}"
    return locator.problem(key_path, message, group[0].fix, first.code)


def _responsible_key(problem: Problem, project: Project) -> KeyPath:
    """Key of the project that causes a problem of data; empty if the data themselves are faulty."""
    entries, data = column_entries(project.content), project.content.data
    if problem.code in FILE_PROBLEMS:
        groups = (names if isinstance(names, tuple) else (names,) for names in data.files)
        paths = ((("data", "files", k), str(project.folder / name)) for k, names in enumerate(groups) for name in names)
        return next((key_path for key_path, path in paths if path == problem.file), ())
    if problem.code == "data.gap":
        return ("data", "max_sample_interval")
    if problem.code == "data.run":
        return ("data", "run_starts" if data.run_starts else "several_runs")
    if problem.code == "data.group":
        keys = ((*path, "group") for path, entry in entries if entry.group == problem.element)
        return next(keys, ("data", "group"))
    if problem.code == "data.missing_time":
        keys = ((*path, "time") for path, entry in entries if entry.time == problem.element)
        return next(keys, ("data", "time"))
    if problem.code in ("data.file", "data.ambiguous"):
        attribute = {"data.file": "series_name", "data.ambiguous": "column"}[problem.code]
        return next(((*path, "file") for path, entry in entries if getattr(entry, attribute) == problem.element), ())
    if problem.code not in COLUMN_PROBLEMS:
        return ()
    return next(((*path, "column") for path, entry in entries if entry.column == problem.element), ())
