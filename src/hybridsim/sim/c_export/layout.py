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

LONGEST_NAME = 100
"""Letters of a user's name that are shown."""


class Quantity(NamedTuple):
    """What is known about an array of the simulator."""

    unit: str
    rows: str = ""
    """What its first axis counts; nothing for a single row."""
    parts: tuple[str, ...] = ()
    """Names of the numbers in a row; none for a single number."""


_XYZ = ("x", "y", "z")
_FORCE, _SPEED, _LENGTH = "N m or N", "rad/s or m/s", "rad or m"

QUANTITIES = {
    "body.mass": Quantity("kg", "body"),
    "body.com": Quantity("m", "body", _XYZ),
    "body.inertia": Quantity("kg m^2, about the centre of mass", "body", ("xx", "yy", "zz", "xy", "xz", "yz")),
    "joint.placement.R": Quantity("", "joint", tuple(row + column for row in _XYZ for column in _XYZ)),
    "joint.placement.p": Quantity("m", "joint", _XYZ),
    "joint.axis": Quantity("", "joint", _XYZ),
    "joint.anchor": Quantity("m", "joint", _XYZ),
    "joint.armature": Quantity("kg m^2 or kg", "dof"),
    "joint.stiffness": Quantity("N m/rad or N/m", "dof"),
    "joint.rest": Quantity("rad, m or quaternion", "coordinate"),
    "joint.damping": Quantity("N m s/rad or N s/m", "dof"),
    "joint.friction": Quantity(_FORCE, "dof"),
    "joint.breakaway": Quantity(_FORCE, "dof"),
    "joint.stribeck_velocity": Quantity(_SPEED, "dof"),
    "joint.friction_width": Quantity(_SPEED, "dof"),
    "joint.lower": Quantity(_LENGTH, "dof"),
    "joint.upper": Quantity(_LENGTH, "dof"),
    "joint.limit_stiffness": Quantity("N m/rad or N/m", "dof"),
    "joint.limit_damping": Quantity("N m s/rad or N s/m", "dof"),
    "joint.effort_limit": Quantity(_FORCE, "dof"),
    "joint.mimic_ratio": Quantity("", "joint"),
    "joint.mimic_offset": Quantity(_LENGTH, "joint"),
    "actuator.gear": Quantity("", "actuator"),
    "actuator.gain": Quantity("N m or N per unit of command", "actuator"),
    "actuator.bias": Quantity(f"{_FORCE}; per length; per speed", "actuator", ("0", "1", "2")),
    "actuator.control_lower": Quantity("unit of the command", "actuator"),
    "actuator.control_upper": Quantity("unit of the command", "actuator"),
    "actuator.force_lower": Quantity(_FORCE, "actuator"),
    "actuator.force_upper": Quantity(_FORCE, "actuator"),
    "gravity": Quantity("m/s^2", "", _XYZ),
    "dt": Quantity("s"),
}
"""The arrays of a model, and the time step; networks and actuator stages are described by their shapes."""


class Entry(NamedTuple):
    """Neighbouring elements of an array that belong together."""

    first: int
    size: int
    name: str
    """For a comment."""
    unit: str = ""


class Leaf(NamedTuple):
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


def leaves_of(tree: Any) -> list[Leaf]:
    """The arrays of a tree, in the order in which they lie in a row of cells."""
    found = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [Leaf(in_comment(path_name(path)), np.shape(leaf)) for path, leaf in found]


def path_name(path: tuple) -> str:
    """`body.mass` for the masses of a simulator's model."""
    return jax.tree_util.keystr(path, simple=True, separator=".").removeprefix("model.")


def parameter_entries(model: Model, leaves: Iterable[Leaf], used: Sequence[int] | None = None) -> list[Entry]:
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


def _rows(model: Model, leaf: Leaf) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Name, unit and names of the numbers of every row of an array; one without names counts as one row."""
    quantity = QUANTITIES.get(leaf.name)
    if quantity is None:
        yield leaf.text, "", ("",) * leaf.size
        return
    for row in _row_names(model, quantity.rows):
        name = f"{leaf.name}[{in_comment(row)}]" if quantity.rows else leaf.name
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


def state_entries(model: Model, state: State) -> list[Entry]:
    """Entries for the numbers of a state."""
    topology = model.topology
    kinds = [k for k, master in zip(topology.joint_types, topology.mimics, strict=True) if master < 0]
    q_units = [_UNITS.get(part, _unit(kind)) for kind in kinds for part in kind.coordinate_names]
    v_units = [_UNITS.get(part, f"{_unit(kind)}/s") for kind in kinds for part in kind.dof_names]
    rows = [
        *((f"q[{in_comment(name)}]", u, 1) for name, u in zip(topology.coordinate_names, q_units, strict=True)),
        *((f"qd[{in_comment(name)}]", u, 1) for name, u in zip(topology.dof_names, v_units, strict=True)),
        ("time", "s", 1),
        *((f"memory of {leaf.text}", "", leaf.size) for leaf in leaves_of(state.aux)),
    ]
    return _in_a_row(rows)


def _unit(kind: JointType) -> str:
    return "m" if kind is JointType.PRISMATIC else "rad"


def input_entries(model: Model, inputs: Inputs) -> list[Entry]:
    """Entries for the commands, and for the inputs that a user adds."""
    commands = [(f"command of {in_comment(name)}", "", 1) for name in model.actuator.names]
    return _in_a_row(commands + [(f"input.{leaf.name}", "", leaf.size) for leaf in leaves_of(inputs.user)])


def _in_a_row(rows: Iterable[tuple[str, str, int]]) -> list[Entry]:
    entries, first = [], 0
    for name, unit, size in rows:
        entries.append(Entry(first, size, name, unit))
        first += size
    return entries


# names in C


def in_comment(name: str) -> str:
    """A name as it may stand in a comment: stars, backslashes, question marks and the like become underscores."""
    return re.sub(r"[^A-Za-z0-9_ .,:;()\[\]<>=+/^%@#-]", "_", name[:LONGEST_NAME])


def identifier(name: str) -> str:
    """A name as a part of identifiers."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")


def is_prefix(name: str) -> bool:
    """Whether identifiers may begin with a name: C++ keeps double underscores for itself."""
    return len(name) <= 40 and re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", name) is not None


def prefix_from(name: str) -> str:
    """A prefix of identifiers made from a model's name, short because compilers may look at 63 letters only."""
    prefix = identifier(name.lower())[:24].strip("_")
    return prefix if is_prefix(prefix) else f"model_{prefix}".strip("_")
