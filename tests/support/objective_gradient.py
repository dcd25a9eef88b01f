"""Gradients of an objective against finite differences."""

import numpy as np

from hybridsim.identify.objective import Objective, Point

H = 1e-6
"""Step of central differences: truncation error ∝ H², rounding error ∝ 1/H."""


def random_point(objective: Objective, seed: int = 0, size: float = 0.03) -> Point:
    """A point near the guess, where no term vanishes, and within the bounds."""
    random, space = np.random.default_rng(seed), objective.simulator.space
    point = objective.point(space.initial)
    theta = np.abs(size * random.standard_normal((1, objective.N)))
    return objective.retract(point, theta, size * random.standard_normal((1, objective.windows.count, objective.s)))


def finite_difference_gradient(objective: Objective, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Gradient by θ, and by the initial state of the last window but one."""
    N, W, s = objective.N, objective.windows.count, objective.s
    no_theta, no_delta = np.zeros((1, N)), np.zeros((1, W, s))

    def slope(theta, delta):
        high, low = (objective.cost(objective.retract(point, sign * theta, sign * delta))[0] for sign in (H, -H))
        return (high - low) / (2.0 * H)

    by_theta = np.array([slope(np.eye(N)[k][None], no_delta) for k in range(N)])
    by_state = []
    for k in range(s):
        direction = no_delta.copy()
        direction[0, -2, k] = 1.0
        by_state.append(slope(no_theta, direction))
    return by_theta, np.array(by_state)


def check_gradient(objective: Objective, point: Point | None = None, rtol: float = 1e-6) -> None:
    """Check gradients from normal equations and from reverse mode against finite differences."""
    point = random_point(objective) if point is None else point
    by_theta, by_state = finite_difference_gradient(objective, point)
    cost, equations = objective.normal_equations(point)
    reverse = objective.gradient(point)
    for name, actual in (("costs", cost), ("costs of reverse sweep", reverse.cost)):
        np.testing.assert_allclose(actual, objective.cost(point), rtol=1e-10, err_msg=name)
    for actual in (equations.a, reverse.theta):
        np.testing.assert_allclose(actual[0], by_theta, rtol=rtol, atol=rtol * np.abs(by_theta).max(initial=0.0))
    for actual in (equations.d, reverse.initial_states):
        np.testing.assert_allclose(actual[0, -2], by_state, rtol=rtol, atol=rtol * np.abs(by_state).max(initial=0.0))
