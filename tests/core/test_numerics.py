"""Norms at zero."""

import jax
import numpy as np

from hybridsim.core.numerics import unit


def test_unit_of_a_zero_vector_is_the_fallback_with_zero_derivative():
    vectors = np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0], [1e-13, 0.0, 0.0]])
    fallback = np.array([0.0, 1.0, 0.0])
    direction, length = jax.vmap(lambda v: unit(v, fallback))(vectors)
    assert np.allclose(direction, [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert np.allclose(length, [5.0, 0.0, 0.0])
    d_direction, d_length = jax.vmap(jax.jacrev(lambda v: unit(v, fallback)))(vectors)
    assert np.allclose(d_length, [[0.6, 0.0, 0.8], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    across = np.eye(3) - np.outer(direction[0], direction[0])
    assert np.allclose(d_direction[0], across / 5.0) and not d_direction[1:].any()
