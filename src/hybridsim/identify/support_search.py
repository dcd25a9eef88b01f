"""The search of one seed for the smallest set of inputs that explains the data.

Networks are fitted with all inputs; then inputs cost more and more, and one after the other is dropped (a group lasso,
adaptive as Zou 2006 has it: what the first fit hardly uses costs most). Every set of inputs on that path is fitted
again without a penalty and judged on runs that no fit has seen; the smallest that is not worse than the best is reduced
further input by input. Where all inputs together explain no more than none, they are tried one by one instead.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import DivergedError
from hybridsim.identify.fit import fit
from hybridsim.identify.penalty import Sparsity
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.score import score_windows
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.networks.prune import CONSTANT, Column, input_addresses, reseeded, silenced
from hybridsim.networks.weight_name import weight_name
from hybridsim.params.space import ParameterSpace

Array = np.ndarray
Support = frozenset[Column]
"""Inputs that networks read; a constant is among them only where its network reads nothing."""
FIRST_COST, GROWTH, LEAST_GROWTH = 1e-5, 4.0, 1.5
"""What an input costs at first, by the cost of the model without networks; how fast that grows at most, and at least
where many inputs go at once."""
SURE = 3.0
"""Standard deviations by which an error must be larger to count as larger."""
SAME = 0.01
"""Share of a squared error that does not count; nor does such a share of the noise's variance: nobody could see it."""
FEWEST_WINDOWS = 4
"""To be compared one by one."""
FAINTEST = 1e-6
"""Size of an input, by the largest, below which it counts as being of that size."""


class Candidate(NamedTuple):
    """A set of inputs, fitted without a penalty."""

    support: Support
    theta: Float[Array, " n"]
    error: float
    """On held-out runs, in standard deviations of the noise."""
    squares: Float[Array, " W"] | None = None
    """Mean squares of the windows that this is made of; None where it was read from a record."""


class SeedResult(NamedTuple):
    """What one seed led to."""

    seed: int
    dense: Candidate
    """All inputs."""
    path: tuple[Candidate, ...]
    """Sets of inputs that were tried on the way, those of the penalty first."""
    best: Candidate
    """The smallest that is as good as any."""


