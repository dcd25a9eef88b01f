"""Targets of the fitting benchmark: times of all programs to the same cost, and whether the targets are met."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.fitting_attempts import COLD, DISK, RUNNING, Attempt
from benchmarks.fitting_problem import TASKS
from benchmarks.ours_fitting import PROGRAM as OURS
from benchmarks.targets import TargetChecks

TOLERANCE = 1e-6
"""Relative excess over the lowest cost up to which costs count as equal."""


@dataclass(frozen=True)
class Standing:
    """Results of one method of a program over all attempts."""

    program: str
    method: str
    task: str
    process: str
    times: tuple[float, ...]
    """Times until the cost equalled the lowest cost [s]; infinity if it never did."""
    excess: float
    """Relative excess of the highest final cost over the lowest cost of all programs."""
    seconds: float
    """Median time until the solver stopped [s]."""
    simulations: int
    with_derivatives: int

    @property
    def time(self) -> float:
        """Median time to the same cost [s]."""
        return float(np.median(self.times))


def lowest_cost(attempts: Sequence[Attempt], task: str) -> float:
    """Lowest cost of all programs."""
    return min((a.cost for a in attempts if a.task == task), default=np.inf)


def time_to_cost(a: Attempt, best: float) -> float:
    """Time until the cost equalled the lowest cost [s]; infinity if it never did."""
    return next((seconds for seconds, cost in a.trace if cost <= best * (1.0 + TOLERANCE)), np.inf)


def standings(attempts: Sequence[Attempt]) -> list[Standing]:
    """Standings of all methods, in the order of tasks and attempts."""
    groups: dict[tuple, list[Attempt]] = {}
    for a in sorted(attempts, key=lambda a: list(TASKS).index(a.task)):
        groups.setdefault((a.program, a.method, a.task, a.process), []).append(a)
    results = []
    for key, group in groups.items():
        best = lowest_cost(attempts, key[2])
        results.append(
            Standing(
                *key,
                times=tuple(time_to_cost(a, best) for a in group),
                excess=max(a.cost for a in group) / best - 1.0,
                seconds=float(np.median([a.seconds for a in group])),
                simulations=group[-1].simulations,
                with_derivatives=group[-1].with_derivatives,
            )
        )
    return results


def evaluate(attempts: Sequence[Attempt]) -> list[dict]:
    """All targets, as dictionaries: target, required, measured, unit, met (None if not measured)."""
    checks, results = TargetChecks([]), standings(attempts)
    first = next(iter(TASKS))
    for task in TASKS:
        warm, disk, cold = (_ratio(results, task, process, process) for process in (RUNNING, DISK, COLD))
        without_imports = _ratio(results, task, COLD, RUNNING)
        name = TASKS[task].description
        add = checks.at_least if task == first else _without_bound(checks)
        add(f"{name}: faster than the faster peer, warm", warm, 20.0)
        add(f"{name}: faster than the faster peer, cold, everything in new processes", cold, 3.0)
        checks.report(f"{name}: faster than the faster peer, new process with kernels on disk", disk)
        checks.report(f"{name}: faster than the faster peer, cold, without imports of the peers", without_imports)
        ours = [s.excess for s in results if (s.program, s.task) == (OURS, task)]
        others = any(s.program != OURS and s.task == task for s in results)
        checks.below(f"{name}: excess over the lowest cost", max(ours) if ours and others else None, TOLERANCE, "")
    return checks.results


def _without_bound(checks: TargetChecks):
    """A function that adds a ratio without its bound."""
    return lambda name, value, bound: checks.report(name, value)


def _ratio(results: Sequence[Standing], task: str, ours: str, theirs: str) -> float | None:
    """Time of the fastest method of any peer divided by hybridsim's; peers have one kind of new process."""
    mine = [s.time for s in results if (s.program, s.task, s.process) == (OURS, task, ours)]
    of_peers = COLD if theirs == DISK else theirs
    other = [s.time for s in results if s.program != OURS and (s.task, s.process) == (task, of_peers)]
    if not mine or not other or not np.isfinite(min(other)):
        return None
    return min(other) / min(mine)
