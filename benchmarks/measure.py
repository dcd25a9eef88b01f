"""Common parts of all peers: timing, result rows, checks of the results, and the command line.

Times are CPU times, as the machine is rarely idle: of the calling thread if a peer computes on it, of the process if it
has its own threads. Each is the best of several calls after a warm-up; the best wall time of the same calls is
recorded, too.
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NamedTuple, NoReturn

import numpy as np

from benchmarks.references import REFERENCES
from benchmarks.workloads import Workload

FASTER_XLA = "--xla_cpu_use_fusion_emitters=false"
"""With the fusion emitters of jaxlib 0.10 the JAX peers are slower, MJX up to 30 times (forward mode, five links).

Disabling fusion (--xla_disable_hlo_passes=fusion) also avoids that, but costs more than it saves. Newer versions of XLA
do not need the flag and do not accept it.
"""
MISSING_PACKAGE = 3
"""Exit code if a peer is not installed."""


SAMPLE = 0.02
"""Minimum wall time of one sample [s]."""
_budget = 1.0
"""Wall time for sampling [s]; set by `command_line`."""


class Timing(NamedTuple):
    """Best times of one call [s]."""

    cpu: float
    wall: float


def best(function: Callable[[], object], *, clock: str = "thread", min_samples: int = 3) -> Timing:
    """Minimum CPU and wall time of a call, from samples that are long relative to the resolution of the clock.

    Short calls are repeated within a sample: on a virtual machine the CPU clock of a thread may have errors of several
    microseconds, and the minimum of many short readings would be biased.

    Args:
        function: called without arguments; the first call is a warm-up.
        clock: `"thread"` for the CPU time of this thread, `"process"` for that of all threads.
        min_samples: minimum number of samples.
    """
    cpu_clock = {"thread": time.thread_time, "process": time.process_time}[clock]

    def sample(calls: int) -> Timing:
        start_wall, start_cpu = time.perf_counter(), cpu_clock()
        for _ in range(calls):
            function()
        cpu = cpu_clock() - start_cpu
        return Timing(cpu / calls, (time.perf_counter() - start_wall) / calls)

    function()
    calls = max(1, round(SAMPLE / max(sample(1).wall, 1e-7)))
    samples = []
    end = time.perf_counter() + _budget
    while len(samples) < min_samples or time.perf_counter() < end:
        samples.append(sample(calls))
    return Timing(*(min(times) for times in zip(*samples, strict=True)))


def cpu_seconds() -> float:
    """CPU time of this process, its threads and its finished child processes, such as compilers [s]."""
    return sum(os.times()[:4])


@dataclass(frozen=True)
class Row:
    """One measured time."""

    peer: str
    version: str
    workload: str
    what: str
    """"forward" or "gradient" of a motion, "value" or "vjp" of forward dynamics, "value and gradient" of a network."""
    method: str
    """Gradient method, or variant of a peer."""
    batch: int
    threads: int
    steps: int
    """Steps or repeated calls per trajectory."""
    seconds: float
    """CPU time of the call, or its wall time in comparisons of threads [s]."""
    per_step_ns: float
    """Time per step and trajectory [ns]."""
    wall_seconds: float
    compile_s: float | None
    """CPU time from the model to compiled code [s]; None if nothing is compiled."""
    cached_s: float | None
    """The same with compiled code in the disk cache [s]."""
    note: str
    slowest_ns: float | None = None
    """Largest `per_step_ns` if the row is the best of several processes."""


def row(
    peer: str,
    version: str,
    workload: str,
    what: str,
    timing: Timing,
    *,
    method: str = "",
    batch: int = 1,
    threads: int = 1,
    steps: int = 1,
    compile_s: float | None = None,
    cached_s: float | None = None,
    note: str = "",
    wall: bool = False,
) -> Row:
    """Row from the best times of a call of `steps` steps of `batch` trajectories; in wall time with `wall`."""
    seconds = timing.wall if wall else timing.cpu
    return Row(
        peer,
        version,
        workload,
        what,
        method,
        batch,
        threads,
        steps,
        seconds,
        1e9 * seconds / (batch * steps),
        timing.wall,
        compile_s,
        cached_s,
        note,
    )


def check(name: str, value, expected, tolerance: float) -> float:
    """Error relative to the largest expected entry.

    Raises:
        ValueError: the error exceeds the tolerance, so the peer computes something else.
    """
    expected = np.asarray(expected)
    error = float(np.max(np.abs(np.asarray(value) - expected)) / np.max(np.abs(expected)))
    if not error <= tolerance:
        raise ValueError(f"{name}: relative error {error:.1e}, allowed {tolerance:.1e}")
    return error


def check_motion(
    w: Workload, steps: int, *, loss=None, parameters=None, q0=None, qd0=None, tolerance: float | None = None
) -> str:
    """Compare a rollout without torques with the reference; returns a summary for the row's note.

    Args:
        w: the workload.
        steps: number of steps.
        loss: loss computed by the peer; None if not computed, like all that follow.
        parameters: gradient with respect to the parameters.
        q0: gradient with respect to the initial coordinates.
        qd0: gradient with respect to the initial velocities.
        tolerance: by default that of the reference.
    """
    reference = REFERENCES[w.name, steps]
    allowed = reference.tolerance if tolerance is None else tolerance
    results = {"loss": loss, "parameters": parameters, "q0": q0, "qd0": qd0}
    errors = {
        name: check(f"{w.name}, {name}", value, getattr(reference, name), allowed)
        for name, value in results.items()
        if value is not None and getattr(reference, name) is not None
    }
    if not errors:
        return "no reference"
    return f"{', '.join(errors)} as expected to {max(errors.values()):.0e} (allowed {allowed:.0e})"


def use_one_thread(*xla_flags: str) -> None:
    """Restrict numerical libraries and XLA to one thread and one core; call before they are imported.

    XLA sizes its thread pool by the available cores; with more than one, part of its CPU time is idle spinning.

    Args:
        xla_flags: flags to add if the installed version accepts them.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    known = [flag for flag in xla_flags if _xla_accepts(flag)]
    # only words that begin with dashes: XLA silently stops parsing at the first other one
    flags = [os.environ.get("XLA_FLAGS", ""), "--xla_cpu_multi_thread_eigen=false", *known]
    os.environ["XLA_FLAGS"] = " ".join(flags).strip()


