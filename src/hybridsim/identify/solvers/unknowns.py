"""All unknowns of an objective as one vector per instance: θ, then the deltas of every window's initial state.

First-order solvers need unknowns of comparable scale. Scales are estimated from assumed sensitivities of a sample: the
sensor's gain, per unit of an initial position and per unit of θ (parameter spaces scale θ accordingly), and the gain
times the elapsed time, per unit of an initial velocity.
"""

from functools import cached_property

import numpy as np
from jaxtyping import Float

from hybridsim.identify.objective import Objective, Point

Array = np.ndarray


class Unknowns:
    """Conversion between points of an objective and vectors of U unknowns; the first N are entries of θ."""

    def __init__(self, objective: Objective):
        self.objective = objective
        self.N, self.windows, self.s = objective.N, objective.windows.count, objective.s
        self.size = self.N + self.windows * self.s

    def concatenate(self, theta: Float[Array, "P N"], initial_states: Float[Array, "P W s"]) -> Float[Array, "P U"]:
        """Concatenate entries of θ and of initial states."""
        return np.concatenate([theta, initial_states.reshape(len(initial_states), -1)], axis=1)

    def split(self, x: Float[Array, "P U"]) -> tuple[Float[Array, "P N"], Float[Array, "P W s"]]:
        """Split into entries of θ and of initial states."""
        return x[:, : self.N], x[:, self.N :].reshape(len(x), self.windows, self.s)

    def retract(self, point: Point, delta: Float[Array, "P U"]) -> Point:
        """Move a point by a delta, clipped to the bounds of θ."""
        layout = self.objective.layout
        trial = self.objective.retract(point, *self.split(delta))
        return trial._replace(theta=np.clip(trial.theta, layout.lower, layout.upper))

    def step_bounds(self, point: Point) -> tuple[Float[Array, "P U"], Float[Array, "P U"]]:
        """Lower and upper bounds of a delta."""
        layout = self.objective.layout
        unbounded = np.full((len(point.theta), self.windows, self.s), np.inf)
        lower = self.concatenate(layout.lower - point.theta, -unbounded)
        return lower, self.concatenate(layout.upper - point.theta, unbounded)

    @cached_property
    def standard_errors(self) -> Float[Array, " U"]:
        """Approximate standard error of each unknown, given the samples."""
        information, _ = self._information
        theta_error = np.full((1, self.N), 1.0 / np.sqrt(max(information.sum(), np.finfo(float).tiny)))
        return self.concatenate(theta_error, self._initial_state_errors[None])[0]

    @cached_property
    def initial_errors(self) -> Float[Array, " U"]:
        """Approximate error of each initial value: one for θ; the standard error from one sample for initial states."""
        samples = np.count_nonzero(self.objective.windows.weight, axis=1)
        state_errors = np.sqrt(samples)[None, :, None] * self._initial_state_errors[None]
        return self.concatenate(np.ones((1, self.N)), state_errors)[0]

    @cached_property
    def _information(self) -> tuple[Float[Array, " W"], Float[Array, " W"]]:
        """Approximate Fisher information of each window about an initial position and an initial velocity."""
        windows = self.objective.windows
        gain = np.asarray(self.objective.simulator.setup.sensors.gain)[windows.channel]
        weight = np.square(windows.weight * gain)
        # one step is added to the time, so that a sample at the beginning of a window does not have zero information
        # about the velocity
        return weight.sum(axis=1), (weight * np.square((windows.time_in_steps + 1.0) * windows.dt)).sum(axis=1)

    @cached_property
    def _initial_state_errors(self) -> Float[Array, "W s"]:
        settings, half = self.objective.settings, self.s // 2
        information = np.repeat(np.stack(self._information, axis=1), half, axis=1)
        for std in (settings.initial_state_std, settings.continuity_std):
            if std is not None and self.s:
                information = information + 1.0 / np.square(std)
        return 1.0 / np.sqrt(np.maximum(information, np.finfo(float).tiny))
