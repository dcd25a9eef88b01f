"""Minimum of a convex quadratic function within bounds, for many independent problems.

An active-set method: entries that would violate their bounds are fixed at them and the free ones are solved for again,
until none does. Then, as long as the function decreases towards the inside of an active bound, the entry with the
largest gain is released (Lawson & Hanson 1974, Stark & Parker 1995). The result is the exact minimum.
"""

import numpy as np
from jaxtyping import Bool, Float

TINY = 1e-300
"""Smallest diagonal entry, so that an unknown that no residual depends on stays where it is."""
ROUNDING = 1e-12
"""Magnitude of a gradient entry that counts as zero, relative to its terms."""
MAX_RELEASES = 3
"""Maximum number of released entries, relative to the number of entries."""


def box_minimum(
    A: Float[np.ndarray, "P n n"],
    a: Float[np.ndarray, "P n"],
    lower: Float[np.ndarray, "P n"],
    upper: Float[np.ndarray, "P n"],
) -> Float[np.ndarray, "P n"]:
    """Minimum x of a·x + ½ x·A x between `lower` and `upper`; A is positive semidefinite."""
    fixed = lower >= upper
    x, active = _clamp(A, a, lower, upper, fixed)
    running = np.flatnonzero(active.any(axis=1))
    for _ in range(MAX_RELEASES * a.shape[1]):
        running = running[
            _release(
                A[running], a[running], lower[running], upper[running], fixed[running], x[running], active, running
            )
        ]
        if not running.size:
            break
        x[running], active[running] = _minimize_free(
            A[running], a[running], lower[running], upper[running], x[running], active[running]
        )
    return x


def _clamp(A, a, lower, upper, fixed) -> tuple[np.ndarray, Bool[np.ndarray, "P n"]]:
    """Fix entries that would violate their bounds, until none does."""
    # at a bound, with the minimum beyond it
    active = (upper <= 0.0) & (a < 0.0) | (lower >= 0.0) & (a > 0.0) | fixed
    x = np.clip(np.zeros_like(a), lower, upper)
    for _ in range(a.shape[1] + 1):
        candidate = _free_minimum(A, a, x, active)
        outside = ~active & ((candidate < lower) | (candidate > upper))
        x = np.where(active, x, np.clip(candidate, lower, upper))
        if not outside.any():
            break
        active |= outside
    return x, active


def _release(A, a, lower, upper, fixed, x, active, running) -> Bool[np.ndarray, " P"]:
    """Release the entry with the largest gain in each problem; returns which problems have one."""
    slope = a + np.einsum("pij,pj->pi", A, x)
    terms = np.abs(a) + np.einsum("pij,pj->pi", np.abs(A), np.abs(x))
    inwards = np.where(x <= lower, -slope, slope)
    releasable = active[running] & ~fixed & (inwards > ROUNDING * terms)
    gain = np.where(releasable, np.square(inwards) / np.maximum(np.einsum("pii->pi", A), TINY), -1.0)
    has_any = releasable.any(axis=1)
    active[running[has_any], gain[has_any].argmax(axis=1)] = False
    return has_any


def _minimize_free(A, a, lower, upper, x, active) -> tuple[np.ndarray, Bool[np.ndarray, "P n"]]:
    """Move to the minimum in the free entries; entries that reach a bound on the way become active."""
    for _ in range(a.shape[1] + 1):
        candidate = _free_minimum(A, a, x, active)
        direction = np.where(active, 0.0, candidate - x)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(direction > 0.0, upper - x, lower - x) / direction
        reach = np.where(direction == 0.0, np.inf, reach)
        share = np.minimum(reach.min(axis=1, initial=1.0), 1.0)[:, None]
        blocked = (reach <= share) & (share < 1.0)
        bound = np.where(direction > 0.0, upper, lower)
        new_x = np.where(share < 1.0, x + share * direction, candidate)
        x = np.where(blocked, bound, np.clip(new_x, lower, upper))
        if not blocked.any():
            break
        active = active | blocked
    return x, active


def _free_minimum(A, a, x, active) -> np.ndarray:
    """Unconstrained minimum in the free entries."""
    right = -(a + np.einsum("pij,pj->pi", A, np.where(active, x, 0.0)))
    free = ~active
    matrix = np.where(free[:, :, None] & free[:, None, :], A, 0.0) + active[:, :, None] * np.eye(A.shape[-1])
    return np.where(active, x, _solve(matrix, np.where(free, right, 0.0)))


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solution of symmetric systems, scaled to unit diagonals; least squares where singular."""
    scale = 1.0 / np.sqrt(np.maximum(np.einsum("pii->pi", matrix), TINY))
    matrix, right = matrix * scale[:, :, None] * scale[:, None, :], right * scale
    try:
        return scale * np.linalg.solve(matrix, right[..., None])[..., 0]
    except np.linalg.LinAlgError:
        return scale * np.stack([_solve_single(m, r) for m, r in zip(matrix, right, strict=True)])


def _solve_single(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, right, rcond=None)[0]
