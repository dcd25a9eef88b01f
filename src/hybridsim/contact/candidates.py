"""Candidate pairs of a simulation: a fixed list of pairs of shapes, with the number of contacts of each."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np

from hybridsim.contact.collision.dispatch import ROUTINES
from hybridsim.core.errors import SettingError
from hybridsim.core.warnings import warn_user
from hybridsim.model.geometry import Geometry, GeomInfo, Shape
from hybridsim.model.model import Model
from hybridsim.model.specs import WORLD_NAME
from hybridsim.model.topology import WORLD, Topology

MAX_CONTACTS_WITHOUT_WARNING = 200
"""Number of contacts above which a warning is issued: 200 contacts have 600 constraint rows."""


@dataclass(frozen=True)
class Pair:
    """Two shapes that are tested for contact."""

    first: int
    second: int
    """Indices of the shapes, whose kinds are in the order of a key of `ROUTINES`."""
    name: str
    """`foot|floor`"""
    max_points: int
    """Size of its contact manifold."""
    data_sizes: tuple[tuple[int, ...], ...] = ()
    """Dimensions of the two arrays in `Geometry.data`."""


@dataclass(frozen=True)
class Candidates:
    """All candidate pairs of a simulation; pairs of the same two kinds of shapes are adjacent."""

    pairs: tuple[Pair, ...]
    infos: tuple[GeomInfo, ...]
    """All shapes of the model."""
    body_names: tuple[str, ...] = ()
    """All bodies of the model."""

    @property
    def nc(self) -> int:
        """Number of contacts."""
        return sum(pair.max_points for pair in self.pairs)

    @cached_property
    def pair_indices(self) -> tuple[int, ...]:
        """Index of the pair of each contact."""
        return tuple(k for k, pair in enumerate(self.pairs) for _ in range(pair.max_points))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of every contact: that of its pair, with an index if the pair has several."""
        return tuple(
            pair.name if pair.max_points == 1 else f"{pair.name}.{k}"
            for pair in self.pairs
            for k in range(pair.max_points)
        )

    def match(self, pattern: str) -> list[int]:
        """Indices of the pairs that match a pattern, as in `find_candidates`."""
        return [
            k
            for k, pair in enumerate(self.pairs)
            if _is_match(pattern, self.body_names, self.infos[pair.first], self.infos[pair.second])
        ]

    @cached_property
    def bodies(self) -> tuple[tuple[int, int], ...]:
        """Both bodies of every contact."""
        bodies = [(self.infos[pair.first].body, self.infos[pair.second].body) for pair in self.pairs]
        return tuple(bodies[k] for k in self.pair_indices)

    @cached_property
    def pair_groups(self) -> tuple[tuple[tuple[Shape, Shape], tuple[int, ...]], ...]:
        """Groups of pairs with equal kinds, data sizes and faces: the two kinds, and the indices in ascending order."""
        groups: dict[tuple, list[int]] = {}
        for k, pair in enumerate(self.pairs):
            a, b = self.infos[pair.first], self.infos[pair.second]
            groups.setdefault((a.shape, b.shape, pair.data_sizes, a.faces, b.faces), []).append(k)
        return tuple(((key[0], key[1]), tuple(members)) for key, members in groups.items())


def find_candidates(
    model: Model, *, only: Sequence[str] = (), exclude: Sequence[str] = (), self_collision: bool = True
) -> Candidates:
    """Candidate pairs of a model.

    Two shapes on different bodies are a candidate pair if the bodies are not parent and child (the world does not count
    as a parent, a link attached to it does), their groups and masks allow it, and the model does not exclude their
    links; or if the model lists them as an explicit pair.

    Args:
        model: the mechanism.
        only: if given, keep only pairs that match one of these patterns: `foot_*|floor`, or `foot_*` for all pairs of
            such a shape. Names are those of shapes, links or bodies, with shell-style wildcards.
        exclude: patterns of pairs to remove.
        self_collision: whether bodies of one tree can collide with each other.

    Raises:
        TypeError: `only` or `exclude` is a string instead of a sequence of strings.
        ValueError: a pattern matches no pair, or a shape has no points or heights.
    """
    for argument, patterns in (("only", only), ("exclude", exclude)):
        if isinstance(patterns, str):
            raise TypeError(f"{argument} must be a tuple of patterns: {argument}=({patterns!r},)")
    geometry, topology = model.geometry, model.topology
    explicit = {frozenset(pair) for pair in geometry.explicit_pairs}
    pairs, unmatched, unsupported = [], {*only, *exclude}, Counter()
    for i, one in enumerate(geometry.infos):
        for j in range(i + 1, len(geometry.infos)):
            other = geometry.infos[j]
            is_explicit = frozenset((one.name, other.name)) in explicit
            if not _can_collide(geometry, topology, one, other, is_explicit=is_explicit, self_collision=self_collision):
                continue
            included = [p for p in only if _is_match(p, topology.body_names, one, other)]
            excluded = [p for p in exclude if _is_match(p, topology.body_names, one, other)]
            unmatched.difference_update(included, excluded)
            if excluded or (only and not included):
                continue
            pair = _candidate_pair(geometry, i, j)
            if pair is None:
                unsupported["–".join(sorted((one.shape, other.shape)))] += 1
            else:
                pairs.append(pair)
    if unmatched:
        names = ", ".join(repr(p) for p in sorted(unmatched))
        setting = "only" if unmatched & {*only} else "exclude"
        raise SettingError(f"no candidate pair of shapes of model {model.name!r} matches {names}", setting)
    if unsupported:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in unsupported.items())
        message = f"some pairs of shapes in model {model.name!r} have no collision routine and pass through each other"
        warn_user(f"{message}: {kinds}")
    candidates = Candidates(tuple(_group_by_kind(pairs, geometry.infos)), geometry.infos, topology.body_names)
    if candidates.nc > MAX_CONTACTS_WITHOUT_WARNING:
        message = (
            f"{candidates.nc} contacts of model {model.name!r} are computed in every step, which makes compilation slow"
        )
        warn_user(f"{message}: restrict the candidate pairs with only, exclude or self_collision")
    return candidates


