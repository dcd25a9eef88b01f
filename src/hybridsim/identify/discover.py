"""Discovery: of many quantities that networks might read, the few that explain the data.

A blueprint of candidates names sites where something may be missing and everything that it may depend on. For several
seeds, networks are fitted with all inputs; then inputs cost more and more, and one after the other is dropped (a group
lasso, adaptive as Zou 2006 has it: what the first fit hardly uses costs most). Every set of inputs on that path is
fitted again without a penalty and judged on runs that no fit has seen; the smallest that is not worse than the best, as
far as noise allows to tell, is reduced further input by input. How often an input is chosen tells how sure that is
(stability selection, Meinshausen & Bühlmann 2010).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.fit import fit
from hybridsim.identify.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.penalty import Sparsity
from hybridsim.identify.problem import Problem, Stage
from hybridsim.identify.score import explained
from hybridsim.taps.blueprint import Blueprint
from hybridsim.taps.columns import Column, columns_of, pruned, reseeded

Array = np.ndarray
Support = frozenset[Column]
"""Inputs that networks read."""
FIRST_WEIGHT, GROWTH, MOST_WEIGHTS = 1e-4, 2.5, 40
"""Of inputs: what they cost at first, by the cost of the model without networks; by how much that grows; how often."""
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
        keep = {(column.graft, column.column) for column in found.support}
        return pruned(sim.blueprint, sim.bound_blueprint(), keep)


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
        raise HybridsimError("no network with a first layer is free: there are no inputs to choose from")
    nothing = _silent(problem)
    plain = _errors(problem, stage, [nothing])[0]
    chosen = []
    for seed in seeds:
        if known and seed in known:
            chosen.append(known[seed])
            continue
        one = _one_seed(problem, stage, warm_up, seed, columns, plain, tell)
        names = ", ".join(str(column) for column in sorted(one.best.support)) or "nothing"
        tell(f"seed {seed}: {names}; error {one.best.error:.3g} of the noise, {plain:.3g} without networks")
        chosen.append(one)
        keep(one)
    return Discovery(problem, columns, plain, tuple(chosen))


def _one_seed(
    problem: Problem, stage: Stage, warm_up: Sequence[Stage], seed: int, columns: tuple[Column, ...], plain: float, tell
) -> Chosen:
    start = _fresh(problem, seed)
    everything = frozenset(columns)
    theta = fit(problem.with_space(problem.space.started(start)), [*warm_up, stage]).theta
    dense = _judged(problem, stage, [(everything, theta)])[0]
    tell(f"seed {seed}: all {len(columns)} inputs, error {dense.error:.3g} of the noise")
    path = _path(problem, stage, columns, theta, plain, seed, tell)
    fitted = [(support, _refitted(problem, stage, columns, support, theta)) for support, theta in path]
    candidates = _judged(problem, stage, fitted)
    best = _smallest(problem, [dense, *candidates])
    return Chosen(seed, dense, tuple(candidates), _reduced(problem, stage, columns, best, [dense, *candidates]))


def _path(
    problem: Problem, stage: Stage, columns: tuple[Column, ...], theta: Array, plain: float, seed: int, tell
) -> list[tuple[Support, Array]]:
    """Sets of inputs that a growing penalty leads through, each with the last θ that it was seen with."""
    sizes = {column: float(np.linalg.norm(theta[list(column.entries)])) for column in columns}
    largest = max(sizes.values()) or 1.0
    factors = {(c.graft, c.column): largest / max(sizes[c], 1e-6 * largest) for c in columns}
    samples = sum(len(run.series[name].t) for run in problem.train for name in problem.measured.noise)
    weight = FIRST_WEIGHT * max(plain, 1.0) ** 2 * samples / largest
    found: dict[Support, Array] = {}
    for _ in range(MOST_WEIGHTS):
        sparsity = Sparsity(inputs=weight, upper_layers=weight, factors=factors)
        solver = LevenbergMarquardt(most_steps=15, cost_tolerance=1e-4)
        theta = fit(
            problem.with_space(problem.space.started(theta)), [replace(stage, sparsity=sparsity, solver=solver)]
        ).theta
        support = frozenset(column for column in columns if np.any(theta[list(column.entries)]))
        found[support] = theta
        tell(f"seed {seed}: inputs cost {weight:.3g}, {len(support)} are left")
        if not support:
            break
        weight *= GROWTH
    return sorted(found.items(), key=lambda pair: -len(pair[0]))


def _refitted(problem: Problem, stage: Stage, columns: tuple[Column, ...], support: Support, theta: Array) -> Array:
    """Fit without a penalty, with all other inputs left out."""
    if not support:
        return _silent(problem)
    left_out = [entry for column in columns if column not in support for entry in column.entries]
    space = problem.space.started(theta).held(left_out, 0.0)
    grafts = {column.graft for column in support}
    gone = [k for k, name in enumerate(space.labels) if _graft_of(name) not in (None, *grafts)]
    return fit(problem.with_space(space.held(gone, 0.0)), [stage]).theta


def _smallest(problem: Problem, candidates: list[Candidate]) -> Candidate:
    """The smallest of those that are not worse than the best."""
    limit = _limit(problem, candidates)
    return min((c for c in candidates if c.error <= limit), key=lambda c: (len(c.support), c.error))


def _reduced(
    problem: Problem, stage: Stage, columns: tuple[Column, ...], best: Candidate, candidates: list[Candidate]
) -> Candidate:
    """Leave out input after input, as long as that makes nothing worse."""
    limit = _limit(problem, candidates)
    while best.support:
        smaller = [best.support - {column} for column in best.support]
        fitted = [(support, _refitted(problem, stage, columns, support, best.theta)) for support in smaller]
        found = min(_judged(problem, stage, fitted), key=lambda c: c.error)
        if found.error > limit:
            break
        best = found
    return best


def _limit(problem: Problem, candidates: list[Candidate]) -> float:
    """Error up to which noise allows no distinction from the best."""
    best = min(c.error for c in candidates)
    samples = sum(len(run.series[name].t) for run in problem.held_out for name in problem.measured.noise)
    return float(np.sqrt(best**2 * (1.0 + SURE * np.sqrt(2.0 / samples)) + NEGLIGIBLE**2))


def _judged(problem: Problem, stage: Stage, fitted: list[tuple[Support, Array]]) -> list[Candidate]:
    errors = _errors(problem, stage, [theta for _, theta in fitted])
    return [Candidate(support, theta, error) for (support, theta), error in zip(fitted, errors, strict=True)]


def _errors(problem: Problem, stage: Stage, thetas: Sequence[Array]) -> list[float]:
    """Root mean square error on held-out runs, in standard deviations of the noise."""
    found = explained(problem, np.stack(thetas), problem.held_out, stage.window, run_in=stage.run_in).errors
    return [float(np.sqrt(np.mean(np.square(np.where(np.isfinite(e), e, np.inf))))) for e in found]


def _fresh(problem: Problem, seed: int) -> Array:
    """θ with networks as they are before any fit, with first weights of another seed."""
    setup = problem.setup
    nets = [reseeded(graft.net, seed + 1000 * k) for k, graft in enumerate(setup.sim.blueprint.grafts)]
    other = eqx.tree_at(lambda s: [graft.net for graft in s.sim.blueprint.grafts], setup, nets)
    theta = problem.space.theta_of(other)
    return np.where(problem.space.is_weight, theta, problem.space.start)


def _silent(problem: Problem) -> Array:
    """θ with networks that do nothing."""
    return np.where(problem.space.is_weight, 0.0, problem.space.start)


def _graft_of(name: str) -> int | None:
    return int(name[6 : name.index("]")]) if name.startswith("graft[") else None
