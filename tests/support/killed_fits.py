"""Fits in processes that are killed: `python killed_fits.py FOLDER KILLS SEED` fails with the first inconsistency.

Each fit runs in a fork of a process that has imported all modules but started no threads, so that restarts are fast.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.stage import Stage
from hybridsim.project import fit_run
from hybridsim.project.fit_run import run_fit
from hybridsim.project.run_folder import checkpoint_store
from hybridsim.project.run_folder.checkpoint import from_bytes
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.history import History
from support.fit_tasks import arm_task, solver_without_tolerances

STEPS = 40
"""Steps of each of the two stages."""


def fit_in_fork(folder: Path, run_folder: RunFolder, out: Path | None = None) -> int:
    """Start a fit in a forked process; returns the process id."""
    child = os.fork()
    if child:
        return child
    try:
        stages = (
            Stage(window=0.25, solver=solver_without_tolerances(STEPS)),
            Stage(window=0.75, solver=solver_without_tolerances(STEPS)),
        )
        outcome = run_fit(arm_task(folder, stages=stages, held_out=0), run_folder, mode="resume")
        if out is not None:
            out.write_bytes(outcome.solution.theta.tobytes())
        os._exit(0)
    except HybridsimError as error:
        print(error, flush=True)
        os._exit(1)


def wait_for_exit(child: int) -> int:
    """Wait for a process; returns its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def find_damage(run_folder: RunFolder) -> list[str]:
    """Damaged files and history of a fit after its process was killed."""
    damage = []
    for path in run_folder.path.glob("checkpoint-*"):
        try:
            from_bytes(path.read_bytes(), run_folder.fit_id())
        except HybridsimError as error:
            damage.append(f"{path.name}: {error}")
    for file, read in ((run_folder.manifest_file, run_folder.manifest), (run_folder.result_file, run_folder.result)):
        if file.exists():
            read()
    steps = [(step.stage, step.step) for step in History(run_folder.history_file).read()]
    if steps != sorted(set(steps)):
        damage.append(f"history is not in order: {steps}")
    return damage


def wait_for_lines(run_folder: RunFolder, child: int, count: int) -> None:
    """Wait until the history of a fit has a number of lines, or the process has exited."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while history_length(run_folder) < count and os.waitid(os.P_PID, child, options) is None:
        time.sleep(2e-4)


def history_length(run_folder: RunFolder) -> int:
    """Number of lines of a history file."""
    try:
        return run_folder.history_file.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill fits at random times, and compare the final result with that of an uninterrupted fit."""
    fit_run.write_report = lambda *_: {}
    checkpoint_store.MAX_TIME_SHARE = 1e9  # checkpoint at every step, so that many kills interrupt writing
    reference, killed = RunFolder(folder / "reference"), RunFolder(folder / "killed")
    if wait_for_exit(fit_in_fork(folder, reference, folder / "reference.theta")):
        raise SystemExit("the uninterrupted fit failed")
    random.seed(seed)
    lengths = []
    for number in range(kills):
        child = fit_in_fork(folder, killed)
        if number % 4 == 3:
            time.sleep(random.uniform(0.0, 0.2))  # also during start-up
        else:
            max_lines = max(2 * STEPS // kills, 2)
            wait_for_lines(killed, child, history_length(killed) + random.randint(1, max_lines))
            time.sleep(random.uniform(0.0, 0.005))
        os.kill(child, signal.SIGKILL)
        if (code := wait_for_exit(child)) not in (0, -signal.SIGKILL):
            raise SystemExit(f"a fit exited with code {code}")
        if damage := find_damage(killed):
            raise SystemExit("\n".join(damage))
        lengths.append(history_length(killed))
    if wait_for_exit(fit_in_fork(folder, killed, folder / "killed.theta")):
        raise SystemExit("the last fit failed")
    if (folder / "reference.theta").read_bytes() != (folder / "killed.theta").read_bytes():
        raise SystemExit("the killed fit has a different result")
    steps = [[(s.stage, s.step, s.cost) for s in History(r.history_file).read()] for r in (reference, killed)]
    if steps[0] != steps[1]:
        raise SystemExit("the histories differ")
    if any(killed.path.glob(".*.part")):
        raise SystemExit("temporary files remain")
    print(f"killed after these steps: {lengths}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
