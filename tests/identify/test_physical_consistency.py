"""Bodies that can exist: their pseudo-inertias, the nearest of them, and least squares over them."""

import numpy as np
import pytest

from hybridsim.dynamics.regressor import inertial_parameters
from hybridsim.identify.physical_consistency import ConsistentInertias, least_squares
from hybridsim.robots import planar_arm


@pytest.fixture(scope="module")
def own():
    return np.asarray(inertial_parameters(planar_arm()))


@pytest.fixture(scope="module")
def bodies(own):
    return ConsistentInertias.of(planar_arm(), own, np.ones(4, dtype=bool))


def test_parameters_come_back_from_pseudo_inertias(bodies, own):
    np.testing.assert_allclose(bodies.parameters(bodies.pseudo_inertias(own)), own, rtol=1e-12, atol=1e-15)


def test_the_models_own_bodies_exist_and_lopsided_ones_do_not(bodies, own):
    assert bodies.exist(own).all()
    lopsided = own.copy()
    lopsided[1, 6] = lopsided[1, 4] + 2.0 * lopsided[1, 5]  # a moment larger than the sum of the others
    lopsided[2, 0] = -0.1
    np.testing.assert_array_equal(bodies.exist(lopsided), [True, False, False, True])


def test_nearest_bodies_exist_and_those_that_exist_stay(bodies, own):
    random = np.random.default_rng(0)
    pseudo = bodies.pseudo_inertias(own)
    np.testing.assert_allclose(bodies.nearest(pseudo), pseudo, atol=1e-12)
    wild = pseudo + random.normal(size=(4, 4, 4))
    moved = bodies.nearest(0.5 * (wild + wild.transpose(0, 2, 1)))
    assert bodies.exist(bodies.parameters(moved)).all()


def test_least_squares_without_a_bound_in_the_way_is_the_plain_solution(bodies, own):
    numbers = np.concatenate([own.ravel(), np.full(3, 0.5)])
    sizes = np.abs(numbers) + 0.01
    random = np.random.default_rng(1)
    J = random.normal(size=(60, len(numbers)))
    x = 1e-4 * random.normal(size=len(numbers))
    found = least_squares(bodies, J.T @ J, J.T @ J @ x, numbers, sizes)
    np.testing.assert_allclose((found - numbers) / sizes, x, atol=1e-6)


def test_least_squares_at_the_edge_is_better_than_the_nearest_body(bodies, own):
    numbers = np.concatenate([own.ravel(), np.full(3, 0.1)])
    sizes = np.concatenate([np.tile(np.abs(own).max(axis=0) + 1e-3, 4), np.ones(3)])
    random = np.random.default_rng(2)
    J = random.normal(size=(60, len(numbers))) * np.logspace(-2, 0, len(numbers))
    gram = J.T @ J + 1e-4 * np.eye(len(numbers))
    x = random.normal(size=len(numbers))
    x[-1] = -1.0
    right = gram @ x

    def cost(of):
        y = (of - numbers) / sizes
        return 0.5 * y @ gram @ y - right @ y

    found = least_squares(bodies, gram, right, numbers, sizes)
    clipped = numbers + sizes * x
    clipped[:40] = bodies.parameters(bodies.nearest(bodies.pseudo_inertias(clipped[:40].reshape(4, 10)))).ravel()
    clipped[40:] = np.maximum(clipped[40:], 0.0)
    assert bodies.exist(found[:40].reshape(4, 10)).all() and (found[40:] >= 0.0).all()
    assert cost(found) < min(cost(numbers), cost(clipped))
    # no possible point nearby is better
    for seed in range(50):
        other = found + 1e-3 * sizes * np.random.default_rng(seed).normal(size=len(numbers))
        if bodies.exist(other[:40].reshape(4, 10)).all() and (other[40:] >= 0.0).all():
            assert cost(other) >= cost(found) - 1e-6
