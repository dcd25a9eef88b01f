"""Starts of windows that fit their samples best, with θ as it is: every window by itself.

Levenberg–Marquardt, side by side, with a damping for each window, so that a difficult one does not hold up the others.
What swings freely forgets its start: over a long window, a first guess that is a little off leads anywhere. So the
beginning of a window is fitted first, then more and more of it.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from hybridsim.identify.objective import Objective, Pairs, Point

Array = np.ndarray
SHARES = (0.125, 0.25, 0.5)
"""Parts of a window that are fitted one after the other, before all of it."""
FEWEST_STEPS = 32
"""Time steps of a part below which it is not worth it."""
FIRST_DAMPING, MOST_DAMPING = 1e-3, 1e8
GAIN = 1e-9
"""Relative gain below which a window is done."""


def fit_initial_states(objective: Objective, point: Point, *, max_steps: int = 30, growing: bool = True) -> Point:
    """A point whose starts fit their windows best; windows that diverge stay as they are.

    Args:
        objective: whose windows; ties between them do not count.
        point: θ, and starts to begin with.
        max_steps: of each part of the windows.
        growing: begin with short parts of the windows?
    """
    if not objective.s:
        return point
    for part in growing_horizons(objective) if growing else (objective,):
        point = _fitted(part, point, max_steps)
    return point


def growing_horizons(objective: Objective) -> Iterator[Objective]:
    """Beginnings of the windows, longer and longer, up to all of them."""
    for share in SHARES:
        length = round(share * objective.windows.steps)
        if length >= FEWEST_STEPS:
            yield objective.until(length)
    yield objective


def _fitted(objective: Objective, point: Point, max_steps: int) -> Point:
    here = point
    problem, window = (x.ravel() for x in np.indices(point.q.shape[:2]))
    cost, d, D = objective.start_equations(here, (problem, window))
    damping, growth = np.full(len(cost), FIRST_DAMPING), np.full(len(cost), 2.0)
    largest = np.einsum("kii->ki", D).copy()
    going = np.flatnonzero(np.isfinite(cost))
    for _ in range(max_steps):
        if not len(going):
            break
        pairs: Pairs = (problem[going], window[going])
        step = _step(D[going], d[going], damping[going, None] * largest[going])
        promised = -np.einsum("ks,ks->k", step, d[going] + 0.5 * np.einsum("kij,kj->ki", D[going], step))
        trial = _moved(objective, here, pairs, step)
        new = objective.start_costs(trial, pairs)
        taken = new < cost[going]
        gained = (pairs[0][taken], pairs[1][taken])
        here = _with(here, gained, trial.q[gained], trial.qd[gained])
        done = (promised <= GAIN * cost[going]) & (damping[going] <= 1.0)
        done |= taken & (cost[going] - new <= GAIN * cost[going]) & (damping[going] <= 1.0)
        damping[going] *= np.where(taken, 1.0 / 3.0, growth[going])
        growth[going] = np.where(taken, 2.0, 2.0 * growth[going])
        done |= damping[going] > MOST_DAMPING
        again = going[taken & ~done]
        cost[going[taken]] = new[taken]
        if len(again):
            cost[again], d[again], D[again] = objective.start_equations(here, (problem[again], window[again]))
            largest[again] = np.maximum(largest[again], np.einsum("kii->ki", D[again]))
        going = going[~done]
    return here


def _step(D: Float[Array, "k s s"], d: Float[Array, "k s"], damping: Float[Array, "k s"]) -> Float[Array, "k s"]:
    """The damped Gauss–Newton step of every window; what no sample depends on stays where it is."""
    diagonal = damping + np.finfo(float).tiny
    unseen = np.einsum("kii->ki", D) <= 0.0
    matrix = D + (diagonal + unseen)[:, :, None] * np.eye(D.shape[-1])
    try:
        return -np.linalg.solve(matrix, d[..., None])[..., 0]
    except np.linalg.LinAlgError:
        # slopes so different in size that rounding leaves nothing of the damping: the same with a diagonal of ones
        size = np.sqrt(np.einsum("kii->ki", matrix))
        even = matrix / (size[:, :, None] * size[:, None, :]) + 1e-12 * np.eye(D.shape[-1])
        return -np.linalg.solve(even, (d / size)[..., None])[..., 0] / size


def _moved(objective: Objective, point: Point, pairs: Pairs, step: Float[Array, "k s"]) -> Point:
    return _with(point, pairs, *objective.simulated.starts.moved(point.q[pairs], point.qd[pairs], step))


def _with(point: Point, pairs: Pairs, q: Float[Array, "k nq"], qd: Float[Array, "k nv"]) -> Point:
    """The point with other starts of some windows."""
    found = Point(point.theta, point.q.copy(), point.qd.copy())
    found.q[pairs], found.qd[pairs] = q, qd
    return found
