"""Maps between θ and values: round trips, derivatives, and exact scaling."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.params.maps import Interval, Linear, Log, power_of_two

MAPS = [Linear((0.25,)), Linear((0.5, 2.0, 8.0)), Log((0.125,)), Log((0.5, 1.0, 3.0)), Interval((-1.0,), (4.0,))]
VALUES = np.array([0.3, 1.7, 3.9])


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_theta_and_value_are_inverse_to_each_other(mapping):
    theta = mapping.theta(VALUES)
    np.testing.assert_allclose(mapping.value(theta), VALUES, rtol=1e-15)
    np.testing.assert_allclose(mapping.value(jax.numpy.asarray(theta)), VALUES, rtol=2e-15)


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_derivative_matches_forward_and_reverse_mode(mapping):
    theta = jax.numpy.asarray(mapping.theta(VALUES))
    for derivative in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(
            np.diagonal(derivative(mapping.value)(theta)), mapping.derivative(VALUES), rtol=1e-13
        )


@pytest.mark.parametrize("theta", [-800.0, 0.0, 800.0])
def test_an_interval_is_bounded_and_differentiable_everywhere(theta):
    mapping = Interval((0.0,), (2.0,))
    value, slope = jax.value_and_grad(lambda t: mapping.value(t)[0])(jax.numpy.array([theta]))
    assert 0.0 <= value <= 2.0 and np.isfinite(slope).all()
    assert slope[0] == (0.5 if theta == 0.0 else pytest.approx(0.0))


@given(st.floats(1e-12, 1e12))
def test_scaling_by_a_power_of_two_is_exact(value):
    mapping = Linear((power_of_two(value),))
    assert 0.7 <= mapping.theta(np.array([value]))[0] <= 1.42
    assert mapping.value(mapping.theta(np.array([value])))[0] == value


@given(st.floats(-20.0, 20.0))
def test_values_of_a_log_map_are_positive(theta):
    assert Log((2.0,)).value(np.array([theta]))[0] > 0.0
