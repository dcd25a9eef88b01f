"""Passes over the kinematic tree: the only loops over bodies in the project.

An algorithm writes what happens at one body; the pass walks the tree level by level and treats all bodies of a
level that have equally many degrees of freedom at once (`vmap`). A quadruped's twelve leg bodies are three
batches of four, so XLA compiles four levels instead of thirteen bodies; a body alone on its level is not batched.

Rows per body have leading axis nb, rows per degree of freedom leading axis mv.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from hybridsim.core.rows import merge, take
from hybridsim.model.topology import WORLD, Topology

Rows = Any
"""A pytree whose leaves share their leading axis."""


@dataclass(frozen=True)
class _Group:
    """Bodies of one level with equally many degrees of freedom."""

    bodies: tuple[int, ...]
    dofs: tuple[int, ...]
    """Degrees of freedom of all of them, body after body."""
    nv: int
    """Degrees of freedom of each."""


@cache
def _levels(topology: Topology) -> tuple[tuple[_Group, ...], ...]:
    groups: dict[int, dict[int, list[int]]] = {}
    for body, (depth, kind) in enumerate(zip(topology.depths, topology.joint_types, strict=True)):
        groups.setdefault(depth, {}).setdefault(kind.nv, []).append(body)

    def group(nv: int, bodies: list[int]) -> _Group:
        dofs = tuple(dof for body in bodies for dof in range(*topology.tree_v_slices[body]))
        return _Group(tuple(bodies), dofs, nv)

    return tuple(tuple(group(nv, groups[d][nv]) for nv in groups[d]) for d in sorted(groups))


def root_to_leaves(topology: Topology, step: Callable, root: Any, bodies: Rows, dofs: Rows) -> tuple[Rows, Rows]:
    """Walk from the roots to the leaves, handing each body what its parent computed.

    Args:
        topology: the tree.
        step: `step(parent, body, dofs) -> (result, dof_result)` for one body; `parent` is the parent's result.
        root: what stands for the parent's result at the roots.
        bodies: rows per body.
        dofs: rows per degree of freedom; a body gets its own.

    Returns:
        The results, rows per body, and the dof results, rows per degree of freedom.
    """
    results, dof_results = [], []
    above, order = None, {}
    for level in _levels(topology):
        level_results = []
        for group in level:
            if above is None:
                parents = _repeated(root, len(group.bodies))
            else:
                parents = take(above, [order[topology.parents[body]] for body in group.bodies])
            result, dof_result = _apply(step, group, parents, take(bodies, group.bodies), dofs)
            level_results.append(result)
            dof_results.append(dof_result)
        above = _concatenated(level_results)
        members = [body for group in level for body in group.bodies]
        order = {body: place for place, body in enumerate(members)}
        results.append(above)
    return _in_body_order(topology, results), _in_dof_order(topology, dof_results)


def leaves_to_root(topology: Topology, step: Callable, own: Rows, bodies: Rows, dofs: Rows) -> Rows:
    """Walk from the leaves to the roots, adding up what the children pass to their parent.

    Args:
        topology: the tree.
        step: `step(total, body, dofs) -> (to_parent, result, dof_result)` for one body; `total` is the body's own
            value plus everything its children passed up, `to_parent` what it passes up itself.
        own: the bodies' own values.
        bodies: rows per body.
        dofs: rows per degree of freedom.

    Returns:
        The results, rows per body, and the dof results, rows per degree of freedom.
    """
    results, dof_results = [], []
    below, order = None, {}
    for level in reversed(_levels(topology)):
        passed_up, level_results, level_dof_results = [], [], []
        for group in level:
            totals = take(own, group.bodies)
            if below is not None:
                children = [[order[c] for c in order if topology.parents[c] == body] for body in group.bodies]
                totals = _with_children(totals, below, children)
            to_parent, result, dof_result = _apply(step, group, totals, take(bodies, group.bodies), dofs)
            passed_up.append(to_parent)
            level_results.append(result)
            level_dof_results.append(dof_result)
        below = _concatenated(passed_up)
        members = [body for group in level for body in group.bodies]
        order = {body: place for place, body in enumerate(members)}
        results.append(_concatenated(level_results))
        dof_results = level_dof_results + dof_results
    return _in_body_order(topology, results[::-1]), _in_dof_order(topology, dof_results)


def per_joint_type(topology: Topology, function: Callable, rows: Rows, q: Any) -> tuple[Rows, Rows]:
    """Apply `function(kind, row, q) -> (result, dof_result)` to every body, all bodies of a joint type at once."""
    results, dof_results, members, dof_members = [], [], [], []
    for kind in dict.fromkeys(topology.joint_types):
        bodies = [body for body, other in enumerate(topology.joint_types) if other is kind]
        coordinates = [c for body in bodies for c in range(*topology.tree_q_slices[body])]
        own_q = take(q, coordinates).reshape(len(bodies), kind.nq)
        result, dof_result = _mapped(lambda row, own, kind=kind: function(kind, row, own), take(rows, bodies), own_q)
        results.append(result)
        members.append(bodies)
        dof_results.append(_flattened(dof_result))
        dof_members.append([d for body in bodies for d in range(*topology.tree_v_slices[body])])
    return merge(results, members), merge(dof_results, dof_members)


def ancestor_mask(topology: Topology) -> Sequence[Sequence[bool]]:
    """For each body and each degree of freedom of the tree: does the degree of freedom move the body?"""
    owner = [body for body, (start, stop) in enumerate(topology.tree_v_slices) for _ in range(start, stop)]
    return [[owner[dof] in chain for dof in range(topology.mv)] for chain in topology.ancestors]


def roots(topology: Topology) -> list[int]:
    """Bodies that hang on the world."""
    return [body for body, parent in enumerate(topology.parents) if parent == WORLD]


def _apply(step: Callable, group: _Group, carried: Rows, bodies: Rows, dofs: Rows):
    n = len(group.bodies)
    own = jax.tree.map(lambda x: x.reshape(n, group.nv, *x.shape[1:]), take(dofs, group.dofs))
    *results, dof_result = _mapped(step, carried, bodies, own)
    return (*results, _flattened(dof_result))


def _mapped(function: Callable, *rows: Rows):
    """`vmap`, but without a batch axis of length one."""
    if jax.tree.leaves(rows)[0].shape[0] == 1:
        single = function(*jax.tree.map(lambda x: x[0], rows))
        return jax.tree.map(lambda x: x[None], single)
    return jax.vmap(function)(*rows)


def _repeated(tree: Any, n: int) -> Rows:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *jnp.shape(x))), tree)


def _flattened(rows: Rows) -> Rows:
    """(bodies, dofs per body, ...) as (dofs, ...)."""
    return jax.tree.map(lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]), rows)


def _with_children(totals: Rows, below: Rows, children: list[list[int]]) -> Rows:
    most = max(len(places) for places in children)
    if most == 0:
        return totals
    if len(children) == 1:
        return jax.tree.map(lambda t, b: t + jnp.sum(b, axis=0, keepdims=True), totals, take(below, children[0]))
    if any(len(places) < most for places in children):
        # bodies with fewer children take a row of zeros for each missing one
        rows = jax.tree.leaves(below)[0].shape[0]
        below = jax.tree.map(lambda x: jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]))]), below)
        children = [places + [rows] * (most - len(places)) for places in children]
    for k in range(most):
        kth = take(below, [places[k] for places in children])
        totals = jax.tree.map(jnp.add, totals, kth)
    return totals


def _concatenated(parts: list[Rows]) -> Rows:
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)


def _in_body_order(topology: Topology, per_level: list[Rows]) -> Rows:
    return merge(per_level, [[body for group in level for body in group.bodies] for level in _levels(topology)])


def _in_dof_order(topology: Topology, per_group: list[Rows]) -> Rows:
    return merge(per_group, [group.dofs for level in _levels(topology) for group in level])
