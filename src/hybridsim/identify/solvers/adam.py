"""Adam with minibatches of windows (Kingma & Ba 2015), by optax.

Each step follows the gradient of a few windows only, which is cheap where there are many, and noisy, which helps to get
out of shallow dips. What counts is the objective over all windows: it is evaluated now and then, and the best point so
far is the answer. Which windows a step takes follows from the seed and the number of the step alone.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import optax
from jaxtyping import Float, Int

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.solvers.solver import Solver, SolverState, Termination, apply_step_limit
from hybridsim.identify.solvers.unknowns import Unknowns

Array = np.ndarray
LEAST_RATE = 1e-6
"""Share of the learning rate below which a problem that keeps diverging is given up."""


class AdamState(NamedTuple):
    """Where Adam is, which is not where it was best."""

    theta: Float[Array, "P n"]
    q: Float[Array, "P W nq"]
    qd: Float[Array, "P W nv"]
    rate: Float[Array, " P"]
    """Share of the learning rate; halved whenever the simulation diverges."""
    idle: Int[Array, " P"]
    """Evaluations of the whole objective since the last one that gained something."""
    moments: dict[str, Array]
    """State of optax, leaf by leaf."""


@dataclass(frozen=True)
class Adam(Solver):
    """Gradient descent with momentum and a step size for each unknown."""

    max_steps: int = 2000
    learning_rate: float = 0.01
    """About how much an entry of θ changes per step; a starting state by as much of the noise of its samples."""
    schedule: Literal["constant", "cosine"] = "cosine"
    """Does the learning rate stay, or fall to zero by the last step?"""
    batch: int | None = None
    """Windows per step; all of them by default."""
    max_gradient_norm: float | None = None
    """Longest gradient per window that is believed; longer ones are shortened."""
    check_every: int = 20
    """Steps between evaluations of the whole objective."""
    patience: int = 10
    """Evaluations of the whole objective without gain after which the fit is done."""
    cost_tolerance: float = 1e-6
    """Relative gain that counts as one."""
    seed: int = 0
    name = "adam"

    def __post_init__(self):
        if self.schedule not in ("constant", "cosine"):
            raise HybridsimError(f"unknown schedule {self.schedule!r}; choose constant or cosine")
        if self.batch is not None and self.batch < 1:
            raise HybridsimError(f"a batch has at least one window, not {self.batch}")
        if self.check_every < 1 or self.patience < 1 or not self.learning_rate > 0.0:
            raise HybridsimError("check_every and patience are at least 1, and the learning rate is positive")

    def init(self, objective: Objective, point: Point) -> SolverState:
        self._check(objective)
        layout = objective.layout
        point = point._replace(theta=np.clip(point.theta, layout.lower, layout.upper))
        cost = objective.cost(point)
        verdict = np.where(np.isfinite(cost), Termination.RUNNING, Termination.DIVERGED)
        P = len(cost)
        moments = self._leaves(self._fresh(P, Unknowns(objective).size))
        course = AdamState(point.theta, point.q, point.qd, np.ones(P), np.zeros(P, dtype=int), moments)
        return SolverState(point, cost, verdict, np.asarray(0), course)

    def step(self, objective: Objective, state: SolverState) -> SolverState:
        running = state.verdict == Termination.RUNNING
        if not running.any():
            return state
        unknowns, course = Unknowns(objective), AdamState(*state.own)
        here = Point(course.theta, course.q, course.qd)
        gradient = self._gradient(objective, unknowns, here, int(state.steps))
        usable = running & np.isfinite(gradient).all(axis=1)
        change, moments = self._moved(np.where(usable[:, None], gradient, 0.0), course.moments)
        change = np.where(usable[:, None], course.rate[:, None] * change, 0.0) * unknowns.first_errors
        here = unknowns.moved(here, change)

        steps = state.steps + 1
        point, cost, idle = state.point, state.cost, course.idle
        lost = running & ~usable
        if steps % self.check_every == 0 or steps >= self.max_steps:
            now = objective.cost(here)
            lost |= running & ~np.isfinite(now)
            gained = running & (now < cost)
            idle = np.where(running, np.where(cost - now > self.cost_tolerance * cost, 0, idle + 1), idle)
            point, cost = _replaced(point, here, gained), np.where(gained, now, cost)
        # where the simulation diverges, go on from the best point, more carefully
        here = _replaced(here, point, lost)
        rate = np.where(lost, 0.5 * course.rate, course.rate)
        verdict = np.where(running & (rate < LEAST_RATE), Termination.STUCK, state.verdict)
        verdict = np.where((verdict == Termination.RUNNING) & (idle >= self.patience), Termination.SMALL_GAIN, verdict)
        verdict = apply_step_limit(self.max_steps, steps, verdict)
        return SolverState(point, cost, verdict, steps, AdamState(*here, rate, idle, moments))

    def resumed(self, objective: Objective, state: SolverState) -> SolverState:
        del objective
        return state._replace(own=AdamState(*state.own))

    def windows_of(self, step: int, count: int) -> Int[Array, " batch"] | None:
        """Windows that a step takes, of `count`; none for all of them."""
        if self.batch is None or self.batch >= count:
            return None
        epoch, part = divmod(step, -(-count // self.batch))
        order = np.random.default_rng([self.seed, epoch]).permutation(count)
        return np.sort(order[part * self.batch : (part + 1) * self.batch])

    def _gradient(self, objective: Objective, unknowns: Unknowns, point: Point, step: int) -> Float[Array, "P N"]:
        found = objective.gradient(point, self.windows_of(step, objective.windows.count))
        gradient = unknowns.joined(found.theta, found.start) * unknowns.first_errors
        gradient = np.where(np.isfinite(found.cost)[:, None], gradient, np.nan) / objective.windows.count
        if self.max_gradient_norm is None:
            return gradient
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        return gradient * np.minimum(1.0, self.max_gradient_norm / np.maximum(length, np.finfo(float).tiny))

    def _moved(self, gradient: Float[Array, "P N"], moments: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        """How Adam changes the unknowns, and its state after that."""
        # optax relies on promotion, which a user may have forbidden
        with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
            structure = jax.tree.structure(self._fresh(*gradient.shape))
            state = jax.tree.unflatten(structure, [moments[name] for name in sorted(moments)])
            change, state = _updated(self, gradient, state)
        return np.asarray(change), self._leaves(state)

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """As optax has it."""
        if self.schedule == "constant":
            return optax.adam(self.learning_rate)
        return optax.adam(optax.cosine_decay_schedule(self.learning_rate, self.max_steps))

    def _fresh(self, problems: int, size: int) -> Any:
        with jax.enable_x64(True):
            return self.optimizer.init(np.zeros((problems, size)))

    @staticmethod
    def _leaves(state: Any) -> dict[str, Array]:
        return {f"{k:02d}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(state))}

    def _check(self, objective: Objective) -> None:
        """Raise if the gradient of some windows alone cannot be had."""
        if self.windows_of(0, objective.windows.count) is None:
            return
        if objective.ties is not None:
            raise HybridsimError(
                "minibatches cannot be drawn from windows that are tied to each other; leave out batch"
            )
        if objective.simulated.delay_is_free:
            raise HybridsimError("minibatches do not work with free delays of sensors; leave out batch")


@partial(jax.jit, static_argnums=0)
def _updated(solver: Adam, gradient, state):
    return solver.optimizer.update(gradient, state)


def _replaced(point: Point, by: Point, which: Array) -> Point:
    return Point(*(np.where(which.reshape(-1, *(1,) * (x.ndim - 1)), y, x) for x, y in zip(point, by, strict=True)))
