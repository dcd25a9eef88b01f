"""All unknowns of an objective as one vector per problem: θ, then the change of every window's start.

Solvers that see gradients only need unknowns of comparable size. What one sample tells about θ is taken to be of the
order of one per unit of θ, which is how a parameter space scales it; about a starting position it is the sensor's gain,
and about a starting velocity that times the time passed since.
"""

from functools import cached_property

import numpy as np
from jaxtyping import Float

from hybridsim.identify.objective import Objective, Point

Array = np.ndarray


class Unknowns:
    """Between points of an objective and vectors of N numbers."""

    def __init__(self, objective: Objective):
        self.objective = objective
        self.n, self.windows, self.s = objective.n, objective.windows.count, objective.s
        self.size = self.n + self.windows * self.s

    def joined(self, theta: Float[Array, "P n"], start: Float[Array, "P W s"]) -> Float[Array, "P N"]:
        """One vector of what there is for θ and for the starts."""
        return np.concatenate([theta, start.reshape(len(start), -1)], axis=1)

    def split(self, x: Float[Array, "P N"]) -> tuple[Float[Array, "P n"], Float[Array, "P W s"]]:
        """What is for θ, and what is for the starts."""
        return x[:, : self.n], x[:, self.n :].reshape(len(x), self.windows, self.s)

    def moved(self, point: Point, change: Float[Array, "P N"]) -> Point:
        """The point after a change, within the bounds of θ."""
        layout = self.objective.layout
        trial = self.objective.retract(point, *self.split(change))
        return trial._replace(theta=np.clip(trial.theta, layout.lower, layout.upper))

    def room(self, point: Point) -> tuple[Float[Array, "P N"], Float[Array, "P N"]]:
        """Least and largest change that the bounds of θ allow."""
        layout = self.objective.layout
        free = np.full((len(point.theta), self.windows, self.s), np.inf)
        return self.joined(layout.lower - point.theta, -free), self.joined(layout.upper - point.theta, free)

    @cached_property
    def standard_errors(self) -> Float[Array, " N"]:
        """About how well the samples tell each unknown."""
        told, _ = self._told
        of_theta = np.full((1, self.n), 1.0 / np.sqrt(max(told.sum(), np.finfo(float).tiny)))
        return self.joined(of_theta, self._start_errors[None])[0]

    @cached_property
    def first_errors(self) -> Float[Array, " N"]:
        """About how far off each unknown may be to begin with: one for θ, for starts what noise allows."""
        samples = np.count_nonzero(self.objective.windows.weight, axis=1)
        return self.joined(np.ones((1, self.n)), np.sqrt(samples)[None, :, None] * self._start_errors[None])[0]

    @cached_property
    def _told(self) -> tuple[Float[Array, " W"], Float[Array, " W"]]:
        """How much the samples of each window tell about a position and a velocity at its start."""
        windows = self.objective.windows
        gain = np.asarray(self.objective.simulated.setup.sensors.gain)[windows.channel]
        weight = np.square(windows.weight * gain)
        # a sample at the very start tells something of the velocity, too, through the step after it
        return weight.sum(axis=1), (weight * np.square((windows.position + 1.0) * windows.dt)).sum(axis=1)

    @cached_property
    def _start_errors(self) -> Float[Array, "W s"]:
        terms, half = self.objective.terms, self.s // 2
        told = np.repeat(np.stack(self._told, axis=1), half, axis=1)
        for known in (terms.initial_state_std, terms.tolerance):
            if known is not None and self.s:
                told = told + 1.0 / np.square(known)
        return 1.0 / np.sqrt(np.maximum(told, np.finfo(float).tiny))
