"""Minimum of a convex quadratic function within bounds, for many independent instances.

An active-set method: entries that would violate a bound are fixed at it, and the system is solved again for the others,
until no bound is violated. Then, while a multiplier of an active bound has the wrong sign, the entry with the largest
predicted decrease is released (Lawson & Hanson 1974, Stark & Parker 1995). The result is the exact minimum, unless the
limit on released entries is reached first; the solution says so.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

TINY = 1e-300
"""Lower limit of diagonal entries: an unknown that no residual depends on gets a zero step."""
ROUNDING = 1e-12
"""Magnitude of a gradient entry that counts as zero, relative to its terms."""
MAX_RELEASES = 3
"""Maximum number of releases, relative to the number of entries."""


class QPSolution(NamedTuple):
    """Minimum of a quadratic function, plus a penalty if there is one, within bounds."""

    x: Float[np.ndarray, "P n"]
    has_converged: Bool[np.ndarray, " P"]
    """Which instances reached their minimum before the iteration limit."""


def solve_box_qp(
    A: Float[np.ndarray, "P n n"],
    a: Float[np.ndarray, "P n"],
    lower: Float[np.ndarray, "P n"],
    upper: Float[np.ndarray, "P n"],
) -> QPSolution:
    """Minimize a·x + ½ x·A x between `lower` ≤ 0 and `upper` ≥ 0; A is positive semidefinite."""
    fixed = lower >= upper
    x, active = _clamp(A, a, lower, upper, fixed)

    def release(running: np.ndarray) -> np.ndarray:
        """Release an entry in each of these instances; returns those that released one."""
        bounds = lower[running], upper[running], fixed[running]
        return running[_release(A[running], a[running], *bounds, x[running], active, running)]

    running = np.flatnonzero(active.any(axis=1))
    for _ in range(MAX_RELEASES * a.shape[1]):
        running = release(running)
        if not running.size:
            break
        x[running], active[running] = _minimize_free(
            A[running], a[running], lower[running], upper[running], x[running], active[running]
        )
    has_converged = np.ones(len(a), dtype=bool)
    if running.size:
        # at the limit; the last release may have led to the minimum
        has_converged[release(running)] = False
    return QPSolution(x, has_converged)


def _clamp(A, a, lower, upper, fixed) -> tuple[np.ndarray, Bool[np.ndarray, "P n"]]:
    """Fix entries at the bounds that they would violate, until no bound is violated; each round fixes at least one."""
    # at a bound, with the minimum beyond it
    active = (upper <= 0.0) & (a < 0.0) | (lower >= 0.0) & (a > 0.0) | fixed
    x = np.clip(np.zeros_like(a), lower, upper)
    for _ in range(a.shape[1] + 1):
        candidate = _solve_free(A, a, x, active)
        outside = ~active & ((candidate < lower) | (candidate > upper))
        x = np.where(active, x, np.clip(candidate, lower, upper))
        if not outside.any():
            break
        active |= outside
    return x, active


def _release(A, a, lower, upper, fixed, x, active, running) -> Bool[np.ndarray, " P"]:
    """Release the entry with the largest predicted decrease in each instance; returns which instances released one."""
    gradient = a + np.einsum("pij,pj->pi", A, x)
    terms = np.abs(a) + np.einsum("pij,pj->pi", np.abs(A), np.abs(x))
    inwards = np.where(x <= lower, -gradient, gradient)
    releasable = active[running] & ~fixed & (inwards > ROUNDING * terms)
    decrease = np.where(releasable, np.square(inwards) / np.maximum(np.einsum("pii->pi", A), TINY), -1.0)
    is_released = releasable.any(axis=1)
    active[running[is_released], decrease[is_released].argmax(axis=1)] = False
    return is_released


def _minimize_free(A, a, lower, upper, x, active) -> tuple[np.ndarray, Bool[np.ndarray, "P n"]]:
    """Move to the minimum in the free entries; entries that reach a bound on the way become active."""
    for _ in range(a.shape[1] + 1):
        candidate = _solve_free(A, a, x, active)
        direction = np.where(active, 0.0, candidate - x)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound_step = np.where(direction > 0.0, upper - x, lower - x) / direction
        bound_step = np.where(direction == 0.0, np.inf, bound_step)
        fraction = np.minimum(bound_step.min(axis=1, initial=1.0), 1.0)[:, None]
        blocked = (bound_step <= fraction) & (fraction < 1.0)
        bound = np.where(direction > 0.0, upper, lower)
        new_x = np.where(fraction < 1.0, x + fraction * direction, candidate)
        x = np.where(blocked, bound, np.clip(new_x, lower, upper))
        if not blocked.any():
            break
        active = active | blocked
    return x, active


def _solve_free(A, a, x, active) -> np.ndarray:
    """Unconstrained minimum in the free entries."""
    rhs = -(a + np.einsum("pij,pj->pi", A, np.where(active, x, 0.0)))
    free = ~active
    matrix = np.where(free[:, :, None] & free[:, None, :], A, 0.0) + active[:, :, None] * np.eye(A.shape[-1])
    return np.where(active, x, _solve(matrix, np.where(free, rhs, 0.0)))


def _solve(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solution of symmetric systems, scaled to unit diagonals; least squares where singular."""
    scale = 1.0 / np.sqrt(np.maximum(np.einsum("pii->pi", matrix), TINY))
    matrix, rhs = matrix * scale[:, :, None] * scale[:, None, :], rhs * scale
    try:
        return scale * np.linalg.solve(matrix, rhs[..., None])[..., 0]
    except np.linalg.LinAlgError:
        return scale * np.stack([_solve_single(m, r) for m, r in zip(matrix, rhs, strict=True)])


def _solve_single(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(matrix, rhs)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, rhs, rcond=None)[0]
