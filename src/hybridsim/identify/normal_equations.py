"""Gauss–Newton steps for parameters and the starting states of windows together.

Unknowns are θ, common to all windows, and a change of every window's start. A window's readings depend on θ and its own
start only, and a start is tied to the window before it at most, so that the normal equations

    | A   B₁ᵀ  B₂ᵀ … |   A: θ with θ,  B: start with θ,  D: start with itself,  C: start with the one before
    | B₁  D₁   C₂ᵀ   |
    | B₂  C₂   D₂  … |

are solved by eliminating the starts, window after window, at a cost that is linear in their number. Everything has a
leading axis of problems that are solved side by side.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.identify.solvers.box_qp import TINY, box_minimum


class NormalEquations(NamedTuple):
    """½ |r + J p|² as a quadratic function of the step p, for P problems of W windows each."""

    A: Float[np.ndarray, "P n n"]
    a: Float[np.ndarray, "P n"]
    """Gradient by θ."""
    B: Float[np.ndarray, "P W s n"]
    D: Float[np.ndarray, "P W s s"]
    d: Float[np.ndarray, "P W s"]
    """Gradient by the starts."""
    C: Float[np.ndarray, "P W s s"] | None
    """Start with the one before; none at all where windows are independent."""

    @property
    def has_starts(self) -> bool:
        """Are starts unknown?"""
        return self.D.shape[2] > 0


class GaussNewtonStep(NamedTuple):
    """A step, and what a quadratic function promises of it."""

    theta: Float[np.ndarray, "P n"]
    start: Float[np.ndarray, "P W s"]
    promised: Float[np.ndarray, " P"]
    """By how much ½ |r|² should fall."""


class ReducedEquations(NamedTuple):
    """The equations with the starts eliminated, and what brings them back."""

    A: Float[np.ndarray, "P n n"]
    a: Float[np.ndarray, "P n"]
    from_theta: Float[np.ndarray, "P W s n"]
    constant: Float[np.ndarray, "P W s"]
    """The starts' step is `constant + from_theta · (step of θ)`."""


def diagonals(equations: NormalEquations) -> tuple[Float[np.ndarray, "P n"], Float[np.ndarray, "P W s"]]:
    """Diagonal entries, which measure how strongly each unknown is seen."""
    return np.einsum("pii->pi", equations.A), np.einsum("pwii->pwi", equations.D)


def eliminate_initial_states(
    equations: NormalEquations, of_theta: Float[np.ndarray, "P n"], of_start: Float[np.ndarray, "P W s"]
) -> ReducedEquations:
    """Solve for the starts in terms of θ, with this much added to the diagonals."""
    A = equations.A + _diagonal(of_theta + TINY)
    if not equations.has_starts:
        empty = equations.D.shape[:3]
        return ReducedEquations(A, equations.a, np.zeros((*empty, A.shape[-1])), np.zeros(empty))
    D = equations.D + _diagonal(of_start + TINY)
    right = np.concatenate([equations.B, equations.d[..., None]], axis=-1)
    solved = np.linalg.solve(D, right) if equations.C is None else _chain(D, equations.C, right)
    n = A.shape[-1]
    A = A - np.einsum("pwsi,pwsj->pij", equations.B, solved[..., :n], optimize=True)
    a = equations.a - np.einsum("pwsi,pws->pi", equations.B, solved[..., n])
    return ReducedEquations(0.5 * (A + A.transpose(0, 2, 1)), a, -solved[..., :n], -solved[..., n])


def _chain(D: np.ndarray, C: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve a block-tridiagonal system: down the windows, and up again."""
    D, solved = D.copy(), right.copy()
    windows = D.shape[1]
    for w in range(1, windows):
        factor = np.linalg.solve(D[:, w - 1], C[:, w].transpose(0, 2, 1)).transpose(0, 2, 1)
        D[:, w] -= factor @ C[:, w].transpose(0, 2, 1)
        solved[:, w] -= factor @ solved[:, w - 1]
    solved[:, -1] = np.linalg.solve(D[:, -1], solved[:, -1])
    for w in range(windows - 2, -1, -1):
        rest = solved[:, w] - C[:, w + 1].transpose(0, 2, 1) @ solved[:, w + 1]
        solved[:, w] = np.linalg.solve(D[:, w], rest)
    return solved


def bounded_step(
    equations: NormalEquations,
    of_theta: Float[np.ndarray, "P n"],
    of_start: Float[np.ndarray, "P W s"],
    least: Float[np.ndarray, "P n"],
    most: Float[np.ndarray, "P n"],
    minimum: Callable = box_minimum,
) -> GaussNewtonStep:
    """The step to the minimum with θ's step between bounds.

    Args:
        equations: the quadratic function.
        of_theta: damping that is added to the diagonal of θ.
        of_start: and to that of the starts.
        least: lower bounds of θ's step, not positive.
        most: upper bounds, not negative.
        minimum: finds the step with the starts eliminated; another one where more than the quadratic function counts.
    """
    reduced = eliminate_initial_states(equations, of_theta, of_start)
    step = minimum(reduced.A, reduced.a, least, most)
    starts = reduced.constant + np.einsum("pwsi,pi->pws", reduced.from_theta, step)
    return GaussNewtonStep(step, starts, _promised(equations, step, starts))


def _promised(equations: NormalEquations, step: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """By how much the quadratic function falls."""
    change = equations.A @ step[..., None]
    of_start = equations.D @ starts[..., None] + 2.0 * (equations.B @ step[:, None, :, None])
    if equations.C is not None:
        of_start[:, 1:] += 2.0 * (equations.C[:, 1:] @ starts[:, :-1, :, None])
    theta = equations.a + 0.5 * change[..., 0]
    start = equations.d + 0.5 * of_start[..., 0]
    # sums that go over one problem at a time, so that its bits do not depend on the others
    return -(_dot(theta, step) + _dot(start.reshape(len(step), -1), starts.reshape(len(step), -1)))


def _dot(x: Float[np.ndarray, "P k"], y: Float[np.ndarray, "P k"]) -> Float[np.ndarray, " P"]:
    return np.einsum("pk,pk->p", x, y)


def _diagonal(values: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "... n n"]:
    return values[..., None] * np.eye(values.shape[-1])
