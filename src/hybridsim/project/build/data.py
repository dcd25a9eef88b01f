"""Recordings of a project, from `[data]`, `[[channel]]` and `[[command]]`, split into training and held-out runs."""

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
from hybridsim.project.schema.load import Project, column_entries, sort_problems
from hybridsim.project.schema.project_error import ProjectError, translate_advice
from hybridsim.project.schema.toml_lines import KeyPath

MIN_RELATIVE_NOISE = 1e-6
"""Lower bound on estimated noise relative to the standard deviation of a channel; lower values are rounding errors."""
COLUMN_PROBLEMS = ("data.missing_column", "data.array", "data.object", "data.text")
"""Problem codes caused by a wrong column name."""
FILE_PROBLEMS = ("file.missing", "file.directory", "file.special", "data.format")
"""Problem codes caused by a wrong file name."""

Split = tuple[list[Recording], list[Recording]]


def recordings_of(project: Project, files: Iterable[Sequence[Path]] | None = None) -> list[Recording]:
    """Runs in files, by default those of the project, read as the project specifies and split at gaps.

    Raises:
        ProjectError: carries all problems of all files.
    """
    runs: list[Recording] = []
    problems: list[Problem] = []
    groups = list(project.data_files if files is None else files)
    for group, name in zip(groups, _run_names(groups, project.folder), strict=True):
        try:
            for run in _load(project, group, name):
                limit = project.content.data.max_sample_interval
                runs += [run] if limit is None else segments(run, max_sample_interval=limit)
        except DataError as error:
            problems += error.problems
    if problems:
        raise ProjectError(sort_problems(_relocate_to_project(problems, project)))
    return runs


def split_recordings(project: Project, runs: Sequence[Recording]) -> Split:
    """Training and held-out runs.

    Raises:
        ProjectError: the runs cannot be split as the project specifies.
    """
    held_out, locator = project.content.data.held_out, project.locator
    if isinstance(held_out, tuple):
        problems, names = [], []
        for index, pattern in enumerate(held_out):
            matching = [run.name for run in runs if _matches_run(run.name, pattern)]
            names += matching
            if not matching:
                key_path = ("data", "held_out", index)
                message = f"held_out of [data]: no run is named {pattern!r}"
                fix = name_hint(pattern, [run.name for run in runs])
                problems.append(locator.problem(key_path, message, fix, "data.split"))
        if problems:
            raise ProjectError(problems)
        held_out = tuple(dict.fromkeys(names))
    if isinstance(held_out, float | int) and held_out > 0.0 and len(runs) == 1:
        return _split_run(runs[0], held_out)
    try:
        return split_runs(runs, held_out=held_out)
    except DataError as error:
        key_path = ("data", "held_out")
        problems = [
            locator.problem(key_path, f"held_out of [data]: {p.message}", p.fix, p.code) for p in error.problems
        ]
        raise ProjectError(problems) from None


def noise_of(project: Project, runs: Sequence[Recording], problems: list[Problem]) -> dict[str, float]:
    """Standard deviation of the noise of every channel in SI units: as specified, or the median estimate over runs."""
    noise: dict[str, float] = {}
    for index, entry in enumerate(project.content.channel):
        if isinstance(entry.noise, float | int):
            factor = UNITS[entry.unit].factor * abs(entry.scale)
            noise[entry.series_name] = entry.noise * factor
            continue
        assert entry.noise == ESTIMATE
        key_path, series = ("channel", index, "noise"), [run.series[entry.series_name] for run in runs]
        try:
            level = float(np.median([noise_level(s) for s in series]))
        except DataError as error:
            problems += [_relocate(project, key_path, problem) for problem in error.problems]
            continue
        spread = float(np.std(np.concatenate([s.values for s in series])))
        if spread == 0.0:
            message = f"{project.locator.section(key_path[:2])} is constant, so that its noise cannot be estimated"
            fix = "remove the channel, or specify noise as a value"
            problems.append(project.locator.problem(key_path, message, fix, "project.noise"))
        noise[entry.series_name] = max(level, MIN_RELATIVE_NOISE * spread)
    return noise


