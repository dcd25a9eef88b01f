"""What every peer shares: timing, the rows it reports, the check of its answers, and its command line.

Times are CPU times, because a benchmark seldom has a machine to itself: of the calling thread where a peer computes on
it, of the process where a peer has threads of its own. Each is the best of several calls after a warm-up; the best wall
time of the same calls is kept beside it.
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
"""With the emitters of jaxlib 0.10 the JAX peers are slower, MJX up to thirty times (forward mode, five-link pendulum).

Switching fusion off altogether (--xla_disable_hlo_passes=fusion) also avoids that, but costs more than it saves. Newer
versions of XLA do not need the flag and do not know it.
"""
MISSING_PACKAGE = 3
"""Exit code where a peer is not installed."""


SAMPLE = 0.02
"""Wall time that one sample should last at least [s]."""
_budget = 1.0
"""Wall time after which no more samples are taken [s]; set by `command_line`."""


class Timing(NamedTuple):
    """Best times of one call [s]."""

    cpu: float
    wall: float


def best(function: Callable[[], object], *, clock: str = "thread", least: int = 3) -> Timing:
    """Shortest CPU and wall time of a call, among samples that are long enough for the clock.

    Short calls are repeated within a sample: on a virtual machine the CPU clock of a thread can be off by several
    microseconds, and the shortest of many such readings would be the one that is most wrong.

    Args:
        function: called without arguments; its first call is a warm-up and is not counted.
        clock: `"thread"` for the CPU time of this thread, `"process"` for that of all threads.
        least: samples to take even if they last longer.
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
    while len(samples) < least or time.perf_counter() < end:
        samples.append(sample(calls))
    return Timing(*(min(times) for times in zip(*samples, strict=True)))


def cpu_seconds() -> float:
    """CPU time of this process, its threads and the programs it has waited for [s]: for the time of compilers."""
    return sum(os.times()[:4])


@dataclass(frozen=True)
class Row:
    """One measured number."""

    peer: str
    version: str
    workload: str
    what: str
    """"forward" or "gradient" of a motion, "value" or "vjp" of forward dynamics, "value and gradient" of a network."""
    method: str
    """How a gradient is computed, or which variant of a peer this is."""
    batch: int
    threads: int
    steps: int
    """Steps, or repeated calls, of each trajectory."""
    seconds: float
    """CPU time of the whole call, or its wall time where threads are compared [s]."""
    per_step_ns: float
    """The same per step and trajectory [ns]."""
    wall_seconds: float
    compile_s: float | None
    """CPU time from the model to code that can be called; None where nothing is compiled [s]."""
    cached_s: float | None
    """The same where the code is found on disk [s]."""
    note: str
    slowest_ns: float | None = None
    """Largest `per_step_ns` where a row is the best of several processes."""


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
    """A row from the best times of a call that made `steps` steps of `batch` trajectories; `wall` counts wall time."""
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
        ValueError: if it exceeds the tolerance: then the peer computes something else and its time means nothing.
    """
    expected = np.asarray(expected)
    error = float(np.max(np.abs(np.asarray(value) - expected)) / np.max(np.abs(expected)))
    if not error <= tolerance:
        raise ValueError(f"{name}: relative error {error:.1e}, allowed {tolerance:.1e}")
    return error


def check_motion(
    w: Workload, steps: int, *, loss=None, parameters=None, q0=None, qd0=None, tolerance: float | None = None
) -> str:
    """Compare a motion without torques with the known answer; returns what was found, for the row's note.

    Args:
        w: the workload.
        steps: of the motion.
        loss: that the peer computed, where it did; so for all that follow.
        parameters: gradient with respect to the parameters.
        q0: gradient with respect to the starting coordinates.
        qd0: gradient with respect to the starting velocities.
        tolerance: by default that of the reference.
    """
    known = REFERENCES[w.name, steps]
    allowed = known.tolerance if tolerance is None else tolerance
    answers = {"loss": loss, "parameters": parameters, "q0": q0, "qd0": qd0}
    errors = {
        name: check(f"{w.name}, {name}", value, getattr(known, name), allowed)
        for name, value in answers.items()
        if value is not None and getattr(known, name) is not None
    }
    if not errors:
        return "without a reference"
    return f"{', '.join(errors)} as expected to {max(errors.values()):.0e} (allowed {allowed:.0e})"


def one_thread(*xla_flags: str) -> None:
    """Keep numerical libraries and XLA on one thread and one core; call before they are imported.

    XLA sizes its thread pool by the cores it may use; with more than one, part of its CPU time is idle spinning.

    Args:
        xla_flags: to add where the installed version knows them.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    known = [flag for flag in xla_flags if _xla_knows(flag)]
    # only words that begin with dashes: XLA stops reading at the first other one, without a message
    flags = [os.environ.get("XLA_FLAGS", ""), "--xla_cpu_multi_thread_eigen=false", *known]
    os.environ["XLA_FLAGS"] = " ".join(flags).strip()


def _xla_knows(flag: str) -> bool:
    """Whether a fresh process gets past the flag; XLA ends the process at one that it does not know."""
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    ended = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flag}, capture_output=True, check=False)
    return ended.returncode == 0


def needs(*packages: str) -> str:
    """Versions of the installed packages as one text; ends the program where one is missing."""
    found = []
    for package in packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            leave(f"this peer needs the package {package!r}: pip install {package}")
    return ", ".join(found)


def needs_program(name: str) -> None:
    """Ends the program where a compiler is missing."""
    if shutil.which(name) is None:
        leave(f"this peer needs the program {name!r}")


def leave(message: str) -> NoReturn:
    """End the program because a peer is not installed."""
    print(message, file=sys.stderr)
    raise SystemExit(MISSING_PACKAGE)


def command_line(doc: str, module: str, parts: dict[str, Callable[[], list[Row]]]) -> None:
    """Run the chosen parts and print their rows, each part as soon as it is done.

    Args:
        doc: description of the peer.
        module: for the example in `--help`.
        parts: functions that measure, by the name of their workload.
    """
    parser = argparse.ArgumentParser(
        description=doc,
        epilog=f"example: python -m {module} {next(iter(parts))} --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON per part: its name and its rows")
    parser.add_argument("parts", nargs="*", help=f"what to measure: {', '.join(parts)}; by default all of them")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to sample each number (%(default)s s)")
    arguments = parser.parse_args()
    global _budget
    _budget = arguments.seconds
    if unknown := set(arguments.parts) - set(parts):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    for name in arguments.parts or parts:
        with contextlib.redirect_stdout(sys.stderr):  # some packages print when they are imported
            rows = parts[name]()
        if arguments.json:
            print(json.dumps({"part": name, "rows": [asdict(r) for r in rows]}), flush=True)
        else:
            print(*(line(r) for r in rows), sep="\n", flush=True)


def line(r: Row) -> str:
    """One row as text for people."""
    compiled = "" if r.compile_s is None else f"  compiled in {r.compile_s:.2f} s"
    cached = "" if r.cached_s is None else f" (from disk {r.cached_s:.2f} s)"
    threads = "" if r.threads == 1 else f" on {r.threads} threads"
    what = f"{r.what}, {r.method}" if r.method else r.what
    name = f"{r.peer:18} {r.workload:10} {what:34} ×{r.batch:<5}"
    return f"{name} {r.per_step_ns:10.4g} ns{threads}{compiled}{cached}  {r.note}"
