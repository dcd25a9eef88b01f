"""Analysis of a model and its recordings for a starter project: columns are matched to joints, units are guessed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.core.errors import DataError, HybridsimError
from hybridsim.core.messages import name_list
from hybridsim.data.read import read_tables
from hybridsim.data.table import Table
from hybridsim.data.units import UNITS
from hybridsim.identify.command_actuators import is_torque_actuator
from hybridsim.model.model import Model
from hybridsim.project.starter.columns import ColumnKind, parse_column_name
from hybridsim.project.starter.match import Match, Matches, is_prismatic, match_columns, one_dof_joints
from hybridsim.project.starter.units import Guess, Runs, has_wraps, position_unit, time_unit, velocity_unit


@dataclass(frozen=True)
class MatchedColumn:
    """A column used by the project."""

    match: Match
    unit: Guess
    unwrap: bool = False


@dataclass(frozen=True)
class StarterProject:
    """Content of a starter project."""

    model: Model
    model_name: str
    """File or built-in mechanism."""
    is_built_in: bool
    load_options: dict[str, Any]
    """Options for the model file that differ from their defaults."""
    files: tuple[Path, ...]
    several_runs: bool
    """Whether every file contains several runs."""
    time: str
    """Time column; empty if there is none."""
    time_unit: Guess
    sample_interval: float | None
    """Sample interval of files without a time column [s]."""
    channels: tuple[MatchedColumn, ...]
    commands: tuple[MatchedColumn, ...]
    matches: Matches
    notes: tuple[str, ...]
    """Messages to the user."""
    has_nonfinite_values: bool
    """Whether used columns have values that are not finite."""
    has_out_of_order_times: bool
    """Whether time stamps are not strictly increasing."""

    @property
    def joints(self) -> list[str]:
        """Measured joints with a single coordinate."""
        targets = {column.match.target for column in self.channels}
        return [joint for joint in one_dof_joints(self.model) if joint in targets]


def analyse_recordings(
    model: Model,
    model_name: str,
    files: Sequence[Path],
    *,
    is_built_in: bool,
    load_options: dict[str, Any] | None = None,
    sample_interval: float | None = None,
) -> StarterProject:
    """Analyse recordings and match their columns to a model.

    Args:
        model: the mechanism.
        model_name: its file or name.
        files: recordings, one run each.
        is_built_in: whether the mechanism is built in.
        load_options: options for the model file that differ from their defaults.
        sample_interval: time between samples [s], for files without a time column.

    Raises:
        DataError: a file cannot be read.
        HybridsimError: there is no time column, or no column matches the model.
    """
    tables, several_runs = _tables(files)
    shared = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    notes = _notes_on_missing_columns(tables, shared)
    time = _time_column(shared, tables) if sample_interval is None else ""
    if sample_interval is None and not time:
        raise HybridsimError(
            f"{files[0]} has no time column; its columns are {name_list(shared)}. Name it `time`, or specify the "
            "time between samples with --sample-interval"
        )
    unit = time_unit(parse_column_name(time).unit, _runs(tables, time)) if time else Guess("s")
    matches = match_columns(shared, model, time)
    times = (
        [np.arange(len(next(iter(t.columns.values())))) * sample_interval for t in tables] if sample_interval else []
    )
    times = times or [t * UNITS[unit.unit].factor for t in _runs(tables, time)]
    channels, channel_notes = _channels(matches, tables, times, model)
    if not channels:
        raise HybridsimError(
            f"no column of {files[0]} matches the model: columns are {name_list(shared)}, joints are "
            f"{name_list(one_dof_joints(model))}. Name columns q:JOINT and qd:JOINT, or write the project manually"
        )
    commands, command_notes = _commands(matches, tables, model)
    used = [time] * bool(time) + [column.match.column.name for column in (*channels, *commands)]
    return StarterProject(
        model,
        model_name,
        is_built_in,
        load_options or {},
        tuple(files),
        several_runs,
        time,
        unit,
        sample_interval,
        tuple(channels),
        tuple(commands),
        matches,
        (*notes, *channel_notes, *command_notes),
        has_nonfinite_values=any(not np.isfinite(run).all() for name in used for run in _runs(tables, name)),
        has_out_of_order_times=bool(time) and not all(_is_increasing(run) for run in _runs(tables, time)),
    )


def relative_path(path: Path, folder: Path) -> str:
    """Path of a file relative to a folder; absolute if they have only the root in common."""
    real, start = path.absolute(), folder.absolute()
    if os.path.commonpath([real, start]) == real.anchor:
        return real.as_posix()
    return Path(os.path.relpath(real, start)).as_posix()


def _tables(files: Sequence[Path]) -> tuple[list[Table], bool]:
    """Tables of all runs, and whether files contain several runs."""
    tables, several_runs, problems = [], False, []
    for file in files:
        try:
            in_file = list(read_tables(file))
            if any(problem.code == "data.run" for table in in_file for problem in table.unreadable.values()):
                in_file, several_runs = list(read_tables(file, run="all")), True
            tables += in_file
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return tables, several_runs


def _notes_on_missing_columns(tables: Sequence[Table], shared: Sequence[str]) -> list[str]:
    partial = dict.fromkeys(name for table in tables for name in table.columns if name not in shared)
    return [f"not in every file: {name_list(partial)}"] if partial else []


def _runs(tables: Sequence[Table], column: str) -> Runs:
    return [table.columns[column] for table in tables]


def _time_column(names: Sequence[str], tables: Sequence[Table]) -> str:
    """First increasing column whose name denotes time, or else the first column with such a name."""
    candidates = [name for name in names if parse_column_name(name).kind is ColumnKind.TIME]
    increasing = [name for name in candidates if all(_is_increasing(run) for run in _runs(tables, name))]
    return next(iter([*increasing, *candidates]), "")


def _is_increasing(times: np.ndarray) -> bool:
    return bool((np.diff(times[np.isfinite(times)]) > 0.0).all())


def _is_constant(runs: Runs) -> bool:
    finite = [run[np.isfinite(run)] for run in runs]
    return all(len(run) == 0 or np.ptp(run) == 0.0 for run in finite)


def _channels(
    matches: Matches, tables: Sequence[Table], times: Runs, model: Model
) -> tuple[list[MatchedColumn], list[str]]:
    """Columns of measured positions and velocities, and notes on those that are skipped."""
    channels: list[MatchedColumn] = []
    notes = []
    position_units: dict[str, str] = {}
    for match in matches.select_kinds(ColumnKind.POSITION, ColumnKind.VELOCITY):
        runs, name = _runs(tables, match.column.name), match.target
        if _is_constant(runs):
            notes.append(f"{match.column.name!r} is constant and not used")
            continue
        prismatic, has_one_dof = is_prismatic(model, name), name in one_dof_joints(model)
        if match.kind is ColumnKind.POSITION:
            limits = _limits(model, name)
            unit = (
                position_unit(match.column.unit, runs, prismatic=prismatic, limits=limits) if has_one_dof else Guess("")
            )
            position_units[name] = unit.unit
            channels.append(MatchedColumn(match, unit, has_wraps(unit.unit, runs)))
        else:
            source = next((c.match.column.name for c in channels if c.match.target == name), "")
            position = (position_units[name], _runs(tables, source), times) if source else None
            unit = velocity_unit(match.column.unit, runs, position, prismatic=prismatic) if has_one_dof else Guess("")
            channels.append(MatchedColumn(match, unit))
    return channels, notes


def _limits(model: Model, joint: str) -> tuple[float, float]:
    names = model.topology.tree_dof_names
    if joint not in names:
        return -np.inf, np.inf
    return float(model.joint.lower[names.index(joint)]), float(model.joint.upper[names.index(joint)])


def _commands(matches: Matches, tables: Sequence[Table], model: Model) -> tuple[list[MatchedColumn], list[str]]:
    """Columns of commands and torques, and notes on those that are skipped."""
    commands: dict[str, MatchedColumn] = {}
    notes = []
    actuators = {model.topology.joint_names[joint]: k for k, joint in enumerate(model.actuator.joints)}
    for match in matches.select_kinds(ColumnKind.TORQUE, ColumnKind.COMMAND):
        column, joint = match.column.name, match.target
        actuator = actuators.get(joint)
        is_torque = match.kind is ColumnKind.TORQUE
        if is_torque and actuator is not None and not is_torque_actuator(model.actuator, actuator):
            notes.append(
                f"{column!r} is not used: it is a torque, but the command of the actuator of joint {joint!r} is not "
                "the torque on the joint"
            )
        elif match.kind is ColumnKind.COMMAND and actuator is None:
            notes.append(f"{column!r} is not used: it is a command, but joint {joint!r} has no actuator")
        elif not any(np.any(run) for run in _runs(tables, column)):
            notes.append(f"{column!r} is not used: it is zero throughout")
        elif joint in commands:
            other = commands[joint].match.column.name
            notes.append(f"{column!r} is not used: joint {joint!r} is already driven by {other!r}")
        else:
            default = ("N" if is_prismatic(model, joint) else "Nm") if is_torque else ""
            if match.kind is ColumnKind.COMMAND and actuator is not None:
                match = replace(match, target=model.actuator.names[actuator])
            commands[joint] = MatchedColumn(match, Guess(match.column.unit or default))
    return list(commands.values()), notes
