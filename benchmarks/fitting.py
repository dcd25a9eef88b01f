"""Fitting benchmark: a real double pendulum, fitted by hybridsim, MuJoCo's toolbox and scipy on MuJoCo rollouts.

    python -m benchmarks.fitting                    everything, in three rounds: about ten minutes
    python -m benchmarks.fitting --quick            one round of the fit that the targets are about: some minutes
    python -m benchmarks.fitting --only hybridsim scipy --tasks held free
    HYBRIDSIM_DATA=~/data python -m benchmarks.fitting --json runs/mine.json

Everybody fits the same parameters from the same start to the same windows, with the same residuals, time step and
integrator, on all processors. The time is that until the cost is within 1e-6 of the least that anybody found. Every
contestant is a program of its own (`python -m benchmarks.peers.scipy_fit --help`) and is skipped where its package is
not installed: pip install 'hybridsim[peers]'. The recordings are not in the repository: HYBRIDSIM_DATA names the folder
with lab_double_pendulum/segments.npz. Results are in the JSON file as soon as they are measured. docs/benchmarks.md
tells more.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.table import Table

from benchmarks import fitting_targets
from benchmarks.fitting_attempts import COLD, Attempt
from benchmarks.fitting_problem import TASKS, load
from benchmarks.measure import MISSING_PACKAGE, check
from benchmarks.report import console, show_targets
from benchmarks.running import processor, reason, source
from benchmarks.toss_data import MissingData

CONTESTANTS = {
    "hybridsim": "benchmarks.ours_fitting",
    "mujoco.sysid": "benchmarks.peers.mujoco_sysid",
    "scipy": "benchmarks.peers.scipy_fit",
}
"""Who takes part, in the order of measuring."""
SAME = 1e-8
"""Largest difference of both simulators' residuals at the start, relative to the largest residual."""


class Record:
    """Attempts so far, in a file that is complete after each."""

    def __init__(self, path: Path):
        self.path = path
        self.machine = {"python": platform.python_version(), "processor": processor(), "cores": os.cpu_count()}
        self.attempts: list[Attempt] = []
        self.failed: dict[str, str] = {}
        self.agreement: dict[str, float] = {}
        """Of the simulators at the start, by the task."""
        self.targets: list[dict] = []

    def write(self) -> None:
        content = {
            "machine": self.machine,
            "source": source(),
            "agreement": self.agreement,
            "targets": self.targets,
            "failed": self.failed,
            "attempts": [asdict(a) for a in self.attempts],
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(content, indent=1))
        unfinished.replace(self.path)


def agreement(task: str) -> float:
    """How far the residuals of hybridsim and MuJoCo are apart at the start, relative to the largest.

    Raises:
        ValueError: if they are not the same: then the fits are of different problems.
    """
    from benchmarks import ours_fitting
    from benchmarks.peers.mujoco_pendulum import Simulations

    given = load(task)
    theirs = Simulations(given).residuals([np.array([f.start for f in given.published.free()])])[0]
    return check(f"{task}: residuals at the start", ours_fitting.residuals(given), theirs, SAME)


def attempted(module: str, task: str, *, new: bool) -> Iterator[Attempt]:
    """Attempts of a contestant in a process of its own.

    Raises:
        RuntimeError: with the contestant's message, if it is not installed or fails.
    """
    command = [sys.executable, "-m", module, task, "--json"]
    if new:
        command += ["--new", str(time.time())]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            for line in process.stdout or ():
                yield Attempt(**json.loads(line))
        except BaseException:
            process.terminate()
            raise
        failed = process.wait()
        errors.seek(0)
        message = reason(errors.read())
    if failed:
        raise RuntimeError(f"not installed: {message}" if failed == MISSING_PACKAGE else message)


def measure(record: Record, who: str, task: str) -> None:
    """Everything of a contestant in one round; where it fails, its message is what is recorded."""
    # hybridsim starts its own new processes, because they differ in the kernels that they find
    for new in (False,) if who == "hybridsim" else (True, False):
        try:
            with console.status(f"{who}: {TASKS[task].what}"):
                for attempt in attempted(CONTESTANTS[who], task, new=new):
                    record.attempts.append(attempt)
                    record.write()
        except RuntimeError as error:
            record.failed[who] = str(error)
            record.write()
            return
    console.print(f"{who}: {TASKS[task].what}", style="dim")


def show(record: Record) -> None:
    """Print what was found."""
    table = Table(title="time until the cost is within 1e-6 of the least that anybody found: median (least – most)")
    for column in ("fit", "who and how", "process", "time", "solver stops", "cost above the least", "simulations"):
        table.add_column(column, justify="left" if column in ("fit", "who and how", "process") else "right")
    last = ""
    for s in fitting_targets.standings(record.attempts):
        if last and s.task != last:
            table.add_section()
        span = f"{s.time:.3g} s ({min(s.times):.3g} – {max(s.times):.3g})" if np.isfinite(s.time) else "never"
        process = "new" if s.begun == COLD and s.who != "hybridsim" else s.begun
        counted = f"{s.simulations}" + (f" ({s.with_derivatives} with derivatives)" if s.with_derivatives else "")
        what = "" if s.task == last else TASKS[s.task].what
        cells = (what, f"{s.who}, {s.method}", process, span, f"{s.seconds:.3g} s", f"{s.excess:.1e}", counted)
        table.add_row(*cells, style="bold" if s.who == "hybridsim" else None)
        last = s.task
    console.print(table)
    for task, error in record.agreement.items():
        console.print(f"{TASKS[task].what}: simulators differ by {error:.1e} of the largest residual at the start")
    show_targets(record.targets)
    for who, message in record.failed.items():
        console.print(f"{who}: {message}", style="yellow", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of the first task")
    names = ", ".join(CONTESTANTS)
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), metavar="WHO", help=f"of: {names}")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), metavar="TASK", help=f"of: {', '.join(TASKS)}")
    parser.add_argument("--rounds", type=int, default=3, help="by turns, of which medians are taken (%(default)s)")
    parser.add_argument("--json", type=Path, default=Path("runs/fitting.json"), metavar="FILE", help="%(default)s")
    arguments = parser.parse_args()
    record = Record(arguments.json)
    tasks = arguments.tasks or (list(TASKS)[:1] if arguments.quick else list(TASKS))
    try:
        for task in tasks:
            record.agreement[task] = agreement(task)
        for _ in range(1 if arguments.quick else arguments.rounds):
            for task in tasks:
                for who in arguments.only or CONTESTANTS:
                    if who not in record.failed:
                        measure(record, who, task)
    except MissingData as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; what was measured is in {record.path}") from None
    record.targets = fitting_targets.evaluated(record.attempts)
    record.write()
    show(record)
    console.print(f"all numbers: {record.path}")


if __name__ == "__main__":
    main()
