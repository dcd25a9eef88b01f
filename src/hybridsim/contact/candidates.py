"""The fixed list of contacts that a simulation watches: which pairs of shapes, and how many points of each."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np

from hybridsim.contact.collision.dispatch import ROUTINES
from hybridsim.core.warnings import warn_user
from hybridsim.model.geometry import Geometry, GeomInfo, Shape
from hybridsim.model.model import Model
from hybridsim.model.specs import WORLD_NAME
from hybridsim.model.topology import WORLD, Topology

MANY_CONTACTS_WARNING = 200
"""Contacts that a model may have without a warning: the problem of so many has a matrix of 600 rows."""


@dataclass(frozen=True)
class Pair:
    """Two shapes that may touch."""

    first: int
    second: int
    """Numbers of the shapes, in the order of `ROUTINES`."""
    name: str
    """`foot|floor`"""
    max_points: int
    """Contacts that it can have."""
    data_shapes: tuple[tuple[int, ...], ...] = ()
    """Sizes of what the two shapes have in `Geometry.data`."""


@dataclass(frozen=True)
class Candidates:
    """Every contact that can be; pairs of the same two kinds of shapes stand together."""

    pairs: tuple[Pair, ...]
    infos: tuple[GeomInfo, ...]
    """Of all shapes of the model."""
    body_names: tuple[str, ...] = ()
    """Of all bodies of the model."""

    @property
    def nc(self) -> int:
        """Number of contacts."""
        return sum(pair.max_points for pair in self.pairs)

    @cached_property
    def pair_indices(self) -> tuple[int, ...]:
        """The pair that each contact belongs to."""
        return tuple(k for k, pair in enumerate(self.pairs) for _ in range(pair.max_points))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of every contact: that of its pair, and a number if there are several."""
        return tuple(
            pair.name if pair.max_points == 1 else f"{pair.name}.{k}"
            for pair in self.pairs
            for k in range(pair.max_points)
        )

    def match(self, pattern: str) -> list[int]:
        """The pairs that a pattern means, as in `candidates`."""
        return [
            k
            for k, pair in enumerate(self.pairs)
            if _matches(pattern, self.body_names, self.infos[pair.first], self.infos[pair.second])
        ]

    @cached_property
    def bodies(self) -> tuple[tuple[int, int], ...]:
        """The bodies of every contact."""
        of_pair = [(self.infos[pair.first].body, self.infos[pair.second].body) for pair in self.pairs]
        return tuple(of_pair[k] for k in self.pair_indices)

    @cached_property
    def shape_groups(self) -> tuple[tuple[tuple[Shape, Shape], tuple[int, ...]], ...]:
        """Kinds of pairs, and the pairs of each whose shapes have as many points and the same faces, in their order."""
        groups: dict[tuple, list[int]] = {}
        for k, pair in enumerate(self.pairs):
            a, b = self.infos[pair.first], self.infos[pair.second]
            groups.setdefault((a.shape, b.shape, pair.data_shapes, a.faces, b.faces), []).append(k)
        return tuple(((key[0], key[1]), tuple(members)) for key, members in groups.items())


def find_candidates(
    model: Model, *, only: Sequence[str] = (), exclude: Sequence[str] = (), self_collision: bool = True
) -> Candidates:
    """Every contact that a model can have.

    Two shapes can touch if they are on different bodies that are not parent and child, their groups and masks allow it
    or the model names them as a pair, and the model does not exclude their links.

    Args:
        model: the mechanism.
        only: if given, pairs that match one of these: `foot_*|floor`, or `foot_*` for all that such a shape can touch.
            Names are those of shapes, links or bodies, with the wildcards of file names.
        exclude: pairs to leave out.
        self_collision: can bodies of one tree touch each other?

    Raises:
        TypeError: patterns that are not a sequence of texts.
        ValueError: a pattern matches no pair, or a shape lacks the points or heights that it consists of.
    """
    for what, patterns in (("only", only), ("exclude", exclude)):
        if isinstance(patterns, str):
            raise TypeError(f"{what} takes a tuple of patterns: {what}=({patterns!r},)")
    geometry, topology = model.geometry, model.topology
    explicit = {frozenset(pair) for pair in geometry.explicit_pairs}
    found, unmatched, impossible = [], {*only, *exclude}, Counter()
    for i, one in enumerate(geometry.infos):
        for j in range(i + 1, len(geometry.infos)):
            other = geometry.infos[j]
            is_explicit = frozenset((one.name, other.name)) in explicit
            if not _may_touch(geometry, topology, one, other, is_explicit=is_explicit, self_collision=self_collision):
                continue
            wanted = [p for p in only if _matches(p, topology.body_names, one, other)]
            unwanted = [p for p in exclude if _matches(p, topology.body_names, one, other)]
            unmatched.difference_update(wanted, unwanted)
            if unwanted or (only and not wanted):
                continue
            pair = _pair(geometry, i, j)
            if pair is None:
                impossible["–".join(sorted((one.shape, other.shape)))] += 1
            else:
                found.append(pair)
    if unmatched:
        names = ", ".join(repr(p) for p in sorted(unmatched))
        raise ValueError(f"no two shapes of model {model.name!r} that may touch match {names}")
    if impossible:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in impossible.items())
        message = f"shapes of these kinds do not touch in model {model.name!r}, for want of a routine: {kinds}"
        warn_user(message)
    watched = Candidates(tuple(_by_kind(found, geometry.infos)), geometry.infos, topology.body_names)
    if watched.nc > MANY_CONTACTS_WARNING:
        message = (
            f"{watched.nc} contacts of model {model.name!r} are computed in every step, which takes long to compile"
        )
        warn_user(f"{message}: choose those that matter by only, exclude or self_collision")
    return watched


