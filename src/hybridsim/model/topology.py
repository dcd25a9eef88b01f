"""The static part of a model: the kinematic tree, its joint types and names.

A topology is hashable and never traced: changing it triggers recompilation, as does changing any other static field of
a model (names, types of collision shapes); changing values of arrays does not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hybridsim.model.joints import ElementaryJointType

WORLD = -1
"""Parent index of bodies attached to the world."""


@dataclass(frozen=True)
class ModelSource:
    """File that a model was loaded from, and the options with which it was loaded."""

    file: str
    """Absolute path."""
    options: Mapping[str, Any]
    """Arguments of `load_model` that differ from their defaults."""


@dataclass(frozen=True)
class Topology:
    """Names, parents and joint types; joint i connects body i to its parent."""

    body_names: tuple[str, ...]
    parents: tuple[int, ...]
    """Index of each body's parent, always smaller than the body's index; `WORLD` for roots."""
    joint_names: tuple[str, ...]
    joint_types: tuple[ElementaryJointType, ...]
    masters: tuple[int, ...]
    """For a mimic joint the index of its master joint, otherwise -1."""
    frame_names: tuple[str, ...] = ()
    """Named frames fixed to bodies: merged links, sites, tool points."""
    frame_bodies: tuple[int, ...] = ()
    """Body that each frame is fixed to; `WORLD` for frames fixed to the world."""
    name: str = field(default="model")
    source: ModelSource | None = field(default=None, compare=False, repr=False)
    """File that the model was loaded from, for exports; topologies from different files may be equal."""

    @property
    def nb(self) -> int:
        """Number of bodies."""
        return len(self.parents)

    @cached_property
    def tree_q_slices(self) -> tuple[tuple[int, int], ...]:
        """First and past-the-end coordinate of each joint, mimic joints included."""
        return _slices(kind.nq for kind in self.joint_types)

    @cached_property
    def tree_v_slices(self) -> tuple[tuple[int, int], ...]:
        """First and past-the-end degree of freedom of each joint, mimic joints included."""
        return _slices(kind.nv for kind in self.joint_types)

    @cached_property
    def q_slices(self) -> tuple[tuple[int, int], ...]:
        """First and past-the-end independent coordinate of each joint; a mimic joint shares its master's."""
        return self._independent_slices(lambda kind: kind.nq)

    @cached_property
    def v_slices(self) -> tuple[tuple[int, int], ...]:
        """First and past-the-end independent degree of freedom of each joint; a mimic joint shares its master's."""
        return self._independent_slices(lambda kind: kind.nv)

    def _independent_slices(self, size: Callable[[ElementaryJointType], int]) -> tuple[tuple[int, int], ...]:
        slices = _slices(0 if m >= 0 else size(k) for k, m in zip(self.joint_types, self.masters, strict=True))
        return tuple(slices[m] if m >= 0 else s for s, m in zip(slices, self.masters, strict=True))

    @property
    def has_mimic_joints(self) -> bool:
        """Whether the tree contains mimic joints."""
        return any(m >= 0 for m in self.masters)

    @cached_property
    def tree_nq(self) -> int:
        """Number of coordinates of the tree, mimic joints included."""
        return sum(kind.nq for kind in self.joint_types)

    @cached_property
    def tree_nv(self) -> int:
        """Number of degrees of freedom of the tree, mimic joints included."""
        return sum(kind.nv for kind in self.joint_types)

    @cached_property
    def nq(self) -> int:
        """Number of independent coordinates: the length of `q`."""
        return sum(k.nq for k, m in zip(self.joint_types, self.masters, strict=True) if m < 0)

    @cached_property
    def nv(self) -> int:
        """Number of independent degrees of freedom: the length of `qd`."""
        return sum(k.nv for k, m in zip(self.joint_types, self.masters, strict=True) if m < 0)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """Name of each entry of `q`: `elbow`, or `root.qw` for joints with several coordinates."""
        return self._names(lambda kind: tuple(kind.joint.coordinates), independent=True)

    @cached_property
    def dof_names(self) -> tuple[str, ...]:
        """Name of each entry of `qd`, `qdd` and `tau`."""
        return self._names(lambda kind: tuple(kind.joint.dofs), independent=True)

    @cached_property
    def tree_dof_names(self) -> tuple[str, ...]:
        """Name of each degree of freedom of the tree, mimic joints included."""
        return self._names(lambda kind: tuple(kind.joint.dofs), independent=False)

    def _names(self, parts: Callable[[ElementaryJointType], tuple[str, ...]], *, independent: bool) -> tuple[str, ...]:
        return tuple(
            f"{joint}.{part}" if part else joint
            for joint, kind, master in zip(self.joint_names, self.joint_types, self.masters, strict=True)
            if not (independent and master >= 0)
            for part in parts(kind)
        )

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Depth of each body in the tree; 0 for roots."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(0 if parent == WORLD else depths[parent] + 1)
        return tuple(depths)

    @cached_property
    def root_paths(self) -> tuple[tuple[int, ...], ...]:
        """For each body the path of bodies from its root to itself, inclusive."""
        paths: list[tuple[int, ...]] = []
        for body, parent in enumerate(self.parents):
            paths.append((*(() if parent == WORLD else paths[parent]), body))
        return tuple(paths)

    @cached_property
    def dof_bodies(self) -> tuple[int, ...]:
        """Body whose joint each degree of freedom of the tree belongs to."""
        return tuple(body for body, (start, stop) in enumerate(self.tree_v_slices) for _ in range(start, stop))

    def body_index(self, name: str) -> int:
        """Index of the body with this name."""
        return _index(name, self.body_names, "body")

    def joint_index(self, name: str) -> int:
        """Index of the joint with this name."""
        return _index(name, self.joint_names, "joint")


def _slices(sizes) -> tuple[tuple[int, int], ...]:
    bounds, start = [], 0
    for size in sizes:
        bounds.append((start, start + size))
        start += size
    return tuple(bounds)


def _index(name: str, names: tuple[str, ...], what: str) -> int:
    if name not in names:
        raise KeyError(f"there is no {what} named {name!r}; the model has {', '.join(names)}")
    return names.index(name)
