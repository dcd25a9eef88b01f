"""Passes over the kinematic tree: the only loops over bodies in compiled functions.

An algorithm defines the computation for one body; the pass traverses the tree level by level and batches all bodies of
a level with the same number of degrees of freedom (`vmap`). Repeating levels, such as the hips, thighs and calves of a
quadruped or the links of a chain, become one loop (`scan`) over levels: XLA compiles the trunk and one leg segment
instead of thirteen bodies. A single body on its level is not batched.

Rows per body have leading axis nb, rows per degree of freedom leading axis tree_nv.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hybridsim.core.rows import merge, take
from hybridsim.model.topology import WORLD, Topology

Rows = Any
"""A pytree whose leaves share their leading axis."""

MIN_LOOP_LEVELS = 3
"""Minimum number of repeating levels for a loop; fewer are unrolled, which runs slightly faster."""


@dataclass(frozen=True)
class _Group:
    """Bodies of one level with the same number of degrees of freedom."""

    bodies: tuple[int, ...]
    dofs: tuple[int, ...]
    """Degrees of freedom of all bodies, body by body."""
    nv: int
    """Number of degrees of freedom of each body."""


@dataclass(frozen=True)
class _Segment:
    """One level with any number of groups, or a loop over several levels with one group each.

    In a loop, body i of a level is a child of body i of the level above.
    """

    levels: tuple[tuple[_Group, ...], ...]

    @property
    def is_loop(self) -> bool:
        return len(self.levels) > 1

    @property
    def groups(self) -> list[_Group]:
        return [group for level in self.levels for group in level]

    @property
    def bodies(self) -> list[int]:
        return [body for group in self.groups for body in group.bodies]

    @property
    def dofs(self) -> list[int]:
        return [dof for group in self.groups for dof in group.dofs]


@cache
def _segments(topology: Topology) -> tuple[_Segment, ...]:
    """Segments of the tree, from the roots down."""
    groups: dict[int, dict[int, list[int]]] = {}
    for body, (depth, kind) in enumerate(zip(topology.depths, topology.joint_types, strict=True)):
        groups.setdefault(depth, {}).setdefault(kind.nv, []).append(body)

    def group(nv: int, bodies: list[int]) -> _Group:
        dofs = tuple(dof for body in bodies for dof in range(*topology.tree_v_slices[body]))
        return _Group(tuple(bodies), dofs, nv)

    def is_repeated(above: tuple[_Group, ...], below: tuple[_Group, ...]) -> bool:
        same_size = len(above) == len(below) == 1 and above[0].nv == below[0].nv
        return same_size and tuple(topology.parents[body] for body in below[0].bodies) == above[0].bodies

    levels = [tuple(group(nv, groups[d][nv]) for nv in groups[d]) for d in sorted(groups)]
    runs = [[levels[0]]] if levels else []
    for above, below in pairwise(levels):
        if is_repeated(above, below):
            runs[-1].append(below)
        else:
            runs.append([below])
    segments = []
    for run in runs:
        segments += [_Segment(tuple(run))] if len(run) >= MIN_LOOP_LEVELS else [_Segment((level,)) for level in run]
    return tuple(segments)


def traverse_root_to_leaves(
    topology: Topology, step: Callable, root: Any, bodies: Rows, dofs: Rows
) -> tuple[Rows, Rows]:
    """Traverse the tree from the roots to the leaves, passing the result of each body to its children.

    Args:
        topology: the tree.
        step: `step(parent, body, dofs) -> (result, dof_result)` for one body; `parent` is the parent's result.
        root: parent result of the root bodies.
        bodies: rows per body.
        dofs: rows per degree of freedom; each body receives its rows.

    Returns:
        The results, rows per body, and the dof results, rows per degree of freedom.
    """
    results, dof_results = [], []
    above, order = None, {}
    for segment in _segments(topology):
        parts = []
        for group in segment.levels[0]:
            if above is None:
                parents = _repeat(root, len(group.bodies))
            else:
                parents = take(above, [order[topology.parents[body]] for body in group.bodies])
            if segment.is_loop:
                last, result, dof_result = _loop_down(step, parents, _segment_rows(segment, bodies, dofs))
            else:
                last, dof_result = _map(step, parents, *_group_rows(group, bodies, dofs))
                result = last
            parts.append((last, result))
            dof_results.append(_flatten(dof_result))
        above, result = _concatenate(parts)
        results.append(result)
        order = _level_order(segment.levels[-1])
    return _merge_segments(topology, results, dof_results)


def traverse_leaves_to_root(
    topology: Topology, step: Callable, values: Rows, bodies: Rows, dofs: Rows
) -> tuple[Rows, Rows]:
    """Traverse the tree from the leaves to the roots, accumulating the contributions of children in their parent.

    Args:
        topology: the tree.
        step: `step(total, body, dofs) -> (to_parent, result, dof_result)` for one body; `total` is the body's value
            plus the contributions of its children, `to_parent` its contribution to the parent, of the same structure.
        values: value of each body.
        bodies: rows per body.
        dofs: rows per degree of freedom.

    Returns:
        The results, rows per body, and the dof results, rows per degree of freedom.
    """
    results, dof_results = [], []
    below, order = None, {}
    for segment in reversed(_segments(topology)):
        parts, dof_parts = [], []
        for group in segment.levels[-1]:
            from_below = None
            if below is not None:
                children = [[order[c] for c in order if topology.parents[c] == body] for body in group.bodies]
                from_below = _sum_of_children(below, children)
            if segment.is_loop:
                rows = (_stack_levels(segment, values), *_segment_rows(segment, bodies, dofs))
                to_parent, result, dof_result = _loop_up(step, from_below, rows)
            else:
                totals = _sum(take(values, group.bodies), from_below)
                to_parent, result, dof_result = _map(step, totals, *_group_rows(group, bodies, dofs))
            parts.append((to_parent, result))
            dof_parts.append(_flatten(dof_result))
        below, result = _concatenate(parts)
        order = _level_order(segment.levels[0])
        results.insert(0, result)
        dof_results = dof_parts + dof_results
    return _merge_segments(topology, results, dof_results)


def map_joint_types(topology: Topology, function: Callable, rows: Rows, q: Any) -> tuple[Rows, Rows]:
    """Apply `function(kind, row, q) -> (result, dof_result)` to every body, batched by joint type."""
    results, dof_results, members, dof_members = [], [], [], []
    for kind in dict.fromkeys(topology.joint_types):
        bodies = [body for body, other in enumerate(topology.joint_types) if other is kind]
        coordinates = [c for body in bodies for c in range(*topology.tree_q_slices[body])]
        kind_q = take(q, coordinates).reshape(len(bodies), kind.nq)
        result, dof_result = _map(lambda row, q, kind=kind: function(kind, row, q), take(rows, bodies), kind_q)
        results.append(result)
        members.append(bodies)
        dof_results.append(_flatten(dof_result))
        dof_members.append([d for body in bodies for d in range(*topology.tree_v_slices[body])])
    return merge(results, members), merge(dof_results, dof_members)


def ancestor_mask(topology: Topology) -> Sequence[Sequence[bool]]:
    """Mask, for each body, of the degrees of freedom of the tree that move it."""
    return [[owner in chain for owner in topology.dof_bodies] for chain in topology.root_paths]


def roots(topology: Topology) -> list[int]:
    """Bodies whose parent is the world."""
    return [body for body, parent in enumerate(topology.parents) if parent == WORLD]


def _loop_down(step: Callable, parents: Rows, stacked: tuple[Rows, Rows]):
    """Loop from the first level down: results of the last level, results and dof results of all levels."""

    def level(parents, rows):
        result, dof_result = _map(step, parents, *rows)
        return result, (result, dof_result)

    last, (result, dof_result) = jax.lax.scan(level, parents, stacked)
    return last, _flatten(result), _flatten(dof_result)


def _loop_up(step: Callable, from_below: Rows | None, stacked: tuple[Rows, Rows, Rows]):
    """Loop from the last level up: contributions to the parents of the first level, and results of all levels."""

    def level(from_below, rows):
        values, *rows = rows
        to_parent, result, dof_result = _map(step, _sum(values, from_below), *rows)
        return to_parent, (result, dof_result)

    if from_below is None:
        from_below = jax.tree.map(lambda x: jnp.zeros(x.shape[1:]), stacked[0])
    to_parent, (result, dof_result) = jax.lax.scan(level, from_below, stacked, reverse=True)
    return to_parent, _flatten(result), _flatten(dof_result)


def _group_rows(group: _Group, bodies: Rows, dofs: Rows) -> tuple[Rows, Rows]:
    """Rows of a group: per body, and per body and degree of freedom."""
    n = len(group.bodies)
    return take(bodies, group.bodies), _split(take(dofs, group.dofs), n, group.nv)


def _segment_rows(segment: _Segment, bodies: Rows, dofs: Rows) -> tuple[Rows, Rows]:
    """Rows of a loop, stacked by level."""
    first = segment.groups[0]
    shape = (len(segment.levels), len(first.bodies), first.nv)
    return _stack_levels(segment, bodies), _split(take(dofs, segment.dofs), *shape)


def _stack_levels(segment: _Segment, rows: Rows) -> Rows:
    return _split(take(rows, segment.bodies), len(segment.levels), len(segment.groups[0].bodies))


def _split(rows: Rows, *shape: int) -> Rows:
    """Split the leading axis into several axes."""
    return jax.tree.map(lambda x: jnp.reshape(x, (*shape, *x.shape[1:])), rows)


def _map(function: Callable, *rows: Rows):
    """`vmap`, but without a batch axis of length one."""
    if jax.tree.leaves(rows)[0].shape[0] == 1:
        single = function(*jax.tree.map(lambda x: x[0], rows))
        return jax.tree.map(lambda x: x[None], single)
    return jax.vmap(function)(*rows)


def _repeat(tree: Any, n: int) -> Rows:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *jnp.shape(x))), tree)


def _flatten(rows: Rows) -> Rows:
    """Merge the first two axes."""
    return jax.tree.map(lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]), rows)


def _sum(a: Rows, b: Rows | None) -> Rows:
    return a if b is None else jax.tree.map(jnp.add, a, b)


def _sum_of_children(below: Rows, children: list[list[int]]) -> Rows | None:
    """Sum of the contributions of the children of each body; None if there are no children."""
    max_children = max(len(indices) for indices in children)
    if max_children == 0:
        return None
    if len(children) == 1:
        return jax.tree.map(lambda b: jnp.sum(b, axis=0, keepdims=True), take(below, children[0]))
    if any(len(indices) < max_children for indices in children):
        # bodies with fewer children are padded with rows of zeros
        rows = jax.tree.leaves(below)[0].shape[0]
        below = jax.tree.map(lambda x: jnp.concatenate([x, np.zeros((1, *x.shape[1:]))]), below)
        children = [indices + [rows] * (max_children - len(indices)) for indices in children]
    total = take(below, [indices[0] for indices in children])
    for k in range(1, max_children):
        total = _sum(total, take(below, [indices[k] for indices in children]))
    return total


def _concatenate(parts: list[Rows]) -> Rows:
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)


def _level_order(level: tuple[_Group, ...]) -> dict[int, int]:
    """Row of each body within its level."""
    return {body: row for row, body in enumerate(body for group in level for body in group.bodies)}


def _merge_segments(topology: Topology, results: list[Rows], dof_results: list[Rows]) -> tuple[Rows, Rows]:
    """Results of the segments, and dof results of their parts, in the order of bodies and degrees of freedom."""
    segments = _segments(topology)
    bodies = [segment.bodies for segment in segments]
    dofs = [part for s in segments for part in ([s.dofs] if s.is_loop else [group.dofs for group in s.groups])]
    return merge(results, bodies), merge(dof_results, dofs)