def _may_touch(
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
    if _carrier(topology, a.body) == b.body or _carrier(topology, b.body) == a.body:
        return False
    same_tree = topology.ancestors[a.body][0] == topology.ancestors[b.body][0]
    return self_collision or not same_tree


def _carrier(topology: Topology, body: int) -> int:
    """The body that carries another one, past the massless ones that stand for the parts of a compound joint."""
    part_of_joint = f"{topology.body_names[body]}:"
    parent = topology.parents[body]
    while parent != WORLD and topology.body_names[parent].startswith(part_of_joint):
        parent = topology.parents[parent]
    return parent


def _matches(pattern: str, body_names: tuple[str, ...], a: GeomInfo, b: GeomInfo) -> bool:
    def fits(one: str, info: GeomInfo) -> bool:
        body = WORLD_NAME if info.body == WORLD else body_names[info.body]
        return any(fnmatchcase(name, one) for name in (info.name, info.link, body))

    first, bar, second = pattern.partition("|")
    if not bar:
        return fits(first, a) or fits(first, b)
    return (fits(first, a) and fits(second, b)) or (fits(first, b) and fits(second, a))


def _pair(geometry: Geometry, i: int, j: int) -> Pair | None:
    """Two shapes in the order in which they have a routine, if they have."""
    for first, second in ((i, j), (j, i)):
        a, b = geometry.infos[first], geometry.infos[second]
        routine = ROUTINES.get((a.shape, b.shape))
        if routine is None:
            continue
        for info in (a, b):
            _require_data(info, other=b if info is a else a)
        points = routine.max_points or len(geometry.data[a.data])
        sizes = tuple(np.shape(geometry.data[i.data]) if i.data >= 0 else () for i in (a, b))
        return Pair(first, second, f"{a.name}|{b.name}", points, sizes)
    return None


_NEEDED = {
    Shape.POINTS: "points",
    Shape.POLYGON: "an outline",
    Shape.HEIGHTFIELD: "heights",
}


def _require_data(info: GeomInfo, *, other: GeomInfo) -> None:
    """Raise if a shape lacks the points or heights that it consists of."""
    if info.shape is Shape.MESH and info.data < 0:
        raise ValueError(
            f"the mesh of shape {info.name!r} has not been read: give the simulator `hybridsim.with_hulls(model)`"
        )
    if info.shape is Shape.MESH and not info.faces and other.shape in (Shape.SPHERE, Shape.BOX):
        raise ValueError(f"the hull of shape {info.name!r} has no faces, and {other.name!r} needs them")
    if info.shape in _NEEDED and info.data < 0:
        raise ValueError(f"shape {info.name!r} is a {info.shape} without {_NEEDED[info.shape]}: give `data`")


def _by_kind(pairs: Iterable[Pair], infos: tuple[GeomInfo, ...]) -> list[Pair]:
    """Pairs of the same kinds together, so that detection can take them as one batch."""
    order: dict[tuple[Shape, Shape], list[Pair]] = {}
    for pair in pairs:
        order.setdefault((infos[pair.first].shape, infos[pair.second].shape), []).append(pair)
    return [pair for group in order.values() for pair in group]
