"""An attempt at a fit: its cost over time; and the command line of all programs."""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

import numpy as np

from benchmarks.fitting_problem import TASKS
from benchmarks.measure import exit_missing
from benchmarks.toss_data import MissingData

RUNNING, DISK, COLD = "running", "kernels on disk", "cold"
"""In a running process with everything imported and compiled; in a new process with kernels on disk; in one without."""


@dataclass(frozen=True)
class Attempt:
    """One fit and its cost over time."""

    program: str
    version: str
    task: str
    method: str
    process: str
    """One of the three constants above; the time of a new process includes its imports."""
    trace: list[tuple[float, float]]
    """Time [s] and lowest cost so far."""
    seconds: float
    """Time until the solver stopped [s]."""
    simulations: int
    """Number of simulations of all windows; every column of finite differences counts."""
    with_derivatives: int
    """How many of these included derivatives with respect to all parameters."""
    parameters: list[float]

    @property
    def cost(self) -> float:
        """Lowest cost: half the sum of squared residuals."""
        return min((cost for _, cost in self.trace), default=np.inf)


@dataclass
class FitLog:
    """Log of the cost during a fit."""

    since: float = field(default_factory=time.time)
    trace: list[tuple[float, float]] = field(default_factory=list)
    simulations: int = 0
    with_derivatives: int = 0

    def record(self, cost: float) -> None:
        """Record a cost if it is the lowest so far."""
        if not self.trace or cost < self.trace[-1][1]:
            self.trace.append((time.time() - self.since, float(cost)))

    def finish(self, program: str, version: str, task: str, method: str, process: str, parameters) -> Attempt:
        """The attempt, after the end of the fit."""
        return Attempt(
            program,
            version,
            task,
            method,
            process,
            self.trace,
            time.time() - self.since,
            self.simulations,
            self.with_derivatives,
            [float(x) for x in parameters],
        )


def threads() -> int:
    """Number of available processors."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


AttemptsFunction = Callable[[str, float | None], Iterator[Attempt]]
"""(task, start time of the process if it is new) → attempts."""


def command_line(doc: str, module: str, attempts: AttemptsFunction) -> None:
    """Run attempts and print them: as text, or one line of JSON each.

    Args:
        doc: description of the program.
        module: module name for the example in `--help`.
        attempts: runs the attempts.
    """
    parser = argparse.ArgumentParser(
        description=doc,
        epilog=f"example: python -m {module} fixed",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", choices=list(TASKS), help=f"of: {', '.join(TASKS)}")
    parser.add_argument("--json", action="store_true", help="print one line of JSON per attempt")
    parser.add_argument("--new", type=float, metavar="TIME", help="one attempt, timed from this clock time")
    arguments = parser.parse_args()
    results = attempts(arguments.task, arguments.new)
    while True:
        try:
            with contextlib.redirect_stdout(sys.stderr):  # optimizers print to stdout
                attempt = next(results, None)
        except MissingData as error:
            exit_missing(str(error))
        if attempt is None:
            return
        print(json.dumps(asdict(attempt)) if arguments.json else line(attempt), flush=True)


def line(a: Attempt) -> str:
    """An attempt as readable text."""
    simulations = f"{a.simulations} simulations" + (
        f", {a.with_derivatives} with derivatives" if a.with_derivatives else ""
    )
    return f"{a.program}, {a.method} ({a.process}): cost {a.cost:.10g} after {a.trace[-1][0]:.3f} s, {simulations}"
