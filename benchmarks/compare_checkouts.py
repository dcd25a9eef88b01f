"""Compare results and run times of two checkouts, to verify that a refactoring changes neither.

    git worktree add ../before HEAD~1
    python -m benchmarks.compare_checkouts ../before .                 bits, then times: about 15 minutes
    python -m benchmarks.compare_checkouts ../before . --rounds 0      bits only

Trajectories, gradients, fits and a discovery must agree bit for bit. Times are measured in separate processes,
alternating between old and new; the ratio of their medians must be within 3 % of 1. Exit code 1 if anything differs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.checkout_worker import BITS, COMPILE, TIMES
from benchmarks.report import console

TOLERANCE = 0.03
"""Relative tolerance of the median times."""
WORKER = Path(__file__).with_name("checkout_worker.py")


def run(checkout: Path, what: str, task: str):
    """Result of one task in one checkout, from a separate process."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout / "src"),
        "HYBRIDSIM_CHECKOUT": str(checkout),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, str(WORKER), what, task]
    completed = subprocess.run(command, env=environment, capture_output=True, text=True)
    if completed.returncode:
        raise SystemExit(f"{task} failed in {checkout}:\n{completed.stderr}")
    return json.loads(completed.stdout.splitlines()[-1])


def compare_bits(old: Path, new: Path) -> list[str]:
    """Compare the results of all tasks; returns those that differ."""
    different = []
    for task in BITS:
        before, after = (run(checkout, "bits", task) for checkout in (old, new))
        names = [name for name in before if before[name] != after.get(name)]
        console.print(f"{task}: {', '.join(before)} {'DIFFER in ' + ', '.join(names) if names else 'equal'}")
        different += [f"{task}: {name}" for name in names]
    return different


def compare_times(old: Path, new: Path, rounds: int) -> list[str]:
    """Compare the run times of all tasks; returns those whose medians differ by more than the tolerance."""
    different = []
    for task in (*TIMES, COMPILE):
        times: dict[Path, list[float]] = {old: [], new: []}
        for k in range(rounds):
            for checkout in (old, new) if k % 2 == 0 else (new, old):
                times[checkout].append(run(checkout, "time", task))
        before, after = (statistics.median(times[checkout]) for checkout in (old, new))
        ratio = after / before
        console.print(f"{task}: {1e3 * before:.4g} ms before, {1e3 * after:.4g} ms after, ratio {ratio:.3f}")
        if abs(ratio - 1.0) > TOLERANCE:
            different.append(f"{task}: ratio {ratio:.3f}")
    return different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="folder of the old checkout")
    parser.add_argument("new", type=Path, help="folder of the new checkout")
    parser.add_argument("--rounds", type=int, default=10, help="measurements of each time in each checkout")
    options = parser.parse_args()
    old, new = options.old.resolve(), options.new.resolve()
    problems = compare_bits(old, new) + (compare_times(old, new, options.rounds) if options.rounds else [])
    for problem in problems:
        console.print(f"[red]{problem}[/red]")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
