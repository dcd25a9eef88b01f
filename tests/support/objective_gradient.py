"""Gradients of an objective against finite differences."""

import numpy as np

from hybridsim.identify.objective import Objective, Point

H = 1e-6
"""Finite differences; their error is H² by third derivatives, and rounding by H."""


def nearby(objective: Objective, seed: int = 0, size: float = 0.03) -> Point:
    """A point off the guess, so that no term vanishes, and within the bounds."""
    random, space = np.random.default_rng(seed), objective.simulated.space
    point = objective.point(space.initial)
    theta = np.abs(size * random.standard_normal((1, objective.n)))
    return objective.retract(point, theta, size * random.standard_normal((1, objective.windows.count, objective.s)))


def by_differences(objective: Objective, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Gradient by θ, and by the start of the last window but one."""
    n, W, s = objective.n, objective.windows.count, objective.s
    no_theta, no_start = np.zeros((1, n)), np.zeros((1, W, s))

    def slope(theta, start):
        high, low = (objective.cost(objective.retract(point, sign * theta, sign * start))[0] for sign in (H, -H))
        return (high - low) / (2.0 * H)

    of_theta = np.array([slope(np.eye(n)[k][None], no_start) for k in range(n)])
    of_start = []
    for k in range(s):
        direction = no_start.copy()
        direction[0, -2, k] = 1.0
        of_start.append(slope(no_theta, direction))
    return of_theta, np.array(of_start)


def check_gradient(objective: Objective, point: Point | None = None, rtol: float = 1e-6) -> None:
    point = nearby(objective) if point is None else point
    of_theta, of_start = by_differences(objective, point)
    cost, equations = objective.normal_equations(point)
    backwards = objective.gradient(point)
    for name, found in (("costs", cost), ("costs backwards", backwards.cost)):
        np.testing.assert_allclose(found, objective.cost(point), rtol=1e-10, err_msg=name)
    for found in (equations.a, backwards.theta):
        np.testing.assert_allclose(found[0], of_theta, rtol=rtol, atol=rtol * np.abs(of_theta).max(initial=0.0))
    for found in (equations.d, backwards.start):
        np.testing.assert_allclose(found[0, -2], of_start, rtol=rtol, atol=rtol * np.abs(of_start).max(initial=0.0))