def _can_collide(
    geometry: Geometry, topology: Topology, a: GeomInfo, b: GeomInfo, *, is_explicit: bool, self_collision: bool
) -> bool:
    if a.body == b.body:
        return False
    if is_explicit:
        return True
    if not (a.group & b.mask or b.group & a.mask):
        return False
    if any({a.link, b.link} == set(pair) for pair in (*geometry.excluded_pairs, *geometry.parent_child_pairs)):
        return False
    if WORLD in (a.body, b.body):
        return True
    if _parent_body(topology, a.body) == b.body or _parent_body(topology, b.body) == a.body:
        return False
    same_tree = topology.root_paths[a.body][0] == topology.root_paths[b.body][0]
    return self_collision or not same_tree


def _parent_body(topology: Topology, body: int) -> int:
    """Parent of a body, skipping the massless intermediate bodies of a compound joint."""
    intermediate = f"{topology.body_names[body]}:"
    parent = topology.parents[body]
    while parent != WORLD and topology.body_names[parent].startswith(intermediate):
        parent = topology.parents[parent]
    return parent


def _is_match(pattern: str, body_names: tuple[str, ...], a: GeomInfo, b: GeomInfo) -> bool:
    def is_named(info: GeomInfo, glob: str) -> bool:
        body = WORLD_NAME if info.body == WORLD else body_names[info.body]
        return any(fnmatchcase(name, glob) for name in (info.name, info.link, body))

    first, bar, second = pattern.partition("|")
    if not bar:
        return is_named(a, first) or is_named(b, first)
    return (is_named(a, first) and is_named(b, second)) or (is_named(b, first) and is_named(a, second))


def _candidate_pair(geometry: Geometry, i: int, j: int) -> Pair | None:
    """Pair of two shapes, in the order of their collision routine; `None` if there is no routine."""
    for first, second in ((i, j), (j, i)):
        a, b = geometry.infos[first], geometry.infos[second]
        routine = ROUTINES.get((a.shape, b.shape))
        if routine is None:
            continue
        for info in (a, b):
            _require_data(info, other=b if info is a else a)
        points = routine.max_points or len(geometry.data[a.data_index])
        sizes = tuple(np.shape(geometry.data[info.data_index]) if info.data_index >= 0 else () for info in (a, b))
        return Pair(first, second, f"{a.name}|{b.name}", points, sizes)
    return None


_REQUIRED_DATA = {
    Shape.POINTS: "points",
    Shape.POLYGON: "outline",
    Shape.HEIGHTFIELD: "heights",
}


def _require_data(info: GeomInfo, *, other: GeomInfo) -> None:
    """Raise if a shape lacks data that its collision routine requires: points, an outline, heights or faces."""
    if info.shape is Shape.MESH and info.data_index < 0:
        raise ValueError(
            f"the mesh of shape {info.name!r} has not been read: build the simulator from `hybridsim.with_hulls(model)`"
        )
    if info.shape is Shape.MESH and not info.faces and other.shape in (Shape.SPHERE, Shape.BOX):
        raise ValueError(f"the hull of shape {info.name!r} has no faces, but contact with {other.name!r} requires them")
    if info.shape in _REQUIRED_DATA and info.data_index < 0:
        data = _REQUIRED_DATA[info.shape]
        raise ValueError(f"shape {info.name!r} of type {info.shape} has no {data}: specify `data`")


def _group_by_kind(pairs: Iterable[Pair], infos: tuple[GeomInfo, ...]) -> list[Pair]:
    """Reorder pairs so that those of the same kinds are adjacent and can be batched."""
    order: dict[tuple[Shape, Shape], list[Pair]] = {}
    for pair in pairs:
        order.setdefault((infos[pair.first].shape, infos[pair.second].shape), []).append(pair)
    return [pair for group in order.values() for pair in group]
