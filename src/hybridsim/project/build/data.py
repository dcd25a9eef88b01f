"""From `[data]`, `[[channel]]` and `[[command]]` to recordings, split into those to fit and those to judge by."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint
from hybridsim.data.load import load_recording, load_runs
from hybridsim.data.noise import noise_level
from hybridsim.data.recording import Recording
from hybridsim.data.segments import segments
from hybridsim.data.split import split_runs
from hybridsim.data.units import UNITS
from hybridsim.project.schema.data import ESTIMATE
from hybridsim.project.schema.load import Project, in_order, recorded_entries
from hybridsim.project.schema.project_error import ProjectError, in_project_words
from hybridsim.project.schema.toml_lines import Way

FINEST = 1e-6
"""Least noise that is believed, by the spread of a channel: what is finer is arithmetic, not measurement."""
OF_COLUMN = ("data.missing_column", "data.array", "data.object", "data.text")
"""Problems of data that begin with the wrong name of a column."""
OF_FILE = ("file.missing", "file.directory", "file.special", "data.format")
"""Problems of data that begin with the wrong name of a file."""

Split = tuple[list[Recording], list[Recording]]


def recordings_of(project: Project, files: Iterable[Sequence[Path]] | None = None) -> list[Recording]:
    """Runs in files, by default in those of the project, read as the project says and cut at gaps.

    Raises:
        ProjectError: carries every problem of every file.
    """
    runs: list[Recording] = []
    problems: list[Problem] = []
    groups = list(project.data_files if files is None else files)
    for group, name in zip(groups, _names(groups, project.folder), strict=True):
        try:
            for run in _loaded(project, group, name):
                gap = project.content.data.longest_gap
                runs += [run] if gap is None else segments(run, longest_gap=gap)
        except DataError as error:
            problems += error.problems
    if problems:
        raise ProjectError(in_order(_blamed(problems, project)))
    return runs


def split(project: Project, runs: Sequence[Recording]) -> Split:
    """Runs to fit and runs to judge the fit by.

    Raises:
        ProjectError: they cannot be split as the project says.
    """
    wanted, place = project.content.data.validation, project.place
    if isinstance(wanted, tuple):
        problems, held = [], []
        for number, pattern in enumerate(wanted):
            matching = [run.name for run in runs if _is_called(run.name, pattern)]
            held += matching
            if not matching:
                way = ("data", "validation", number)
                message = f"validation of [data]: there is no run {pattern!r}"
                problems.append(place.problem(way, message, name_hint(pattern, [r.name for r in runs]), "data.split"))
        if problems:
            raise ProjectError(problems)
        wanted = tuple(dict.fromkeys(held))
    if isinstance(wanted, float | int) and wanted > 0.0 and len(runs) == 1:
        return _cut(runs[0], wanted)
    try:
        return split_runs(runs, validation=wanted)
    except DataError as error:
        way = ("data", "validation")
        told = [place.problem(way, f"validation of [data]: {p.message}", p.fix, p.code) for p in error.problems]
        raise ProjectError(told) from None


def noise_of(project: Project, runs: Sequence[Recording], found: list[Problem]) -> dict[str, float]:
    """Standard deviation of the noise of every channel, in SI units: as told, or the median over runs."""
    noise: dict[str, float] = {}
    for number, entry in enumerate(project.content.channel):
        if isinstance(entry.noise, float | int):
            factor = UNITS[entry.unit].factor * abs(entry.scale)
            noise[entry.called] = entry.noise * factor
            continue
        assert entry.noise == ESTIMATE
        way, series = ("channel", number, "noise"), [run.series[entry.called] for run in runs]
        try:
            level = float(np.median([noise_level(one) for one in series]))
        except DataError as error:
            found += [_at(project, way, problem) for problem in error.problems]
            continue
        spread = float(np.std(np.concatenate([one.values for one in series])))
        if spread == 0.0:
            message = f"{project.place.section(way[:2])} never changes, so that its noise cannot be estimated"
            fix = "leave the channel out, or give noise as a number"
            found.append(project.place.problem(way, message, fix, "project.noise"))
        noise[entry.called] = max(level, FINEST * spread)
    return noise


def _loaded(project: Project, group: Sequence[Path], name: str) -> list[Recording]:
    data = project.content.data
    options: dict[str, Any] = {
        "time": data.time if data.step is None else float(data.step),
        "time_unit": data.time_unit,
        "name": name,
        "group": data.group,
        "on_nan": data.on_nan,
        "on_disorder": data.on_disorder,
    }
    if data.several:
        return load_runs(group[0], project.channels, run_starts=data.run_starts, **options)
    return [load_recording(group, project.channels, **options)]


def _names(groups: Sequence[Sequence[Path]], folder: Path) -> list[str]:
    """Names of runs: those of their files; with the way from the project where that is needed to tell them apart."""
    count = Counter(group[0].stem for group in groups)
    return [
        file.stem if count[file.stem] == 1 else Path(os.path.relpath(file, folder)).as_posix()
        for file in (group[0] for group in groups)
    ]


def _is_called(name: str, pattern: str) -> bool:
    """Does a pattern mean a run, or the run that it is a part of?"""
    whole = re.sub(r"(\[\d+\])?(\.\d+)?$", "", name)
    # brackets in names of runs are no wildcards
    escaped = pattern.replace("[", "[[]")
    return fnmatchcase(name, escaped) or fnmatchcase(whole, escaped)


def _cut(run: Recording, share: float) -> Split:
    """The first part of a single run, and its last."""
    middle = run.end - share * (run.end - run.start)
    first, last = run.slice(run.start, middle), run.slice(middle, run.end)
    return [replace(first, name=f"{run.name} (first part)")], [replace(last, name=f"{run.name} (last part)")]


def _blamed(problems: Sequence[Problem], project: Project) -> list[Problem]:
    """Problems of data, at the project's line where the project is to blame; those of many files alike as one."""
    alike: dict[tuple, list[Problem]] = {}
    for problem in problems:
        way = _way_to_blame(problem, project)
        key = (problem.code, way) if way else (problem,)
        alike.setdefault(key, []).append(problem)
    told = []
    for key, group in alike.items():
        first = replace(group[0], fix=in_project_words(group[0].fix))
        if len(key) == 1:
            told.append(first)
            continue
        files = dict.fromkeys(problem.file for problem in group if problem.file)
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        where = f" (in {next(iter(files))}{more})" if files else ""
        told.append(_at(project, key[1], replace(first, message=f"{first.message}{where}")))
    return told


