"""Discovery: of many networks and quantities that they might read, the few that explain the data.

A blueprint of candidates names sites where something may be missing and everything that it may depend on. Every seed
looks for the smallest set that explains the data (`support_search.py`), with other first weights and, where there are
enough runs, without a quarter of them, drawn anew. How often an input is chosen tells how sure that is, as in stability
selection (Meinshausen & Bühlmann 2010). What most seeds choose is fitted to all runs. A network with a structure, of
which no input can be taken away, counts as one input: it stays or goes as a whole.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.penalty import NO_SPARSITY
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.support_search import (
    Candidate,
    SeedResult,
    Support,
    SupportSearch,
    theta_with_fresh_networks,
    theta_with_silent_networks,
)
from hybridsim.networks.prune import CONSTANT, Column, columns_of, pruned
from hybridsim.taps.blueprint import Blueprint

FEWEST_RUNS = 4
"""With fewer, every seed is fitted to all of them."""


@dataclass(frozen=True)
class Discovery:
    """What was found."""

    problem: FitProblem
    columns: tuple[Column, ...]
    """All inputs that there were."""
    plain: float
    """Error of the model without networks on held-out runs, in standard deviations of the noise."""
    seeds: tuple[SeedResult, ...]
    settled: Candidate
    """What most seeds chose, fitted to all runs."""

    @property
    def frequency(self) -> dict[Column, float]:
        """Share of the seeds that chose an input."""
        return _frequency(self.columns, self.seeds)

    @property
    def support(self) -> Support:
        """Inputs that most seeds chose."""
        return self.settled.support

    @property
    def sites(self) -> dict[tuple[str, ...], float]:
        """Share of the seeds that left a network in its place, by what it changes."""
        outputs = dict.fromkeys(column.outputs for column in self.columns)
        chosen = [{column.outputs for column in one.best.support} for one in self.seeds]
        return {site: sum(site in some for some in chosen) / len(chosen) for site in outputs}

    @property
    def dense(self) -> Candidate:
        """The best fit with all inputs."""
        return min((one.dense for one in self.seeds), key=lambda c: c.error)

    def blueprint(self, *, dense: bool = False) -> Blueprint:
        """Networks with the inputs that are left, or with all of them before any was dropped."""
        found = self.dense if dense else self.settled
        sim = self.problem.space.put(self.problem.setup, found.theta).sim
        left_out = {(c.graft, c.column) for c in self.columns if c not in found.support}
        constants = {c.graft for c in found.support if c.column == CONSTANT}
        return pruned(sim.blueprint, sim.bound_blueprint(), left_out, constants)


def discover(
    problem: FitProblem,
    stage: Stage,
    *,
    seeds: Sequence[int] = range(5),
    warm_up: Sequence[Stage] = (),
    known: Mapping[int, SeedResult] | None = None,
    keep: Callable[[SeedResult], None] = lambda chosen: None,
    tell: Callable[[str], None] = lambda words: None,
) -> Discovery:
    """Find the smallest set of inputs that explains the data.

    Args:
        problem: with candidate grafts whose networks are free, and with held-out runs.
        stage: windows that everything is fitted on and judged by; what it says of sparsity does not count.
        seeds: of the networks' first weights, and of the runs that are left out.
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
    stage, *before = (replace(one, sparsity=NO_SPARSITY) for one in (stage, *warm_up))

    def search(of: FitProblem, seed: int) -> SupportSearch:
        return SupportSearch(
            of, stage, before, columns, theta_with_fresh_networks(of, seed), lambda s: tell(f"seed {seed}: {s}")
        )

    plain = search(problem, 0).judged(frozenset(), theta_with_silent_networks(problem, columns)).error
    chosen = []
    for seed in seeds:
        if known and seed in known:
            chosen.append(known[seed])
            continue
        one = search(problem.with_train(_drawn(problem, seed)), seed)
        found = one.chosen(seed)
        names = ", ".join(str(column) for column in sorted(found.best.support)) or "nothing"
        one.tell(f"{names}; error {found.best.error:.3g} of the noise, {plain:.3g} without networks")
        chosen.append(found)
        keep(found)
    support = frozenset(column for column, share in _frequency(columns, chosen).items() if share > 0.5)
    first = min((one for one in chosen if one.best.support == support), key=lambda c: c.best.error, default=chosen[0])
    last = search(problem, first.seed)
    again = last.judged(support, last.refitted([stage], support, first.best.theta))
    return Discovery(problem, columns, plain, tuple(chosen), min(again, last.anew(support), key=lambda c: c.error))


def _drawn(problem: FitProblem, seed: int) -> list:
    """The runs that a seed is fitted to."""
    runs = problem.train
    count = len(runs) - len(runs) // 4 if len(runs) >= FEWEST_RUNS else len(runs)
    which = np.random.default_rng(seed).choice(len(runs), count, replace=False)
    return [runs[k] for k in sorted(which)]


def _frequency(columns: Sequence[Column], chosen: Sequence[SeedResult]) -> dict[Column, float]:
    counts = Counter(column for one in chosen for column in one.best.support)
    return {column: counts[column] / len(chosen) for column in columns}
