"""Gauss–Newton steps: eliminating starts changes nothing, bounds hold, and problems do not see each other."""

import numpy as np
import pytest

from hybridsim.identify.normal_equations import (
    GaussNewtonStep,
    NormalEquations,
    bounded_step,
    diagonals,
    eliminate_initial_states,
)

PROBLEMS, WINDOWS, STARTS, PARAMETERS = 3, 4, 2, 5
EVERYWHERE = np.full((PROBLEMS, PARAMETERS), np.inf)


def equations(seed: int, *, tied: bool, starts: int = STARTS) -> NormalEquations:
    """Those of random Jacobians, with the sparsity that windows and their ties have."""
    random = np.random.default_rng(seed)
    P, W, n = PROBLEMS, WINDOWS, PARAMETERS
    A, a = np.zeros((P, n, n)), np.zeros((P, n))
    B, D, d = np.zeros((P, W, starts, n)), np.zeros((P, W, starts, starts)), np.zeros((P, W, starts))
    C = np.zeros_like(D) if tied else None
    for w in range(W):
        own, by_start, r = random.normal(size=(P, 7, n)), random.normal(size=(P, 7, starts)), random.normal(size=(P, 7))
        A += own.transpose(0, 2, 1) @ own
        a += np.einsum("pki,pk->pi", own, r)
        B[:, w] += by_start.transpose(0, 2, 1) @ own
        D[:, w] += by_start.transpose(0, 2, 1) @ by_start
        d[:, w] += np.einsum("pki,pk->pi", by_start, r)
        if C is not None and w:
            before = random.normal(size=(P, 7, starts))
            C[:, w] = by_start.transpose(0, 2, 1) @ before
            B[:, w - 1] += before.transpose(0, 2, 1) @ own
            D[:, w - 1] += before.transpose(0, 2, 1) @ before
            d[:, w - 1] += np.einsum("pki,pk->pi", before, r)
    return NormalEquations(A, a, B, D, d, C)