def _at(project: Project, way: Way, problem: Problem) -> Problem:
    message = f"{project.place.key(way)}: {problem.message}" if len(way) != 2 or way[0] == "data" else problem.message
    return project.place.problem(way, message, problem.fix, problem.code)


def _way_to_blame(problem: Problem, project: Project) -> Way:
    """The key of the project that a problem of data comes from; empty if the data are at fault."""
    entries = recorded_entries(project.content)
    if problem.code in OF_FILE:
        named = (names if isinstance(names, tuple) else (names,) for names in project.content.data.files)
        paths = ((("data", "files", k), str(project.folder / name)) for k, names in enumerate(named) for name in names)
        return next((way for way, path in paths if path == problem.file), ())
    if problem.code == "data.gap":
        return ("data", "longest_gap")
    if problem.code == "data.run":
        return ("data", "run_starts" if project.content.data.run_starts else "several")
    if problem.code == "data.group":
        return next(((*way, "group") for way, entry in entries if entry.group == problem.element), ("data", "group"))
    if problem.code in ("data.file", "data.ambiguous"):
        is_meant = {"data.file": "called", "data.ambiguous": "column"}[problem.code]
        return next(((*way, "file") for way, entry in entries if getattr(entry, is_meant) == problem.element), ())
    if problem.code not in OF_COLUMN:
        return ()
    if "time column" in problem.message:
        own = ((*way, "time") for way, entry in entries if entry.time == problem.element)
        return next(own, ("data", "time"))
    return next(((*way, "column") for way, entry in entries if entry.column == problem.element), ())
