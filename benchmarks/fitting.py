"""Fitting benchmark: a real double pendulum, fitted by hybridsim, MuJoCo's sysid toolbox, and scipy with MuJoCo.

    python -m benchmarks.fitting                    everything, in three rounds: about ten minutes
    python -m benchmarks.fitting --quick            one round of the first task, which has the targets: some minutes
    python -m benchmarks.fitting --only hybridsim scipy --tasks fixed free
    HYBRIDSIM_DATA=~/data python -m benchmarks.fitting --json runs/mine.json

All programs fit the same parameters with the same initial values to the same windows, with the same residuals, time
step and integrator, on all processors. The measured time is that until the cost is within 1e-6 of the lowest cost of
all programs. Every program runs separately (`python -m benchmarks.peers.scipy_fit --help`) and is skipped if its
package is not installed: pip install 'hybridsim[peers]'. The recordings are not in the repository:
HYBRIDSIM_DATA names the folder with lab_double_pendulum/segments.npz. Results are written to the JSON file as soon as
they are measured; see docs/benchmarks.md.
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
from benchmarks.running import processor, reason, source_hash
from benchmarks.toss_data import MissingData

PROGRAMS = {
    "hybridsim": "benchmarks.ours_fitting",
    "mujoco.sysid": "benchmarks.peers.mujoco_sysid",
    "scipy": "benchmarks.peers.scipy_fit",
}
"""All programs, in the order of measurement."""
RESIDUAL_TOLERANCE = 1e-8
"""Largest difference between the initial residuals of both simulators, relative to the largest residual."""


class Record:
    """Attempts so far, saved to a file after each."""

    def __init__(self, path: Path):
        self.path = path
        self.machine = {"python": platform.python_version(), "processor": processor(), "cores": os.cpu_count()}
        self.attempts: list[Attempt] = []
        self.failed: dict[str, str] = {}
        self.agreement: dict[str, float] = {}
        """Relative difference of the initial residuals of both simulators, by task."""
        self.targets: list[dict] = []

    def write(self) -> None:
        content = {
            "machine": self.machine,
            "source": source_hash(),
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
    """Relative difference between the initial residuals of hybridsim and MuJoCo.

    Raises:
        ValueError: the residuals differ, so the fits are of different problems.
    """
    from benchmarks import ours_fitting
    from benchmarks.peers.mujoco_pendulum import Simulations

    data = load(task)
    theirs = Simulations(data).residuals([np.array([f.initial for f in data.published.free()])])[0]
    return check(f"{task}: initial residuals", ours_fitting.residuals(data), theirs, RESIDUAL_TOLERANCE)


def run_program(module: str, task: str, *, new: bool) -> Iterator[Attempt]:
    """Run a program in a separate process and yield its attempts.

    Raises:
        RuntimeError: the program is not installed or fails; has its message.
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


def measure(record: Record, program: str, task: str) -> None:
    """Measure a program in one round, or record its error message if it fails."""
    # hybridsim starts its own new processes, as they differ in the kernels on disk
    for new in (False,) if program == "hybridsim" else (True, False):
        try:
            with console.status(f"{program}: {TASKS[task].description}"):
                for attempt in run_program(PROGRAMS[program], task, new=new):
                    record.attempts.append(attempt)
                    record.write()
        except RuntimeError as error:
            record.failed[program] = str(error)
            record.write()
            return
    console.print(f"{program}: {TASKS[task].description}", style="dim")


def show(record: Record) -> None:
    """Print all results."""
    table = Table(title="time until the cost is within 1e-6 of the lowest cost: median (minimum – maximum)")
    for column in ("fit", "program, method", "process", "time", "solver stops", "excess cost", "simulations"):
        table.add_column(column, justify="left" if column in ("fit", "program, method", "process") else "right")
    previous = ""
    for s in fitting_targets.standings(record.attempts):
        if previous and s.task != previous:
            table.add_section()
        span = f"{s.time:.3g} s ({min(s.times):.3g} – {max(s.times):.3g})" if np.isfinite(s.time) else "never"
        process = "new" if s.process == COLD and s.program != "hybridsim" else s.process
        simulations = f"{s.simulations}" + (f" ({s.with_derivatives} with derivatives)" if s.with_derivatives else "")
        what = "" if s.task == previous else TASKS[s.task].description
        cells = (
            what,
            f"{s.program}, {s.method}",
            process,
            span,
            f"{s.seconds:.3g} s",
            f"{s.excess:.1e}",
            simulations,
        )
        table.add_row(*cells, style="bold" if s.program == "hybridsim" else None)
        previous = s.task
    console.print(table)
    for task, error in record.agreement.items():
        console.print(
            f"{TASKS[task].description}: initial residuals of the simulators differ by {error:.1e} of the largest"
        )
    show_targets(record.targets)
    for program, message in record.failed.items():
        console.print(f"{program}: {message}", style="yellow", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of the first task")
    names = ", ".join(PROGRAMS)
    parser.add_argument("--only", nargs="+", choices=list(PROGRAMS), metavar="PROGRAM", help=f"of: {names}")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), metavar="TASK", help=f"of: {', '.join(TASKS)}")
    parser.add_argument(
        "--rounds", type=int, default=3, help="number of rounds, over which medians are taken (%(default)s)"
    )
    parser.add_argument("--json", type=Path, default=Path("runs/fitting.json"), metavar="FILE", help="%(default)s")
    arguments = parser.parse_args()
    record = Record(arguments.json)
    tasks = arguments.tasks or (list(TASKS)[:1] if arguments.quick else list(TASKS))
    try:
        for task in tasks:
            record.agreement[task] = agreement(task)
        for _ in range(1 if arguments.quick else arguments.rounds):
            for task in tasks:
                for program in arguments.only or PROGRAMS:
                    if program not in record.failed:
                        measure(record, program, task)
    except MissingData as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; results so far are in {record.path}") from None
    record.targets = fitting_targets.evaluate(record.attempts)
    record.write()
    show(record)
    console.print(f"all results: {record.path}")


if __name__ == "__main__":
    main()
