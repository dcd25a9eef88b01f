"""Objective of a fit: a sum of squared residuals of simulated windows, priors and penalties.

    ½ Σ c² ρ((r/c)²)   r = (reading − measurement) / noise, over all samples of all windows; c: loss scale
  + ½ Σ d²             d = (final state of a window − initial state of the next) / standard deviation, with continuity
  + ½ Σ e²             e = (initial state − initial guess) / standard deviation, with a prior on initial states
  + ½ Σ p²             p = (θ − prior mean) / prior standard deviation, and √l2 θ
  + penalties          that are not differentiable at zero; see `penalty.py`

Points and results have a leading axis of P independent instances of the problem, each with its own values of θ and of
the initial states; an instance that diverges has infinite cost. θ is stacked (`theta_layout.py`): it contains the
per-run parameters of every run. N is its length, n that of single-run θ, m the number of sensors, s the dimension of
the delta of an initial state, which is zero if initial states are fixed.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.identify.continuity import Continuity
from hybridsim.identify.normal_equations import NormalEquations
from hybridsim.identify.penalty import NO_SPARSITY, Sparsity
from hybridsim.identify.prior_terms import PriorTerms
from hybridsim.identify.robust_loss import RobustResiduals, robust_residuals
from hybridsim.identify.sampling import Sampling
from hybridsim.identify.theta_layout import ThetaLayout
from hybridsim.identify.window_simulator import Delays, Readings, WindowSimulator
from hybridsim.identify.windows import Windows

Array = np.ndarray
MAX_BATCH_BYTES = 128 * 2**20
"""Memory limit for the derivatives of one batch of windows [bytes]; more windows are split into batches."""


@dataclass(frozen=True)
class ObjectiveSettings:
    """Settings of an objective."""

    loss: str = "linear"
    """Robust loss of the samples."""
    loss_scale: float = 1.0
    """Residual beyond which the robust loss down-weights a sample, in standard deviations of the noise."""
    free_initial_states: bool = True
    """Whether initial states of windows are unknowns; if not, they are fixed at the initial guess."""
    initial_state_std: Float[Array, " s"] | None = None
    """Standard deviation of the initial guess, per entry of the delta; None: no prior."""
    continuity_std: Float[Array, " s"] | None = None
    """Standard deviation of continuity defects; None: windows are independent."""
    sparsity: Sparsity = NO_SPARSITY
    """Penalties on networks."""


class Point(NamedTuple):
    """Parameters and initial states of P instances."""

    theta: Float[Array, "P N"]
    q: Float[Array, "P W nq"]
    qd: Float[Array, "P W nv"]

    def select(self, index) -> "Point":
        """Select instances."""
        return Point(*(x[index] for x in self))


class CostGradient(NamedTuple):
    """Costs and their gradients with respect to θ and to deltas of the initial states."""

    cost: Float[Array, " P"]
    theta: Float[Array, "P N"]
    initial_states: Float[Array, "P W s"]


Pairs = tuple[Int[Array, " k"], Int[Array, " k"]]
"""Pairs of an instance and a window, as two arrays of indices."""


class WindowBatch(NamedTuple):
    """Windows that are simulated in parallel: b of them, of any of the instances."""

    instance: Array
    window: Array
    arguments: tuple[Array, Array, Array]
    """θ, initial states and inputs of the simulation."""


class Objective:
    """Objective of a fit over windows; see the module docstring."""

    def __init__(
        self,
        simulator: WindowSimulator,
        layout: ThetaLayout,
        windows: Windows,
        guess: tuple[Array, Array],
        settings: ObjectiveSettings,
    ):
        """Prepare sampling, inputs and penalties.

        Args:
            simulator: simulator of the windows.
            layout: layout of θ over the runs that the windows are parts of.
            windows: measurements and inputs.
            guess: initial guess of coordinates (W, nq) and velocities (W, nv) at the beginning of each window.
            settings: robust loss, unknowns, priors and penalties.
        """
        self.simulator, self.layout, self.windows = simulator, layout, windows
        self.guess, self.settings = guess, settings
        self.N = layout.size
        self.m = len(simulator.setup.sensors.names)
        self.s = simulator.state_layout.size if settings.free_initial_states else 0
        std = settings.initial_state_std
        weight = np.zeros(self.s) if std is None or not self.s else 1.0 / np.asarray(std, dtype=float)
        self.prior_terms = PriorTerms(layout, simulator.state_layout, guess, weight, settings.sparsity)
        self.continuity: Continuity | None = None
        if settings.continuity_std is not None and self.s:
            if not simulator.with_states:
                raise ValueError("continuity between windows requires a simulator with_states=True")
            self.continuity = Continuity(windows, simulator.state_layout, settings.continuity_std)
        delay = simulator.delays(np.asarray(simulator.space.initial)[None])
        self.sampling = Sampling(windows, delay.steps[0], has_free_delay=simulator.has_free_delay)
        # readings precede steps: the result of the last step is needed for continuity and for samples within it
        self.reading_rows = max(self.sampling.reading_rows, windows.steps + 1 if self.continuity else 0)
        inputs = simulator.pack_inputs(windows.inputs, (windows.count, windows.steps))
        self.inputs = inputs[:, np.minimum(np.arange(self.reading_rows), windows.steps - 1)]

    def with_weight(self, weight: Float[Array, "W M"]) -> "Objective":
        """Copy with new sample weights."""
        result = copy(self)
        result.windows = replace(self.windows, weight=weight)
        return result

    def select(self, index: Int[Array, " k"]) -> "Objective":
        """Select windows."""
        guess = (self.guess[0][index], self.guess[1][index])
        return Objective(self.simulator, self.layout, self.windows.select(index), guess, self.settings)

    def truncate(self, steps: int) -> "Objective":
        """Truncate every window to its first steps, without continuity."""
        settings = replace(self.settings, continuity_std=None)
        return Objective(self.simulator, self.layout, self.windows.truncate(steps), self.guess, settings)

    def point(self, theta: Float[Array, "*P n"]) -> Point:
        """Point with a single-run θ for all runs and the initial guess of all initial states."""
        return self.stacked_point(self.layout.stack(theta))

    def stacked_point(self, theta: Float[Array, "*P N"]) -> Point:
        """Point with a stacked θ and the initial guess of all initial states."""
        theta = np.atleast_2d(np.asarray(theta, dtype=float))
        q, qd = (np.repeat(np.asarray(x, dtype=float)[None], len(theta), axis=0) for x in self.guess)
        return Point(theta, q, qd)

    def retract(self, point: Point, theta: Float[Array, "P N"], initial_states: Float[Array, "P W s"]) -> Point:
        """Move a point by a step in θ and deltas of the initial states."""
        new = point.theta + theta
        if not self.s:
            return point._replace(theta=new)
        return Point(new, *self.simulator.state_layout.retract(point.q, point.qd, initial_states))

    # cost, gradient and normal equations

    def cost(self, point: Point) -> Float[Array, " P"]:
        """Value of the objective."""
        total = self.prior_terms.cost_and_gradients(*point)[0]
        ends = self.continuity.allocate(len(point.theta), self.windows.count, 0) if self.continuity else None
        for batch, _ in self._batches(point, directions=1):
            readings = self.simulator.readings(*batch.arguments)
            costs = 0.5 * self._robust_residuals(self._residuals(point, readings.y, batch)).cost.sum(axis=1)
            np.add.at(total, batch.instance, np.where(readings.ok, costs, np.inf))
            if self.continuity and ends:
                self.continuity.record(ends, batch.instance, batch.window, readings.y, None, self.m)
        if self.continuity and ends:
            total += 0.5 * np.square(self.continuity.weighted_defects(ends, point.q, point.qd)).sum(axis=(1, 2))
        return total

    def normal_equations(self, point: Point) -> tuple[Float[Array, " P"], NormalEquations]:
        """Value of the objective and its Gauss–Newton approximation."""
        P, W, N, s = len(point.theta), self.windows.count, self.N, self.s
        cost, a, d = self.prior_terms.cost_and_gradients(*point)
        A = np.tile(self.prior_terms.theta_hessian(), (P, 1, 1))
        B, D = np.zeros((P, W, s, N)), np.zeros((P, W, s, s))
        if self.prior_terms.has_initial_state_prior:
            jacobian = self.prior_terms.initial_state_residuals(point.q, point.qd)[1]
            D += jacobian.transpose(0, 1, 3, 2) @ jacobian
        ends = self.continuity.allocate(P, W, N + s) if self.continuity else None
        for batch, readings, tangents, scaled, J in self.linearize(point):
            gram, gradient = J @ J.transpose(0, 2, 1), (J @ scaled.residual[..., None])[..., 0]
            p, w, k = batch.instance, batch.window, self.simulator.space.size
            np.add.at(cost, p, np.where(readings.ok, 0.5 * scaled.cost.sum(axis=1), np.inf))
            if self.layout.has_per_run_parameters:
                index = self.layout.index[self.windows.recording[w]]
                np.add.at(A, (p[:, None, None], index[:, :, None], index[:, None]), gram[:, :k, :k])
                np.add.at(a, (p[:, None], index), gradient[:, :k])
                B[p[:, None, None], w[:, None, None], np.arange(s)[None, :, None], index[:, None]] += gram[:, k:, :k]
            else:
                np.add.at(A, p, gram[:, :N, :N])
                np.add.at(a, p, gradient[:, :N])
                B[p, w] += gram[:, N:, :N]
            D[p, w] += gram[:, k:, k:]
            d[p, w] += gradient[:, k:]
            if self.continuity and ends:
                self.continuity.record(ends, p, w, readings.y, self.stack_derivatives(tangents, batch), self.m)
        C = None
        if self.continuity and ends:
            defect_cost, C = self.continuity.add_to_normal_equations(ends, point.q, point.qd, A, a, B, D, d)
            cost += defect_cost
        return cost, NormalEquations(A, a, B, D, d, C)

    def linearize(
        self, point: Point
    ) -> Iterator[tuple[WindowBatch, Readings, Array, RobustResiduals, Float[Array, "b d M"]]]:
        """Readings, their tangents, residuals and the residuals' Jacobian, batch by batch.

        Rows of the Jacobian are directions: entries of single-run θ, then of the delta of the window's initial state.
        """
        for batch, _ in self._batches(point, directions=self.N + self.s):
            readings, tangents = self.simulator.derivatives(*batch.arguments, *self._directions(point, batch))
            scaled = self._robust_residuals(self._residuals(point, readings.y, batch))
            J = self._residual_jacobian(point, readings.y, tangents, batch) * scaled.jacobian_scale[:, None]
            yield batch, readings, tangents, scaled, J

    def initial_state_costs(self, point: Point, pairs: Pairs) -> Float[Array, " k"]:
        """Cost of each window: of its samples and of the prior on its initial state."""
        residual, _ = self.prior_terms.initial_state_residuals(point.q, point.qd)
        costs = 0.5 * np.square(residual[pairs]).sum(axis=1)
        for batch, part in self._batches(point, directions=1, pairs=pairs):
            readings = self.simulator.readings(*batch.arguments)
            sample_costs = 0.5 * self._robust_residuals(self._residuals(point, readings.y, batch)).cost.sum(axis=1)
            costs[part] += np.where(readings.ok, sample_costs, np.inf)
        return costs

    def initial_state_equations(
        self, point: Point, pairs: Pairs
    ) -> tuple[Float[Array, " k"], Float[Array, "k s"], Float[Array, "k s s"]]:
        """Cost of each window, and its gradient and Gauss–Newton matrix with respect to the window's initial state.

        θ is fixed.
        """
        residual, jacobian = (x[pairs] for x in self.prior_terms.initial_state_residuals(point.q, point.qd))
        costs = 0.5 * np.square(residual).sum(axis=1)
        d, D = (residual[:, None] @ jacobian)[:, 0], jacobian.transpose(0, 2, 1) @ jacobian
        for batch, part in self._batches(point, directions=self.s, pairs=pairs):
            t_theta = np.zeros((1, self.s, self.simulator.space.size))
            t_initial = self._initial_state_directions(point, batch)
            readings, tangents = self.simulator.derivatives(*batch.arguments, t_theta, t_initial)
            scaled = self._robust_residuals(self._residuals(point, readings.y, batch))
            J = self._residual_jacobian(point, readings.y, tangents, batch) * scaled.jacobian_scale[:, None]
            costs[part] += np.where(readings.ok, 0.5 * scaled.cost.sum(axis=1), np.inf)
            d[part] += (J @ scaled.residual[..., None])[..., 0]
            D[part] += J @ J.transpose(0, 2, 1)
        return costs, d, D

    def gradient(self, point: Point, windows: Array | None = None) -> CostGradient:
        """Value of the objective and its gradient, by a reverse sweep; with continuity or free delays, by tangents.

        Args:
            point: where to evaluate.
            windows: indices of the windows of a minibatch, all by default; the sum over them is scaled to estimate the
                sum over all windows.

        Raises:
            HybridsimError: a penalty is not differentiable at zero.
        """
        self.prior_terms.penalty.check_differentiable()
        if self.continuity or self.simulator.has_free_delay:
            cost, equations = self.normal_equations(point)
            return CostGradient(cost, equations.a, equations.d)
        cost, theta_gradient, state_gradient = self.prior_terms.cost_and_gradients(*point)
        scale = 1.0 if windows is None else self.windows.count / len(windows)
        for batch, _ in self._batches(point, directions=1, pairs=self._pairs(point, windows)):
            readings = self.simulator.readings(*batch.arguments)
            scaled = self._robust_residuals(self._residuals(point, readings.y, batch))
            ct_readings = scaled.residual * scaled.jacobian_scale * self.windows.weight[batch.window]
            ct_y = self.sampling.scatter(ct_readings, batch.window, *readings.y.shape[1:])
            cotangents = self.simulator.pull_back(*batch.arguments, ct_y)
            p, w = batch.instance, batch.window
            np.add.at(cost, p, scale * np.where(readings.ok, 0.5 * scaled.cost.sum(axis=1), np.inf))
            np.add.at(
                theta_gradient, (p[:, None], self.layout.index[self.windows.recording[w]]), scale * cotangents.theta
            )
            if self.s:
                state_gradient[p, w] += scale * self.simulator.state_layout.delta_cotangents(
                    point.q[p, w], point.qd[p, w], cotangents.initial_state
                )
        return CostGradient(cost, theta_gradient, state_gradient)

    def sampled_readings(self, point: Point) -> tuple[Float[Array, "P W M"], Bool[Array, "P W"]]:
        """Simulated readings at the times of the measurements, and which windows did not diverge."""
        shape = (len(point.theta), self.windows.count)
        sampled, ok = np.zeros((*shape, self.windows.value.shape[1])), np.zeros(shape, dtype=bool)
        for batch, _ in self._batches(point, directions=1):
            readings = self.simulator.readings(*batch.arguments)
            sampled[batch.instance, batch.window] = self._sampled_readings(point, readings.y, batch)
            ok[batch.instance, batch.window] = readings.ok
        return sampled, ok

    # batches of windows

    def _pairs(self, point: Point, windows: Array | None = None) -> Pairs:
        """All pairs of an instance and a window, for all windows or for the given ones."""
        index = np.arange(self.windows.count) if windows is None else windows
        instance, window = (x.ravel() for x in np.meshgrid(np.arange(len(point.theta)), index, indexing="ij"))
        return instance, window

    def _batches(
        self, point: Point, directions: int, pairs: Pairs | None = None
    ) -> Iterator[tuple[WindowBatch, slice]]:
        """Batches of windows whose derivatives fit into memory, each with its slice of the pairs."""
        instance, window = self._pairs(point) if pairs is None else pairs
        size = max(MAX_BATCH_BYTES // (8 * max(directions, 1) * self.reading_rows * self.simulator.width), 1)
        for first in range(0, len(instance), size):
            part = slice(first, first + size)
            p, w = instance[part], window[part]
            theta = point.theta[0] if len(point.theta) == 1 else point.theta[p]
            if self.layout.has_per_run_parameters:
                theta = np.take_along_axis(point.theta[p], self.layout.index[self.windows.recording[w]], axis=1)
            initial = self.simulator.state_layout.pack(point.q[p, w], point.qd[p, w], self.windows.start[w])
            yield WindowBatch(p, w, (theta, initial, self.inputs[w])), part

    def _directions(self, point: Point, batch: WindowBatch) -> tuple[Array, Array]:
        """Tangents along every entry of single-run θ, then along every entry of the initial state's delta."""
        n, s = self.simulator.space.size, self.s
        cells = batch.arguments[1].shape[1]
        t_initial = np.zeros((1, n, cells))
        if s:
            directions = self._initial_state_directions(point, batch)
            t_initial = np.concatenate([np.zeros((len(directions), n, cells)), directions], axis=1)
        return np.eye(n + s, n)[None], t_initial

    def _initial_state_directions(self, point: Point, batch: WindowBatch) -> Array:
        pairs = (batch.instance, batch.window)
        return self.simulator.state_layout.directions(point.q[pairs], point.qd[pairs])

    def _sampled_readings(self, point: Point, y: Array, batch: WindowBatch) -> Float[Array, "b M"]:
        readings = y[..., : self.m]
        if not self.simulator.has_free_delay:
            return self.sampling.sample(readings, batch.window)
        return self.sampling.sample_delayed(readings, batch.window, self._delays(point, batch).steps)[0]

    def _residuals(self, point: Point, y: Array, batch: WindowBatch) -> Float[Array, "b M"]:
        w = self.windows
        return w.weight[batch.window] * (self._sampled_readings(point, y, batch) - w.value[batch.window])

    def _residual_jacobian(self, point: Point, y: Array, t_y: Array, batch: WindowBatch) -> Float[Array, "b d M"]:
        """Directional derivatives of the residuals; directions are entries of single-run θ and initial states."""
        weight, tangents = self.windows.weight[batch.window][:, None], t_y[..., : self.m]
        if not self.simulator.has_free_delay:
            return weight * self.sampling.sample(tangents, batch.window)
        delay = self._delays(point, batch)
        jacobian, _ = self.sampling.sample_delayed(tangents, batch.window, delay.steps)
        _, delay_slope = self.sampling.sample_delayed(y[..., : self.m], batch.window, delay.steps)
        channel = self.windows.channel[batch.window]
        delay_gradient = np.take_along_axis(delay.gradient, channel[:, None], axis=2)  # (b, n, M)
        if t_y.shape[1] == delay_gradient.shape[1] + self.s:  # false if only initial states are differentiated
            jacobian[:, : delay_gradient.shape[1]] += delay_gradient * delay_slope[:, None]
        return weight * jacobian

    def _delays(self, point: Point, batch: WindowBatch) -> Delays:
        """Delays in each window of a batch."""
        if not self.layout.has_per_run_parameters:
            return Delays(*(x[batch.instance] for x in self.simulator.delays(point.theta)))
        # one evaluation for every recording of every instance
        delays = self.simulator.delays(point.theta[:, self.layout.index].reshape(-1, self.simulator.space.size))
        index = batch.instance * len(self.layout.run_names) + self.windows.recording[batch.window]
        return Delays(*(x[index] for x in delays))

    def stack_derivatives(self, derivatives: Float[Array, "b d ..."], batch: WindowBatch) -> Float[Array, "b D ..."]:
        """Derivatives along stacked θ and initial states, from those along single-run θ and initial states."""
        if not self.layout.has_per_run_parameters:
            return derivatives
        n = self.simulator.space.size
        result = np.zeros((len(derivatives), self.N + self.s, *derivatives.shape[2:]))
        lane, index = np.arange(len(derivatives))[:, None], self.layout.index[self.windows.recording[batch.window]]
        result[lane, index] = derivatives[:, :n]
        result[:, self.N :] = derivatives[:, n:]
        return result

    def _robust_residuals(self, r: Float[Array, "b M"]) -> RobustResiduals:
        return robust_residuals(self.settings.loss, r, self.settings.loss_scale)
