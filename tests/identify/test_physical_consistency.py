"""Physical consistency: pseudo-inertias, projection, and constrained least squares."""

import numpy as np
import pytest

from hybridsim.dynamics.regressor import inertial_parameters
from hybridsim.identify import physical_consistency
from hybridsim.identify.physical_consistency import TOLERANCE, ConsistentInertias, consistent_least_squares
from hybridsim.robots import four_joint_arm


@pytest.fixture(scope="module")
def phi():
    return np.asarray(inertial_parameters(four_joint_arm()))


@pytest.fixture(scope="module")
def bodies(phi):
    return ConsistentInertias.from_model(four_joint_arm(), phi, np.ones(4, dtype=bool))


def test_parameters_invert_pseudo_inertias(bodies, phi):
    np.testing.assert_allclose(bodies.parameters(bodies.pseudo_inertias(phi)), phi, rtol=1e-12, atol=1e-15)


def test_bodies_of_a_model_are_consistent_and_invalid_ones_are_not(bodies, phi):
    assert bodies.is_consistent(phi).all()
    invalid = phi.copy()
    invalid[1, 6] = invalid[1, 4] + 2.0 * invalid[1, 5]  # violates the triangle inequality
    invalid[2, 0] = -0.1
    np.testing.assert_array_equal(bodies.is_consistent(invalid), [True, False, False, True])


def test_projection_is_consistent_and_keeps_consistent_bodies(bodies, phi):
    random = np.random.default_rng(0)
    pseudo = bodies.pseudo_inertias(phi)
    np.testing.assert_allclose(bodies.project(pseudo), pseudo, atol=1e-12)
    perturbed = pseudo + random.normal(size=(4, 4, 4))
    projected = bodies.project(0.5 * (perturbed + perturbed.transpose(0, 2, 1)))
    assert bodies.is_consistent(bodies.parameters(projected)).all()


def test_least_squares_inside_the_set_is_the_unconstrained_solution(bodies, phi):
    nominal = np.concatenate([phi.ravel(), np.full(3, 0.5)])
    scales = np.abs(nominal) + 0.01
    random = np.random.default_rng(1)
    J = random.normal(size=(60, len(nominal)))
    x = 1e-4 * random.normal(size=len(nominal))
    found = consistent_least_squares(bodies, J.T @ J, J.T @ J @ x, nominal, scales)
    assert found.has_converged and found.residual < TOLERANCE
    np.testing.assert_allclose((found.parameters - nominal) / scales, x, atol=1e-6)


def test_lack_of_convergence_is_reported_with_its_residual(bodies, phi, monkeypatch):
    nominal = np.concatenate([phi.ravel(), np.full(3, 0.5)])
    scales = np.abs(nominal) + 0.01
    J = np.random.default_rng(1).normal(size=(60, len(nominal)))
    residuals = []
    for limit in (1, 5, 25):
        monkeypatch.setattr(physical_consistency, "MAX_ITERATIONS", limit)
        found = consistent_least_squares(bodies, J.T @ J, J.T @ np.ones(60), nominal, scales)
        assert not found.has_converged and bodies.is_consistent(found.parameters[:40].reshape(4, 10)).all()
        residuals.append(found.residual)
    assert TOLERANCE < residuals[2] < residuals[1] < residuals[0] < np.inf


def test_constrained_least_squares_is_better_than_projection(bodies, phi):
    nominal = np.concatenate([phi.ravel(), np.full(3, 0.1)])
    scales = np.concatenate([np.tile(np.abs(phi).max(axis=0) + 1e-3, 4), np.ones(3)])
    random = np.random.default_rng(2)
    J = random.normal(size=(60, len(nominal))) * np.logspace(-2, 0, len(nominal))
    gram = J.T @ J + 1e-4 * np.eye(len(nominal))
    x = random.normal(size=len(nominal))
    x[-1] = -1.0
    right = gram @ x

    def cost(values):
        y = (values - nominal) / scales
        return 0.5 * y @ gram @ y - right @ y

    found = consistent_least_squares(bodies, gram, right, nominal, scales).parameters
    clipped = nominal + scales * x
    clipped[:40] = bodies.parameters(bodies.project(bodies.pseudo_inertias(clipped[:40].reshape(4, 10)))).ravel()
    clipped[40:] = np.maximum(clipped[40:], 0.0)
    assert bodies.is_consistent(found[:40].reshape(4, 10)).all() and (found[40:] >= 0.0).all()
    assert cost(found) < min(cost(nominal), cost(clipped))
    # no consistent point nearby is better
    for seed in range(50):
        other = found + 1e-3 * scales * np.random.default_rng(seed).normal(size=len(nominal))
        if bodies.is_consistent(other[:40].reshape(4, 10)).all() and (other[40:] >= 0.0).all():
            assert cost(other) >= cost(found) - 1e-6
