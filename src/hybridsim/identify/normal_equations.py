"""Gauss–Newton steps in parameters and initial states of windows.

Unknowns are θ, common to all windows, and a delta of every window's initial state. The readings of a window depend on θ
and its own initial state only, and continuity couples an initial state with that of the preceding window only, so that
the normal equations

    | A   B₁ᵀ  B₂ᵀ … |   A: θ × θ,  B: initial state × θ,  D: initial state × itself,
    | B₁  D₁   C₂ᵀ   |   C: initial state × preceding one
    | B₂  C₂   D₂  … |

are solved by eliminating the initial states window by window, at a cost linear in the number of windows. All arrays
have a leading axis of independent instances.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.identify.solvers.box_qp import TINY, solve_box_qp


class NormalEquations(NamedTuple):
    """½ |r + J p|² as a quadratic function of the step p, for P instances of W windows each."""

    A: Float[np.ndarray, "P N N"]
    a: Float[np.ndarray, "P N"]
    """Gradient with respect to θ."""
    B: Float[np.ndarray, "P W s N"]
    D: Float[np.ndarray, "P W s s"]
    d: Float[np.ndarray, "P W s"]
    """Gradient with respect to the initial states."""
    C: Float[np.ndarray, "P W s s"] | None
    """Coupling of each initial state with the preceding one; None if windows are independent."""

    @property
    def has_initial_states(self) -> bool:
        """Whether initial states are unknowns."""
        return self.D.shape[2] > 0


class GaussNewtonStep(NamedTuple):
    """A step, and the decrease that the quadratic model predicts."""

    theta: Float[np.ndarray, "P N"]
    initial_states: Float[np.ndarray, "P W s"]
    predicted_decrease: Float[np.ndarray, " P"]
    """Predicted decrease of ½ |r|²."""
    has_converged: Bool[np.ndarray, " P"]
    """Whether the minimum within the bounds was reached: see `QPSolution`."""


class ReducedEquations(NamedTuple):
    """Schur complement of the initial states, and their back-substitution."""

    A: Float[np.ndarray, "P N N"]
    a: Float[np.ndarray, "P N"]
    from_theta: Float[np.ndarray, "P W s N"]
    constant: Float[np.ndarray, "P W s"]
    """The step of the initial states is `constant + from_theta · (step of θ)`."""


def diagonals(equations: NormalEquations) -> tuple[Float[np.ndarray, "P N"], Float[np.ndarray, "P W s"]]:
    """Diagonals of A and D, the squared sensitivities of the residuals to each unknown."""
    return np.einsum("pii->pi", equations.A), np.einsum("pwii->pwi", equations.D)


def eliminate_initial_states(
    equations: NormalEquations,
    theta_damping: Float[np.ndarray, "P N"],
    state_damping: Float[np.ndarray, "P W s"],
) -> ReducedEquations:
    """Eliminate the initial states, with damping added to the diagonals."""
    A = equations.A + _diagonal(theta_damping + TINY)
    if not equations.has_initial_states:
        empty = equations.D.shape[:3]
        return ReducedEquations(A, equations.a, np.zeros((*empty, A.shape[-1])), np.zeros(empty))
    D = equations.D + _diagonal(state_damping + TINY)
    rhs = np.concatenate([equations.B, equations.d[..., None]], axis=-1)
    solution = np.linalg.solve(D, rhs) if equations.C is None else _solve_tridiagonal(D, equations.C, rhs)
    N = A.shape[-1]
    A = A - np.einsum("pwsi,pwsj->pij", equations.B, solution[..., :N], optimize=True)
    a = equations.a - np.einsum("pwsi,pws->pi", equations.B, solution[..., N])
    return ReducedEquations(0.5 * (A + A.transpose(0, 2, 1)), a, -solution[..., :N], -solution[..., N])


def _solve_tridiagonal(D: np.ndarray, C: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solution of a block-tridiagonal system, by forward elimination and back-substitution."""
    D, solution = D.copy(), rhs.copy()
    windows = D.shape[1]
    for w in range(1, windows):
        factor = np.linalg.solve(D[:, w - 1], C[:, w].transpose(0, 2, 1)).transpose(0, 2, 1)
        D[:, w] -= factor @ C[:, w].transpose(0, 2, 1)
        solution[:, w] -= factor @ solution[:, w - 1]
    solution[:, -1] = np.linalg.solve(D[:, -1], solution[:, -1])
    for w in range(windows - 2, -1, -1):
        remainder = solution[:, w] - C[:, w + 1].transpose(0, 2, 1) @ solution[:, w + 1]
        solution[:, w] = np.linalg.solve(D[:, w], remainder)
    return solution


def bounded_step(
    equations: NormalEquations,
    theta_damping: Float[np.ndarray, "P N"],
    state_damping: Float[np.ndarray, "P W s"],
    lower: Float[np.ndarray, "P N"],
    upper: Float[np.ndarray, "P N"],
    solve_qp: Callable = solve_box_qp,
) -> GaussNewtonStep:
    """Step to the minimum of the quadratic model, with bounds on the step of θ.

    Args:
        equations: quadratic model.
        theta_damping: damping added to the diagonal of A.
        state_damping: damping added to the diagonal of D.
        lower: lower bounds of the step of θ, at most zero.
        upper: upper bounds of the step of θ, at least zero.
        solve_qp: solver of the reduced box-constrained QP; `solve_penalized_qp` if there is a penalty.
    """
    reduced = eliminate_initial_states(equations, theta_damping, state_damping)
    step, has_converged = solve_qp(reduced.A, reduced.a, lower, upper)
    states = reduced.constant + np.einsum("pwsi,pi->pws", reduced.from_theta, step)
    return GaussNewtonStep(step, states, _predicted_decrease(equations, step, states), has_converged)


def _predicted_decrease(equations: NormalEquations, step: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Decrease of the quadratic model."""
    A_step = equations.A @ step[..., None]
    state_terms = equations.D @ states[..., None] + 2.0 * (equations.B @ step[:, None, :, None])
    if equations.C is not None:
        state_terms[:, 1:] += 2.0 * (equations.C[:, 1:] @ states[:, :-1, :, None])
    theta = equations.a + 0.5 * A_step[..., 0]
    state = equations.d + 0.5 * state_terms[..., 0]
    # summed separately for each instance, so that results are bit-identical for any set of instances
    return -(_dot(theta, step) + _dot(state.reshape(len(step), -1), states.reshape(len(step), -1)))


def _dot(x: Float[np.ndarray, "P k"], y: Float[np.ndarray, "P k"]) -> Float[np.ndarray, " P"]:
    return np.einsum("pk,pk->p", x, y)


def _diagonal(values: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "... n n"]:
    return values[..., None] * np.eye(values.shape[-1])
