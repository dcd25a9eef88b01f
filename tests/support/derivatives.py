"""Derivatives of a function of named parameters: forward and reverse mode against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np


def check_derivatives(function, parameters: dict, *, tolerance: float = 1e-7, step: float = 1e-4, seed: int = 0):
    """Check the derivative of `function(parameters)` with respect to each named parameter.

    For every name, along a random direction: forward mode against a fourth-order central difference, and reverse mode
    against forward mode through a random projection of the output. `tolerance` is relative to the size of the output's
    derivative; the difference formula itself is good to about 1e-10 for functions of order one.

    Returns:
        The derivative's size by name, so that a test can insist on it being seen at all.
    """
    rng = np.random.default_rng(seed)

    def flat(parameters):
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(function(parameters))])

    @jax.jit
    def all_three(p, d, w):
        # one program, so that XLA compiles what they share only once
        value, forward = jax.jvp(flat, (p,), (d,))
        return value, forward, jax.vjp(flat, p)[1](w)[0]

    parameters = jax.tree.map(jnp.asarray, parameters)
    nowhere = jax.tree.map(jnp.zeros_like, parameters)
    w = jnp.asarray(rng.normal(size=jax.eval_shape(flat, parameters).shape))
    _, _, gradient = all_three(parameters, nowhere, w)
    sizes = {}
    for name in parameters:
        direction = jax.tree.map(jnp.zeros_like, parameters)
        direction[name] = jnp.asarray(rng.normal(size=parameters[name].shape))

        def moved(h, direction=direction):
            return all_three(jax.tree.map(lambda p, d: p + h * d, parameters, direction), nowhere, w)[0]

        expected = (8.0 * (moved(step) - moved(-step)) - (moved(2 * step) - moved(-2 * step))) / (12.0 * step)
        actual = all_three(parameters, direction, w)[1]
        scale = max(1.0, float(jnp.abs(expected).max()))
        error = float(jnp.abs(actual - expected).max()) / scale
        assert error < tolerance, f"{name}: forward mode differs from finite differences by {error:.1e}"
        by_reverse = float(jnp.sum(gradient[name] * direction[name]))
        by_forward = float(w @ actual)
        error = abs(by_reverse - by_forward) / max(1.0, abs(by_forward))
        assert error < 1e-10, f"{name}: reverse mode differs from forward mode by {error:.1e}"
        sizes[name] = float(jnp.abs(actual).max())
    return sizes
