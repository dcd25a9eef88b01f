"""What tests of grafts share: networks with weights of any kind, and some that are no networks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

Weights = st.tuples(st.integers(0, 10_000), st.sampled_from([0.01, 0.5, 3.0, 30.0]))
"""Seed and size of random weights."""


def shaken(net, weights):
    """A network whose weights are all at random; what says in which units it computes stays."""
    seed, size = weights
    rng = np.random.default_rng(seed)

    def other(path, leaf):
        name = str(getattr(path[-1], "name", ""))
        if not eqx.is_array_like(leaf) or name.endswith(("_scale", "_shift", "_point")):
            return leaf
        return size * rng.normal(size=np.shape(leaf))

    return jax.tree_util.tree_map_with_path(other, net)


def constant(*values):
    """A network that always returns the same numbers."""
    return eqx.Partial(lambda c, x: c + 0.0 * jnp.sum(x), jnp.asarray(values, dtype=float))
