"""Norms, divisions, trigonometric quotients and small linear systems, and their derivatives at zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.numerics import (
    cross,
    direction_and_length,
    one_minus_cos_over_square,
    safe_divide,
    safe_norm,
    sinc_of_square,
    solve_symmetric_3,
)
from hybridsim.spatial.rotation import skew


def test_direction_of_a_zero_vector_is_the_fallback_with_zero_derivative():
    vectors = np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0], [1e-13, 0.0, 0.0]])
    fallback = np.array([0.0, 1.0, 0.0])
    direction, length = jax.vmap(lambda v: direction_and_length(v, fallback))(vectors)
    assert np.allclose(direction, [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert np.allclose(length, [5.0, 0.0, 0.0])
    d_direction, d_length = jax.vmap(jax.jacrev(lambda v: direction_and_length(v, fallback)))(vectors)
    assert np.allclose(d_length, [[0.6, 0.0, 0.8], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    across = np.eye(3) - np.outer(direction[0], direction[0])
    assert np.allclose(d_direction[0], across / 5.0) and not d_direction[1:].any()


@pytest.mark.parametrize("x", [0.0, 1e-16, 1e-7, 9.9e-7, 1.1e-6, 1e-3, 1.0, 30.0])
def test_trigonometric_quotients(x):
    from mpmath import mp, mpf

    mp.dps = 40
    a = mp.sqrt(mpf(x))
    exact_sinc = mp.sin(a) / a if x else mpf(1)
    exact_one_minus_cos = (1 - mp.cos(a)) / a**2 if x else mpf(1) / 2
    assert abs(float(sinc_of_square(jnp.asarray(x))) - float(exact_sinc)) < 3e-16
    assert abs(float(one_minus_cos_over_square(jnp.asarray(x))) - float(exact_one_minus_cos)) < 3e-16


def test_safe_numerics_have_finite_gradients():
    zero = jnp.zeros(3)
    assert np.array_equal(jax.grad(safe_norm)(zero), zero)
    assert float(safe_divide(jnp.asarray(1.0), jnp.asarray(0.0))) == 0.0
    assert np.isfinite(jax.grad(lambda y: safe_divide(jnp.asarray(1.0), y))(jnp.asarray(0.0)))
    np.testing.assert_allclose(safe_norm(np.array([3.0, 4.0])), 5.0)


def test_small_solve_and_cross_product():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(3, 3))
    A, b = A @ A.T + np.eye(3), rng.normal(size=(3, 4))
    np.testing.assert_allclose(solve_symmetric_3(A, b), np.linalg.solve(A, b), rtol=1e-12)
    np.testing.assert_allclose(cross(b[:, 0], b[:, 1]), np.cross(b[:, 0], b[:, 1]), rtol=1e-14)
    np.testing.assert_allclose(skew(b[:, 0]) @ b[:, 1], np.cross(b[:, 0], b[:, 1]), rtol=1e-14)
