"""Interpolation of readings between time steps."""

import numpy as np
import pytest

from hybridsim.identify.interpolate import cubic_stencil, stencil

ROWS = 12


def polynomial(t: np.ndarray) -> np.ndarray:
    return 0.3 * t**3 - 2.0 * t**2 + t - 4.0


def slope(t: np.ndarray) -> np.ndarray:
    return 0.9 * t**2 - 4.0 * t + 1.0


def weighted_sum(first, weights, rows) -> np.ndarray:
    return sum(weights[..., k] * rows[first + k] for k in range(weights.shape[-1]))


def test_cubics_are_interpolated_exactly_even_at_the_ends():
    times = np.concatenate([np.linspace(0.0, ROWS - 1, 97), [0.0, 0.001, ROWS - 1.001, ROWS - 1]])
    result = cubic_stencil(times, ROWS)
    rows = polynomial(np.arange(ROWS, dtype=float))
    assert result.first.min() == 0 and result.first.max() == ROWS - 4
    np.testing.assert_allclose(
        weighted_sum(result.first, result.weights, rows), polynomial(times), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(weighted_sum(result.first, result.slopes, rows), slope(times), rtol=1e-11, atol=1e-11)


def test_on_steps_nothing_is_interpolated():
    result = stencil(np.array([[0.0, 3.0 + 1e-9], [11.0, 5.0]]), ROWS)
    np.testing.assert_array_equal(result.first, [[0, 3], [11, 5]])
    np.testing.assert_array_equal(result.weights, np.ones((2, 2, 1)))


def test_one_sample_between_steps_makes_all_stencils_cubic():
    result = stencil(np.array([0.0, 3.0, 4.5]), ROWS)
    assert result.weights.shape == (3, 4)
    rows = np.random.default_rng(0).normal(size=ROWS)
    np.testing.assert_allclose(weighted_sum(result.first, result.weights, rows)[:2], rows[[0, 3]], rtol=1e-14)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows_are_interpolated_by_a_polynomial_of_lower_degree(rows):
    t = np.arange(rows, dtype=float)
    times = np.linspace(0.0, rows - 1.0, 5)
    result = cubic_stencil(times, rows)
    assert result.weights.shape == (5, rows)
    for degree in range(rows):
        np.testing.assert_allclose(weighted_sum(result.first, result.weights, t**degree), times**degree, atol=1e-13)


def test_weights_sum_to_one_and_slopes_to_zero():
    result = cubic_stencil(np.random.default_rng(1).uniform(0, ROWS - 1, 50), ROWS)
    np.testing.assert_allclose(result.weights.sum(axis=-1), 1.0, rtol=1e-13)
    np.testing.assert_allclose(result.slopes.sum(axis=-1), 0.0, atol=1e-13)


@pytest.mark.parametrize("outside", [-0.01, 11.01])
def test_times_outside_are_an_error(outside):
    with pytest.raises(ValueError, match="not within 12 rows"):
        stencil(np.array([2.0, outside]), ROWS)