def _xla_accepts(flag: str) -> bool:
    """Whether XLA accepts a flag; tested in a new process, as XLA aborts at unknown flags."""
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    completed = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flag}, capture_output=True, check=False)
    return completed.returncode == 0


def require(*packages: str) -> str:
    """Require installed packages and return their versions as text; exits if one is missing."""
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            exit_missing(f"this peer needs the package {package!r}: pip install {package}")
    return ", ".join(versions)


def require_program(name: str) -> None:
    """Require a program such as a compiler; exits if it is missing."""
    if shutil.which(name) is None:
        exit_missing(f"this peer needs the program {name!r}")


def exit_missing(message: str) -> NoReturn:
    """Exit because a peer is not installed."""
    print(message, file=sys.stderr)
    raise SystemExit(MISSING_PACKAGE)


def command_line(doc: str, module: str, parts: dict[str, Callable[[], list[Row]]]) -> None:
    """Run the selected parts and print the rows of each part as it finishes.

    Args:
        doc: description of the peer.
        module: module name for the example in `--help`.
        parts: measuring functions by workload.
    """
    parser = argparse.ArgumentParser(
        description=doc,
        epilog=f"example: python -m {module} {next(iter(parts))} --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON per part: its name and rows")
    parser.add_argument("parts", nargs="*", help=f"parts to measure: {', '.join(parts)}; by default all")
    parser.add_argument("--seconds", type=float, default=1.0, help="sampling time per result (%(default)s s)")
    arguments = parser.parse_args()
    global _budget
    _budget = arguments.seconds
    if unknown := set(arguments.parts) - set(parts):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    for name in arguments.parts or parts:
        with contextlib.redirect_stdout(sys.stderr):  # some packages print on import
            rows = parts[name]()
        if arguments.json:
            print(json.dumps({"part": name, "rows": [asdict(r) for r in rows]}), flush=True)
        else:
            print(*(line(r) for r in rows), sep="\n", flush=True)


def line(r: Row) -> str:
    """One row as readable text."""
    compiled = "" if r.compile_s is None else f"  compiled in {r.compile_s:.2f} s"
    cached = "" if r.cached_s is None else f" (from disk {r.cached_s:.2f} s)"
    threads = "" if r.threads == 1 else f" on {r.threads} threads"
    what = f"{r.what}, {r.method}" if r.method else r.what
    name = f"{r.peer:18} {r.workload:10} {what:34} ×{r.batch:<5}"
    return f"{name} {r.per_step_ns:10.4g} ns{threads}{compiled}{cached}  {r.note}"
