"""Discovery: of many networks and quantities that they might read, the few that explain the data.

A blueprint of candidates names sites where something may be missing and everything that it may depend on. For several
seeds, networks are fitted with all inputs; then inputs cost more and more, and one after the other is dropped (a group
lasso, adaptive as Zou 2006 has it: what the first fit hardly uses costs most). A network with a structure, of which no
input can be taken away, counts as one input: it stays or goes as a whole. Every set of inputs on that path is fitted
again without a penalty and judged on runs that no fit has seen; the smallest that is not worse than the best, as far as
noise allows to tell, is reduced further input by input. How often an input is chosen tells how sure that is (stability
selection, Meinshausen & Bühlmann 2010).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import DivergedError, HybridsimError
from hybridsim.identify.fit import fit
from hybridsim.identify.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.penalty import Sparsity
from hybridsim.identify.problem import Problem, Stage
from hybridsim.identify.score import explained
from hybridsim.params.space import ParameterSpace
from hybridsim.taps.blueprint import Blueprint
from hybridsim.taps.columns import WHOLE, Column, columns_of, pruned, reseeded, silenced

Array = np.ndarray
Support = frozenset[Column]
"""Inputs that networks read."""
FIRST_COST, GROWTH, LEAST_GROWTH = 1e-5, 4.0, 1.5
"""What an input costs at first, by the cost of the model without networks; how fast that grows at most, and at least
where many inputs go at once."""
SURE = 3.0
"""Standard deviations by which an error must be larger to count as larger."""
NEGLIGIBLE = 0.02
"""Error in standard deviations of the noise that nobody could ever see."""


class Candidate(NamedTuple):
    """A set of inputs, fitted without a penalty."""

    support: Support
    theta: Float[Array, " n"]
    error: float
    """On held-out runs, in standard deviations of the noise."""


class Chosen(NamedTuple):
    """What one seed led to."""

    seed: int
    dense: Candidate
    """All inputs."""
    path: tuple[Candidate, ...]
    """Sets of inputs that a growing penalty led through, the largest first."""
    best: Candidate
    """The smallest that is as good as any."""


@dataclass(frozen=True)
class Discovery:
    """What was found."""

    problem: Problem
    columns: tuple[Column, ...]
    """All inputs that there were."""
    plain: float
    """Error of the model without networks on held-out runs, in standard deviations of the noise."""
    seeds: tuple[Chosen, ...]

    @property
    def frequency(self) -> dict[Column, float]:
        """Share of the seeds that chose an input."""
        counts = Counter(column for chosen in self.seeds for column in chosen.best.support)
        return {column: counts[column] / len(self.seeds) for column in self.columns}

    @property
    def support(self) -> Support:
        """Inputs that most seeds chose."""
        return frozenset(column for column, share in self.frequency.items() if share > 0.5)

    @property
    def sites(self) -> dict[tuple[str, ...], float]:
        """Share of the seeds that left a network in its place, by what it changes."""
        grafts = {column.graft: column.outputs for column in self.columns}
        chosen = [{column.graft for column in one.best.support} for one in self.seeds]
        return {outputs: sum(graft in some for some in chosen) / len(chosen) for graft, outputs in grafts.items()}

    @property
    def best(self) -> Chosen:
        """The seed with the smallest error of those that chose what most chose; of all if none did."""
        agreeing = [chosen for chosen in self.seeds if chosen.best.support == self.support]
        return min(agreeing or self.seeds, key=lambda chosen: chosen.best.error)

    def blueprint(self, *, dense: bool = False) -> Blueprint:
        """Networks of the best seed with the inputs that are left, or with all of them before any was dropped."""
        found = self.best.dense if dense else self.best.best
        sim = self.problem.space.put(self.problem.setup, found.theta).sim
        left_out = {(column.graft, column.column) for column in self.columns if column not in found.support}
        return pruned(sim.blueprint, sim.bound_blueprint(), left_out)


def discover(
    problem: Problem,
    stage: Stage,
    *,
    seeds: Sequence[int] = range(5),
    warm_up: Sequence[Stage] = (),
    known: Mapping[int, Chosen] | None = None,
    keep: Callable[[Chosen], None] = lambda chosen: None,
    tell: Callable[[str], None] = lambda words: None,
) -> Discovery:
    """Find the smallest set of inputs that explains the data.

    Args:
        problem: with candidate grafts whose networks are free, and with held-out runs.
        stage: windows that everything is fitted on and judged by.
        seeds: of the networks' first weights.
        warm_up: stages of the first fit, before this one.
        known: seeds that were done before.
        keep: is given what a seed led to, as soon as that is known.
        tell: hears how it goes.

    Raises:
        HybridsimError: there is nothing to choose from, or nothing to judge by.
    """
    if not problem.held_out:
        raise HybridsimError("discovery judges by runs that no fit has seen: hold some out")
    columns = columns_of(problem.setup.sim.bound_blueprint(), problem.space.labels)
    if not columns:
        raise HybridsimError("no network is free: there are no inputs to choose from")
    nothing = _silent(problem)
    plain = _errors(problem, stage, [nothing])[0]
    chosen = []
    for seed in seeds:
        if known and seed in known:
            chosen.append(known[seed])
            continue
        start = fresh_networks(problem, seed)
        say = partial(_said, tell, seed)
        one = _Search(problem, stage, warm_up, columns, plain, start, say).chosen(seed)
        names = ", ".join(str(column) for column in sorted(one.best.support)) or "nothing"
        say(f"{names}; error {one.best.error:.3g} of the noise, {plain:.3g} without networks")
        chosen.append(one)
        keep(one)
    return Discovery(problem, columns, plain, tuple(chosen))


@dataclass(frozen=True)
class _Search:
    """What one seed is led through."""

    problem: Problem
    stage: Stage
    warm_up: Sequence[Stage]
    columns: tuple[Column, ...]
    plain: float
    start: Float[Array, " n"]
    """θ with fresh networks."""
    tell: Callable[[str], None]

    def chosen(self, seed: int) -> Chosen:
        """The smallest set of inputs that is as good as any."""
        everything = frozenset(self.columns)
        theta = fit(self.problem.with_space(self.problem.space.started(self.start)), [*self.warm_up, self.stage]).theta
        dense = self.judged(everything, theta)
        self.tell(f"all {len(self.columns)} inputs, error {dense.error:.3g} of the noise")
        path = [
            self.judged(support, self.refitted([self.stage], support, theta))
            for support, theta in self.path(dense).items()
        ]
        limit = _limit(self.problem, [dense, *path])
        best = min((c for c in (dense, *path) if c.error <= limit), key=lambda c: (len(c.support), c.error))
        best = self.reduced(best, limit)
        return Chosen(seed, dense, tuple(path), min(best, self.anew(best.support), key=lambda c: c.error))

    def path(self, dense: Candidate) -> dict[Support, Array]:
        """Sets of inputs that a growing penalty leads through, each with the last θ that it was seen with.

        All inputs cost the same as long as they are as large as the fit with all of them has made them.
        """
        sizes = {
            c: max(float(np.linalg.norm(dense.theta[list(c.entries)])), np.finfo(float).tiny) for c in self.columns
        }
        runs, channels = self.problem.train, self.problem.measured.noise
        most = self.plain**2 * sum(len(run.series[name].t) for run in runs for name in channels)
        cost, growth = FIRST_COST * most, GROWTH
        solver = LevenbergMarquardt(most_steps=15, cost_tolerance=1e-4)
        theta, support = dense.theta, dense.support
        found: dict[Support, Array] = {}
        while cost <= most:
            groups = tuple((c.entries, cost / sizes[c]) for c in self.columns)
            sparsity = Sparsity(groups=groups, upper_layers=cost / max(sizes.values()))
            stage = replace(self.stage, sparsity=sparsity, solver=solver)
            tried = self.fitted(self.problem.space.started(theta), [stage])
            left = frozenset(column for column in self.columns if np.any(tried[list(column.entries)]))
            if len(support) - len(left) > max(1, len(support) // 2) and growth > LEAST_GROWTH:
                growth = np.sqrt(growth)
                cost /= growth
                continue
            if _errors(self.problem, self.stage, [tried])[0] > 2.0 * self.plain:
                break  # where a mechanism is too stiff for its time step, costs lead nowhere
            theta, support, found[left] = tried, left, tried
            self.tell(f"inputs cost {cost:.3g}, {len(left)} are left")
            if not left:
                break
            growth = min(growth * growth, GROWTH)
            cost *= growth
        return found

    def reduced(self, best: Candidate, limit: float) -> Candidate:
        """Leave out input after input, as long as that makes nothing worse; first those that are missed least."""
        while best.support:
            smaller = [best.support - {column} for column in sorted(best.support)]
            without = [self.space_of(support, best.theta).start for support in smaller]
            order = np.argsort(_errors(self.problem, self.stage, without), kind="stable")
            for support in (smaller[k] for k in order):
                found = self.judged(support, self.refitted([self.stage], support, best.theta))
                found = found if found.error <= limit else self.anew(support)
                if found.error <= limit:
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
        return self.fitted(space, stages) if support else space.start

    def fitted(self, space: ParameterSpace, stages: Sequence[Stage]) -> Array:
        """θ of a fit; where motions diverge from the start, the start, which is judged like any other."""
        try:
            return fit(self.problem.with_space(space), stages).theta
        except DivergedError:
            return space.start

    def space_of(self, support: Support, theta: Array) -> ParameterSpace:
        """Numbers of which those of other inputs are held where they do nothing."""
        left_out = [entry for c in self.columns if c not in support and c.column != WHOLE for entry in c.entries]
        space = self.problem.space.started(theta).held(left_out, 0.0)
        gone = {c.graft for c in self.columns} - {c.graft for c in support}
        entries = [k for k, name in enumerate(space.labels) if _graft_of(name) in gone]
        return space.held(entries, _silent(self.problem)[entries])

    def judged(self, support: Support, theta: Array) -> Candidate:
        """A set of inputs with its error."""
        return Candidate(support, theta, _errors(self.problem, self.stage, [theta])[0])


def _limit(problem: Problem, candidates: list[Candidate]) -> float:
    """Error up to which noise allows no distinction from the best."""
    best = min(c.error for c in candidates)
    samples = sum(len(run.series[name].t) for run in problem.held_out for name in problem.measured.noise)
    return float(np.sqrt(best**2 * (1.0 + SURE * np.sqrt(2.0 / samples)) + NEGLIGIBLE**2))


def _errors(problem: Problem, stage: Stage, thetas: Sequence[Array]) -> list[float]:
    """Root mean square error on held-out runs, in standard deviations of the noise."""
    found = explained(problem, np.stack(thetas), problem.held_out, stage.window, run_in=stage.run_in).errors
    return [float(np.sqrt(np.mean(np.square(np.where(np.isfinite(e), e, np.inf))))) for e in found]


def fresh_networks(problem: Problem, seed: int) -> Array:
    """θ with networks as they are before any fit, with first weights of another seed."""
    grafts = problem.setup.sim.blueprint.grafts
    return _with_networks(problem, [reseeded(graft.net, seed + 1000 * k) for k, graft in enumerate(grafts)])


def _silent(problem: Problem) -> Array:
    """θ with networks that do nothing."""
    return _with_networks(problem, [silenced(graft) for graft in problem.setup.sim.blueprint.grafts])


def _with_networks(problem: Problem, nets: list) -> Array:
    """θ with other numbers of networks than at the start."""
    other = eqx.tree_at(lambda s: [graft.net for graft in s.sim.blueprint.grafts], problem.setup, nets)
    return np.where(problem.space.is_weight, problem.space.theta_of(other), problem.space.start)


def _said(tell: Callable[[str], None], seed: int, words: str) -> None:
    tell(f"seed {seed}: {words}")


def _graft_of(name: str) -> int | None:
    return int(name[6 : name.index("]")]) if name.startswith("graft[") else None