def dense(of: NormalEquations, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrix and gradient of one problem, written out."""
    n, (W, s) = of.a.shape[1], of.d.shape[1:]
    matrix = np.zeros((n + W * s, n + W * s))
    matrix[:n, :n] = of.A[p]
    for w in range(W):
        here = slice(n + w * s, n + (w + 1) * s)
        matrix[here, :n], matrix[:n, here], matrix[here, here] = of.B[p, w], of.B[p, w].T, of.D[p, w]
        if of.C is not None and w:
            before = slice(n + (w - 1) * s, n + w * s)
            matrix[here, before], matrix[before, here] = of.C[p, w], of.C[p, w].T
    return matrix, np.concatenate([of.a[p], of.d[p].ravel()])


def damped(of: NormalEquations, share: float) -> tuple[np.ndarray, np.ndarray]:
    of_theta, of_start = diagonals(of)
    return share * of_theta, share * of_start


def joined(step: GaussNewtonStep, p: int) -> np.ndarray:
    return np.concatenate([step.theta[p], step.start[p].ravel()])


@pytest.mark.parametrize("tied", [False, True], ids=["apart", "tied"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_without_bounds_a_step_is_the_dense_solution(tied, share):
    of = equations(1, tied=tied)
    damping = damped(of, share)
    step = bounded_step(of, *damping, -EVERYWHERE, EVERYWHERE)
    for p in range(PROBLEMS):
        matrix, gradient = dense(of, p)
        added = np.diag(np.concatenate([damping[0][p], damping[1][p].ravel()]))
        expected = np.linalg.solve(matrix + added, -gradient)
        np.testing.assert_allclose(joined(step, p), expected, rtol=1e-10, atol=1e-12)
        promised = -(gradient @ expected + 0.5 * expected @ matrix @ expected)
        np.testing.assert_allclose(step.promised[p], promised, rtol=1e-10)


def test_without_starts_only_parameters_are_solved_for():
    of = equations(2, tied=False, starts=0)
    step = bounded_step(of, *damped(of, 0.0), -EVERYWHERE, EVERYWHERE)
    np.testing.assert_allclose(step.theta, np.linalg.solve(of.A, -of.a[..., None])[..., 0], rtol=1e-10)
    assert step.start.shape == (PROBLEMS, WINDOWS, 0)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("tied", [False, True], ids=["apart", "tied"])
def test_with_bounds_a_step_is_the_constrained_minimum(seed, tied):
    # what a convex quadratic function has there: no slope along free entries, none to the inside at bounds
    of, random = equations(seed, tied=tied), np.random.default_rng(seed)
    free = bounded_step(of, *damped(of, 0.1), -EVERYWHERE, EVERYWHERE).theta
    least, most = -np.abs(free) * random.uniform(0, 1.5, free.shape), np.abs(free) * random.uniform(0, 1.5, free.shape)
    least[random.random(free.shape) < 0.2], most[random.random(free.shape) < 0.2] = 0.0, 0.0
    damping = damped(of, 0.1)
    step = bounded_step(of, *damping, least, most)
    assert (step.theta >= least).all() and (step.theta <= most).all()
    for p in range(PROBLEMS):
        matrix, gradient = dense(of, p)
        slope = gradient + (matrix + np.diag(np.concatenate([damping[0][p], damping[1][p].ravel()]))) @ joined(step, p)
        size = 1e-9 * np.abs(gradient).max()
        of_theta, of_start = slope[:PARAMETERS], slope[PARAMETERS:]
        assert np.abs(of_start).max() < size
        at_least, at_most = step.theta[p] <= least[p], step.theta[p] >= most[p]
        assert (np.abs(of_theta[~at_least & ~at_most]) < size).all()
        assert (of_theta[at_least & ~at_most] > -size).all() and (of_theta[at_most & ~at_least] < size).all()


@pytest.mark.parametrize("tied", [False, True], ids=["apart", "tied"])
@pytest.mark.parametrize("seed", range(20))
def test_problems_side_by_side_are_each_alone_bit_for_bit(tied, seed):
    of, random = equations(seed, tied=tied), np.random.default_rng(seed)
    least, most = -random.uniform(0, 0.2, (PROBLEMS, PARAMETERS)), random.uniform(0, 0.2, (PROBLEMS, PARAMETERS))
    together = bounded_step(of, *damped(of, 0.1), least, most)
    for p in range(PROBLEMS):
        alone = NormalEquations(*(None if x is None else x[p : p + 1] for x in of))
        step = bounded_step(alone, *damped(alone, 0.1), least[p : p + 1], most[p : p + 1])
        for one, all_of_them in zip(step, together, strict=True):
            np.testing.assert_array_equal(one[0], all_of_them[p])


def test_a_parameter_that_nothing_depends_on_stays_and_leaves_its_neighbours_alone():
    of = equations(4, tied=False)
    blind = of._replace(A=of.A.copy(), a=of.a.copy(), B=of.B.copy())
    blind.A[1, 2], blind.A[1, :, 2], blind.a[1, 2], blind.B[1, :, :, 2] = 0.0, 0.0, 0.0, 0.0
    step = bounded_step(blind, *damped(blind, 0.0), -EVERYWHERE, EVERYWHERE)
    assert step.theta[1, 2] == 0.0 and np.isfinite(step.theta).all()
    untouched = bounded_step(of, *damped(of, 0.0), -EVERYWHERE, EVERYWHERE)
    np.testing.assert_array_equal(step.theta[[0, 2]], untouched.theta[[0, 2]])


def test_two_parameters_that_cannot_be_told_apart_share_the_step():
    of = equations(5, tied=False, starts=0)
    A, a = of.A.copy(), of.a.copy()
    A[1, 4], A[1, :, 4], a[1, 4] = A[1, 3], A[1, :, 3], a[1, 3]
    A[1, 4, 4] = A[1, 3, 3]
    twins = of._replace(A=A, a=a)
    step = bounded_step(twins, *damped(twins, 0.0), -EVERYWHERE, EVERYWHERE)
    slope = A[1] @ step.theta[1] + a[1]
    assert np.abs(step.theta[1]).max() < 10.0
    np.testing.assert_allclose(slope, 0.0, atol=1e-8)
    alone = bounded_step(of, *damped(of, 0.0), -EVERYWHERE, EVERYWHERE)
    np.testing.assert_array_equal(step.theta[[0, 2]], alone.theta[[0, 2]])


def test_what_is_eliminated_comes_back():
    of = equations(6, tied=True)
    found = eliminate_initial_states(of, *damped(of, 0.0))
    for p in range(PROBLEMS):
        matrix, gradient = dense(of, p)
        n = PARAMETERS
        schur = matrix[:n, :n] - matrix[:n, n:] @ np.linalg.solve(matrix[n:, n:], matrix[n:, :n])
        np.testing.assert_allclose(found.A[p], schur, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            found.constant[p].ravel(), np.linalg.solve(matrix[n:, n:], -gradient[n:]), rtol=1e-9, atol=1e-9
        )
