"""hybridsim's native code over the batch size (one thread, CPU time) and the number of threads (wall time)."""

import os

from benchmarks.measure import Row, best, command_line, require, row, use_one_thread
from benchmarks.ours import PEER, Motion, measure_rollouts
from benchmarks.workloads import BATCH, BATCH_STEPS, OTHER_BATCHES, W1, W2, Workload


def measure_batches() -> list[Row]:
    """Forward and reverse for the batch sizes that are not in `benchmarks.ours`."""
    use_one_thread()
    return measure_rollouts(W1, OTHER_BATCHES, ("", "reverse"))


def thread_counts() -> list[int]:
    """1, 2, 4, … up to the number of cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [2**k for k in range(cores.bit_length())]


def measure_threads(w: Workload, batch: int) -> list[Row]:
    """Forward and reverse of a large batch; wall times are sensitive to other load on the machine."""
    version = require("hybridsim", "jax", "llvmlite")
    motion = Motion(w, batch, min(w.steps, BATCH_STEPS))
    rollout = motion.rollout()
    rows = []
    for threads in thread_counts():
        for method, bind in (("", motion.forward), ("reverse", motion.reverse)):
            timing = best(bind(rollout, threads), min_samples=30)
            about = {"method": method, "batch": batch, "threads": threads, "steps": motion.steps, "wall": True}
            what = "gradient" if method else "forward"
            rows.append(row(PEER, version, f"{w.name} threads", what, timing, **about, note="wall time"))
    return rows


PARTS = {
    "threads": lambda: [*measure_threads(W1, 4096), *measure_threads(W2, BATCH)],
    "batches": measure_batches,  # last, as it pins the process to one core
}

if __name__ == "__main__":
    command_line(__doc__, "benchmarks.ours_scaling", PARTS)
