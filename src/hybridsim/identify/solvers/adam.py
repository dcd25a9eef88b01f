"""Adam with minibatches of windows (Kingma & Ba 2015), implemented in optax.

Each step follows the gradient of a minibatch only, which is cheap with many windows, and noisy, which helps to escape
shallow minima. The objective over all windows is evaluated at intervals, and the best point so far is the result.
Minibatches depend on the seed and the step count only.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import optax
from jaxtyping import Float, Int

from hybridsim.core.errors import HybridsimError
from hybridsim.core.specification import Count, Nonnegative, Positive, Seed, specification
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.solvers.solver import Solver, SolverState, Termination, apply_step_limit
from hybridsim.identify.solvers.unknowns import Unknowns

Array = np.ndarray
MIN_RATE_FACTOR = 1e-6
"""Factor on the learning rate below which an instance that keeps diverging is abandoned."""


class AdamState(NamedTuple):
    """Current iterate of Adam, as opposed to its best point."""

    theta: Float[Array, "P N"]
    q: Float[Array, "P W nq"]
    qd: Float[Array, "P W nv"]
    rate_factor: Float[Array, " P"]
    """Factor on the learning rate; halved whenever the simulation diverges."""
    stalled_evaluations: Int[Array, " P"]
    """Evaluations of the whole objective since its last decrease."""
    moments: dict[str, Array]
    """Leaves of the optax state."""


@specification
class Adam(Solver):
    """Adam: stochastic gradient descent with momentum on minibatches of windows."""

    max_steps: Count = 2000
    """Maximum number of steps."""
    learning_rate: Positive = 0.01
    """Approximate size of a step: of an entry of θ, absolute; of an entry of an initial state, in units of its standard
    error from one sample."""
    schedule: Literal["constant", "cosine"] = "cosine"
    """Learning rate: constant, or decaying to zero at the last step."""
    batch_size: Count | None = None
    """Number of windows per step; by default all."""
    max_gradient_norm: Positive | None = None
    """Norm to which the gradient per window is clipped."""
    check_every: Count = 20
    """Steps between evaluations of the cost over all windows."""
    patience: Count = 10
    """Evaluations of that cost without improvement after which it terminates."""
    cost_tolerance: Nonnegative = 1e-6
    """Relative decrease of the cost over all windows below which an evaluation counts as no improvement."""
    seed: Seed | None = None
    """Random seed of the order of windows; by default that of the fit."""
    name = "adam"

    def init(self, objective: Objective, point: Point) -> SolverState:
        self._check(objective)
        layout = objective.layout
        point = point._replace(theta=np.clip(point.theta, layout.lower, layout.upper))
        cost = objective.cost(point)
        termination = np.where(np.isfinite(cost), Termination.RUNNING, Termination.DIVERGED)
        P = len(cost)
        moments = self._leaves(self._initial_moments(P, Unknowns(objective).size))
        iterate = AdamState(point.theta, point.q, point.qd, np.ones(P), np.zeros(P, dtype=int), moments)
        return SolverState(point, cost, termination, np.asarray(0), iterate)

    def step(self, objective: Objective, state: SolverState) -> SolverState:
        running = state.termination == Termination.RUNNING
        if not running.any():
            return state
        unknowns, iterate = Unknowns(objective), AdamState(*state.internal)
        current = Point(iterate.theta, iterate.q, iterate.qd)
        gradient = self._gradient(objective, unknowns, current, int(state.steps))
        usable = running & np.isfinite(gradient).all(axis=1)
        delta, moments = self._delta(np.where(usable[:, None], gradient, 0.0), iterate.moments)
        delta = np.where(usable[:, None], iterate.rate_factor[:, None] * delta, 0.0) * unknowns.initial_errors
        current = unknowns.retract(current, delta)

        steps = state.steps + 1
        point, cost, stalled = state.point, state.cost, iterate.stalled_evaluations
        diverged = running & ~usable
        if steps % self.check_every == 0 or steps >= self.max_steps:
            new_cost = objective.cost(current)
            diverged |= running & ~np.isfinite(new_cost)
            improved = running & (new_cost < cost)
            has_decreased = cost - new_cost > self.cost_tolerance * cost
            stalled = np.where(running, np.where(has_decreased, 0, stalled + 1), stalled)
            point, cost = _replace(point, current, improved), np.where(improved, new_cost, cost)
        # where the simulation diverges, return to the best point with a smaller learning rate
        current = _replace(current, point, diverged)
        rate_factor = np.where(diverged, 0.5 * iterate.rate_factor, iterate.rate_factor)
        termination = np.where(running & (rate_factor < MIN_RATE_FACTOR), Termination.STUCK, state.termination)
        small_decrease = (termination == Termination.RUNNING) & (stalled >= self.patience)
        termination = np.where(small_decrease, Termination.SMALL_DECREASE, termination)
        termination = apply_step_limit(self.max_steps, steps, termination)
        return SolverState(point, cost, termination, steps, AdamState(*current, rate_factor, stalled, moments))

    def restore(self, objective: Objective, state: SolverState) -> SolverState:
        del objective
        return state._replace(internal=AdamState(*state.internal))

    def minibatch(self, step: int, count: int) -> Int[Array, " batch"] | None:
        """Indices of the windows that a step uses, out of `count` windows; None if it uses all."""
        if self.batch_size is None or self.batch_size >= count:
            return None
        epoch, part = divmod(step, -(-count // self.batch_size))
        order = np.random.default_rng([self.seed or 0, epoch]).permutation(count)
        return np.sort(order[part * self.batch_size : (part + 1) * self.batch_size])

    def _gradient(self, objective: Objective, unknowns: Unknowns, point: Point, step: int) -> Float[Array, "P U"]:
        result = objective.gradient(point, self.minibatch(step, objective.windows.count))
        gradient = unknowns.concatenate(result.theta, result.initial_states) * unknowns.initial_errors
        gradient = np.where(np.isfinite(result.cost)[:, None], gradient, np.nan) / objective.windows.count
        if self.max_gradient_norm is None:
            return gradient
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        return gradient * np.minimum(1.0, self.max_gradient_norm / np.maximum(length, np.finfo(float).tiny))

    def _delta(self, gradient: Float[Array, "P U"], moments: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        """Adam step of the unknowns, and the updated moments."""
        # optax relies on type promotion, which a user may have disabled
        with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
            structure = jax.tree.structure(self._initial_moments(*gradient.shape))
            state = jax.tree.unflatten(structure, [moments[name] for name in sorted(moments)])
            delta, state = _update(self, gradient, state)
        return np.asarray(delta), self._leaves(state)

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optax optimizer."""
        if self.schedule == "constant":
            return optax.adam(self.learning_rate)
        return optax.adam(optax.cosine_decay_schedule(self.learning_rate, self.max_steps))

    def _initial_moments(self, instances: int, size: int) -> Any:
        with jax.enable_x64(True):
            return self.optimizer.init(np.zeros((instances, size)))

    @staticmethod
    def _leaves(state: Any) -> dict[str, Array]:
        return {f"{k:02d}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(state))}

    def _check(self, objective: Objective) -> None:
        """Raise if minibatches are requested but not supported by the objective."""
        if self.minibatch(0, objective.windows.count) is None:
            return
        if objective.continuity is not None:
            raise HybridsimError("minibatches are not supported with continuity between windows; omit batch_size")
        if objective.simulator.has_free_delay:
            raise HybridsimError("minibatches are not supported with free sensor delays; omit batch_size")


@partial(jax.jit, static_argnums=0)
def _update(solver: Adam, gradient, state):
    return solver.optimizer.update(gradient, state)


def _replace(point: Point, other: Point, mask: Array) -> Point:
    return Point(*(np.where(mask.reshape(-1, *(1,) * (x.ndim - 1)), y, x) for x, y in zip(point, other, strict=True)))
