"""Comparison of two models of the same mechanism, parameter by parameter."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.io.edit_xml import Change, Value
from hybridsim.model.geometry import Shape
from hybridsim.model.model import Model
from hybridsim.model.specs import WORLD_NAME
from hybridsim.model.topology import WORLD

ROUNDING = 1e-12
"""Relative rounding error of angles, quaternions and composite inertias between a model and its file."""


ElementKind = Literal[
    "body", "joint", "dof", "coordinate", "home", "actuator", "shape", "pair", "frame", "model"
]  # a pair is one of shapes


@dataclass(frozen=True)
class ParameterArray:
    """A scalar or vector parameter of all elements of one kind."""

    element_kind: ElementKind
    """Kind of element that the rows belong to."""
    path: str
    """Attribute path in a model, such as `joint.placement.p`."""
    unit: str = ""

    @property
    def title(self) -> str:
        """Name and unit, for a table."""
        name = self.path.partition(".")[2] or self.path
        return f"{name} [{self.unit}]" if self.unit else name

    def values(self, model: Model) -> np.ndarray:
        """One row per element."""
        array = np.asarray(attrgetter(self.path)(model), dtype=float)
        return array[None] if self.element_kind == "model" else array

    def names(self, model: Model) -> Sequence[str]:
        """Names of the elements, row by row."""
        topology = model.topology
        match self.element_kind:
            case "body":
                return topology.body_names
            case "joint":
                return topology.joint_names
            case "dof":
                return topology.tree_dof_names
            case "coordinate":
                pairs = zip(topology.joint_names, topology.joint_types, strict=True)
                return [name for name, kind in pairs for _ in range(kind.nq)]
            case "home":
                return topology.coordinate_names
            case "actuator":
                return model.actuator.names
            case "shape":
                return [info.name for info in model.geometry.infos]
            case "pair":
                return [pair_name(pair) for pair in model.geometry.friction_pairs]
            case "frame":
                return topology.frame_names
            case "model":
                return [model.name]

    def element_label(self, name: str) -> str:
        """Label of a row in tables."""
        is_joint = self.element_kind in ("dof", "coordinate", "home")
        return f"{'joint' if is_joint else self.element_kind} {name!r}"


def pair_name(pair: tuple[str, str]) -> str:
    """Label of a pair of shapes in tables."""
    return "|".join(pair)


PARAMETERS = (
    ParameterArray("body", "body.mass", "kg"),
    ParameterArray("body", "body.com", "m"),
    ParameterArray("body", "body.inertia", "kg·m²"),
    ParameterArray("joint", "joint.placement.p", "m"),
    ParameterArray("joint", "joint.placement.R"),
    ParameterArray("joint", "joint.axis"),
    ParameterArray("joint", "joint.anchor", "m"),
    ParameterArray("joint", "joint.mimic_ratio"),
    ParameterArray("joint", "joint.mimic_offset"),
    *(
        ParameterArray("dof", f"joint.{name}")
        for name in ("armature", "stiffness", "damping", "friction", "stribeck_friction")
    ),
    *(ParameterArray("dof", f"joint.{name}") for name in ("stribeck_velocity", "friction_width", "lower", "upper")),
    *(ParameterArray("dof", f"joint.{name}") for name in ("limit_stiffness", "limit_damping", "effort_limit")),
    ParameterArray("coordinate", "joint.rest"),
    *(
        ParameterArray("actuator", f"actuator.{name}")
        for name in ("gear", "gain", "bias", "command_lower", "command_upper")
    ),
    *(ParameterArray("actuator", f"actuator.{name}") for name in ("force_lower", "force_upper")),
    ParameterArray("shape", "geometry.size", "m"),
    ParameterArray("shape", "geometry.friction"),
    ParameterArray("shape", "geometry.restitution"),
    ParameterArray("shape", "geometry.recovery_time", "s"),
    ParameterArray("shape", "geometry.softness"),
    ParameterArray("shape", "geometry.stiffness", "N/m"),
    ParameterArray("shape", "geometry.damping", "N·s/m"),
    ParameterArray("shape", "geometry.placement.p", "m"),
    ParameterArray("shape", "geometry.placement.R"),
    ParameterArray("pair", "geometry.pair_friction"),
    ParameterArray("frame", "frame_placement.p", "m"),
    ParameterArray("frame", "frame_placement.R"),
    ParameterArray("model", "gravity", "m/s²"),
    ParameterArray("home", "home"),
    ParameterArray("model", "timestep", "s"),
)
"""All parameters of a model except vertices and heights of shapes."""


def require_same_structure(old: Model, new: Model, file: str) -> None:
    """Check that two models differ in parameter values only.

    Raises:
        ModelError: bodies, joints or their connections, actuators, shapes or pairs of shapes differ.
    """
    for (subject, before), after in zip(_structure(old).items(), _structure(new).values(), strict=True):
        if before != after:
            k = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
            first = f"{len(after)} instead of {len(before)}"
            if k is not None:
                first = " instead of ".join(repr(part[k]) if part[k] else "none" for part in (after, before))
            problem = Problem(
                f"the model does not belong to this file: {subject} differ ({first})",
                "export to the file that the model was loaded from, with the same load options",
                file,
                code="export.structure",
            )
            raise ModelError([problem])


def _structure(model: Model) -> dict[str, tuple]:
    """Everything of a model but values, as names."""
    topology, actuator, geometry = model.topology, model.actuator, model.geometry
    bodies, joints = topology.body_names, topology.joint_names
    return {
        "its body names": bodies,
        "its joint names": joints,
        "its joint types": tuple(map(str, topology.joint_types)),
        "the parents of its bodies": tuple(WORLD_NAME if i == WORLD else bodies[i] for i in topology.parents),
        "the joints that its joints mimic": tuple(joints[i] if i >= 0 else "" for i in topology.masters),
        "its frame names": topology.frame_names,
        "its actuators": tuple((name, joints[i]) for name, i in zip(actuator.names, actuator.joints, strict=True)),
        "its shapes": tuple(info.name for info in geometry.infos),
        "its pairs of shapes with their own friction": geometry.friction_pairs,
    }


def unwritten_changes(old: Model, new: Model, supported: Collection[str], note: str) -> Iterator[Change]:
    """Changes to parameters that a format does not support.

    Args:
        old: the model as read from its file.
        new: the changed model.
        supported: paths of the parameters that the format supports.
        note: why the other parameters are not written.
    """
    for parameter in PARAMETERS:
        if parameter.path not in supported:
            for name, before, after in _differing_rows(parameter, old, new):
                yield Change(parameter.element_label(name), 0, parameter.title, to_value(before), to_value(after), note)


def shape_data_changes(old: Model, new: Model, note: str) -> Iterator[Change]:
    """Changes to vertices or heights of shapes, which no format can export; hulls of meshes are left out.

    Args:
        old: the model as read from its file.
        new: the changed model.
        note: why the changes are not written.
    """
    for before, after in zip(old.geometry.infos, new.geometry.infos, strict=True):
        if before.data_index >= 0 and after.data_index >= 0 and before.shape is not Shape.MESH:
            a, b = np.asarray(old.geometry.data[before.data_index]), np.asarray(new.geometry.data[after.data_index])
            if not np.array_equal(a, b):
                largest = float(np.abs(b - a).max()) if a.shape == b.shape else np.inf
                parameter = "vertices or heights, largest change [m]"
                yield Change(f"shape {before.name!r}", 0, parameter, 0.0, largest, note)


def require_round_trip(
    written: Model,
    expected: Model,
    supported: Collection[str],
    file: str,
    skipped: Collection[tuple[str, str]] = (),
) -> None:
    """Check that an edited file reproduces the model that it was edited for.

    Args:
        written: the model read from the edited file.
        expected: the model to reproduce.
        supported: paths of the parameters that the format supports.
        file: path of the file, for messages.
        skipped: parameter paths and names of rows that could not be written.

    Raises:
        ModelError: the two differ by more than rounding.
    """
    problems = [
        Problem(
            f"{parameter.title} of {parameter.element_label(name)} would read back as {to_value(actual)}, "
            f"not {to_value(target)}",
            "another element of the file overrides it; write the value explicitly in the file first",
            file,
            code="export.verify",
            element=name,
        )
        for parameter in PARAMETERS
        if parameter.path in supported
        for name, actual, target in _differing_rows(parameter, written, expected)
        if (parameter.path, name) not in skipped and not _nearly_equal(actual, target)
    ]
    if problems:
        raise ModelError(problems)


def _differing_rows(parameter: ParameterArray, old: Model, new: Model) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, old and new value of each row that is not exactly equal."""
    for name, before, after in zip(parameter.names(old), parameter.values(old), parameter.values(new), strict=True):
        if not np.array_equal(before, after):
            yield name, before, after


def _nearly_equal(actual: np.ndarray, expected: np.ndarray) -> bool:
    scale = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
    return np.allclose(actual, expected, rtol=ROUNDING, atol=ROUNDING * max(scale, 1e-3))


def to_value(array) -> Value:
    """Float or tuple of floats, for a `Change`."""
    array = np.asarray(array, dtype=float)
    return float(array) if array.ndim == 0 else tuple(float(entry) for entry in array.ravel())
