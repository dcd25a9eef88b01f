"""The objective of a fit: how far simulated windows are from measured ones, as a sum of squares.

    ½ Σ ρ(r²)   r = (reading − measurement) / noise, over all samples of all windows
  + ½ Σ d²      d = (end of a window − start of the next) / tolerance, where windows are tied together
  + ½ Σ e²      e = (start of a window − its first guess) / noise of the guess, where starts are only nearly known
  + ½ Σ p²      p = (θ − prior mean) / prior deviation, and √l2 θ
  + penalties   that have no slope at zero; see `penalty.py`

Points and results have a leading axis of P problems that are solved side by side; a diverging one costs infinity. θ is
the long one of `layout.py`, which holds the numbers of every run.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.identify.continuity import Continuity
from hybridsim.identify.normal_equations import NormalEquations
from hybridsim.identify.penalty import NO_SPARSITY, Sparsity, l2_weights, sparsity_penalty
from hybridsim.identify.robust_loss import RobustResiduals, robust
from hybridsim.identify.sampling import Sampling
from hybridsim.identify.theta_layout import ThetaLayout
from hybridsim.identify.window_simulator import Delays, Readings, WindowSimulator
from hybridsim.identify.windows import Windows

Array = np.ndarray
MEMORY = 128 * 2**20
"""Bytes that derivatives of one group of windows may take; more windows are taken group by group."""


@dataclass(frozen=True)
class Terms:
    """What is summed up."""

    loss: str = "linear"
    """Robust loss of the samples."""
    loss_scale: float = 1.0
    """Standard deviations from which on a sample counts less."""
    free_starts: bool = True
    """Are the starts of windows unknown? Otherwise their first guess is taken as it is."""
    initial_state_std: Float[Array, " s"] | None = None
    """Standard deviation of the first guess of a start, per number of its change; none: nothing is known of it."""
    tolerance: Float[Array, " s"] | None = None
    """Of the ties between windows; none: windows are independent."""
    sparsity: Sparsity = NO_SPARSITY
    """What the networks cost."""


class Point(NamedTuple):
    """Where a fit is."""

    theta: Float[Array, "P N"]
    q: Float[Array, "P W nq"]
    qd: Float[Array, "P W nv"]

    def chosen(self, which) -> "Point":
        """Some of the problems."""
        return Point(*(x[which] for x in self))


class CostGradient(NamedTuple):
    """Costs and slopes."""

    cost: Float[Array, " P"]
    theta: Float[Array, "P N"]
    start: Float[Array, "P W s"]


Pairs = tuple[Int[Array, " k"], Int[Array, " k"]]
"""Numbers of problems and windows, side by side."""


class WindowBatch(NamedTuple):
    """Windows that are simulated together: b of them, of any of the problems."""

    problem: Array
    window: Array
    arguments: tuple[Array, Array, Array]
    """θ, starts and inputs as the simulation takes them."""


class Objective:
    """A sum of squares over windows."""

    def __init__(
        self,
        simulated: WindowSimulator,
        layout: ThetaLayout,
        windows: Windows,
        guess: tuple[Array, Array],
        terms: Terms,
    ):
        """Prepare.

        Args:
            simulated: what is fitted.
            layout: θ of the runs that the windows are pieces of.
            windows: what it is fitted to.
            guess: coordinates (W, nq) and velocities (W, nv) at the start of each window.
            terms: what counts.
        """
        self.simulated, self.layout, self.windows, self.guess, self.terms = simulated, layout, windows, guess, terms
        self.n = layout.size
        self.m = len(simulated.setup.sensors.names)
        self.s = simulated.starts.size if terms.free_starts else 0
        self.penalty, self.l2 = sparsity_penalty(layout, terms.sparsity), l2_weights(layout, terms.sparsity)
        self.ties: Continuity | None = None
        if terms.tolerance is not None and self.s:
            if not simulated.with_states:
                raise ValueError("ties between windows need simulated states")
            self.ties = Continuity(windows, simulated.starts, terms.tolerance)
        delay = simulated.delays(np.asarray(simulated.space.initial)[None])
        self.sampling = Sampling(windows, delay.steps[0], delay_is_free=simulated.delay_is_free)
        # a reading comes before a step: of the last one, nobody looks at where it leads
        self.rows = max(self.sampling.rows, windows.steps + 1 if self.ties else 0)
        inputs = simulated.packed_inputs(windows.inputs, (windows.count, windows.steps))
        self.inputs = inputs[:, np.minimum(np.arange(self.rows), windows.steps - 1)]

    def reweighted(self, weight: Float[Array, "W M"]) -> "Objective":
        """The same windows with other weights of their samples."""
        other = copy(self)
        other.windows = replace(self.windows, weight=weight)
        return other

    def chosen(self, which: Int[Array, " k"]) -> "Objective":
        """The objective of some of the windows alone."""
        guess = (self.guess[0][which], self.guess[1][which])
        return Objective(self.simulated, self.layout, self.windows.chosen(which), guess, self.terms)

    def until(self, steps: int) -> "Objective":
        """The objective of the first steps of every window, as if windows were not tied."""
        terms = replace(self.terms, tolerance=None)
        return Objective(self.simulated, self.layout, self.windows.until(steps), self.guess, terms)

    def point(self, theta: Float[Array, "*P n"]) -> Point:
        """A short θ for all runs with the first guess of all starts."""
        return self.point_of_runs(self.layout.lengthened(theta))

    def point_of_runs(self, theta: Float[Array, "*P N"]) -> Point:
        """A long θ, in which runs have numbers of their own, with the first guess of all starts."""
        theta = np.atleast_2d(np.asarray(theta, dtype=float))
        q, qd = (np.repeat(np.asarray(x, dtype=float)[None], len(theta), axis=0) for x in self.guess)
        return Point(theta, q, qd)

    def retract(self, point: Point, theta: Float[Array, "P N"], start: Float[Array, "P W s"]) -> Point:
        """The point after a step."""
        new = point.theta + theta
        if not self.s:
            return point._replace(theta=new)
        return Point(new, *self.simulated.starts.moved(point.q, point.qd, start))

    # sums

    def cost(self, point: Point) -> Float[Array, " P"]:
        """The objective, for comparing points."""
        total = self._known(point).cost
        ends = self.ties.room(len(point.theta), self.windows.count, 0) if self.ties else None
        for part, _ in self._parts(point, directions=1):
            readings = self.simulated.readings(*part.arguments)
            each = 0.5 * self._robust(self._residuals(point, readings.y, part)).cost.sum(axis=1)
            np.add.at(total, part.problem, np.where(readings.ok, each, np.inf))
            if self.ties and ends:
                self.ties.keep(ends, part.problem, part.window, readings.y, None, self.m)
        if self.ties and ends:
            total += 0.5 * np.square(self.ties.defects(ends, point.q, point.qd)).sum(axis=(1, 2))
        return total

    def normal_equations(self, point: Point) -> tuple[Float[Array, " P"], NormalEquations]:
        """The objective and its Gauss–Newton approximation."""
        P, W, n, s = len(point.theta), self.windows.count, self.n, self.s
        cost, a, d = self._known(point)
        A = np.tile(np.diag(self.layout.prior_weight**2 + self.l2), (P, 1, 1))
        B, D = np.zeros((P, W, s, n)), np.zeros((P, W, s, s))
        if self._start_weight.any():
            slopes = self._from_guess(point)[1]
            D += slopes.transpose(0, 1, 3, 2) @ slopes
        ends = self.ties.room(P, W, n + s) if self.ties else None
        for part, readings, along, scaled, J in self.linearized(point):
            gram, slope = J @ J.transpose(0, 2, 1), (J @ scaled.residual[..., None])[..., 0]
            p, w, k = part.problem, part.window, self.simulated.space.size
            np.add.at(cost, p, np.where(readings.ok, 0.5 * scaled.cost.sum(axis=1), np.inf))
            if self.layout.has_own:
                own = self.layout.index[self.windows.run[w]]
                np.add.at(A, (p[:, None, None], own[:, :, None], own[:, None]), gram[:, :k, :k])
                np.add.at(a, (p[:, None], own), slope[:, :k])
                B[p[:, None, None], w[:, None, None], np.arange(s)[None, :, None], own[:, None]] += gram[:, k:, :k]
            else:
                np.add.at(A, p, gram[:, :n, :n])
                np.add.at(a, p, slope[:, :n])
                B[p, w] += gram[:, n:, :n]
            D[p, w] += gram[:, k:, k:]
            d[p, w] += slope[:, k:]
            if self.ties and ends:
                self.ties.keep(ends, p, w, readings.y, self.by_long_theta(along, part), self.m)
        C = None
        if self.ties and ends:
            of_ties, C = self.ties.add(ends, point.q, point.qd, A, a, B, D, d)
            cost += of_ties
        return cost, NormalEquations(A, a, B, D, d, C)

    def linearized(
        self, point: Point
    ) -> Iterator[tuple[WindowBatch, Readings, Array, RobustResiduals, Float[Array, "b d M"]]]:
        """Group by group: readings and their derivatives, residuals, and the Jacobian of these, one row per direction.

        Directions are the entries of the short θ, then the numbers of a change of the window's own start.
        """
        for part, _ in self._parts(point, directions=self.n + self.s):
            readings, along = self.simulated.derivatives(*part.arguments, *self._directions(point, part))
            scaled = self._robust(self._residuals(point, readings.y, part))
            J = self._sample_slopes(point, readings.y, along, part) * scaled.slope[:, None]
            yield part, readings, along, scaled, J

    def start_costs(self, point: Point, pairs: Pairs) -> Float[Array, " k"]:
        """What some windows cost, each by itself: its samples, and its start if that is nearly known."""
        off, _ = self._from_guess(point)
        costs = 0.5 * np.square(off[pairs]).sum(axis=1)
        for part, rows in self._parts(point, directions=1, pairs=pairs):
            readings = self.simulated.readings(*part.arguments)
            each = 0.5 * self._robust(self._residuals(point, readings.y, part)).cost.sum(axis=1)
            costs[rows] += np.where(readings.ok, each, np.inf)
        return costs

    def start_equations(
        self, point: Point, pairs: Pairs
    ) -> tuple[Float[Array, " k"], Float[Array, "k s"], Float[Array, "k s s"]]:
        """The same with its gradient and Gauss–Newton matrix by each window's start, θ as it is."""
        off, slopes = (x[pairs] for x in self._from_guess(point))
        costs = 0.5 * np.square(off).sum(axis=1)
        d, D = (off[:, None] @ slopes)[:, 0], slopes.transpose(0, 2, 1) @ slopes
        for part, rows in self._parts(point, directions=self.s, pairs=pairs):
            along = self.simulated.starts.directions(
                point.q[part.problem, part.window], point.qd[part.problem, part.window]
            )
            held = np.zeros((1, self.s, self.simulated.space.size))
            readings, along = self.simulated.derivatives(*part.arguments, held, along)
            scaled = self._robust(self._residuals(point, readings.y, part))
            J = self._sample_slopes(point, readings.y, along, part) * scaled.slope[:, None]
            costs[rows] += np.where(readings.ok, 0.5 * scaled.cost.sum(axis=1), np.inf)
            d[rows] += (J @ scaled.residual[..., None])[..., 0]
            D[rows] += J @ J.transpose(0, 2, 1)
        return costs, d, D

    def gradient(self, point: Point, which: Array | None = None) -> CostGradient:
        """The objective and its gradient by a reverse sweep.

        Args:
            point: where.
            which: windows to take, counted as if they were all; all of them by default.

        Raises:
            HybridsimError: there are penalties that have no slope at zero.
        """
        self.penalty.check_slopes()
        if self.ties or self.simulated.delay_is_free:
            cost, equations = self.normal_equations(point)
            return CostGradient(cost, equations.a, equations.d)
        cost, of_theta, of_start = self._known(point)
        share = 1.0 if which is None else self.windows.count / len(which)
        for part, _ in self._parts(point, directions=1, pairs=self._all(point, which)):
            readings = self.simulated.readings(*part.arguments)
            scaled = self._robust(self._residuals(point, readings.y, part))
            by_sample = scaled.residual * scaled.slope * self.windows.weight[part.window]
            found = self.simulated.pulled_back(
                *part.arguments, self.sampling.spread(by_sample, part.window, *readings.y.shape[1:])
            )
            p, w = part.problem, part.window
            np.add.at(cost, p, share * np.where(readings.ok, 0.5 * scaled.cost.sum(axis=1), np.inf))
            np.add.at(of_theta, (p[:, None], self.layout.index[self.windows.run[w]]), share * found.theta)
            if self.s:
                of_start[p, w] += share * self.simulated.starts.change_cotangents(
                    point.q[p, w], point.qd[p, w], found.start
                )
        return CostGradient(cost, of_theta, of_start)

    def samples(self, point: Point) -> tuple[Float[Array, "P W M"], Bool[Array, "P W"]]:
        """Simulated readings at the times of the measurements, and which windows did not diverge."""
        shape = (len(point.theta), self.windows.count)
        found, ok = np.zeros((*shape, self.windows.value.shape[1])), np.zeros(shape, dtype=bool)
        for part, _ in self._parts(point, directions=1):
            readings = self.simulated.readings(*part.arguments)
            found[part.problem, part.window] = self._sampled(point, readings.y, part)
            ok[part.problem, part.window] = readings.ok
        return found, ok

    # parts

    def _all(self, point: Point, which: Array | None = None) -> Pairs:
        """All problems with all windows, or with some."""
        chosen = np.arange(self.windows.count) if which is None else which
        problem, window = (x.ravel() for x in np.meshgrid(np.arange(len(point.theta)), chosen, indexing="ij"))
        return problem, window

    def _parts(self, point: Point, directions: int, pairs: Pairs | None = None) -> Iterator[tuple[WindowBatch, slice]]:
        """All windows of all problems, or some, in groups whose derivatives fit into memory, each with its place."""
        problem, window = self._all(point) if pairs is None else pairs
        size = max(MEMORY // (8 * max(directions, 1) * self.rows * self.simulated.width), 1)
        for first in range(0, len(problem), size):
            rows = slice(first, first + size)
            p, w = problem[rows], window[rows]
            theta = point.theta[0] if len(point.theta) == 1 else point.theta[p]
            if self.layout.has_own:
                theta = np.take_along_axis(point.theta[p], self.layout.index[self.windows.run[w]], axis=1)
            start = self.simulated.starts.rows(point.q[p, w], point.qd[p, w], self.windows.start[w])
            yield WindowBatch(p, w, (theta, start, self.inputs[w])), rows

    def _directions(self, point: Point, part: WindowBatch) -> tuple[Array, Array]:
        """Along every entry of the short θ, then along every number of a change of the start."""
        n, s = self.simulated.space.size, self.s
        cells = part.arguments[1].shape[1]
        of_start = np.zeros((1, n, cells))
        if s:
            along = self.simulated.starts.directions(
                point.q[part.problem, part.window], point.qd[part.problem, part.window]
            )
            of_start = np.concatenate([np.zeros((len(along), n, cells)), along], axis=1)
        return np.eye(n + s, n)[None], of_start

    def _start_directions(self, point: Point, part: WindowBatch) -> Array:
        where = (part.problem, part.window)
        return self.simulated.starts.directions(point.q[where], point.qd[where])

    def _sampled(self, point: Point, y: Array, part: WindowBatch) -> Float[Array, "b M"]:
        readings = y[..., : self.m]
        if not self.simulated.delay_is_free:
            return self.sampling.picked(readings, part.window)
        return self.sampling.delayed(readings, part.window, self._delays(point, part).steps)[0]

    def _residuals(self, point: Point, y: Array, part: WindowBatch) -> Float[Array, "b M"]:
        w = self.windows
        return w.weight[part.window] * (self._sampled(point, y, part) - w.value[part.window])

    def _sample_slopes(self, point: Point, y: Array, along: Array, part: WindowBatch) -> Float[Array, "b d M"]:
        """Derivatives of the residuals along all directions, of the short θ."""
        weight, readings = self.windows.weight[part.window][:, None], along[..., : self.m]
        if not self.simulated.delay_is_free:
            return weight * self.sampling.picked(readings, part.window)
        delay = self._delays(point, part)
        slopes, _ = self.sampling.delayed(readings, part.window, delay.steps)
        _, by_delay = self.sampling.delayed(y[..., : self.m], part.window, delay.steps)
        channel = self.windows.channel[part.window]
        own = np.take_along_axis(delay.by_theta, channel[:, None], axis=2)  # (b, n, M)
        if along.shape[1] == own.shape[1] + self.s:  # otherwise θ stays as it is
            slopes[:, : own.shape[1]] += own * by_delay[:, None]
        return weight * slopes

    def _delays(self, point: Point, part: WindowBatch) -> Delays:
        """Delays in each window of a part."""
        if not self.layout.has_own:
            return Delays(*(x[part.problem] for x in self.simulated.delays(point.theta)))
        # one evaluation for every run of every problem
        found = self.simulated.delays(point.theta[:, self.layout.index].reshape(-1, self.simulated.space.size))
        which = part.problem * len(self.layout.runs) + self.windows.run[part.window]
        return Delays(*(x[which] for x in found))

    def by_long_theta(self, slopes: Float[Array, "b d ..."], part: WindowBatch) -> Float[Array, "b D ..."]:
        """Derivatives along the short θ and starts as those along the long θ and starts."""
        if not self.layout.has_own:
            return slopes
        n = self.simulated.space.size
        found = np.zeros((len(slopes), self.n + self.s, *slopes.shape[2:]))
        found[np.arange(len(slopes))[:, None], self.layout.index[self.windows.run[part.window]]] = slopes[:, :n]
        found[:, self.n :] = slopes[:, n:]
        return found

    def _robust(self, r: Float[Array, "b M"]) -> RobustResiduals:
        return robust(self.terms.loss, r, self.terms.loss_scale)

    # what is known beside the measurements

    def _known(self, point: Point) -> CostGradient:
        """Cost and gradient of what does not need a simulation: priors of θ, penalties and guesses of starts.

        Of penalties that have no slope at zero, the gradient is left out.
        """
        layout = self.layout
        off = layout.prior_weight * (point.theta - layout.prior_mean)
        cost = 0.5 * np.square(off).sum(axis=1) + 0.5 * (self.l2 * np.square(point.theta)).sum(axis=1)
        cost = cost + self.penalty(point.theta)
        of_theta = layout.prior_weight * off + self.l2 * point.theta
        from_guess, slopes = self._from_guess(point)
        cost = cost + 0.5 * np.square(from_guess).sum(axis=(1, 2))
        return CostGradient(cost, of_theta, (from_guess[:, :, None] @ slopes)[:, :, 0])

    def _from_guess(self, point: Point) -> tuple[Float[Array, "P W s"], Float[Array, "P W s s"]]:
        """Weighted distances of the starts from their first guesses, and how they change with the starts."""
        shape = (*point.q.shape[:2], self.s)
        if not self._start_weight.any():
            return np.zeros(shape), np.zeros((*shape, self.s))
        q, qd = np.broadcast_to(self.guess[0], point.q.shape), np.broadcast_to(self.guess[1], point.qd.shape)
        off = self.simulated.starts.change(q, qd, point.q, point.qd)
        slopes = self.simulated.starts.change_slopes(q, point.q)[1]
        return self._start_weight * off, self._start_weight[:, None] * slopes

    @cached_property
    def _start_weight(self) -> Float[Array, " s"]:
        noise = self.terms.initial_state_std
        return np.zeros(self.s) if noise is None or not self.s else 1.0 / np.asarray(noise, dtype=float)
