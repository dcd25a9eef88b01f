"""What differs between two models of the same mechanism."""

from collections.abc import Iterator, Sequence

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.io.edit import Change, Value
from hybridsim.model.model import Model


def require_same_structure(old: Model, new: Model, file: str) -> None:
    """Make sure that `new` is `old` with other numbers.

    Raises:
        ModelError: bodies, joints or their connections differ.
    """
    for what in ("body_names", "joint_names", "joint_types", "parents", "mimics"):
        before, after = getattr(old.topology, what), getattr(new.topology, what)
        if before != after:
            k = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
            first = f"{before[k]!r} is {after[k]!r}" if k is not None else f"{len(before)} are {len(after)}"
            problem = Problem(
                f"the model is not this file's: its {what.replace('_', ' ')} differ, {first}",
                "export into the file that the model was loaded from, with the same options",
                file,
                code="export.structure",
            )
            raise ModelError([problem])


def rows(old, new, names: Sequence[str]) -> Iterator[tuple[str, Value, Value]]:
    """Name, old and new value of each row that differs, whatever its size."""
    old, new = np.asarray(old, dtype=float), np.asarray(new, dtype=float)
    if old.shape != new.shape:
        yield "all", tuple(map(float, old.ravel())), tuple(map(float, new.ravel()))
        return
    for name, before, after in zip(names, old, new, strict=True):
        if not np.array_equal(before, after):
            yield name, value(before), value(after)


def value(array) -> Value:
    """A number or a tuple of numbers, for a `Change`."""
    array = np.asarray(array, dtype=float)
    return float(array) if array.ndim == 0 else tuple(float(entry) for entry in array.ravel())


def changes_outside_urdf(old: Model, new: Model, note: str) -> Iterator[Change]:
    """Differences in parameters that a URDF file has no place for."""
    topology = old.topology
    coordinates = [
        joint for joint, kind in zip(topology.joint_names, topology.joint_types, strict=True) for _ in range(kind.nq)
    ]
    per_dof = (
        *("armature", "stiffness", "breakaway", "stribeck_velocity", "friction_width"),
        *("limit_stiffness", "limit_damping"),
    )
    shapes = [info.name for info in old.geometry.infos]
    tables = [
        *(("joint", f, old.joint, new.joint, topology.tree_dof_names) for f in per_dof),
        ("joint", "rest", old.joint, new.joint, coordinates),
        ("joint", "anchor", old.joint, new.joint, topology.joint_names),
        *(
            ("actuator", f, old.actuator, new.actuator, old.actuator.names)
            for f in ("gear", "gain", "bias", "control_lower", "control_upper", "force_lower", "force_upper")
        ),
        *(("shape", f, old.geometry, new.geometry, shapes) for f in ("size", "friction")),
        *(("shape", f"placement.{f}", old.geometry.placement, new.geometry.placement, shapes) for f in "pR"),
        *(("frame", f"placement.{f}", old.frame_placement, new.frame_placement, topology.frame_names) for f in "pR"),
        ("model", "gravity", old, new, "xyz"),
        ("model", "home", old, new, topology.coordinate_names),
    ]
    for what, parameter, before, after, names in tables:
        attribute = parameter.split(".")[-1]
        for name, was, now in rows(getattr(before, attribute), getattr(after, attribute), names):
            yield Change(f"{what} {name!r}", 0, parameter, was, now, note)
    if old.timestep != new.timestep:
        yield Change("model", 0, "timestep [s]", float(old.timestep), float(new.timestep), note)
