"""Which element of an array in exported C code is what: every number of a simulator by name and unit.

Names come from users' files. They are written into comments and identifiers of C with only such letters as mean nothing
there: no comment can be ended, continued or turned into code by a name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import jax
import numpy as np

from hybridsim.model.joints import JointType
from hybridsim.model.model import Model
from hybridsim.sim.state import Inputs, State

MAX_NAME_LENGTH = 100
"""Letters of a user's name that are shown."""


class ArrayInfo(NamedTuple):
    """What is known about an array of the simulator."""

    unit: str
    rows: str = ""
    """What its first axis counts; nothing for a single row."""
    parts: tuple[str, ...] = ()
    """Names of the numbers in a row; none for a single number."""


_XYZ = ("x", "y", "z")
_FORCE, _SPEED, _LENGTH = "N m or N", "rad/s or m/s", "rad or m"

ARRAY_INFO = {
    "body.mass": ArrayInfo("kg", "body"),
    "body.com": ArrayInfo("m", "body", _XYZ),
    "body.inertia": ArrayInfo("kg m^2, about the centre of mass", "body", ("xx", "yy", "zz", "xy", "xz", "yz")),
    "joint.placement.R": ArrayInfo("", "joint", tuple(row + column for row in _XYZ for column in _XYZ)),
    "joint.placement.p": ArrayInfo("m", "joint", _XYZ),
    "joint.axis": ArrayInfo("", "joint", _XYZ),
    "joint.anchor": ArrayInfo("m", "joint", _XYZ),
    "joint.armature": ArrayInfo("kg m^2 or kg", "dof"),
    "joint.stiffness": ArrayInfo("N m/rad or N/m", "dof"),
    "joint.rest": ArrayInfo("rad, m or quaternion", "coordinate"),
    "joint.damping": ArrayInfo("N m s/rad or N s/m", "dof"),
    "joint.friction": ArrayInfo(_FORCE, "dof"),
    "joint.breakaway": ArrayInfo(_FORCE, "dof"),
    "joint.stribeck_velocity": ArrayInfo(_SPEED, "dof"),
    "joint.friction_width": ArrayInfo(_SPEED, "dof"),
    "joint.lower": ArrayInfo(_LENGTH, "dof"),
    "joint.upper": ArrayInfo(_LENGTH, "dof"),
    "joint.limit_stiffness": ArrayInfo("N m/rad or N/m", "dof"),
    "joint.limit_damping": ArrayInfo("N m s/rad or N s/m", "dof"),
    "joint.effort_limit": ArrayInfo(_FORCE, "dof"),
    "joint.mimic_ratio": ArrayInfo("", "joint"),
    "joint.mimic_offset": ArrayInfo(_LENGTH, "joint"),
    "actuator.gear": ArrayInfo("", "actuator"),
    "actuator.gain": ArrayInfo("N m or N per unit of command", "actuator"),
    "actuator.bias": ArrayInfo(f"{_FORCE}; per length; per speed", "actuator", ("0", "1", "2")),
    "actuator.control_lower": ArrayInfo("unit of the command", "actuator"),
    "actuator.control_upper": ArrayInfo("unit of the command", "actuator"),
    "actuator.force_lower": ArrayInfo(_FORCE, "actuator"),
    "actuator.force_upper": ArrayInfo(_FORCE, "actuator"),
    "gravity": ArrayInfo("m/s^2", "", _XYZ),
    "dt": ArrayInfo("s"),
}
"""The arrays of a model, and the time step; networks and actuator stages are described by their shapes."""


class ArrayEntry(NamedTuple):
    """Neighbouring elements of an array that belong together."""

    first: int
    size: int
    name: str
    """For a comment."""
    unit: str = ""


class NamedArray(NamedTuple):
    """An array of a tree, by its path."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Numbers in it."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def text(self) -> str:
        """Its name, and its shape if that is not plain."""
        shape = " x ".join(str(n) for n in self.shape)
        return f"{self.name} ({shape}, row by row)" if len(self.shape) > 1 else self.name


def named_arrays(tree: Any) -> list[NamedArray]:
    """The arrays of a tree, in the order in which they lie in a row of cells."""
    found = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [NamedArray(comment_safe(path_name(path)), np.shape(leaf)) for path, leaf in found]


def path_name(path: tuple) -> str:
    """`body.mass` for the masses of a simulator's model."""
    return jax.tree_util.keystr(path, simple=True, separator=".").removeprefix("model.")