@dataclass(frozen=True)
class SupportSearch:
    """What one seed is led through."""

    problem: FitProblem
    stage: Stage
    warm_up: Sequence[Stage]
    columns: tuple[Column, ...]
    start: Float[Array, " n"]
    """θ with fresh networks."""
    tell: Callable[[str], None]

    def chosen(self, seed: int) -> SeedResult:
        """The smallest set of inputs that is as good as any."""
        everything = frozenset(c for c in self.columns if c.column != CONSTANT)
        theta = fit(
            self.problem.with_space(self.problem.space.with_initial(self.start)), [*self.warm_up, self.stage]
        ).theta
        dense = self.judged(everything, theta)
        self.tell(f"all {len(everything)} inputs, error {dense.error:.3g} of the noise")
        nothing = self.judged(frozenset(), theta_with_silent_networks(self.problem, self.columns))
        path = [
            self.judged(support, self.refitted([self.stage], support, theta))
            for support, theta in self.path(dense, nothing).items()
        ]
        if not any(self.is_worse(nothing, one) for one in (dense, *path)):
            path += self.one_by_one(nothing)
        tried = (nothing, dense, *path)
        reference = min(tried, key=lambda c: c.error)
        best = min((c for c in tried if not self.is_worse(c, reference)), key=lambda c: (_rank(c.support), c.error))
        best = self.reduced(best, reference)
        best = min(best, self.anew(best.support), key=lambda c: c.error)
        return SeedResult(seed, dense, tuple(path), best)

    def path(self, dense: Candidate, nothing: Candidate) -> dict[Support, Array]:
        """Sets of inputs that a growing penalty leads through, each with the last θ that it was seen with.

        All inputs cost the same as long as they are as large as the fit with all of them has made them.
        """
        sizes = np.array([np.linalg.norm(dense.theta[list(c.entries)]) for c in self.columns])
        sizes = np.maximum(sizes, FAINTEST * (sizes.max() or 1.0))
        runs, channels = self.problem.train, self.problem.measured.noise
        most = nothing.error**2 * sum(len(run.series[name].t) for run in runs for name in channels)
        cost, growth = FIRST_COST * most, GROWTH
        solver = LevenbergMarquardt(max_steps=15, cost_tolerance=1e-4)
        theta, support = dense.theta, dense.support
        found: dict[Support, Array] = {}
        while cost <= most:
            groups = tuple((c.entries, cost / size) for c, size in zip(self.columns, sizes, strict=True))
            sparsity = Sparsity(groups=groups, upper_layers=cost / sizes.max())
            stage = replace(self.stage, sparsity=sparsity, solver=solver)
            tried = self.fitted(self.problem.space.with_initial(theta), [stage])
            left = self.left_in(tried)
            if len(support) - len(left) > max(1, len(support) // 2) and growth > LEAST_GROWTH:
                growth = np.sqrt(growth)
                cost /= growth
                continue
            if self.judged(left, tried).error > 2.0 * nothing.error:
                break  # where a mechanism is too stiff for its time step, costs lead nowhere
            theta, support, found[left] = tried, left, tried
            self.tell(f"inputs cost {cost:.3g}, {len(left)} are left")
            if not left:
                break
            growth = min(growth * growth, GROWTH)
            cost *= growth
        return found

    def left_in(self, theta: Array) -> Support:
        """Inputs with any weight; constants of networks that have none."""
        there = [c for c in self.columns if np.any(theta[list(c.entries)])]
        reading = {c.graft for c in there if c.column != CONSTANT}
        return frozenset(c for c in there if c.column != CONSTANT or c.graft not in reading)

    def one_by_one(self, nothing: Candidate) -> list[Candidate]:
        """Add input after input, the best first, as long as that makes something better."""
        found, here = [], nothing
        while others := [c for c in self.columns if c not in here.support and not _is_needless(c, here.support)]:
            larger = [self.anew(_with(here.support, column)) for column in others]
            best = min(larger, key=lambda c: c.error)
            if not self.is_worse(here, best):
                return found
            found.append(best)
            here = best
        return found

    def reduced(self, best: Candidate, reference: Candidate) -> Candidate:
        """Leave out input after input, as long as that makes nothing worse; first those that are missed least."""
        while best.support:
            smaller = list(_smaller(best.support, self.columns))
            without = np.stack([self.space_of(support, best.theta).initial for support in smaller])
            order = np.argsort(np.sqrt(self.squares(without).mean(axis=1)), kind="stable")
            for support in (smaller[k] for k in order):
                found = self.judged(support, self.refitted([self.stage], support, best.theta))
                found = self.anew(support) if self.is_worse(found, reference) else found
                if not self.is_worse(found, reference):
                    break
            else:
                return best
            best = found
        return best

    def anew(self, support: Support) -> Candidate:
        """A set of inputs fitted from the beginning: what many inputs have led to may be a bad start for few."""
        return self.judged(support, self.refitted([*self.warm_up, self.stage], support, self.start))

    def refitted(self, stages: Sequence[Stage], support: Support, theta: Array) -> Array:
        """θ of a fit without a penalty, with all other inputs left out."""
        space = self.space_of(support, theta)
        return self.fitted(space, stages) if support else space.initial

    def fitted(self, space: ParameterSpace, stages: Sequence[Stage]) -> Array:
        """θ of a fit; where motions diverge from the start, the start, which is judged like any other."""
        try:
            return fit(self.problem.with_space(space), stages).theta
        except DivergedError:
            return space.initial

    def space_of(self, support: Support, theta: Array) -> ParameterSpace:
        """Numbers of which those of other inputs are held where they do nothing."""
        gone = {c.graft for c in self.columns} - {c.graft for c in support}
        left_out = [k for c in self.columns if c.column >= 0 and c not in support for k in c.entries]
        space = self.problem.space.with_initial(theta).with_fixed(left_out, 0.0)
        entries = [k for k, name in enumerate(map(weight_name, space.labels)) if name and name.graft in gone]
        return space.with_fixed(entries, theta_with_silent_networks(self.problem, self.columns)[entries])

    def judged(self, support: Support, theta: Array) -> Candidate:
        """A set of inputs with its error."""
        squares = self.squares(theta[None])[0]
        return Candidate(support, theta, float(np.sqrt(squares.mean())), squares)

    def squares(self, thetas: Float[Array, "P n"]) -> Float[Array, "P W"]:
        """Mean squares of the errors of held-out windows, in variances of the noise."""
        of, stage = self.problem, self.stage
        found = score_windows(of, thetas, of.held_out, stage.window, burn_in=stage.burn_in).errors
        return np.square(np.where(np.isfinite(found), found, np.inf))

    def is_worse(self, one: Candidate, reference: Candidate) -> bool:
        """Is a set of inputs worse than another by more than chance?

        That is so if its errors are larger than noise of as many samples could make them, or if they are larger window
        by window: both are compared with the same samples, so that most of the noise is in both and does not count.
        """
        assert one.squares is not None and reference.squares is not None
        if not np.isfinite(one.squares).all():
            return True
        change, squares = one.squares - reference.squares, float(reference.squares.mean())
        runs, channels = self.problem.held_out, self.problem.measured.noise
        doubts = [SURE * squares * np.sqrt(2.0 / sum(len(run.series[name].t) for run in runs for name in channels))]
        if len(change) >= FEWEST_WINDOWS:
            doubts.append(SURE * float(np.std(change, ddof=1)) / np.sqrt(len(change)))
        return bool(change.mean() > max(min(doubts), SAME * max(squares, 1.0)))


def theta_with_fresh_networks(problem: FitProblem, seed: int) -> Array:
    """θ with networks as they are before any fit, with first weights of another seed."""
    grafts = problem.setup.sim.blueprint.grafts
    return _with_networks(problem, [reseeded(graft.net, seed + 1000 * k) for k, graft in enumerate(grafts)])


def theta_with_silent_networks(problem: FitProblem, columns: Sequence[Column]) -> Array:
    """θ with networks that do nothing, of those that can be left out."""
    sim, free = problem.setup.sim, {c.graft for c in columns}
    pairs = zip(sim.blueprint.grafts, sim.bound_blueprint().grafts, strict=True)
    nets = [
        silenced(graft, len(input_addresses(bound))) if number in free else graft.net
        for number, (graft, bound) in enumerate(pairs)
    ]
    return _with_networks(problem, nets)


def _with_networks(problem: FitProblem, nets: list) -> Array:
    """θ with other numbers of networks than at the start."""
    other = eqx.tree_at(lambda s: [graft.net for graft in s.sim.blueprint.grafts], problem.setup, nets)
    return np.where(problem.space.is_weight, problem.space.theta_of(other), problem.space.initial)


def _rank(support: Support) -> float:
    """How much a set of inputs asks for; a constant is less than an input."""
    return sum(0.5 if c.column == CONSTANT else 1.0 for c in support)


def _smaller(support: Support, columns: Sequence[Column]) -> Iterator[Support]:
    """Sets with one input less; where it was the last of a network, also with a constant in its place."""
    constants = {c.graft: c for c in columns if c.column == CONSTANT}
    for column in sorted(support):
        rest = support - {column}
        yield rest
        if column.column >= 0 and column.graft in constants and all(c.graft != column.graft for c in rest):
            yield rest | {constants[column.graft]}


def _with(support: Support, column: Column) -> Support:
    """A set with one input more, which makes a constant of its network needless, or with a constant."""
    return frozenset(c for c in support if (c.graft, c.column) != (column.graft, CONSTANT)) | {column}


def _is_needless(column: Column, support: Support) -> bool:
    """Is this the constant of a network that reads something?"""
    return column.column == CONSTANT and any(c.graft == column.graft for c in support)
