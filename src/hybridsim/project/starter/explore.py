"""A first project for a model and its recordings: columns are matched with joints, and what is usually unknown is free.

The project is a proposal to be read and edited, but fits as it is.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.core.errors import DataError, HybridsimError
from hybridsim.core.messages import name_list
from hybridsim.data.read import inspect_tables
from hybridsim.data.table import Table
from hybridsim.data.units import UNITS
from hybridsim.model.model import Model
from hybridsim.project.build.model import is_direct
from hybridsim.project.starter.columns import Kind, read_name
from hybridsim.project.starter.match import Match, Matches, match_columns, scalar_joints, slides
from hybridsim.project.starter.units import Guess, Runs, position_unit, starts_again, time_unit, velocity_unit


@dataclass(frozen=True)
class Measured:
    """A column that the project uses."""

    match: Match
    unit: Guess
    unwrap: bool = False


@dataclass(frozen=True)
class Starter:
    """What is known about a model and its recordings."""

    model: Model
    model_name: str
    """File or built-in mechanism."""
    is_built_in: bool
    reading: dict[str, Any]
    """How to read the model file, where that is not as usual."""
    files: tuple[Path, ...]
    several: bool
    """Does every file hold several runs?"""
    time: str
    """Time column; empty if there is none."""
    time_unit: Guess
    step: float | None
    """Time between samples, where there is no time column [s]."""
    channels: tuple[Measured, ...]
    commands: tuple[Measured, ...]
    matches: Matches
    notes: tuple[str, ...]
    """What the user should know."""
    has_gaps: bool
    """Are numbers missing in columns that are used?"""
    is_disordered: bool
    """Does time go back or stand still somewhere?"""

    @property
    def joints(self) -> list[str]:
        """Joints of one coordinate that are measured."""
        targets = {measured.match.target for measured in self.channels}
        return [joint for joint in scalar_joints(self.model) if joint in targets]


def explore(
    model: Model,
    model_name: str,
    files: Sequence[Path],
    *,
    is_built_in: bool,
    reading: dict[str, Any] | None = None,
    step: float | None = None,
) -> Starter:
    """Look at recordings, and find what their columns mean for a model.

    Args:
        model: the mechanism.
        model_name: its file or name.
        files: recordings, one run each.
        is_built_in: is it a built-in mechanism?
        reading: how to read the model file, where that is not as usual.
        step: time between samples [s], for files without a time column.

    Raises:
        DataError: a file cannot be read.
        HybridsimError: no column tells the time, or none could be matched with the model.
    """
    tables, several = _tables(files)
    shared = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    notes = _missing_somewhere(tables, shared)
    time = _time_column(shared, tables) if step is None else ""
    if step is None and not time:
        raise HybridsimError(
            f"no column of {files[0]} tells the time; there are {name_list(shared)}. Call it `time`, or tell the time "
            "between samples with --step"
        )
    unit = time_unit(read_name(time).unit, _runs(tables, time)) if time else Guess("s")
    matches = match_columns(shared, model, time)
    seconds = [np.arange(len(next(iter(t.columns.values())))) * step for t in tables] if step else []
    seconds = seconds or [t * UNITS[unit.unit].factor for t in _runs(tables, time)]
    channels, at_rest = _channels(matches, tables, seconds, model)
    if not channels:
        raise HybridsimError(
            f"no column of {files[0]} could be matched with the model: columns are {name_list(shared)}, joints are "
            f"{name_list(scalar_joints(model))}. Call columns q:JOINT and qd:JOINT, or write the project by hand"
        )
    commands, passed_over = _commands(matches, tables, model)
    used = [time] * bool(time) + [one.match.column.name for one in (*channels, *commands)]
    return Starter(
        model,
        model_name,
        is_built_in,
        reading or {},
        tuple(files),
        several,
        time,
        unit,
        step,
        tuple(channels),
        tuple(commands),
        matches,
        (*notes, *at_rest, *passed_over),
        has_gaps=any(not np.isfinite(run).all() for name in used for run in _runs(tables, name)),
        is_disordered=bool(time) and not all(_increases(run) for run in _runs(tables, time)),
    )


def relative(path: Path, folder: Path) -> str:
    """How a project in a folder calls a file: from the folder, unless they have nothing in common."""
    real, start = path.absolute(), folder.absolute()
    if os.path.commonpath([real, start]) == real.anchor:
        return real.as_posix()
    return Path(os.path.relpath(real, start)).as_posix()


def _tables(files: Sequence[Path]) -> tuple[list[Table], bool]:
    """Tables of all runs, and whether files hold several of them."""
    tables, several, problems = [], False, []
    for file in files:
        try:
            found = list(inspect_tables(file))
            if any(problem.code == "data.run" for table in found for problem in table.unreadable.values()):
                found, several = list(inspect_tables(file, run="all")), True
            tables += found
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return tables, several


def _missing_somewhere(tables: Sequence[Table], shared: Sequence[str]) -> list[str]:
    other = dict.fromkeys(name for table in tables for name in table.columns if name not in shared)
    return [f"not in every file: {name_list(other)}"] if other else []


def _runs(tables: Sequence[Table], column: str) -> Runs:
    return [table.columns[column] for table in tables]


def _time_column(names: Sequence[str], tables: Sequence[Table]) -> str:
    """The first column that is called time and increases; or else the first that is called so."""
    called = [name for name in names if read_name(name).kind is Kind.TIME]
    increasing = [name for name in called if all(_increases(run) for run in _runs(tables, name))]
    return next(iter([*increasing, *called]), "")


def _increases(times: np.ndarray) -> bool:
    return bool((np.diff(times[np.isfinite(times)]) > 0.0).all())


def _is_constant(runs: Runs) -> bool:
    finite = [run[np.isfinite(run)] for run in runs]
    return all(len(run) == 0 or np.ptp(run) == 0.0 for run in finite)


def _channels(
    matches: Matches, tables: Sequence[Table], seconds: Runs, model: Model
) -> tuple[list[Measured], list[str]]:
    """Columns that are measured, and what was passed over."""
    found: list[Measured] = []
    notes = []
    positions: dict[str, str] = {}
    for match in matches.of(Kind.POSITION, Kind.VELOCITY):
        runs, name = _runs(tables, match.column.name), match.target
        if _is_constant(runs):
            notes.append(f"{match.column.name!r} never changes and is left out")
            continue
        sliding, is_scalar = slides(model, name), name in scalar_joints(model)
        if match.kind is Kind.POSITION:
            limits = _limits(model, name)
            unit = position_unit(match.column.unit, runs, sliding=sliding, limits=limits) if is_scalar else Guess("")
            positions[name] = unit.unit
            found.append(Measured(match, unit, starts_again(unit.unit, runs)))
        else:
            source = next((m.match.column.name for m in found if m.match.target == name), "")
            position = (positions[name], _runs(tables, source), seconds) if source else None
            unit = velocity_unit(match.column.unit, runs, position, sliding=sliding) if is_scalar else Guess("")
            found.append(Measured(match, unit))
    return found, notes


def _limits(model: Model, joint: str) -> tuple[float, float]:
    names = model.topology.tree_dof_names
    if joint not in names:
        return -np.inf, np.inf
    return float(model.joint.lower[names.index(joint)]), float(model.joint.upper[names.index(joint)])


def _commands(matches: Matches, tables: Sequence[Table], model: Model) -> tuple[list[Measured], list[str]]:
    """Columns that drive joints, and what was passed over."""
    found: dict[str, Measured] = {}
    notes = []
    drivers = {model.topology.joint_names[joint]: k for k, joint in enumerate(model.actuator.joints)}
    for match in matches.of(Kind.TORQUE, Kind.COMMAND):
        column, joint = match.column.name, match.target
        own = drivers.get(joint)
        if match.kind is Kind.TORQUE and own is not None and not is_direct(model.actuator, own):
            notes.append(f"{column!r} is a torque, but joint {joint!r} is driven by a servo, whose command it is not")
        elif match.kind is Kind.COMMAND and own is None:
            notes.append(f"{column!r} is a command, but joint {joint!r} has no actuator")
        elif not any(np.any(run) for run in _runs(tables, column)):
            notes.append(f"{column!r} is zero throughout and drives nothing")
        elif joint in found:
            notes.append(f"{column!r} drives joint {joint!r}, as {found[joint].match.column.name!r} does")
        else:
            usual = ("N" if slides(model, joint) else "Nm") if match.kind is Kind.TORQUE else ""
            if match.kind is Kind.COMMAND and own is not None:
                match = replace(match, target=model.actuator.names[own])
            found[joint] = Measured(match, Guess(match.column.unit or usual))
    return list(found.values()), notes
