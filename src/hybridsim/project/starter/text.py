"""The text of a first project, with a comment on everything that was guessed."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hybridsim.core.messages import name_list
from hybridsim.project.schema.toml_lines import quoted
from hybridsim.project.starter.columns import Kind
from hybridsim.project.starter.explore import Measured, Starter, relative
from hybridsim.project.starter.match import slides

QUICKEST_STOP = 0.01
"""Friction that stops a joint within less time than this [s] is no friction any more."""
MASS_RANGE = (0.2, 5.0)
"""Bounds of masses, by those in the model."""


def starter_text(starter: Starter, folder: Path) -> str:
    """The project, for a file in a folder."""
    parts = [_head(starter), _model(starter, folder), _data(starter, folder)]
    parts += [_channel(measured) for measured in starter.channels]
    parts += [_command(measured) for measured in starter.commands]
    parts += [_free(starter), _stages()]
    return "\n".join("\n".join(part) + "\n" for part in parts)


def _head(starter: Starter) -> Iterator[str]:
    yield f"# Fit of {_plain(starter.model.name)} to recordings, as `hybridsim init` proposes it: read it, then"
    yield "#     hybridsim fit THIS_FILE"
    yield "# docs/projects.md explains all sections and keys."
    unused = [match.column.name for match in starter.matches.spare] + list(starter.matches.unknown)
    if unused:
        yield f"# Columns that are not used: {_plain(name_list(unused))}."


def _model(starter: Starter, folder: Path) -> Iterator[str]:
    yield "[model]"
    if starter.is_built_in:
        yield f"built_in = {quoted(starter.model_name)}"
    else:
        yield f"file = {quoted(relative(Path(starter.model_name), folder))}"
    for key, value in starter.reading.items():
        yield f"{key} = {_value(value, folder)}"
    yield f"# dt = {starter.model.timestep:g}  # time step of the simulation [s]; the model's own by default"
    yield '# integrator = "implicit"  # where damping is stiff; "rk4" where accuracy matters most'
    yield '# contact = "impulse"  # bodies pass through each other by default'


def _data(starter: Starter, folder: Path) -> Iterator[str]:
    files = [quoted(relative(file, folder)) for file in starter.files]
    yield "[data]"
    if len(files) == 1:
        yield f"files = {files[0]}"
    else:
        yield "files = ["
        yield from (f"  {file}," for file in files)
        yield "]"
    if starter.several:
        yield "several = true  # every file holds several runs"
    if starter.step is not None:
        yield f"step = {starter.step!r}  # between samples [s]: the files have no time column"
    else:
        yield f"time = {quoted(starter.time)}"
        reason = f"  # a guess: {starter.time_unit.reason}" if starter.time_unit.reason else ""
        yield f"time_unit = {quoted(starter.time_unit.unit)}{reason}"
    if starter.has_gaps:
        yield 'on_nan = "drop"  # samples without a number are left out'
    if starter.is_disordered:
        yield 'on_disorder = "drop"  # so are those that are not later than all before'
    held = "the last quarter of the run is" if len(files) == 1 and not starter.several else "a quarter of the runs is"
    yield f"validation = 0.25  # {held} kept to judge the fit by"


def _channel(measured: Measured) -> Iterator[str]:
    match = measured.match
    quantity = "joint.q" if match.kind is Kind.POSITION else "joint.qd"
    yield "[[channel]]"
    yield f"measures = {quoted(f'{quantity}[{match.target}]')}"
    yield from _column(measured)
    if measured.unwrap:
        yield "unwrap = true  # it jumps by full turns"
    yield 'noise = "estimate"  # standard deviation in the unit of the column, if you know it'


def _command(measured: Measured) -> Iterator[str]:
    match = measured.match
    yield "[[command]]"
    if match.kind is Kind.TORQUE:
        yield f"joint = {quoted(match.target)}"
    else:
        yield f"actuator = {quoted(match.target)}"
    yield from _column(measured)
    yield 'between = "hold"  # as a controller does; "linear" for what was measured'


def _column(measured: Measured) -> Iterator[str]:
    yield f"column = {quoted(measured.match.column.name)}"
    if measured.unit.unit:
        reason = f"  # a guess: {measured.unit.reason}" if measured.unit.reason else ""
        yield f"unit = {quoted(measured.unit.unit)}{reason}"


def _free(starter: Starter) -> Iterator[str]:
    """Friction of the measured joints and masses of the bodies, within bounds that leave room.

    Forces that are known tell about all mass properties, and about the inertia of what drives the joints.
    """
    model = starter.model
    topology = model.topology
    inertia = _carried(starter)
    yield "# What the fit may change. Whatever is not named here stays as the model has it."
    for sliding in (False, True):
        joints = [joint for joint in starter.joints if slides(model, joint) is sliding]
        if not joints:
            continue
        rows = [topology.tree_dof_names.index(joint) for joint in joints]
        chosen = "*" if len(joints) == topology.mv else ",".join(joints)
        carried = max(inertia[topology.joint_names.index(joint)] for joint in joints)
        for name, usual in _of_joints(starter, carried).items():
            most = max(usual, 10.0 * float(np.max(np.asarray(getattr(model.joint, name))[rows])))
            yield from (
                "[[free]]",
                f"name = {quoted(f'joint.{name}[{chosen}]')}",
                f"bounds = [0.0, {_rounded(most)}]",
                "",
            )
    for body, mass in zip(topology.body_names, np.asarray(model.body.mass), strict=True):
        if mass <= 0.0:
            continue
        if starter.commands:
            what = f"inertial[{body}]"
            yield from (
                "[[free]]",
                f"name = {quoted(what)}  # mass, its centre, inertia: always those of a real body",
                "",
            )
        else:
            # nothing tells a heavy mechanism from a light one, so that inertias stay where they are
            bounds = ", ".join(_rounded(factor * mass) for factor in MASS_RANGE)
            yield from ("[[free]]", f"name = {quoted(f'body.mass[{body}]')}", f"bounds = [{bounds}]", "")
    yield '# Others: "body.com[*].z", "joint.stiffness[*]", "gravity.z", "sensor.delay[CHANNEL]"; where encoders were'
    yield '# zeroed anew before every run, "sensor.bias[CHANNEL]" with per = "run".'


def _of_joints(starter: Starter, carried: float) -> dict[str, float]:
    """What is free of joints that carry some inertia, with the most that is usual."""
    friction = dict.fromkeys(("damping", "friction"), carried / QUICKEST_STOP)
    return friction | ({"armature": carried} if starter.commands else {})


def _carried(starter: Starter) -> list[float]:
    """Inertia that every joint carries with the mechanism stretched out, roughly [kg·m² or kg]."""
    model = starter.model
    topology = model.topology
    p_W, R_W = [], []
    for k, parent in enumerate(topology.parents):
        R, p = np.asarray(model.joint.placement.R[k]), np.asarray(model.joint.placement.p[k])
        p_W.append(p if parent < 0 else p_W[parent] + R_W[parent] @ p)
        R_W.append(R if parent < 0 else R_W[parent] @ R)
    found = []
    for joint in range(topology.nb):
        carried = [k for k in range(topology.nb) if joint in topology.ancestors[k]]
        mass = np.asarray(model.body.mass)[carried]
        com = np.array([p_W[k] + R_W[k] @ np.asarray(model.body.com[k]) for k in carried])
        arms = np.sum((com - p_W[joint]) ** 2, axis=1)
        turning = mass @ arms + np.asarray(model.body.inertia)[carried][:, :3].max(axis=1).sum()
        found.append(float(mass.sum() if slides(model, topology.joint_names[joint]) else turning))
    return found


def _stages() -> Iterator[str]:
    yield "# How it is fitted. By default on windows of 0.25 s, then of 1 s; without a window, on whole runs:"
    yield "# [[stage]]"
    yield "# window = 0.25  # [s]"
    yield '# loss = "huber"  # for samples that are far off'
    yield "# [[stage]]"
    yield "# window = 1.0"


def _rounded(value: float) -> str:
    """A number with two digits, as TOML writes one that is not whole."""
    return repr(float(f"{value:.2g}"))


def _value(value: object, folder: Path) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{quoted(str(k))} = {_value(v, folder)}" for k, v in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_value(entry, folder) for entry in value)}]"
    return quoted(relative(value, folder) if isinstance(value, Path) else str(value))


def _plain(text: str) -> str:
    """A text that cannot end a comment."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
