"""CasADi's code generator with everything around it done by hand, to see what the machine allows.

Unlike in casadi_plain.py, the derivative is not CasADi's of the step but worked out by hand, results of the
forward sweep are stored for the reverse one (casadi_tuned_functions.py), several compiler flags are tried and the
fastest is reported, and a batch is also run with the same C compiled for types that hold several trajectories
("vectors"). Gradients are with respect to the same quantities.
"""

import functools
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.measure import (
    Row,
    Timing,
    best,
    check_motion,
    command_line,
    needs,
    needs_program,
    one_thread,
    row,
)
from benchmarks.peers.casadi_build import Library, compiled
from benchmarks.peers.casadi_plain import STATES
from benchmarks.peers.mujoco_reference import check_slopes
from benchmarks.workloads import BATCH, BATCH_STEPS, CHAIN_LENGTHS, W1, W2, W3, Workload, chain, random_states, starts

PEER = "CasADi C by hand"
COMPILER = ("g++", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-w")
"""No -ffast-math. The two -fno flags change no result: they drop errno and floating-point exceptions."""
SCALAR = "-fno-tree-slp-vectorize"
"""Independent operations of one trajectory are not gathered in vectors, which seldom pays in short functions."""
NOT_INLINED = "-fno-inline-functions-called-once"
"""Long functions stay functions: their tests for wanted outputs then divide the code into blocks of a good size."""


@dataclass(frozen=True)
class Build:
    """A way to compile."""

    flag: str
    lanes: int = 1

    def __str__(self) -> str:
        lanes = f", {self.lanes} trajectories per quantity" if self.lanes > 1 else ""
        return f"g++ -O3 -march=native {self.flag}{lanes}"

    def library(self, part: str, functions: Callable, w: Workload, **sizes: int) -> Library:
        sizes |= {"NQ": w.nq, "NV": w.nv, "NH": _hinges(w), "NP": len(w.parameters), "LANES": self.lanes, part: 1}
        compiler = [*COMPILER, self.flag]
        return compiled(compiler, "casadi_tuned.cpp", functions, sizes, libraries=("-lmvec", "-lm"))


def installed() -> str:
    """Version of CasADi; ends the program where it or the compiler is missing."""
    needs_program(COMPILER[0])
    return needs("casadi")


@functools.cache
def vector_width() -> int:
    """Doubles per vector register; 1 where the driver has no vectors for the machine."""
    command = [COMPILER[0], "-march=native", "-dM", "-E", "-x", "c++", "/dev/null"]
    macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return 8 if "__AVX512F__" in macros else 4 if "__AVX2__" in macros else 1


def aligned_zeros(*shape: int) -> np.ndarray:
    """Zeros that begin on a cache line, as vectors must."""
    size = 8 * int(np.prod(shape))
    memory = np.zeros(size + 64, np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + size].view(np.float64).reshape(shape)


def blocks(rows: np.ndarray, lanes: int) -> np.ndarray:
    """[trajectory, …] as the driver's [block, …, lane]."""
    moved = np.moveaxis(rows.reshape(-1, lanes, *rows.shape[1:]), 1, -1)
    out = aligned_zeros(*moved.shape)
    out[:] = moved
    return out


class Rollouts:
    """Motions of a batch, each with its own start, torques and parameters."""

    def __init__(self, w: Workload, kept: int, library: Library, lanes: int, batch: int, steps: int):
        start = np.hstack([starts(w, batch), np.zeros((batch, w.nv))])
        arrays = (start, np.zeros((batch, steps, w.nv)), np.tile(w.parameters, (batch, 1)))
        inputs = [blocks(a, lanes) for a in arrays]
        self.losses = aligned_zeros(batch // lanes, lanes)
        states = aligned_zeros(steps + 1, w.nq + 2 * w.nv + 2 * _hinges(w) + kept, lanes)
        self.outputs = [aligned_zeros(*a.shape) for a in inputs]
        arguments = (batch // lanes, steps, *inputs, self.losses, states)
        self.forward = library.bound("rollouts", *arguments)
        self.gradient = library.bound("gradients", *arguments, *self.outputs)


def _hinges(w: Workload) -> int:
    return w.nv - 6 * w.is_free


def measure_rollouts(w: Workload) -> list[Row]:
    """Forward and gradient of one trajectory and of a batch, one after the other and in vectors."""
    version = installed()
    from benchmarks.peers import casadi_tuned_functions as made

    kept = made.Symbols(w).kept.numel()
    width = vector_width()
    ways = {"reverse": [Build(SCALAR), Build(NOT_INLINED)]}
    if width > 1:
        ways["vectors"] = [Build(NOT_INLINED, width), Build(NOT_INLINED, 2 * width)]
    rows = []
    for method, builds in ways.items():
        libraries = [b.library("ROLLOUTS", lambda: (made.step(w), made.step_vjp(w)), w, NK=kept) for b in builds]
        lanes = [b.lanes for b in builds]
        for batch, steps in ((1, w.steps), (BATCH, min(w.steps, BATCH_STEPS))):
            if batch < max(lanes):
                continue
            runs = [Rollouts(w, kept, lib, n, batch, steps) for lib, n in zip(libraries, lanes, strict=True)]
            for what in ("forward", "gradient"):
                times = [best(getattr(run, what)) for run in runs]
                k = int(np.argmin([t.cpu for t in times]))
                note = str(builds[k])
                if what == "gradient":
                    start, _, parameters = (a[0, ..., 0] for a in runs[k].outputs)
                    answers = {"parameters": parameters, "q0": start[: w.nq], "qd0": start[w.nq :]}
                    note = f"{check_motion(w, steps, loss=runs[k].losses.flat[0], **answers)}; {note}"
                shown = "" if (what, method) == ("forward", "reverse") else method
                about = {"method": shown, "batch": batch, "steps": steps, "compile_s": libraries[k].compile_s}
                rows.append(row(PEER, version, w.name, what, times[k], **about, note=note))
    return rows


def measure_vjp(w: Workload) -> list[Row]:
    """Reverse derivative of forward dynamics, one state after the other."""
    version = installed()
    from benchmarks.peers import casadi_tuned_functions as made

    build = Build(SCALAR if w.nv <= 32 else NOT_INLINED)  # of the longest chain the other one takes many minutes
    library = build.library("VJP", lambda: [made.acceleration_vjp(w)], w)
    q, qd, tau = random_states(w, STATES)
    g = np.random.default_rng(1).normal(size=tau.shape)
    gradients = [*(np.zeros_like(a) for a in (q, qd, tau)), np.zeros((STATES, len(w.parameters)))]
    calls = STATES * max(1, 3000 // w.nv**2)
    call = library.bound("accelerations_vjp", calls, STATES, q, qd, tau, w.parameters, g, *gradients)
    total = best(call)
    check_slopes(w, (q, qd, tau), g, gradients)
    timing = Timing(total.cpu / calls, total.wall / calls)
    about = {"compile_s": library.compile_s, "note": f"mean of {calls} calls; {build}"}
    return [row(PEER, version, w.name, "vjp", timing, **about)]


PARTS = {
    **{w.name: lambda w=w: measure_rollouts(w) for w in (W1, W2, W3)},
    **{f"W4-{n}": lambda n=n: measure_vjp(chain(n)) for n in CHAIN_LENGTHS},
}

if __name__ == "__main__":
    one_thread()
    command_line(__doc__, "benchmarks.peers.casadi_tuned", PARTS)
