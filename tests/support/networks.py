"""Networks with random weights, and a constant function, for tests of grafts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from hybridsim.networks.frozen_fields import weight_mask

Weights = st.tuples(st.integers(0, 10_000), st.sampled_from([0.01, 0.5, 3.0, 30.0]))
"""Strategy for seed and scale of random weights."""


def randomize_weights(net, weights):
    """Replace all weights of a network by random ones; frozen fields are unchanged."""
    seed, scale = weights
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf, is_weight: scale * rng.normal(size=np.shape(leaf)) if is_weight else leaf, net, weight_mask(net)
    )


def constant_network(*values):
    """A function of any input that returns constant values."""
    return eqx.Partial(lambda c, x: c + 0.0 * jnp.sum(x), jnp.asarray(values, dtype=float))
