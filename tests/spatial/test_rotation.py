"""Rotations against SciPy, and their derivatives at singular points of the formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.spatial import rotation

ANGLES = [0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 3.0, np.pi - 1e-6, np.pi]
AXIS = np.array([2.0, -1.0, 2.0]) / 3.0


def _scipy_rotation(quat):
    return Rotation.from_quat(np.roll(quat, -1))


@pytest.mark.parametrize("angle", ANGLES)
def test_exponential_and_logarithm(angle):
    r = angle * AXIS
    expected = Rotation.from_rotvec(r)
    np.testing.assert_allclose(rotation.matrix_from_rotation_vector(r), expected.as_matrix(), atol=2e-15)
    np.testing.assert_allclose(
        rotation.matrix_from_axis_angle(AXIS, jnp.asarray(angle)), expected.as_matrix(), atol=2e-15
    )
    quat = rotation.quaternion_exp(r)
    np.testing.assert_allclose(_scipy_rotation(quat).as_matrix(), expected.as_matrix(), atol=2e-15)
    np.testing.assert_allclose(rotation.quaternion_log(quat), r, rtol=1e-12, atol=1e-18)
    np.testing.assert_allclose(rotation.matrix_from_quaternion(quat), expected.as_matrix(), atol=2e-15)
    # both rotation vectors of a half turn are the same rotation
    back = rotation.matrix_from_rotation_vector(rotation.rotation_vector_from_matrix(expected.as_matrix()))
    np.testing.assert_allclose(back, expected.as_matrix(), atol=1e-9)


@pytest.mark.parametrize("angle", ANGLES[:-1])
@pytest.mark.parametrize(
    "function",
    [
        rotation.matrix_from_rotation_vector,
        rotation.quaternion_exp,
        lambda r: rotation.quaternion_log(rotation.quaternion_exp(r)),
    ],
)
def test_derivatives_at_every_angle(function, angle):
    r = angle * AXIS
    forward, reverse = jax.jacfwd(function)(r), jax.jacrev(function)(r)
    h = 1e-6
    numeric = np.stack([(function(r + h * e) - function(r - h * e)) / (2 * h) for e in np.eye(3)], axis=-1)
    np.testing.assert_allclose(forward, numeric, atol=2e-9)
    np.testing.assert_allclose(reverse, forward, atol=1e-13)


@pytest.mark.parametrize("quat", [*np.eye(4), [0, 0.6, 0.8, 0]])
def test_half_turns_have_finite_gradients(quat):
    quat = np.array(quat, dtype=float)
    assert np.isfinite(jax.jacrev(rotation.quaternion_log)(quat)).all()
    assert np.isfinite(jax.jacrev(rotation.rotation_vector_from_matrix)(rotation.matrix_from_quaternion(quat))).all()


def test_zero_rotation_is_exact():
    """Zero rotation must be exact ones and zeros: an untrained graft on a configuration must not change values."""
    assert np.array_equal(rotation.quaternion_exp(np.zeros(3)), [1, 0, 0, 0])
    assert np.array_equal(rotation.matrix_from_rotation_vector(np.zeros(3)), np.eye(3))


def test_quaternion_algebra():
    rng = np.random.default_rng(0)
    a, b = (q / np.linalg.norm(q) for q in rng.normal(size=(2, 4)))
    product = rotation.quaternion_product(a, b)
    np.testing.assert_allclose(
        _scipy_rotation(product).as_matrix(), (_scipy_rotation(a) * _scipy_rotation(b)).as_matrix(), atol=1e-14
    )
    unit = rotation.quaternion_product(a, rotation.quaternion_conjugate(a))
    np.testing.assert_allclose(unit, [1, 0, 0, 0], atol=1e-15)
    omega = rng.normal(size=3)
    rotated = rotation.quaternion_product(a, rotation.quaternion_exp(1e-7 * omega))
    np.testing.assert_allclose(rotation.quaternion_rate(a, omega), (rotated - a) / 1e-7, atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_quaternion_of_a_matrix(seed):
    R = Rotation.random(random_state=seed).as_matrix()
    if seed < 4:
        R = np.diag([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]][seed]).astype(float)
    np.testing.assert_allclose(rotation.matrix_from_quaternion(rotation.quaternion_from_matrix(R)), R, atol=1e-14)
