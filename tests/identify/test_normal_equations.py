"""Gauss–Newton steps: elimination of initial states, bounds, and independence of problems."""

import numpy as np
import pytest

from hybridsim.identify.normal_equations import (
    GaussNewtonStep,
    NormalEquations,
    bounded_step,
    diagonals,
    eliminate_initial_states,
)

PROBLEMS, WINDOWS, STATES, PARAMETERS = 3, 4, 2, 5
UNBOUNDED = np.full((PROBLEMS, PARAMETERS), np.inf)


def random_equations(seed: int, *, continuity: bool, states: int = STATES) -> NormalEquations:
    """Normal equations of random Jacobians, with the sparsity of windows and continuity constraints."""
    random = np.random.default_rng(seed)
    P, W, n = PROBLEMS, WINDOWS, PARAMETERS
    A, a = np.zeros((P, n, n)), np.zeros((P, n))
    B, D, d = np.zeros((P, W, states, n)), np.zeros((P, W, states, states)), np.zeros((P, W, states))
    C = np.zeros_like(D) if continuity else None
    for w in range(W):
        by_theta, by_state, r = (
            random.normal(size=(P, 7, n)),
            random.normal(size=(P, 7, states)),
            random.normal(size=(P, 7)),
        )
        A += by_theta.transpose(0, 2, 1) @ by_theta
        a += np.einsum("pki,pk->pi", by_theta, r)
        B[:, w] += by_state.transpose(0, 2, 1) @ by_theta
        D[:, w] += by_state.transpose(0, 2, 1) @ by_state
        d[:, w] += np.einsum("pki,pk->pi", by_state, r)
        if C is not None and w:
            before = random.normal(size=(P, 7, states))
            C[:, w] = by_state.transpose(0, 2, 1) @ before
            B[:, w - 1] += before.transpose(0, 2, 1) @ by_theta
            D[:, w - 1] += before.transpose(0, 2, 1) @ before
            d[:, w - 1] += np.einsum("pki,pk->pi", before, r)
    return NormalEquations(A, a, B, D, d, C)


