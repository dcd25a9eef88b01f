"""What differs between two models of the same mechanism: every number of a model, by name."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.io.edit_xml import Change, Value
from hybridsim.model.geometry import Shape
from hybridsim.model.model import Model

ROUNDING = 1e-12
"""Relative difference that angles, quaternions and sums of inertias pick up between a model and its file."""


@dataclass(frozen=True)
class Parameter:
    """A number, or a few, that every element of a kind has."""

    owner: str
    """What the rows are: body, joint, dof, coordinate, start, actuator, shape, pair (of shapes), frame or model."""
    path: str
    """Where it stands in a model, such as `joint.placement.p`."""
    unit: str = ""

    @property
    def title(self) -> str:
        """Name and unit, for a table."""
        name = self.path.partition(".")[2] or self.path
        return f"{name} [{self.unit}]" if self.unit else name

    def values(self, model: Model) -> np.ndarray:
        """One row per element."""
        array = np.asarray(attrgetter(self.path)(model), dtype=float)
        return array[None] if self.owner == "model" else array

    def names(self, model: Model) -> Sequence[str]:
        """Names of the elements, row by row."""
        topology = model.topology
        match self.owner:
            case "body":
                return topology.body_names
            case "joint":
                return topology.joint_names
            case "dof":
                return topology.tree_dof_names
            case "coordinate":
                pairs = zip(topology.joint_names, topology.joint_types, strict=True)
                return [name for name, kind in pairs for _ in range(kind.nq)]
            case "start":
                return topology.coordinate_names
            case "actuator":
                return model.actuator.names
            case "shape":
                return [info.name for info in model.geometry.infos]
            case "pair":
                return [pair_name(pair) for pair in model.geometry.friction_pairs]
            case "frame":
                return topology.frame_names
            case _:
                return [model.name]

    def element(self, name: str) -> str:
        """How tables call a row."""
        what = {"dof": "joint", "coordinate": "joint", "start": "joint"}.get(self.owner, self.owner)
        return f"{what} {name!r}"


def pair_name(pair: tuple[str, str]) -> str:
    """How files and tables call two shapes."""
    return "|".join(pair)


PARAMETERS = (
    Parameter("body", "body.mass", "kg"),
    Parameter("body", "body.com", "m"),
    Parameter("body", "body.inertia", "kg·m²"),
    Parameter("joint", "joint.placement.p", "m"),
    Parameter("joint", "joint.placement.R"),
    Parameter("joint", "joint.axis"),
    Parameter("joint", "joint.anchor", "m"),
    Parameter("joint", "joint.mimic_ratio"),
    Parameter("joint", "joint.mimic_offset"),
    *(Parameter("dof", f"joint.{name}") for name in ("armature", "stiffness", "damping", "friction", "breakaway")),
    *(Parameter("dof", f"joint.{name}") for name in ("stribeck_velocity", "friction_width", "lower", "upper")),
    *(Parameter("dof", f"joint.{name}") for name in ("limit_stiffness", "limit_damping", "effort_limit")),
    Parameter("coordinate", "joint.rest"),
    *(Parameter("actuator", f"actuator.{name}") for name in ("gear", "gain", "bias", "control_lower", "control_upper")),
    *(Parameter("actuator", f"actuator.{name}") for name in ("force_lower", "force_upper")),
    Parameter("shape", "geometry.size", "m"),
    Parameter("shape", "geometry.friction"),
    Parameter("shape", "geometry.restitution"),
    Parameter("shape", "geometry.recovery_time", "s"),
    Parameter("shape", "geometry.softness"),
    Parameter("shape", "geometry.stiffness", "N/m"),
    Parameter("shape", "geometry.damping", "N·s/m"),
    Parameter("shape", "geometry.placement.p", "m"),
    Parameter("shape", "geometry.placement.R"),
    Parameter("pair", "geometry.pair_friction"),
    Parameter("frame", "frame_placement.p", "m"),
    Parameter("frame", "frame_placement.R"),
    Parameter("model", "gravity", "m/s²"),
    Parameter("start", "home"),
    Parameter("model", "timestep", "s"),
)
"""Every number of a model."""


def require_same_structure(old: Model, new: Model, file: str) -> None:
    """Make sure that `new` is `old` with other numbers.

    Raises:
        ModelError: bodies, joints or their connections, actuators, shapes or pairs of shapes differ.
    """
    parts = {
        **{name.replace("_", " "): attrgetter(f"topology.{name}") for name in _STRUCTURE},
        "actuators": lambda model: tuple(zip(model.actuator.names, model.actuator.joints, strict=True)),
        "shapes": lambda model: tuple(info.name for info in model.geometry.infos),
        "pairs of shapes with a friction of their own": lambda model: model.geometry.friction_pairs,
    }
    for what, part in parts.items():
        before, after = part(old), part(new)
        if before != after:
            k = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
            first = f"{before[k]!r} is {after[k]!r}" if k is not None else f"{len(before)} are {len(after)}"
            problem = Problem(
                f"the model is not this file's: its {what} differ, {first}",
                "export into the file that the model was loaded from, with the same options",
                file,
                code="export.structure",
            )
            raise ModelError([problem])


_STRUCTURE = ("body_names", "joint_names", "joint_types", "parents", "mimics", "frame_names")


def unwritten_changes(old: Model, new: Model, held: Collection[str], note: str) -> Iterator[Change]:
    """Differences in parameters that a format has no place for.

    Args:
        old: the model as its file has it.
        new: the model as it shall be.
        held: paths of the parameters that the format holds.
        note: why the others are not written.
    """
    for parameter in PARAMETERS:
        if parameter.path not in held:
            for name, before, after in _differing_rows(parameter, old, new):
                yield Change(parameter.element(name), 0, parameter.title, value(before), value(after), note)


def changed_data(old: Model, new: Model, note: str) -> Iterator[Change]:
    """Shapes of which points or heights differ, which no format takes back; hulls of meshes are not in the file.

    Args:
        old: the model as its file has it.
        new: the model as it shall be.
        note: why they are not written.
    """
    for before, after in zip(old.geometry.infos, new.geometry.infos, strict=True):
        if before.data >= 0 and after.data >= 0 and before.shape is not Shape.MESH:
            a, b = np.asarray(old.geometry.data[before.data]), np.asarray(new.geometry.data[after.data])
            if not np.array_equal(a, b):
                largest = float(np.abs(b - a).max()) if a.shape == b.shape else np.inf
                yield Change(f"shape {before.name!r}", 0, "largest change of its data [m]", 0.0, largest, note)


def require_read_back(
    written: Model,
    wanted: Model,
    held: Collection[str],
    file: str,
    skipped: Collection[tuple[str, str]] = (),
) -> None:
    """Make sure that a new text means what it shall mean.

    Args:
        written: the model that the new text gives.
        wanted: the model that it should give.
        held: paths of the parameters that the format holds.
        file: the file that the text is for.
        skipped: paths and names of rows that could not be written.

    Raises:
        ModelError: they differ by more than rounding.
    """
    problems = [
        Problem(
            f"{parameter.title} of {parameter.element(name)} would be read back as {value(got)}, not {value(asked)}",
            "something else in the file overrides it; write it out in the file first",
            file,
            code="export.verify",
            element=name,
        )
        for parameter in PARAMETERS
        if parameter.path in held
        for name, got, asked in _differing_rows(parameter, written, wanted)
        if (parameter.path, name) not in skipped and not _nearly_equal(got, asked)
    ]
    if problems:
        raise ModelError(problems)


def _differing_rows(parameter: Parameter, old: Model, new: Model) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, old and new values of each row that differs, however little."""
    for name, before, after in zip(parameter.names(old), parameter.values(old), parameter.values(new), strict=True):
        if not np.array_equal(before, after):
            yield name, before, after


def _nearly_equal(got: np.ndarray, wanted: np.ndarray) -> bool:
    scale = np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))
    return np.allclose(got, wanted, rtol=ROUNDING, atol=ROUNDING * max(scale, 1e-3))


def value(array) -> Value:
    """A number or a tuple of numbers, for a `Change`."""
    array = np.asarray(array, dtype=float)
    return float(array) if array.ndim == 0 else tuple(float(entry) for entry in array.ravel())