def parameter_entries(
    model: Model, leaves: Iterable[NamedArray], used: Sequence[int] | None = None
) -> list[ArrayEntry]:
    """Entries for numbers of a simulator, counted from 0.

    Args:
        model: whose names are used.
        leaves: arrays of the simulator.
        used: which of their numbers there are; all by default.
    """
    rows = [row for leaf in leaves for row in _rows(model, leaf)]
    numbers = [(k, part) for k, (_, _, parts) in enumerate(rows) for part in parts]
    if used is not None:
        numbers = [numbers[n] for n in used]
    found = []
    for k, group in groupby(numbers, key=lambda number: number[0]):
        name, unit, _ = rows[k]
        parts = [part for _, part in group]
        found.append((f"{name}: {', '.join(parts)}" if parts[0] else name, unit, len(parts)))
    return _in_a_row(found)


def _rows(model: Model, leaf: NamedArray) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Name, unit and names of the numbers of every row of an array; one without names counts as one row."""
    quantity = ARRAY_INFO.get(leaf.name)
    if quantity is None:
        yield leaf.text, "", ("",) * leaf.size
        return
    for row in _row_names(model, quantity.rows):
        name = f"{leaf.name}[{comment_safe(row)}]" if quantity.rows else leaf.name
        yield name, quantity.unit, quantity.parts or ("",)


def _row_names(model: Model, axis: str) -> tuple[str, ...]:
    topology = model.topology
    coordinates = (
        f"{joint}.{part}" if part else joint
        for joint, kind in zip(topology.joint_names, topology.joint_types, strict=True)
        for part in kind.coordinate_names
    )
    return {
        "": ("",),
        "body": topology.body_names,
        "joint": topology.joint_names,
        "dof": topology.tree_dof_names,
        "coordinate": tuple(coordinates),
        "actuator": model.actuator.names,
    }[axis]


_UNITS = {"x": "m", "y": "m", "z": "m", "qw": "", "qx": "", "qy": "", "qz": ""}
_UNITS |= {"wx": "rad/s", "wy": "rad/s", "wz": "rad/s", "vx": "m/s", "vy": "m/s", "vz": "m/s"}
"""Units of the coordinates and velocities of joints that have several."""


def state_entries(model: Model, state: State) -> list[ArrayEntry]:
    """Entries for the numbers of a state."""
    topology = model.topology
    kinds = [k for k, master in zip(topology.joint_types, topology.mimics, strict=True) if master < 0]
    q_units = [_UNITS.get(part, _unit(kind)) for kind in kinds for part in kind.coordinate_names]
    v_units = [_UNITS.get(part, f"{_unit(kind)}/s") for kind in kinds for part in kind.dof_names]
    rows = [
        *((f"q[{comment_safe(name)}]", u, 1) for name, u in zip(topology.coordinate_names, q_units, strict=True)),
        *((f"qd[{comment_safe(name)}]", u, 1) for name, u in zip(topology.dof_names, v_units, strict=True)),
        ("time", "s", 1),
        *((f"memory of {leaf.text}", "", leaf.size) for leaf in named_arrays(state.aux)),
    ]
    return _in_a_row(rows)


def _unit(kind: JointType) -> str:
    return "m" if kind is JointType.PRISMATIC else "rad"


def input_entries(model: Model, inputs: Inputs) -> list[ArrayEntry]:
    """Entries for the commands, and for the inputs that a user adds."""
    commands = [(f"command of {comment_safe(name)}", "", 1) for name in model.actuator.names]
    return _in_a_row(commands + [(f"input.{leaf.name}", "", leaf.size) for leaf in named_arrays(inputs.user)])


def _in_a_row(rows: Iterable[tuple[str, str, int]]) -> list[ArrayEntry]:
    entries, first = [], 0
    for name, unit, size in rows:
        entries.append(ArrayEntry(first, size, name, unit))
        first += size
    return entries


# names in C


def comment_safe(name: str) -> str:
    """A name as it may stand in a comment: stars, backslashes, question marks and the like become underscores."""
    return re.sub(r"[^A-Za-z0-9_ .,:;()\[\]<>=+/^%@#-]", "_", name[:MAX_NAME_LENGTH])


def identifier(name: str) -> str:
    """A name as a part of identifiers."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")


def is_valid_prefix(name: str) -> bool:
    """Whether identifiers may begin with a name: C++ keeps double underscores for itself."""
    return len(name) <= 40 and re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", name) is not None


def prefix_from_name(name: str) -> str:
    """A prefix of identifiers made from a model's name, short because compilers may look at 63 letters only."""
    prefix = identifier(name.lower())[:24].strip("_")
    return prefix if is_valid_prefix(prefix) else f"model_{prefix}".strip("_")
