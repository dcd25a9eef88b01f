"""Layout of the arrays in exported C code: every element of a simulator by name and unit.

Names come from user files. They are sanitized for comments and identifiers: no name can terminate or continue a
comment, or inject code.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import jax
import numpy as np

from hybridsim.model.model import Model
from hybridsim.sim.state import Inputs, State

MAX_NAME_LENGTH = 100
"""Length to which user-defined names are truncated, in characters."""
MAX_PREFIX_LENGTH = 40
"""Maximum length of a prefix, in characters."""


class ArrayInfo(NamedTuple):
    """Unit and axes of an array of the simulator."""

    unit: str
    rows: str = ""
    """Axis of its rows; empty for a single row."""
    components: tuple[str, ...] = ()
    """Names of the components of a row; empty for a scalar."""


_XYZ = ("x", "y", "z")
_EFFORT, _VELOCITY, _POSITION = "N m or N", "rad/s or m/s", "rad or m"

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
    "joint.friction": ArrayInfo(_EFFORT, "dof"),
    "joint.stribeck_friction": ArrayInfo(_EFFORT, "dof"),
    "joint.stribeck_velocity": ArrayInfo(_VELOCITY, "dof"),
    "joint.friction_width": ArrayInfo(_VELOCITY, "dof"),
    "joint.lower": ArrayInfo(_POSITION, "dof"),
    "joint.upper": ArrayInfo(_POSITION, "dof"),
    "joint.limit_stiffness": ArrayInfo("N m/rad or N/m", "dof"),
    "joint.limit_damping": ArrayInfo("N m s/rad or N s/m", "dof"),
    "joint.effort_limit": ArrayInfo(_EFFORT, "dof"),
    "joint.mimic_ratio": ArrayInfo("", "joint"),
    "joint.mimic_offset": ArrayInfo(_POSITION, "joint"),
    "actuator.gear": ArrayInfo("", "actuator"),
    "actuator.gain": ArrayInfo("N m or N per unit of command", "actuator"),
    "actuator.bias": ArrayInfo(f"{_EFFORT}; per {_POSITION}; per {_VELOCITY}", "actuator", ("0", "1", "2")),
    "actuator.command_lower": ArrayInfo("unit of the command", "actuator"),
    "actuator.command_upper": ArrayInfo("unit of the command", "actuator"),
    "actuator.force_lower": ArrayInfo(_EFFORT, "actuator"),
    "actuator.force_upper": ArrayInfo(_EFFORT, "actuator"),
    "gravity": ArrayInfo("m/s^2", "", _XYZ),
    "dt": ArrayInfo("s"),
}
"""Arrays of a model, and the time step; arrays of networks and actuator stages are described by their shapes."""


class ArrayEntry(NamedTuple):
    """Contiguous elements of an array with a common name."""

    first: int
    size: int
    name: str
    """Name for a comment."""
    unit: str = ""


class NamedArray(NamedTuple):
    """An array of a pytree, named by its path."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def text(self) -> str:
        """Name, with the shape if it has more than one axis."""
        shape = " x ".join(str(n) for n in self.shape)
        return f"{self.name} ({shape}, row by row)" if len(self.shape) > 1 else self.name


def named_arrays(tree: Any) -> list[NamedArray]:
    """Arrays of a pytree, in the order of its flattened layout."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [NamedArray(sanitize_comment(path_name(path)), np.shape(leaf)) for path, leaf in leaves]


def path_name(path: tuple) -> str:
    """Dotted name of a path, such as `body.mass` for the masses of a simulator's model."""
    return jax.tree_util.keystr(path, simple=True, separator=".").removeprefix("model.")


