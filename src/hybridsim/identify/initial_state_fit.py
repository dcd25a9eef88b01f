"""Fit of the initial states of windows at fixed θ, each window separately.

Levenberg–Marquardt on all windows in parallel, with a damping factor per window so that difficult windows do not slow
down the others. Long trajectories are sensitive to their initial state, so a slightly wrong guess may lead to a poor
local minimum: truncated windows are fitted first, with growing horizons.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.identify.objective import Objective, Pairs, Point

Array = np.ndarray
HORIZON_FRACTIONS = (0.125, 0.25, 0.5)
"""Fractions of the window length that are fitted in succession, before whole windows."""
MIN_HORIZON_STEPS = 32
"""Time steps below which a horizon is skipped."""
INITIAL_DAMPING, MAX_DAMPING = 1e-3, 1e8
COST_TOLERANCE = 1e-9
"""Relative decrease of the cost below which a window has converged."""
NEGLIGIBLE_COST = 1e-12
"""Cost below which a window has converged in any case: residuals of a millionth of a standard deviation are rounding
errors, whose relative decrease means nothing."""


class FittedPoint(NamedTuple):
    """Result of a fit of initial states."""

    point: Point
    has_converged: Bool[Array, "P W"]
    """Which windows met the tolerance; false at the step limit, for lack of progress, and where a window diverges."""


def fit_initial_states(objective: Objective, point: Point, *, max_steps: int = 30, growing: bool = True) -> FittedPoint:
    """Fit the initial states of all windows; those of diverging windows remain unchanged.

    Args:
        objective: objective with the windows; continuity is ignored.
        point: θ, and initial values of the initial states.
        max_steps: maximum number of steps per horizon.
        growing: fit truncated windows first, with growing horizons.
    """
    fitted = FittedPoint(point, np.ones(point.q.shape[:2], dtype=bool))
    if not objective.s:
        return fitted
    # convergence on truncated windows does not matter: they only provide initial values
    for horizon in growing_horizons(objective) if growing else (objective,):
        fitted = _fit(horizon, fitted.point, max_steps)
    return fitted


def growing_horizons(objective: Objective) -> Iterator[Objective]:
    """Objectives of truncated windows with growing horizons, up to whole windows."""
    for fraction in HORIZON_FRACTIONS:
        length = round(fraction * objective.windows.steps)
        if length >= MIN_HORIZON_STEPS:
            yield objective.truncate(length)
    yield objective


def _fit(objective: Objective, point: Point, max_steps: int) -> FittedPoint:
    instance, window = (x.ravel() for x in np.indices(point.q.shape[:2]))
    cost, d, D = objective.initial_state_equations(point, (instance, window))
    damping, growth = np.full(len(cost), INITIAL_DAMPING), np.full(len(cost), 2.0)
    scale = np.einsum("kii->ki", D).copy()
    running, has_converged = np.flatnonzero(np.isfinite(cost)), np.zeros(len(cost), dtype=bool)
    for _ in range(max_steps):
        if not len(running):
            break
        pairs: Pairs = (instance[running], window[running])
        step = _step(D[running], d[running], damping[running, None] * scale[running])
        predicted = -np.einsum("ks,ks->k", step, d[running] + 0.5 * np.einsum("kij,kj->ki", D[running], step))
        trial = _retract(objective, point, pairs, step)
        new = objective.initial_state_costs(trial, pairs)
        accepted = new < cost[running]
        accepted_pairs = (pairs[0][accepted], pairs[1][accepted])
        point = _with_states(point, accepted_pairs, trial.q[accepted_pairs], trial.qd[accepted_pairs])
        done = (predicted <= COST_TOLERANCE * cost[running]) & (damping[running] <= 1.0)
        done |= accepted & (cost[running] - new <= COST_TOLERANCE * cost[running]) & (damping[running] <= 1.0)
        has_converged[running] = done
        damping[running] *= np.where(accepted, 1.0 / 3.0, growth[running])
        growth[running] = np.where(accepted, 2.0, 2.0 * growth[running])
        done |= damping[running] > MAX_DAMPING
        relinearized = running[accepted & ~done]
        cost[running[accepted]] = new[accepted]
        if len(relinearized):
            cost[relinearized], d[relinearized], D[relinearized] = objective.initial_state_equations(
                point, (instance[relinearized], window[relinearized])
            )
            scale[relinearized] = np.maximum(scale[relinearized], np.einsum("kii->ki", D[relinearized]))
        running = running[~done]
    has_converged |= cost <= NEGLIGIBLE_COST
    return FittedPoint(point, has_converged.reshape(point.q.shape[:2]))


def _step(D: Float[Array, "k s s"], d: Float[Array, "k s"], damping: Float[Array, "k s"]) -> Float[Array, "k s"]:
    """Damped Gauss–Newton step of every window; entries that no sample depends on stay unchanged."""
    diagonal = damping + np.finfo(float).tiny
    unobservable = np.einsum("kii->ki", D) <= 0.0
    matrix = D + (diagonal + unobservable)[:, :, None] * np.eye(D.shape[-1])
    try:
        return -np.linalg.solve(matrix, d[..., None])[..., 0]
    except np.linalg.LinAlgError:
        # damping is lost to rounding if sensitivities differ by many orders of magnitude: rescale to a unit diagonal
        size = np.sqrt(np.einsum("kii->ki", matrix))
        scaled = matrix / (size[:, :, None] * size[:, None, :]) + 1e-12 * np.eye(D.shape[-1])
        return -np.linalg.solve(scaled, (d / size)[..., None])[..., 0] / size


def _retract(objective: Objective, point: Point, pairs: Pairs, step: Float[Array, "k s"]) -> Point:
    return _with_states(point, pairs, *objective.simulator.state_layout.retract(point.q[pairs], point.qd[pairs], step))


def _with_states(point: Point, pairs: Pairs, q: Float[Array, "k nq"], qd: Float[Array, "k nv"]) -> Point:
    """Copy of a point with new initial states of some windows."""
    result = Point(point.theta, point.q.copy(), point.qd.copy())
    result.q[pairs], result.qd[pairs] = q, qd
    return result
