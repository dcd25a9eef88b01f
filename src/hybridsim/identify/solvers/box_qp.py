"""Minimum of a convex quadratic function within bounds, for many problems side by side.

Entries that would leave their bounds are held there and the others are solved for again, until none does. Some of these
may then be held for nothing: as long as the function falls towards the inside of a bound, the entry where it falls most
is let go (Lawson & Hanson 1974, Stark & Parker 1995). What comes out is the minimum.
"""

import numpy as np
from jaxtyping import Bool, Float

TINY = 1e-300
"""Least diagonal entry, so that an unknown that nothing depends on stays where it is."""
ROUNDING = 1e-12
"""Share of its terms up to which a slope counts as zero."""
ROUNDS = 3
"""Entries that are let go again, at most, by the number of entries."""


def box_minimum(
    A: Float[np.ndarray, "P n n"],
    a: Float[np.ndarray, "P n"],
    least: Float[np.ndarray, "P n"],
    most: Float[np.ndarray, "P n"],
) -> Float[np.ndarray, "P n"]:
    """The x between `least` and `most` at which a·x + ½ x·A x is smallest; A is positive semidefinite."""
    fixed = least >= most
    x, held = _held_from_outside(A, a, least, most, fixed)
    going = np.flatnonzero(held.any(axis=1))
    for _ in range(ROUNDS * a.shape[1]):
        going = going[_let_go(A[going], a[going], least[going], most[going], fixed[going], x[going], held, going)]
        if not going.size:
            break
        x[going], held[going] = _settled(A[going], a[going], least[going], most[going], x[going], held[going])
    return x


def _held_from_outside(A, a, least, most, fixed) -> tuple[np.ndarray, Bool[np.ndarray, "P n"]]:
    """Hold whatever would leave its bounds, until nothing does."""
    # at a bound, with the minimum beyond it
    held = (most <= 0.0) & (a < 0.0) | (least >= 0.0) & (a > 0.0) | fixed
    x = np.clip(np.zeros_like(a), least, most)
    for _ in range(a.shape[1] + 1):
        found = _free_minimum(A, a, x, held)
        outside = ~held & ((found < least) | (found > most))
        x = np.where(held, x, np.clip(found, least, most))
        if not outside.any():
            break
        held |= outside
    return x, held


def _let_go(A, a, least, most, fixed, x, held, going) -> Bool[np.ndarray, " P"]:
    """Let the entry go, in each problem, that gains most by it; which problems have one."""
    slope = a + np.einsum("pij,pj->pi", A, x)
    terms = np.abs(a) + np.einsum("pij,pj->pi", np.abs(A), np.abs(x))
    inwards = np.where(x <= least, -slope, slope)
    wrong = held[going] & ~fixed & (inwards > ROUNDING * terms)
    gain = np.where(wrong, np.square(inwards) / np.maximum(np.einsum("pii->pi", A), TINY), -1.0)
    found = wrong.any(axis=1)
    held[going[found], gain[found].argmax(axis=1)] = False
    return found


def _settled(A, a, least, most, x, held) -> tuple[np.ndarray, Bool[np.ndarray, "P n"]]:
    """Go towards the minimum among the free entries; hold those that reach a bound on the way, and go on."""
    for _ in range(a.shape[1] + 1):
        found = _free_minimum(A, a, x, held)
        direction = np.where(held, 0.0, found - x)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(direction > 0.0, most - x, least - x) / direction
        reach = np.where(direction == 0.0, np.inf, reach)
        share = np.minimum(reach.min(axis=1, initial=1.0), 1.0)[:, None]
        stopped = (reach <= share) & (share < 1.0)
        bound = np.where(direction > 0.0, most, least)
        moved = np.where(share < 1.0, x + share * direction, found)
        x = np.where(stopped, bound, np.clip(moved, least, most))
        if not stopped.any():
            break
        held = held | stopped
    return x, held


def _free_minimum(A, a, x, held) -> np.ndarray:
    """Where the function is smallest if only the free entries move."""
    right = -(a + np.einsum("pij,pj->pi", A, np.where(held, x, 0.0)))
    free = ~held
    matrix = np.where(free[:, :, None] & free[:, None, :], A, 0.0) + held[:, :, None] * np.eye(A.shape[-1])
    return np.where(held, x, _solved(matrix, np.where(free, right, 0.0)))


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve symmetric systems side by side, scaled to unit diagonals; least squares for those that are singular."""
    scale = 1.0 / np.sqrt(np.maximum(np.einsum("pii->pi", matrix), TINY))
    matrix, right = matrix * scale[:, :, None] * scale[:, None, :], right * scale
    try:
        return scale * np.linalg.solve(matrix, right[..., None])[..., 0]
    except np.linalg.LinAlgError:
        return scale * np.stack([_solved_alone(m, r) for m, r in zip(matrix, right, strict=True)])


def _solved_alone(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, right, rcond=None)[0]
