"""Fits in processes that are killed: `python killed_fits.py FOLDER KILLS SEED` says what went wrong, or nothing.

Every fit runs in a fork of one process that has loaded everything and started nothing, so that a kill costs a moment.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.problem import Stage
from hybridsim.project import fit_run
from hybridsim.project.fit_run import run_fit
from hybridsim.project.record import checkpoint_store
from hybridsim.project.record.checkpoint import from_bytes
from hybridsim.project.record.history import History
from hybridsim.project.record.record import Record
from support.fit_tasks import arm_task, restless

STEPS = 40
"""Of each of two stages."""


def fit_in_fork(folder: Path, record: Record, out: Path | None = None) -> int:
    """Start a fit in a process of its own; returns its id."""
    child = os.fork()
    if child:
        return child
    try:
        stages = (Stage(window=0.25, solver=restless(STEPS)), Stage(window=0.75, solver=restless(STEPS)))
        outcome = run_fit(arm_task(folder, stages=stages, held_out=0), record, mode="resume")
        if out is not None:
            out.write_bytes(outcome.fitted.theta.tobytes())
        os._exit(0)
    except HybridsimError as error:
        print(error, flush=True)
        os._exit(1)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def damage_in(record: Record) -> list[str]:
    """What a killed process must never leave behind."""
    found = []
    for path in record.folder.glob("checkpoint-*"):
        try:
            from_bytes(path.read_bytes())
        except HybridsimError as error:
            found.append(f"{path.name}: {error}")
    for file, read in ((record.manifest_file, record.manifest), (record.result_file, record.result)):
        if file.exists():
            read()
    places = [(step.stage, step.step) for step in History(record.history_file).read()]
    if places != sorted(set(places)):
        found.append(f"history is not in order: {places}")
    return found


def wait_for_lines(record: Record, child: int, count: int) -> None:
    """Wait until a fit has written some more lines of its history, or has ended."""
    while lines_of(record) < count and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(2e-4)


def lines_of(record: Record) -> int:
    try:
        return record.history_file.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill fits at random moments and compare what they come to with a fit that nobody disturbed."""
    fit_run._write_up = lambda *_: {}
    checkpoint_store.SHARE = 1e9  # every step is written, so that many a kill comes while that happens
    whole, disturbed = Record(folder / "whole"), Record(folder / "disturbed")
    if ended(fit_in_fork(folder, whole, folder / "whole.theta")):
        raise SystemExit("the undisturbed fit failed")
    random.seed(seed)
    reached = []
    for number in range(kills):
        child = fit_in_fork(folder, disturbed)
        if number % 4 == 3:
            time.sleep(random.uniform(0.0, 0.2))  # also while it begins
        else:
            most = max(2 * STEPS // kills, 2)
            wait_for_lines(disturbed, child, lines_of(disturbed) + random.randint(1, most))
            time.sleep(random.uniform(0.0, 0.005))
        os.kill(child, signal.SIGKILL)
        if (code := ended(child)) not in (0, -signal.SIGKILL):
            raise SystemExit(f"a fit ended with {code}")
        if found := damage_in(disturbed):
            raise SystemExit("\n".join(found))
        reached.append(lines_of(disturbed))
    if ended(fit_in_fork(folder, disturbed, folder / "disturbed.theta")):
        raise SystemExit("the last fit failed")
    if (folder / "whole.theta").read_bytes() != (folder / "disturbed.theta").read_bytes():
        raise SystemExit("the fit that was killed found something else")
    steps = [[(s.stage, s.step, s.cost) for s in History(r.history_file).read()] for r in (whole, disturbed)]
    if steps[0] != steps[1]:
        raise SystemExit("the histories differ")
    if any(disturbed.folder.glob(".*.part")):
        raise SystemExit("half-written files were left behind")
    print(f"killed after these steps: {reached}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