def parameter_entries(
    model: Model, leaves: Iterable[NamedArray], used: Sequence[int] | None = None
) -> list[ArrayEntry]:
    """Entries for parameters of a simulator, from index 0.

    Args:
        model: model that names the rows.
        leaves: arrays of the simulator.
        used: indices of the elements present; all by default.
    """
    rows = [row for leaf in leaves for row in _rows(model, leaf)]
    elements = [(k, component) for k, (_, _, components) in enumerate(rows) for component in components]
    if used is not None:
        elements = [elements[n] for n in used]
    entries = []
    for k, group in groupby(elements, key=lambda element: element[0]):
        name, unit, _ = rows[k]
        components = [component for _, component in group]
        entries.append((f"{name}: {', '.join(components)}" if components[0] else name, unit, len(components)))
    return _consecutive_entries(entries)


def _rows(model: Model, leaf: NamedArray) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Name, unit and component names of every row of an array; an array not in `ARRAY_INFO` counts as one row."""
    info = ARRAY_INFO.get(leaf.name)
    if info is None:
        yield leaf.text, "", ("",) * leaf.size
        return
    for row in _row_names(model, info.rows):
        name = f"{leaf.name}[{sanitize_comment(row)}]" if info.rows else leaf.name
        yield name, info.unit, info.components or ("",)


def _row_names(model: Model, axis: str) -> tuple[str, ...]:
    topology = model.topology
    coordinates = (
        f"{joint}.{component}" if component else joint
        for joint, kind in zip(topology.joint_names, topology.joint_types, strict=True)
        for component in kind.joint.coordinates
    )
    return {
        "": ("",),
        "body": topology.body_names,
        "joint": topology.joint_names,
        "dof": topology.tree_dof_names,
        "coordinate": tuple(coordinates),
        "actuator": model.actuator.names,
    }[axis]


def state_entries(model: Model, state: State) -> list[ArrayEntry]:
    """Entries for the elements of a state."""
    topology = model.topology
    kinds = [k for k, master in zip(topology.joint_types, topology.masters, strict=True) if master < 0]
    q_units = [unit for kind in kinds for unit in kind.joint.coordinates.values()]
    v_units = [unit for kind in kinds for unit in kind.joint.dofs.values()]
    rows = [
        *((f"q[{sanitize_comment(name)}]", u, 1) for name, u in zip(topology.coordinate_names, q_units, strict=True)),
        *((f"qd[{sanitize_comment(name)}]", u, 1) for name, u in zip(topology.dof_names, v_units, strict=True)),
        ("time", "s", 1),
        *((f"internal state of {leaf.text}", "", leaf.size) for leaf in named_arrays(state.aux)),
    ]
    return _consecutive_entries(rows)


def input_entries(model: Model, inputs: Inputs) -> list[ArrayEntry]:
    """Entries for the commands and the user inputs."""
    commands = [(f"command of {sanitize_comment(name)}", "", 1) for name in model.actuator.names]
    return _consecutive_entries(
        commands + [(f"input.{leaf.name}", "", leaf.size) for leaf in named_arrays(inputs.user)]
    )


def _consecutive_entries(rows: Iterable[tuple[str, str, int]]) -> list[ArrayEntry]:
    entries, first = [], 0
    for name, unit, size in rows:
        entries.append(ArrayEntry(first, size, name, unit))
        first += size
    return entries


# names in C


def sanitize_comment(name: str) -> str:
    """Sanitize a name for a comment: stars, backslashes, question marks and the like become underscores."""
    return re.sub(r"[^A-Za-z0-9_ .,:;()\[\]<>=+/^%@#-]", "_", name[:MAX_NAME_LENGTH])


def identifier(name: str) -> str:
    """Name sanitized for use within C identifiers."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")


def is_valid_prefix(name: str) -> bool:
    """Whether C identifiers may begin with a name; C++ reserves double underscores."""
    return len(name) <= MAX_PREFIX_LENGTH and re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", name) is not None


def prefix_from_name(name: str) -> str:
    """Identifier prefix derived from a model's name, short because C99 limits the significant characters of names."""
    prefix = identifier(name.lower())[:24].strip("_")
    return prefix if is_valid_prefix(prefix) else f"model_{prefix}".strip("_")