def _load(project: Project, group: Sequence[Path], name: str) -> list[Recording]:
    data = project.content.data
    options: dict[str, Any] = {
        "time": data.time if data.sample_interval is None else float(data.sample_interval),
        "time_unit": data.time_unit,
        "name": name,
        "group": data.group,
        "on_nan": data.on_nan,
        "on_out_of_order": data.on_out_of_order,
    }
    if data.several_runs:
        return load_runs(group[0], project.channels, run_starts=data.run_starts, **options)
    return [load_recording(group, project.channels, **options)]


def _run_names(groups: Sequence[Sequence[Path]], folder: Path) -> list[str]:
    """Names of runs: stems of their files, or relative paths where stems are ambiguous."""
    count = Counter(group[0].stem for group in groups)
    return [
        file.stem if count[file.stem] == 1 else Path(os.path.relpath(file, folder)).as_posix()
        for file in (group[0] for group in groups)
    ]


def _matches_run(name: str, pattern: str) -> bool:
    """Whether a pattern matches the name of a run, or this name without the indices of the run and its segment."""
    whole = re.sub(r"(\[\d+\])?(\.\d+)?$", "", name)
    # brackets in names of runs are not wildcards
    escaped = pattern.replace("[", "[[]")
    return fnmatchcase(name, escaped) or fnmatchcase(whole, escaped)


def _split_run(run: Recording, fraction: float) -> Split:
    """First and last part of a single run."""
    middle = run.end - fraction * (run.end - run.start)
    first, last = run.slice(run.start, middle), run.slice(middle, run.end)
    return [replace(first, name=f"{run.name} (first part)")], [replace(last, name=f"{run.name} (last part)")]


def _relocate_to_project(problems: Sequence[Problem], project: Project) -> list[Problem]:
    """Problems of data, relocated to the keys of the project that cause them and merged over files."""
    groups: dict[tuple, list[Problem]] = {}
    for problem in problems:
        key_path = _responsible_key(problem, project)
        key = (problem.code, key_path) if key_path else (problem,)
        groups.setdefault(key, []).append(problem)
    merged = []
    for key, group in groups.items():
        first = replace(group[0], fix=translate_advice(group[0].fix))
        if len(key) == 1:
            merged.append(first)
            continue
        files = dict.fromkeys(problem.file for problem in group if problem.file)
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        origin = f" (in {next(iter(files))}{more})" if files else ""
        merged.append(_relocate(project, key[1], replace(first, message=f"{first.message}{origin}")))
    return merged


def _relocate(project: Project, key_path: KeyPath, problem: Problem) -> Problem:
    message = (
        f"{project.locator.key(key_path)}: {problem.message}"
        if len(key_path) != 2 or key_path[0] == "data"
        else problem.message
    )
    return project.locator.problem(key_path, message, problem.fix, problem.code)


def _responsible_key(problem: Problem, project: Project) -> KeyPath:
    """Key of the project that causes a problem of data; empty if the data themselves are faulty."""
    entries = column_entries(project.content)
    if problem.code in FILE_PROBLEMS:
        groups = (names if isinstance(names, tuple) else (names,) for names in project.content.data.files)
        paths = ((("data", "files", k), str(project.folder / name)) for k, names in enumerate(groups) for name in names)
        return next((key_path for key_path, path in paths if path == problem.file), ())
    if problem.code == "data.gap":
        return ("data", "max_sample_interval")
    if problem.code == "data.run":
        return ("data", "run_starts" if project.content.data.run_starts else "several_runs")
    if problem.code == "data.group":
        return next(
            ((*key_path, "group") for key_path, entry in entries if entry.group == problem.element), ("data", "group")
        )
    if problem.code in ("data.file", "data.ambiguous"):
        attribute = {"data.file": "series_name", "data.ambiguous": "column"}[problem.code]
        return next(((*path, "file") for path, entry in entries if getattr(entry, attribute) == problem.element), ())
    if problem.code not in COLUMN_PROBLEMS:
        return ()
    if "time column" in problem.message:
        keys = ((*key_path, "time") for key_path, entry in entries if entry.time == problem.element)
        return next(keys, ("data", "time"))
    return next(((*key_path, "column") for key_path, entry in entries if entry.column == problem.element), ())
