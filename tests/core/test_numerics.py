"""Norms that can meet zero."""

import jax
import numpy as np

from hybridsim.core.numerics import unit


def test_what_has_no_length_gets_another_direction_and_no_derivative():
    vectors = np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0], [1e-13, 0.0, 0.0]])
    otherwise = np.array([0.0, 1.0, 0.0])
    direction, length = jax.vmap(lambda v: unit(v, otherwise))(vectors)
    assert np.allclose(direction, [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert np.allclose(length, [5.0, 0.0, 0.0])
    of_direction, of_length = jax.vmap(jax.jacrev(lambda v: unit(v, otherwise)))(vectors)
    assert np.allclose(of_length, [[0.6, 0.0, 0.8], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    across = np.eye(3) - np.outer(direction[0], direction[0])
    assert np.allclose(of_direction[0], across / 5.0) and not of_direction[1:].any()
