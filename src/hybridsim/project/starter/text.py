"""Text of a starter project, with comments on guesses that differ from the default."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hybridsim.core.messages import name_list
from hybridsim.project.schema.toml_text import quote
from hybridsim.project.starter.analyse import MatchedColumn, StarterProject, relative_path
from hybridsim.project.starter.columns import ColumnKind
from hybridsim.project.starter.match import is_prismatic

MIN_STOPPING_TIME = 0.01
"""Time in which a joint stops if its friction is at the upper bound [s]."""
RELATIVE_MASS_BOUNDS = (0.2, 5.0)
"""Bounds of masses relative to those of the model."""


def starter_text(starter: StarterProject, folder: Path) -> str:
    """Text of a starter project, for a file in a folder."""
    parts = [_head(starter), _model(starter, folder), _data(starter, folder)]
    parts += [_channel(column) for column in starter.channels]
    parts += [_command(column) for column in starter.commands]
    parts += [] if starter.commands else [_no_command()]
    parts += [_free(starter), _stages()]
    return "\n".join("\n".join(part) + "\n" for part in parts)


def _head(starter: StarterProject) -> Iterator[str]:
    yield f"# Fit of {_single_line(starter.model.name)} to recordings, written by `hybridsim init`. Review it, then run"
    yield "#     hybridsim fit THIS_FILE"
    yield "# docs/projects.md documents all sections and keys."
    unused = [match.column.name for match in starter.matches.duplicates] + list(starter.matches.unrecognized)
    if unused:
        yield f"# Unused columns: {_single_line(name_list(unused))}."


def _model(starter: StarterProject, folder: Path) -> Iterator[str]:
    yield "[model]"
    if starter.is_built_in:
        yield f"built_in = {quote(starter.model_name)}"
    else:
        yield f"file = {quote(relative_path(Path(starter.model_name), folder))}"
    for key, value in starter.load_options.items():
        yield f"{key} = {_value(value, folder)}"
    yield f"# dt = {starter.model.timestep:g}  # time step of the simulation [s]; by default that of the model"
    yield '# integrator = "implicit"  # for stiff damping; "rk4" for accuracy'
    yield '# contact = "impulse"  # contact is disabled by default'


def _data(starter: StarterProject, folder: Path) -> Iterator[str]:
    files = [quote(relative_path(file, folder)) for file in starter.files]
    yield "[data]"
    if len(files) == 1:
        yield f"files = {files[0]}"
    else:
        yield "files = ["
        yield from (f"  {file}," for file in files)
        yield "]"
    if starter.several_runs:
        yield "several_runs = true  # every file contains several runs"
    if starter.sample_interval is not None:
        yield f"sample_interval = {starter.sample_interval!r}  # [s]; the files have no time column"
    else:
        yield f"time = {quote(starter.time)}"
        reason = f"  # guessed: {starter.time_unit.reason}" if starter.time_unit.reason else ""
        yield f"time_unit = {quote(starter.time_unit.unit)}{reason}"
    if starter.has_nonfinite_values:
        yield 'on_nan = "drop"  # drops samples that are not finite'
    if starter.has_out_of_order_times:
        yield 'on_out_of_order = "drop"  # drops samples with non-increasing time stamps'
    is_single = len(files) == 1 and not starter.several_runs
    held_out = "the last quarter of the run" if is_single else "a quarter of the runs"
    yield f"held_out = 0.25  # holds out {held_out} to validate the fit"


def _channel(column: MatchedColumn) -> Iterator[str]:
    match = column.match
    quantity = "joint.q" if match.kind is ColumnKind.POSITION else "joint.qd"
    yield "[[channel]]"
    yield f"measures = {quote(f'{quantity}[{match.target}]')}"
    yield from _column(column)
    if column.unwrap:
        yield "unwrap = true  # the angle wraps at full turns"
    yield 'noise = "estimate"  # or the standard deviation in the unit of the column'


def _command(column: MatchedColumn) -> Iterator[str]:
    match = column.match
    yield "[[command]]"
    if match.kind is ColumnKind.TORQUE:
        yield f"joint = {quote(match.target)}"
    else:
        yield f"actuator = {quote(match.target)}"
    yield from _column(column)
    yield 'interpolation = "hold"  # zero-order hold, for commands; "linear" for measured quantities'


def _no_command() -> Iterator[str]:
    yield "# No column is recognized as a command or torque; the actuators of the model get zero commands."
    yield "# [[command]]"
    yield '# joint = "JOINT"  # or actuator = "ACTUATOR"'
    yield '# column = "COLUMN"'
    yield '# unit = "Nm"'


def _column(column: MatchedColumn) -> Iterator[str]:
    yield f"column = {quote(column.match.column.name)}"
    if column.unit.unit:
        reason = f"  # guessed: {column.unit.reason}" if column.unit.reason else ""
        yield f"unit = {quote(column.unit.unit)}{reason}"


def _free(starter: StarterProject) -> Iterator[str]:
    """Free friction of the measured joints and free masses of the bodies, within wide bounds.

    With known forces, the scale of the masses is identifiable, so all inertial parameters and the armatures are free;
    only their base parameters are identifiable.
    """
    model = starter.model
    topology = model.topology
    inertia = _composite_inertias(starter)
    yield "# Free parameters; all others keep their values in the model."
    for prismatic in (False, True):
        joints = [joint for joint in starter.joints if is_prismatic(model, joint) is prismatic]
        if not joints:
            continue
        rows = [topology.tree_dof_names.index(joint) for joint in joints]
        selection = "*" if len(joints) == topology.tree_nv else ",".join(joints)
        largest = max(inertia[topology.joint_names.index(joint)] for joint in joints)
        for name, typical in _joint_bounds(starter, largest).items():
            upper = max(typical, 10.0 * float(np.max(np.asarray(getattr(model.joint, name))[rows])))
            yield from (
                "[[free]]",
                f"name = {quote(f'joint.{name}[{selection}]')}",
                f"bounds = [0.0, {_format_rounded(upper)}]",
                "",
            )
    for body, mass in zip(topology.body_names, np.asarray(model.body.mass), strict=True):
        if mass <= 0.0:
            continue
        if starter.commands:
            yield from (
                "[[free]]",
                f"name = {quote(f'inertial[{body}]')}  # mass, centre of mass and inertia, physically consistent",
                "",
            )
        else:
            # without known forces, the scale of all masses is unidentifiable, so that inertias stay fixed
            bounds = ", ".join(_format_rounded(factor * mass) for factor in RELATIVE_MASS_BOUNDS)
            yield from ("[[free]]", f"name = {quote(f'body.mass[{body}]')}", f"bounds = [{bounds}]", "")
    yield '# Other candidates: "body.com[*].z", "joint.stiffness[*]", "gravity.z", "sensor.delay[CHANNEL]"; for'
    yield '# encoders that are zeroed before every run, "sensor.bias[CHANNEL]" with per = "run".'


def _joint_bounds(starter: StarterProject, inertia: float) -> dict[str, float]:
    """Upper bounds of the free parameters of joints that carry a given inertia."""
    friction = dict.fromkeys(("damping", "friction"), inertia / MIN_STOPPING_TIME)
    return friction | ({"armature": inertia} if starter.commands else {})


def _composite_inertias(starter: StarterProject) -> list[float]:
    """Approximate inertia that every joint carries at q = 0 with all other joints locked [kg·m² or kg]."""
    model = starter.model
    topology = model.topology
    p_W, R_W = [], []
    for k, parent in enumerate(topology.parents):
        R, p = np.asarray(model.joint.placement.R[k]), np.asarray(model.joint.placement.p[k])
        p_W.append(p if parent < 0 else p_W[parent] + R_W[parent] @ p)
        R_W.append(R if parent < 0 else R_W[parent] @ R)
    inertias = []
    for joint in range(topology.nb):
        subtree = [k for k in range(topology.nb) if joint in topology.root_paths[k]]
        mass = np.asarray(model.body.mass)[subtree]
        com = np.array([p_W[k] + R_W[k] @ np.asarray(model.body.com[k]) for k in subtree])
        squared_arms = np.sum((com - p_W[joint]) ** 2, axis=1)
        rotational = mass @ squared_arms + np.asarray(model.body.inertia)[subtree][:, :3].max(axis=1).sum()
        inertias.append(float(mass.sum() if is_prismatic(model, topology.joint_names[joint]) else rotational))
    return inertias


def _stages() -> Iterator[str]:
    yield "# Stages of the fit. By default windows of 0.25 s, then of 1 s; a stage without a window uses whole runs:"
    yield "# [[stage]]"
    yield "# window = 0.25  # [s]"
    yield '# loss = "huber"  # robust against outliers'
    yield "# [[stage]]"
    yield "# window = 1.0"


def _format_rounded(value: float) -> str:
    """Value rounded to two digits, as a TOML float."""
    return repr(float(f"{value:.2g}"))


def _value(value: object, folder: Path) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{quote(str(k))} = {_value(v, folder)}" for k, v in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_value(entry, folder) for entry in value)}]"
    return quote(relative_path(value, folder) if isinstance(value, Path) else str(value))


def _single_line(text: str) -> str:
    """Text without line breaks and control characters, for comments."""
    return "".join(character if character.isprintable() else "?" for character in text)
