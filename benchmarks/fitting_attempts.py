"""One attempt at the fit: its cost over time, and how contestants are called."""

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
from benchmarks.measure import leave
from benchmarks.toss_data import MissingData

RUNNING, DISK, COLD = "running", "kernels on disk", "cold"
"""In a process that has imported and compiled all it needs; in a new one that finds kernels; in a new one without."""


@dataclass(frozen=True)
class Attempt:
    """A fit, from its beginning to its end."""

    who: str
    version: str
    task: str
    method: str
    begun: str
    """One of the three above; a new process is counted from its very start, imports included."""
    trace: list[tuple[float, float]]
    """Seconds, and the least cost so far."""
    seconds: float
    """Until the solver had stopped."""
    simulations: int
    """Of all windows; of differences every column counts."""
    with_derivatives: int
    """How many of these had derivatives by all parameters with them."""
    parameters: list[float]

    @property
    def cost(self) -> float:
        """The least that was found: half the sum of squared residuals."""
        return min((cost for _, cost in self.trace), default=np.inf)


@dataclass
class Watch:
    """Keeps what happens during a fit."""

    since: float = field(default_factory=time.time)
    trace: list[tuple[float, float]] = field(default_factory=list)
    simulations: int = 0
    with_derivatives: int = 0

    def saw(self, cost: float) -> None:
        """A cost was found; kept where it is the least so far."""
        if not self.trace or cost < self.trace[-1][1]:
            self.trace.append((time.time() - self.since, float(cost)))

    def ended(self, who: str, version: str, task: str, method: str, begun: str, parameters) -> Attempt:
        """The attempt, when it is over."""
        return Attempt(
            who,
            version,
            task,
            method,
            begun,
            self.trace,
            time.time() - self.since,
            self.simulations,
            self.with_derivatives,
            [float(x) for x in parameters],
        )


def threads() -> int:
    """As many as there are processors to use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Measured = Callable[[str, float | None], Iterator[Attempt]]
"""Attempts at a task by its name, given the time at which the process was started, if it is new."""


def command_line(doc: str, module: str, attempts: Measured) -> None:
    """Make attempts and print them: for people, or one line of JSON each.

    Args:
        doc: description of the contestant.
        module: for the example in `--help`.
        attempts: makes them.
    """
    parser = argparse.ArgumentParser(
        description=doc,
        epilog=f"example: python -m {module} held",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", choices=list(TASKS), help=f"of: {', '.join(TASKS)}")
    parser.add_argument("--json", action="store_true", help="print one line of JSON per attempt")
    parser.add_argument("--new", type=float, metavar="TIME", help="one attempt, counted from this time of the clock")
    arguments = parser.parse_args()
    found = attempts(arguments.task, arguments.new)
    while True:
        try:
            with contextlib.redirect_stdout(sys.stderr):  # optimisers print
                attempt = next(found, None)
        except MissingData as error:
            leave(str(error))
        if attempt is None:
            return
        print(json.dumps(asdict(attempt)) if arguments.json else line(attempt), flush=True)


def line(a: Attempt) -> str:
    """An attempt as text for people."""
    counted = f"{a.simulations} simulations" + (
        f", {a.with_derivatives} with derivatives" if a.with_derivatives else ""
    )
    return f"{a.who}, {a.method} ({a.begun}): cost {a.cost:.10g} after {a.trace[-1][0]:.3f} s, {counted}"
