"""Gathering and merging rows of arrays by static indices.

JAX's general gather is slow on a CPU, and its transpose, a scatter, is slower. Static indices are nearly always a
slice, one repeated row or the identity, which cost nothing.
"""

from collections.abc import Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Tree = TypeVar("Tree")


def take(tree: Tree, indices: Sequence[int]) -> Tree:
    """Rows `indices` of every leaf, in that order."""
    n, first = len(indices), indices[0] if indices else 0
    stride = indices[1] - first if n > 1 else 1
    strided = all(i == first + k * stride for k, i in enumerate(indices))

    def rows(x):
        if strided and stride > 0:
            whole = first == 0 and stride == 1 and n == x.shape[0]
            return x if whole else x[first : first + (n - 1) * stride + 1 if n else first : stride]
        if strided and stride == 0:
            return jnp.broadcast_to(x[first : first + 1], (n, *x.shape[1:]))
        # the indices are valid by construction, so bounds checks are not needed
        return jnp.asarray(x).at[np.asarray(indices)].get(mode="promise_in_bounds")

    return jax.tree.map(rows, tree)


def merge(parts: Sequence[Tree], indices: Sequence[Sequence[int]]) -> Tree:
    """Leaves whose row `indices[k][i]` is row i of `parts[k]`: the inverse of a partition with `take`."""
    concatenated = parts[0] if len(parts) == 1 else jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
    order = np.argsort(np.concatenate([np.asarray(ix, dtype=int) for ix in indices]), kind="stable")
    return take(concatenated, order.tolist())
