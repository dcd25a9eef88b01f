"""What the fits are to show: how long everybody takes to the same residual, targets, and whether they are met."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.fitting_attempts import COLD, DISK, RUNNING, Attempt
from benchmarks.fitting_problem import TASKS
from benchmarks.ours_fitting import WHO as OURS
from benchmarks.targets import Judge

TOLERANCE = 1e-6
"""By which a cost may be above the least that anybody found to count as the same, relative to that."""


@dataclass(frozen=True)
class Standing:
    """How one way of fitting did in all of its attempts."""

    who: str
    method: str
    task: str
    begun: str
    times: tuple[float, ...]
    """Until the cost was the same as the best of anybody; infinity where it never was [s]."""
    excess: float
    """Of the worst of its final costs over the least that anybody found, relative."""
    seconds: float
    """Until the solver stopped, median [s]."""
    simulations: int
    with_derivatives: int

    @property
    def time(self) -> float:
        """Median time to the same residual [s]."""
        return float(np.median(self.times))


def least(attempts: Sequence[Attempt], task: str) -> float:
    """The least cost that anybody found."""
    return min((a.cost for a in attempts if a.task == task), default=np.inf)


def reached(a: Attempt, best: float) -> float:
    """When the cost was as good as the best [s]; infinity if it never was."""
    return next((seconds for seconds, cost in a.trace if cost <= best * (1.0 + TOLERANCE)), np.inf)


def standings(attempts: Sequence[Attempt]) -> list[Standing]:
    """Everybody, in the order of the tasks and of the attempts."""
    groups: dict[tuple, list[Attempt]] = {}
    for a in sorted(attempts, key=lambda a: list(TASKS).index(a.task)):
        groups.setdefault((a.who, a.method, a.task, a.begun), []).append(a)
    found = []
    for key, group in groups.items():
        best = least(attempts, key[2])
        found.append(
            Standing(
                *key,
                times=tuple(reached(a, best) for a in group),
                excess=max(a.cost for a in group) / best - 1.0,
                seconds=float(np.median([a.seconds for a in group])),
                simulations=group[-1].simulations,
                with_derivatives=group[-1].with_derivatives,
            )
        )
    return found


def evaluated(attempts: Sequence[Attempt]) -> list[dict]:
    """All targets, as dictionaries: target, wanted, measured, unit, met (None where it was not measured)."""
    judge, everybody = Judge([]), standings(attempts)
    first = next(iter(TASKS))
    for task in TASKS:
        warm, disk, cold = (_ratio(everybody, task, begun, begun) for begun in (RUNNING, DISK, COLD))
        without_imports = _ratio(everybody, task, COLD, RUNNING)
        name = TASKS[task].what
        judged = task == first
        (judge.at_least if judged else _told(judge))(f"{name}: faster than the faster peer, warm", warm, 20.0)
        (judge.at_least if judged else _told(judge))(f"{name}: the same, cold, everything in new processes", cold, 3.0)
        judge.told(f"{name}: the same, new process with kernels on disk", disk)
        judge.told(f"{name}: the same, cold, imports of the peers not counted", without_imports)
        ours = [s.excess for s in everybody if (s.who, s.task) == (OURS, task)]
        others = any(s.who != OURS and s.task == task for s in everybody)
        judge.below(f"{name}: cost above the least of anybody", max(ours) if ours and others else None, TOLERANCE, "")
    return judge.found


def _told(judge: Judge):
    """Tells a ratio and forgets the bound."""
    return lambda name, value, bound: judge.told(name, value)


def _ratio(everybody: Sequence[Standing], task: str, ours: str, theirs: str) -> float | None:
    """How many times longer the fastest way of any peer takes than hybridsim; a new process is one for them."""
    mine = [s.time for s in everybody if (s.who, s.task, s.begun) == (OURS, task, ours)]
    of_peers = COLD if theirs == DISK else theirs
    other = [s.time for s in everybody if s.who != OURS and (s.task, s.begun) == (task, of_peers)]
    if not mine or not other or not np.isfinite(min(other)):
        return None
    return min(other) / min(mine)
