"""Networks with random weights, and a constant function, for tests of grafts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

Weights = st.tuples(st.integers(0, 10_000), st.sampled_from([0.01, 0.5, 3.0, 30.0]))
"""Strategy for seed and scale of random weights."""


def randomize_weights(net, weights):
    """Replace all weights of a network by random ones; scales, shifts and points are unchanged."""
    seed, scale = weights
    rng = np.random.default_rng(seed)

    def random_leaf(path, leaf):
        name = str(getattr(path[-1], "name", ""))
        if not eqx.is_array_like(leaf) or name.endswith(("_scale", "_shift", "_point")):
            return leaf
        return scale * rng.normal(size=np.shape(leaf))

    return jax.tree_util.tree_map_with_path(random_leaf, net)


def constant_network(*values):
    """A function of any input that returns constant values."""
    return eqx.Partial(lambda c, x: c + 0.0 * jnp.sum(x), jnp.asarray(values, dtype=float))
