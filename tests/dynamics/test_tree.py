"""Passes over the tree against plain loops over bodies, on trees that exercise all kinds of batching."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from hybridsim.dynamics.tree import (
    _segments,
    ancestor_mask,
    map_joint_types,
    roots,
    traverse_leaves_to_root,
    traverse_root_to_leaves,
)
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.topology import Topology

R, S, F, FREE = (
    ElementaryJointType.REVOLUTE,
    ElementaryJointType.SPHERICAL,
    ElementaryJointType.FIXED,
    ElementaryJointType.FREE,
)

TREES = {
    "one body": ([-1], [R]),
    "chain, scanned": ([-1, 0, 1, 2, 3], [R, R, R, R, R]),
    "two bodies, unrolled": ([-1, 0], [R, R]),
    "quadruped, legs scanned": ([-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11], [FREE] + [R] * 12),
    "mixed kinds on a level": ([-1, 0, 0, 0, 1, 2, 2], [FREE, R, S, F, R, S, R]),
    "several roots": ([-1, -1, 0, 1, 1], [R, FREE, S, R, F]),
    "uneven children": ([-1, 0, 0, 1, 1, 1, 2], [S, R, R, R, R, R, R]),
    "chain that ends in a fork": ([-1, 0, 1, 2, 3, 3], [R, R, R, R, R, S]),
    "a fork under each chain": ([-1, -1, 0, 1, 2, 3, 4, 4, 5], [R] * 9),
}


def topology(name: str) -> Topology:
    parents, kinds = TREES[name]
    names = tuple(f"b{i}" for i in range(len(parents)))
    return Topology(names, tuple(parents), names, tuple(kinds), (-1,) * len(parents), (), (), name)


def rows(tree: Topology) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(tree.nb, 2)), rng.normal(size=(tree.tree_nv, 3))


def test_repeating_levels_are_scanned():
    def shape(name):
        return [len(segment.levels) for segment in _segments(topology(name))]

    assert shape("chain, scanned") == [5]
    assert shape("two bodies, unrolled") == [1, 1]
    assert shape("quadruped, legs scanned") == [1, 3]
    assert shape("chain that ends in a fork") == [4, 1]


@pytest.mark.parametrize("name", TREES)
def test_root_to_leaves(name):
    """The result of a body depends on its parent's result, its row and its degrees of freedom."""
    tree = topology(name)
    bodies, dofs = rows(tree)

    def step(parent, body, body_dofs):
        result = 0.5 * parent + body[0] + jnp.sum(body_dofs)
        return result, body_dofs * result

    @jax.jit
    def traverse(bodies, dofs):
        return traverse_root_to_leaves(tree, step, jnp.asarray(7.0), bodies, dofs)

    result, dof_result = traverse(jnp.asarray(bodies), jnp.asarray(dofs))
    expected = np.zeros(tree.nb)
    for i, parent in enumerate(tree.parents):
        body_dofs = dofs[slice(*tree.tree_v_slices[i])]
        expected[i] = 0.5 * (7.0 if parent < 0 else expected[parent]) + bodies[i, 0] + body_dofs.sum()
        np.testing.assert_allclose(dof_result[slice(*tree.tree_v_slices[i])], body_dofs * expected[i], rtol=1e-12)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    check_grads(traverse, (bodies, dofs), order=1, modes=["fwd", "rev"])


@pytest.mark.parametrize("name", TREES)
def test_leaves_to_root(name):
    """The contribution of a body is added to its parent's value."""
    tree = topology(name)
    bodies, dofs = rows(tree)
    values = np.random.default_rng(1).normal(size=(tree.nb, 4))

    def step(total, body, body_dofs):
        return 0.5 * total + body[1], total * body[0], body_dofs * total[0]

    @jax.jit
    def traverse(values, bodies, dofs):
        return traverse_leaves_to_root(tree, step, values, bodies, dofs)

    result, dof_result = traverse(*map(jnp.asarray, (values, bodies, dofs)))
    totals = values.copy()
    for i in reversed(range(tree.nb)):
        if tree.parents[i] >= 0:
            totals[tree.parents[i]] += 0.5 * totals[i] + bodies[i, 1]
    np.testing.assert_allclose(result, totals * bodies[:, :1], rtol=1e-12)
    np.testing.assert_allclose(dof_result, dofs * totals[np.array(tree.dof_bodies), :1], rtol=1e-12)
    check_grads(traverse, (values, bodies, dofs), order=1, modes=["fwd", "rev"])


def test_map_joint_types_passes_each_body_its_coordinates():
    tree = topology("mixed kinds on a level")
    q = np.arange(float(tree.tree_nq))
    weights = np.arange(1.0, tree.nb + 1.0)

    def function(kind, weight, body_q):
        return weight * jnp.sum(body_q), jnp.full((kind.nv, 1), weight)

    result, dof_result = map_joint_types(tree, function, weights, q)
    expected = [w * q[slice(*tree.tree_q_slices[i])].sum() for i, w in enumerate(weights)]
    np.testing.assert_allclose(result, expected)
    np.testing.assert_allclose(dof_result[:, 0], weights[np.array(tree.dof_bodies)])


def test_ancestors_and_roots():
    tree = topology("several roots")
    assert roots(tree) == [0, 1]
    mask = np.asarray(ancestor_mask(tree))
    assert mask.shape == (5, tree.tree_nv)
    moved_by = {i: {tree.dof_bodies[d] for d in np.flatnonzero(mask[i])} for i in range(5)}
    assert moved_by == {0: {0}, 1: {1}, 2: {0, 2}, 3: {1, 3}, 4: {1}}
