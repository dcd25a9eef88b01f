"""Gathering and merging rows: the fast paths agree with plain indexing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.rows import merge, take

X = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("indices", "primitive"),
    [
        ([0, 1, 2, 3, 4, 5], None),
        ([2, 3, 4], "slice"),
        ([1, 3, 5], "slice"),
        ([4], "slice"),
        ([], "slice"),
        ([2, 2, 2], "broadcast_in_dim"),
        ([3, 1, 4, 1], "gather"),
        ([5, 4, 3], "gather"),
    ],
)
def test_take_is_indexing_by_the_cheapest_primitive(indices, primitive):
    np.testing.assert_array_equal(take({"a": X}, indices)["a"], X[np.asarray(indices, dtype=int)])
    program = jax.make_jaxpr(lambda x: take(x, indices))(jnp.asarray(X))
    used = {equation.primitive.name for equation in program.eqns}
    assert (primitive in used) if primitive else not used
    assert primitive == "gather" or "gather" not in used


def test_gradient_of_take_with_repeated_rows():
    gradient = jax.grad(lambda x: jnp.sum(take(x, [3, 1, 4, 1]) * np.arange(8.0).reshape(4, 2)))(jnp.asarray(X))
    expected = np.zeros((6, 2))
    np.add.at(expected, [3, 1, 4, 1], np.arange(8.0).reshape(4, 2))
    np.testing.assert_array_equal(gradient, expected)


def test_merge_inverts_a_partition():
    parts = [[4, 0], [5], [1, 3, 2]]
    tree = {"a": X, "b": np.arange(6.0)}
    merged = merge([take(tree, part) for part in parts], parts)
    np.testing.assert_array_equal(merged["a"], X)
    np.testing.assert_array_equal(merged["b"], np.arange(6.0))