def dense_system(equations: NormalEquations, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense matrix and gradient of one problem."""
    n, (W, s) = equations.a.shape[1], equations.d.shape[1:]
    matrix = np.zeros((n + W * s, n + W * s))
    matrix[:n, :n] = equations.A[p]
    for w in range(W):
        here = slice(n + w * s, n + (w + 1) * s)
        matrix[here, :n], matrix[:n, here] = equations.B[p, w], equations.B[p, w].T
        matrix[here, here] = equations.D[p, w]
        if equations.C is not None and w:
            before = slice(n + (w - 1) * s, n + w * s)
            matrix[here, before], matrix[before, here] = equations.C[p, w], equations.C[p, w].T
    return matrix, np.concatenate([equations.a[p], equations.d[p].ravel()])


def damping_terms(equations: NormalEquations, factor: float) -> tuple[np.ndarray, np.ndarray]:
    theta_diagonal, state_diagonal = diagonals(equations)
    return factor * theta_diagonal, factor * state_diagonal


def flatten(step: GaussNewtonStep, p: int) -> np.ndarray:
    return np.concatenate([step.theta[p], step.initial_states[p].ravel()])


@pytest.mark.parametrize("continuity", [False, True], ids=["independent", "continuous"])
@pytest.mark.parametrize("factor", [0.0, 0.3])
def test_without_bounds_a_step_is_the_dense_solution(continuity, factor):
    equations = random_equations(1, continuity=continuity)
    damping = damping_terms(equations, factor)
    step = bounded_step(equations, *damping, -UNBOUNDED, UNBOUNDED)
    for p in range(PROBLEMS):
        matrix, gradient = dense_system(equations, p)
        added = np.diag(np.concatenate([damping[0][p], damping[1][p].ravel()]))
        expected = np.linalg.solve(matrix + added, -gradient)
        np.testing.assert_allclose(flatten(step, p), expected, rtol=1e-10, atol=1e-12)
        decrease = -(gradient @ expected + 0.5 * expected @ matrix @ expected)
        np.testing.assert_allclose(step.predicted_decrease[p], decrease, rtol=1e-10)


def test_without_initial_states_only_parameters_are_solved_for():
    equations = random_equations(2, continuity=False, states=0)
    step = bounded_step(equations, *damping_terms(equations, 0.0), -UNBOUNDED, UNBOUNDED)
    np.testing.assert_allclose(step.theta, np.linalg.solve(equations.A, -equations.a[..., None])[..., 0], rtol=1e-10)
    assert step.initial_states.shape == (PROBLEMS, WINDOWS, 0)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("continuity", [False, True], ids=["independent", "continuous"])
def test_with_bounds_a_step_is_the_constrained_minimum(seed, continuity):
    # KKT conditions: zero gradient in free entries, ascent towards the inside at active bounds
    equations, random = random_equations(seed, continuity=continuity), np.random.default_rng(seed)
    free = bounded_step(equations, *damping_terms(equations, 0.1), -UNBOUNDED, UNBOUNDED).theta
    lower, upper = -np.abs(free) * random.uniform(0, 1.5, free.shape), np.abs(free) * random.uniform(0, 1.5, free.shape)
    lower[random.random(free.shape) < 0.2], upper[random.random(free.shape) < 0.2] = 0.0, 0.0
    damping = damping_terms(equations, 0.1)
    step = bounded_step(equations, *damping, lower, upper)
    assert (step.theta >= lower).all() and (step.theta <= upper).all()
    for p in range(PROBLEMS):
        matrix, gradient = dense_system(equations, p)
        added = np.diag(np.concatenate([damping[0][p], damping[1][p].ravel()]))
        gradient_after_step = gradient + (matrix + added) @ flatten(step, p)
        size = 1e-9 * np.abs(gradient).max()
        by_theta, by_state = gradient_after_step[:PARAMETERS], gradient_after_step[PARAMETERS:]
        assert np.abs(by_state).max() < size
        at_lower, at_upper = step.theta[p] <= lower[p], step.theta[p] >= upper[p]
        assert (np.abs(by_theta[~at_lower & ~at_upper]) < size).all()
        assert (by_theta[at_lower & ~at_upper] > -size).all() and (by_theta[at_upper & ~at_lower] < size).all()


@pytest.mark.parametrize("continuity", [False, True], ids=["independent", "continuous"])
@pytest.mark.parametrize("seed", range(20))
def test_parallel_problems_are_bit_identical_to_single_ones(continuity, seed):
    equations, random = random_equations(seed, continuity=continuity), np.random.default_rng(seed)
    lower, upper = -random.uniform(0, 0.2, (PROBLEMS, PARAMETERS)), random.uniform(0, 0.2, (PROBLEMS, PARAMETERS))
    together = bounded_step(equations, *damping_terms(equations, 0.1), lower, upper)
    for p in range(PROBLEMS):
        alone = NormalEquations(*(None if x is None else x[p : p + 1] for x in equations))
        step = bounded_step(alone, *damping_terms(alone, 0.1), lower[p : p + 1], upper[p : p + 1])
        for one, all_of_them in zip(step, together, strict=True):
            np.testing.assert_array_equal(one[0], all_of_them[p])


def test_an_unidentifiable_parameter_stays_unchanged():
    equations = random_equations(4, continuity=False)
    singular = equations._replace(A=equations.A.copy(), a=equations.a.copy(), B=equations.B.copy())
    singular.A[1, 2], singular.A[1, :, 2], singular.a[1, 2], singular.B[1, :, :, 2] = 0.0, 0.0, 0.0, 0.0
    step = bounded_step(singular, *damping_terms(singular, 0.0), -UNBOUNDED, UNBOUNDED)
    assert step.theta[1, 2] == 0.0 and np.isfinite(step.theta).all()
    regular = bounded_step(equations, *damping_terms(equations, 0.0), -UNBOUNDED, UNBOUNDED)
    np.testing.assert_array_equal(step.theta[[0, 2]], regular.theta[[0, 2]])


def test_confounded_parameters_share_the_step():
    equations = random_equations(5, continuity=False, states=0)
    A, a = equations.A.copy(), equations.a.copy()
    A[1, 4], A[1, :, 4], a[1, 4] = A[1, 3], A[1, :, 3], a[1, 3]
    A[1, 4, 4] = A[1, 3, 3]
    confounded = equations._replace(A=A, a=a)
    step = bounded_step(confounded, *damping_terms(confounded, 0.0), -UNBOUNDED, UNBOUNDED)
    gradient = A[1] @ step.theta[1] + a[1]
    assert np.abs(step.theta[1]).max() < 10.0
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)
    alone = bounded_step(equations, *damping_terms(equations, 0.0), -UNBOUNDED, UNBOUNDED)
    np.testing.assert_array_equal(step.theta[[0, 2]], alone.theta[[0, 2]])


def test_elimination_and_back_substitution():
    equations = random_equations(6, continuity=True)
    reduced = eliminate_initial_states(equations, *damping_terms(equations, 0.0))
    for p in range(PROBLEMS):
        matrix, gradient = dense_system(equations, p)
        n = PARAMETERS
        schur = matrix[:n, :n] - matrix[:n, n:] @ np.linalg.solve(matrix[n:, n:], matrix[n:, :n])
        np.testing.assert_allclose(reduced.A[p], schur, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            reduced.constant[p].ravel(), np.linalg.solve(matrix[n:, n:], -gradient[n:]), rtol=1e-9, atol=1e-9
        )
