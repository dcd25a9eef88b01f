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
    """Gradients with respect to θ and to the initial state of the second-to-last window."""
    N, W, s = objective.N, objective.windows.count, objective.s
    zero_theta, zero_delta = np.zeros((1, N)), np.zeros((1, W, s))

    def directional_derivative(theta, delta):
        high, low = (objective.cost(objective.retract(point, sign * theta, sign * delta))[0] for sign in (H, -H))
        return (high - low) / (2.0 * H)

    theta_gradient = np.array([directional_derivative(np.eye(N)[k][None], zero_delta) for k in range(N)])
    state_gradient = []
    for k in range(s):
        direction = zero_delta.copy()
        direction[0, -2, k] = 1.0
        state_gradient.append(directional_derivative(zero_theta, direction))
    return theta_gradient, np.array(state_gradient)


def check_gradient(objective: Objective, point: Point | None = None, rtol: float = 1e-6) -> None:
    """Check gradients from normal equations and from reverse mode against finite differences."""
    point = random_point(objective) if point is None else point
    theta_gradient, state_gradient = finite_difference_gradient(objective, point)
    cost, equations = objective.normal_equations(point)
    reverse = objective.gradient(point)
    for name, actual in (("costs", cost), ("costs of reverse sweep", reverse.cost)):
        np.testing.assert_allclose(actual, objective.cost(point), rtol=1e-10, err_msg=name)
    for actual in (equations.a, reverse.theta):
        np.testing.assert_allclose(
            actual[0], theta_gradient, rtol=rtol, atol=rtol * np.abs(theta_gradient).max(initial=0.0)
        )
    for actual in (equations.d, reverse.initial_states):
        np.testing.assert_allclose(
            actual[0, -2], state_gradient, rtol=rtol, atol=rtol * np.abs(state_gradient).max(initial=0.0)
        )
