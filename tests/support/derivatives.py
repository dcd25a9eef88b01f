"""Derivatives of a function of named parameters: forward and reverse mode against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np


def check_derivatives(function, parameters: dict, *, tolerance: float = 1e-7, step: float = 1e-4, seed: int = 0):
    """Check the derivative of `function(parameters)` with respect to each named parameter.

    For every name, along a random direction: forward mode against a fourth-order central difference, and reverse mode
    against forward mode through a random projection of the output. `tolerance` is relative to the largest entry
    of the derivative, or to one; the error of the difference formula is about 1e-10 for functions of order one.

    Returns:
        Largest entry of each derivative by name, so that a test can require it to be nonzero.
    """
    rng = np.random.default_rng(seed)

    def flat(parameters):
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(function(parameters))])

    @jax.jit
    def value_and_derivatives(p, d, w):
        # one program, so that XLA compiles the shared subexpressions only once
        value, forward = jax.jvp(flat, (p,), (d,))
        return value, forward, jax.vjp(flat, p)[1](w)[0]

    parameters = jax.tree.map(jnp.asarray, parameters)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    w = jnp.asarray(rng.normal(size=jax.eval_shape(flat, parameters).shape))
    _, _, gradient = value_and_derivatives(parameters, zeros, w)
    sizes = {}
    for name in parameters:
        direction = jax.tree.map(jnp.zeros_like, parameters)
        direction[name] = jnp.asarray(rng.normal(size=parameters[name].shape))

        def value(h, direction=direction):
            return value_and_derivatives(jax.tree.map(lambda p, d: p + h * d, parameters, direction), zeros, w)[0]

        expected = (8.0 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12.0 * step)
        actual = value_and_derivatives(parameters, direction, w)[1]
        scale = max(1.0, float(jnp.abs(expected).max()))
        error = float(jnp.abs(actual - expected).max()) / scale
        assert error < tolerance, f"{name}: forward mode differs from finite differences by {error:.1e}"
        by_reverse = float(jnp.sum(gradient[name] * direction[name]))
        by_forward = float(w @ actual)
        error = abs(by_reverse - by_forward) / max(1.0, abs(by_forward))
        assert error < 1e-10, f"{name}: reverse mode differs from forward mode by {error:.1e}"
        sizes[name] = float(jnp.abs(actual).max())
    return sizes
