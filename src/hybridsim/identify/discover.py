"""Discovery: selection of the few network inputs, of many candidates, that explain the data.

A blueprint of candidates names sites where the model may be incomplete and all quantities that the missing term may
depend on. Every seed searches for the smallest set that explains the data (`support_search.py`), with different initial
weights and, given enough runs, on a random three quarters of them. The frequency with which an input is selected
measures how stable its selection is (stability selection, Meinshausen & Bühlmann 2010). The inputs that most seeds
select are fitted to all training runs. A structured network whose inputs cannot be removed individually counts as one
input.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.penalty import NO_SPARSITY
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.stage import Stage
from hybridsim.identify.support_search import (
    FittedSupport,
    SeedResult,
    Support,
    SupportSearch,
    theta_with_ablated_networks,
    theta_with_fresh_networks,
)
from hybridsim.networks.prune import CONSTANT, PruningUnit, prune, pruning_units
from hybridsim.taps.blueprint import Blueprint

MIN_RUNS_TO_SUBSAMPLE = 4
"""With fewer runs, every seed uses all of them."""


@dataclass(frozen=True)
class Discovery:
    """Result of a discovery."""

    problem: FitProblem
    candidates: tuple[PruningUnit, ...]
    """All candidate inputs."""
    baseline_rms: float
    """Root mean square residual of the model without networks on held-out runs."""
    seed_results: tuple[SeedResult, ...]
    final: FittedSupport
    """Inputs that most seeds selected, fitted to all training runs."""

    @property
    def frequency(self) -> dict[PruningUnit, float]:
        """Share of the seeds that selected an input."""
        return _frequency(self.candidates, self.seed_results)

    @property
    def support(self) -> Support:
        """Inputs that most seeds selected."""
        return self.final.support

    @property
    def site_frequency(self) -> dict[tuple[str, ...], float]:
        """Share of the seeds that selected any input of a network, by the network's outputs."""
        outputs = dict.fromkeys(unit.outputs for unit in self.candidates)
        selected = [{unit.outputs for unit in result.best.support} for result in self.seed_results]
        return {site: sum(site in sites for sites in selected) / len(selected) for site in outputs}

    @property
    def dense(self) -> FittedSupport:
        """The best fit with all inputs."""
        return min((result.dense for result in self.seed_results), key=lambda f: f.residual_rms)

    def blueprint(self, *, dense: bool = False) -> Blueprint:
        """Fitted networks with the selected inputs, or with all inputs."""
        fitted = self.dense if dense else self.final
        sim = self.problem.space.put(self.problem.setup, fitted.theta).sim
        removed = {(c.graft, c.column) for c in self.candidates if c not in fitted.support}
        constants = {c.graft for c in fitted.support if c.column == CONSTANT}
        return prune(sim.blueprint, sim.bound_blueprint(), removed, constants)


def discover(
    problem: FitProblem,
    stage: Stage,
    *,
    seeds: Sequence[int] = range(5),
    warm_up: Sequence[Stage] = (),
    completed: Mapping[int, SeedResult] | None = None,
    on_seed: Callable[[SeedResult], None] = lambda result: None,
    log: Callable[[str], None] = lambda message: None,
) -> Discovery:
    """Find the smallest set of network inputs that explains the data.

    Args:
        problem: problem with candidate grafts, whose networks are free, and with held-out runs.
        stage: stage for all fits and evaluations; its sparsity is ignored.
        seeds: seeds of initial weights and of the subsets of runs.
        warm_up: stages that precede `stage` in fits from freshly initialized networks.
        completed: results of seeds that need not be run again.
        on_seed: called with the result of each seed.
        log: called with progress messages.

    Raises:
        HybridsimError: there are no candidate inputs or no held-out runs.
    """
    if not problem.held_out:
        raise HybridsimError("discovery needs held-out runs to compare sets of inputs: hold some out")
    candidates = pruning_units(problem.setup.sim.bound_blueprint(), problem.space.names)
    if not candidates:
        raise HybridsimError("no network is free: there are no inputs to choose from")
    stage, *warm_up_stages = (replace(s, sparsity=NO_SPARSITY) for s in (stage, *warm_up))

    def search(problem: FitProblem, seed: int) -> SupportSearch:
        initial = theta_with_fresh_networks(problem, seed)
        return SupportSearch(problem, stage, warm_up_stages, candidates, initial, lambda s: log(f"seed {seed}: {s}"))

    ablated = theta_with_ablated_networks(problem, candidates)
    baseline_rms = search(problem, 0).evaluate(frozenset(), ablated).residual_rms
    results = []
    for seed in seeds:
        if completed and seed in completed:
            results.append(completed[seed])
            continue
        seed_search = search(problem.with_train(_subsample(problem, seed)), seed)
        result = seed_search.run(seed)
        names = ", ".join(str(unit) for unit in sorted(result.best.support)) or "nothing"
        remark = "" if result.best.has_converged else "; the fit did not converge"
        residuals = f"RMS residual {result.best.residual_rms:.3g}, {baseline_rms:.3g} without networks"
        seed_search.log(f"{names}; {residuals}{remark}")
        results.append(result)
        on_seed(result)
    support = frozenset(unit for unit, share in _frequency(candidates, results).items() if share > 0.5)
    seed_result = min(
        (r for r in results if r.best.support == support), key=lambda r: r.best.residual_rms, default=results[0]
    )
    final_search = search(problem, seed_result.seed)
    refitted = final_search.evaluate(support, *final_search.refit([stage], support, seed_result.best.theta))
    final = min(refitted, final_search.fit_from_scratch(support), key=lambda f: f.residual_rms)
    return Discovery(problem, candidates, baseline_rms, tuple(results), final)


def _subsample(problem: FitProblem, seed: int) -> list:
    """Training runs of a seed."""
    runs = problem.train
    count = len(runs) - len(runs) // 4 if len(runs) >= MIN_RUNS_TO_SUBSAMPLE else len(runs)
    index = np.random.default_rng(seed).choice(len(runs), count, replace=False)
    return [runs[k] for k in sorted(index)]


def _frequency(candidates: Sequence[PruningUnit], results: Sequence[SeedResult]) -> dict[PruningUnit, float]:
    counts = Counter(unit for result in results for unit in result.best.support)
    return {unit: counts[unit] / len(results) for unit in candidates}
