"""The objective of a fit: how far simulated windows are from measured ones, as a sum of squares.

    ½ Σ ρ(r²)   r = (reading − measurement) / noise, over all samples of all windows
  + ½ Σ d²      d = (end of a window − start of the next) / tolerance, where windows are tied together
  + ½ Σ e²      e = (start of a window − its first guess) / noise of the guess, where starts are only nearly known
  + ½ Σ p²      p = (θ − prior mean) / prior deviation, and √l2 θ

Points and results have a leading axis of P problems that are solved side by side; a diverging one costs infinity.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.identify.normal_equations import NormalEquations
from hybridsim.identify.robust import Robust, robust
from hybridsim.identify.sampling import Sampling
from hybridsim.identify.simulated import Readings, Simulated
from hybridsim.identify.ties import Ties
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
    start_noise: Float[Array, " s"] | None = None
    """Standard deviation of the first guess of a start, per number of its change; none: nothing is known of it."""
    tolerance: Float[Array, " s"] | None = None
    """Of the ties between windows; none: windows are independent."""


class Point(NamedTuple):
    """Where a fit is."""

    theta: Float[Array, "P n"]
    q: Float[Array, "P W nq"]
    qd: Float[Array, "P W nv"]

    def chosen(self, which) -> "Point":
        """Some of the problems."""
        return Point(*(x[which] for x in self))


class Sums(NamedTuple):
    """Costs and slopes."""

    cost: Float[Array, " P"]
    theta: Float[Array, "P n"]
    start: Float[Array, "P W s"]


class Part(NamedTuple):
    """Windows that are simulated together: b of them, of any of the problems."""

    problem: Array
    window: Array
    arguments: tuple[Array, Array, Array]
    """θ, starts and inputs as the simulation takes them."""


class Objective:
    """A sum of squares over windows."""

    def __init__(self, simulated: Simulated, windows: Windows, guess: tuple[Array, Array], terms: Terms):
        """Prepare.

        Args:
            simulated: what is fitted.
            windows: what it is fitted to.
            guess: coordinates (W, nq) and velocities (W, nv) at the start of each window.
            terms: what counts.
        """
        self.simulated, self.windows, self.guess, self.terms = simulated, windows, guess, terms
        self.n = len(simulated.space.names)
        self.m = len(simulated.setup.sensors.names)
        self.s = simulated.starts.size if terms.free_starts else 0
        self.ties: Ties | None = None
        if terms.tolerance is not None and self.s:
            if not simulated.with_states:
                raise ValueError("ties between windows need simulated states")
            self.ties = Ties(windows, simulated.starts, terms.tolerance)
        delay = simulated.delays(np.asarray(simulated.space.start)[None])
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

    def point(self, theta: Float[Array, "*P n"]) -> Point:
        """θ with the first guess of all starts."""
        theta = np.atleast_2d(np.asarray(theta, dtype=float))
        q, qd = (np.repeat(np.asarray(x, dtype=float)[None], len(theta), axis=0) for x in self.guess)
        return Point(theta, q, qd)

    def moved(self, point: Point, theta: Float[Array, "P n"], start: Float[Array, "P W s"]) -> Point:
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
        for part in self._parts(point, directions=1):
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
        A = np.tile(np.diag(self._prior_weight**2 + self.simulated.space.l2), (P, 1, 1))
        B, D = np.zeros((P, W, s, n)), np.zeros((P, W, s, s))
        if self._start_weight.any():
            slopes = self._guess_slopes(point)
            D += slopes.transpose(0, 1, 3, 2) @ slopes
        ends = self.ties.room(P, W, n + s) if self.ties else None
        for part, readings, along, scaled, J in self.linearized(point):
            gram, slope = J @ J.transpose(0, 2, 1), (J @ scaled.residual[..., None])[..., 0]
            p, w = part.problem, part.window
            np.add.at(cost, p, np.where(readings.ok, 0.5 * scaled.cost.sum(axis=1), np.inf))
            np.add.at(A, p, gram[:, :n, :n])
            np.add.at(a, p, slope[:, :n])
            B[p, w] += gram[:, n:, :n]
            D[p, w] += gram[:, n:, n:]
            d[p, w] += slope[:, n:]
            if self.ties and ends:
                self.ties.keep(ends, p, w, readings.y, along, self.m)
        C = None
        if self.ties and ends:
            of_ties, C = self.ties.add(ends, point.q, point.qd, A, a, B, D, d)
            cost += of_ties
        return cost, NormalEquations(A, a, B, D, d, C)

    def linearized(self, point: Point) -> Iterator[tuple[Part, Readings, Array, Robust, Float[Array, "b d M"]]]:
        """Group by group: readings and their derivatives, residuals, and the Jacobian of these, one row per direction.

        Directions are the entries of θ, then the numbers of a change of the window's own start.
        """
        for part in self._parts(point, directions=self.n + self.s):
            readings, along = self.simulated.derivatives(*part.arguments, *self._directions(point, part))
            scaled = self._robust(self._residuals(point, readings.y, part))
            J = self._sample_slopes(point, readings.y, along, part) * scaled.slope[:, None]
            yield part, readings, along, scaled, J

    def slopes(self, point: Point, which: Array | None = None) -> Sums:
        """The objective and its gradient by a reverse sweep.

        Args:
            point: where.
            which: windows to take, counted as if they were all; all of them by default.
        """
        if self.ties or self.simulated.delay_is_free:
            cost, equations = self.normal_equations(point)
            return Sums(cost, equations.a, equations.d)
        cost, of_theta, of_start = self._known(point)
        share = 1.0 if which is None else self.windows.count / len(which)
        for part in self._parts(point, directions=1, which=which):
            readings = self.simulated.readings(*part.arguments)
            scaled = self._robust(self._residuals(point, readings.y, part))
            by_sample = scaled.residual * scaled.slope * self.windows.weight[part.window]
            found = self.simulated.pulled_back(
                *part.arguments, self.sampling.spread(by_sample, part.window, *readings.y.shape[1:])
            )
            p, w = part.problem, part.window
            np.add.at(cost, p, share * np.where(readings.ok, 0.5 * scaled.cost.sum(axis=1), np.inf))
            np.add.at(of_theta, p, share * found.theta)
            if self.s:
                of_start[p, w] += share * self.simulated.starts.change_cotangents(point.q[p, w], found.start)
        return Sums(cost, of_theta, of_start)

    def samples(self, point: Point) -> tuple[Float[Array, "P W M"], Bool[Array, "P W"]]:
        """Simulated readings at the times of the measurements, and which windows did not diverge."""
        shape = (len(point.theta), self.windows.count)
        found, ok = np.zeros((*shape, self.windows.value.shape[1])), np.zeros(shape, dtype=bool)
        for part in self._parts(point, directions=1):
            readings = self.simulated.readings(*part.arguments)
            found[part.problem, part.window] = self._sampled(point, readings.y, part)
            ok[part.problem, part.window] = readings.ok
        return found, ok

    # parts

    def _parts(self, point: Point, directions: int, which: Array | None = None) -> Iterator[Part]:
        """All windows of all problems, in groups whose derivatives fit into memory."""
        chosen = np.arange(self.windows.count) if which is None else which
        problem, window = (x.ravel() for x in np.meshgrid(np.arange(len(point.theta)), chosen, indexing="ij"))
        size = max(MEMORY // (8 * directions * self.rows * self.simulated.width), 1)
        for first in range(0, len(problem), size):
            p, w = problem[first : first + size], window[first : first + size]
            theta = point.theta[0] if len(point.theta) == 1 else point.theta[p]
            start = self.simulated.starts.rows(point.q[p, w], point.qd[p, w], self.windows.start[w])
            yield Part(p, w, (theta, start, self.inputs[w]))

    def _directions(self, point: Point, part: Part) -> tuple[Array, Array]:
        """Along every entry of θ, then along every number of a change of the start."""
        n, s = self.n, self.s
        cells = part.arguments[1].shape[1]
        of_start = np.zeros((1, n, cells))
        if s:
            along = self.simulated.starts.directions(point.q[part.problem, part.window])
            of_start = np.concatenate([np.zeros((len(along), n, cells)), along], axis=1)
        return np.eye(n + s, n)[None], of_start

    def _sampled(self, point: Point, y: Array, part: Part) -> Float[Array, "b M"]:
        readings = y[..., : self.m]
        if not self.simulated.delay_is_free:
            return self.sampling.picked(readings, part.window)
        delay = self.simulated.delays(point.theta).steps[part.problem]
        return self.sampling.delayed(readings, part.window, delay)[0]

    def _residuals(self, point: Point, y: Array, part: Part) -> Float[Array, "b M"]:
        w = self.windows
        return w.weight[part.window] * (self._sampled(point, y, part) - w.value[part.window])

    def _sample_slopes(self, point: Point, y: Array, along: Array, part: Part) -> Float[Array, "b d M"]:
        """Derivatives of the residuals along all directions."""
        weight, readings = self.windows.weight[part.window][:, None], along[..., : self.m]
        if not self.simulated.delay_is_free:
            return weight * self.sampling.picked(readings, part.window)
        delay = self.simulated.delays(point.theta)
        late = delay.steps[part.problem]
        slopes, _ = self.sampling.delayed(readings, part.window, late)
        _, by_delay = self.sampling.delayed(y[..., : self.m], part.window, late)
        channel = self.windows.channel[part.window]
        own = np.take_along_axis(delay.by_theta[part.problem], channel[:, None], axis=2)  # (b, n, M)
        slopes[:, : self.n] += own * by_delay[:, None]
        return weight * slopes

    def _robust(self, r: Float[Array, "b M"]) -> Robust:
        return robust(self.terms.loss, r, self.terms.loss_scale)

    # what is known beside the measurements

    def _known(self, point: Point) -> Sums:
        """Cost and gradient of what does not need a simulation: priors of θ and guesses of starts."""
        space = self.simulated.space
        off = self._prior_weight * (point.theta - np.where(self._prior_weight > 0.0, space.prior_mean, 0.0))
        cost = 0.5 * np.square(off).sum(axis=1) + 0.5 * (space.l2 * np.square(point.theta)).sum(axis=1)
        of_theta = self._prior_weight * off + space.l2 * point.theta
        of_start = np.zeros((*point.q.shape[:2], self.s))
        if self._start_weight.any():
            q, qd = np.broadcast_to(self.guess[0], point.q.shape), np.broadcast_to(self.guess[1], point.qd.shape)
            off = self._start_weight * self.simulated.starts.change(q, qd, point.q, point.qd)
            cost = cost + 0.5 * np.square(off).sum(axis=(1, 2))
            of_start = (off[:, :, None] @ self._guess_slopes(point))[:, :, 0]
        return Sums(cost, of_theta, of_start)

    def _guess_slopes(self, point: Point) -> Float[Array, "P W s s"]:
        """How the weighted distances from the first guesses change with the starts."""
        q = np.broadcast_to(self.guess[0], point.q.shape)
        return self._start_weight[:, None] * self.simulated.starts.change_slopes(q, point.q)[1]

    @cached_property
    def _prior_weight(self) -> Float[Array, " n"]:
        return 1.0 / np.asarray(self.simulated.space.prior_std, dtype=float)

    @cached_property
    def _start_weight(self) -> Float[Array, " s"]:
        noise = self.terms.start_noise
        return np.zeros(self.s) if noise is None or not self.s else 1.0 / np.asarray(noise, dtype=float)
