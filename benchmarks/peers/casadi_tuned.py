"""CasADi's code generator with everything else optimized by hand, to estimate what the machine allows.

Unlike in casadi_plain.py, the derivative is derived by hand, results of the forward sweep are stored for the reverse
one (casadi_tuned_functions.py), several compiler flags are tried and the fastest is reported, and batches are also run
with the same C compiled for vector types that hold several trajectories ("vectors"). Gradients are with respect to the
same quantities.
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
    require,
    require_program,
    row,
    use_one_thread,
)
from benchmarks.peers.casadi_build import Library, compile_library
from benchmarks.peers.casadi_plain import STATES
from benchmarks.peers.mujoco_reference import check_gradient
from benchmarks.workloads import (
    BATCH,
    BATCH_STEPS,
    CHAIN_LENGTHS,
    W1,
    W2,
    W3,
    Workload,
    chain,
    initial_coordinates,
    random_states,
)

PEER = "CasADi C by hand"
COMPILER = ("g++", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-w")
"""No -ffast-math. The two -fno flags do not change results: they omit errno and floating-point exceptions."""
SCALAR = "-fno-tree-slp-vectorize"
"""No superword vectorization within a trajectory, which rarely pays off in short functions."""
NOT_INLINED = "-fno-inline-functions-called-once"
"""Long functions are not inlined: their tests for requested outputs then split the code into suitable blocks."""


@dataclass(frozen=True)
class Build:
    """A compiler configuration."""

    flag: str
    lanes: int = 1

    def __str__(self) -> str:
        lanes = f", {self.lanes} trajectories per quantity" if self.lanes > 1 else ""
        return f"g++ -O3 -march=native {self.flag}{lanes}"

    def library(self, part: str, functions: Callable, w: Workload, **sizes: int) -> Library:
        sizes |= {"NQ": w.nq, "NV": w.nv, "NH": _hinges(w), "NP": len(w.parameters), "LANES": self.lanes, part: 1}
        compiler = [*COMPILER, self.flag]
        return compile_library(compiler, "casadi_tuned.cpp", functions, sizes, libraries=("-lmvec", "-lm"))


def require_casadi() -> str:
    """Require CasADi and the compiler; returns the version of CasADi, or exits if one is missing."""
    require_program(COMPILER[0])
    return require("casadi")


@functools.cache
def vector_width() -> int:
    """Doubles per vector register; 1 if the driver does not support the machine's vectors."""
    command = [COMPILER[0], "-march=native", "-dM", "-E", "-x", "c++", "/dev/null"]
    macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return 8 if "__AVX512F__" in macros else 4 if "__AVX2__" in macros else 1


def aligned_zeros(*shape: int) -> np.ndarray:
    """Zeros aligned to a cache line, as vectors require."""
    size = 8 * int(np.prod(shape))
    memory = np.zeros(size + 64, np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + size].view(np.float64).reshape(shape)


def blocks(rows: np.ndarray, lanes: int) -> np.ndarray:
    """[trajectory, …] as the driver's [block, …, lane]."""
    transposed = np.moveaxis(rows.reshape(-1, lanes, *rows.shape[1:]), 1, -1)
    out = aligned_zeros(*transposed.shape)
    out[:] = transposed
    return out


class Rollouts:
    """Rollouts of a batch, each with its own initial state, torques and parameters."""

    def __init__(self, w: Workload, saved: int, library: Library, lanes: int, batch: int, steps: int):
        start = np.hstack([initial_coordinates(w, batch), np.zeros((batch, w.nv))])
        arrays = (start, np.zeros((batch, steps, w.nv)), np.tile(w.parameters, (batch, 1)))
        inputs = [blocks(a, lanes) for a in arrays]
        self.losses = aligned_zeros(batch // lanes, lanes)
        states = aligned_zeros(steps + 1, w.nq + 2 * w.nv + 2 * _hinges(w) + saved, lanes)
        self.outputs = [aligned_zeros(*a.shape) for a in inputs]
        arguments = (batch // lanes, steps, *inputs, self.losses, states)
        self.forward = library.bind("rollouts", *arguments)
        self.gradient = library.bind("gradients", *arguments, *self.outputs)


def _hinges(w: Workload) -> int:
    return w.nv - 6 * w.is_free


def measure_rollouts(w: Workload) -> list[Row]:
    """Forward and gradient of one trajectory and of a batch, sequentially and in vectors."""
    version = require_casadi()
    from benchmarks.peers import casadi_tuned_functions as functions

    saved = functions.Symbols(w).saved.numel()
    width = vector_width()
    builds_by_method = {"reverse": [Build(SCALAR), Build(NOT_INLINED)]}
    if width > 1:
        builds_by_method["vectors"] = [Build(NOT_INLINED, width), Build(NOT_INLINED, 2 * width)]
    rows = []
    for method, builds in builds_by_method.items():
        libraries = [
            b.library("ROLLOUTS", lambda: (functions.step(w), functions.step_vjp(w)), w, NK=saved) for b in builds
        ]
        lanes = [b.lanes for b in builds]
        for batch, steps in ((1, w.steps), (BATCH, min(w.steps, BATCH_STEPS))):
            if batch < max(lanes):
                continue
            runs = [Rollouts(w, saved, lib, n, batch, steps) for lib, n in zip(libraries, lanes, strict=True)]
            for what in ("forward", "gradient"):
                times = [best(getattr(run, what)) for run in runs]
                k = int(np.argmin([t.cpu for t in times]))
                note = str(builds[k])
                if what == "gradient":
                    start, _, parameters = (a[0, ..., 0] for a in runs[k].outputs)
                    results = {"parameters": parameters, "q0": start[: w.nq], "qd0": start[w.nq :]}
                    note = f"{check_motion(w, steps, loss=runs[k].losses.flat[0], **results)}; {note}"
                label = "" if (what, method) == ("forward", "reverse") else method
                about = {"method": label, "batch": batch, "steps": steps, "compile_s": libraries[k].compile_s}
                rows.append(row(PEER, version, w.name, what, times[k], **about, note=note))
    return rows


def measure_vjp(w: Workload) -> list[Row]:
    """Reverse derivative of forward dynamics, one state after the other."""
    version = require_casadi()
    from benchmarks.peers import casadi_tuned_functions as functions

    # with the other flag the longest chain takes many minutes to compile
    build = Build(SCALAR if w.nv <= 32 else NOT_INLINED)
    library = build.library("VJP", lambda: [functions.acceleration_vjp(w)], w)
    q, qd, tau = random_states(w, STATES)
    g = np.random.default_rng(1).normal(size=tau.shape)
    gradients = [*(np.zeros_like(a) for a in (q, qd, tau)), np.zeros((STATES, len(w.parameters)))]
    calls = STATES * max(1, 3000 // w.nv**2)
    call = library.bind("accelerations_vjp", calls, STATES, q, qd, tau, w.parameters, g, *gradients)
    total = best(call)
    check_gradient(w, (q, qd, tau), g, gradients)
    timing = Timing(total.cpu / calls, total.wall / calls)
    about = {"compile_s": library.compile_s, "note": f"mean of {calls} calls; {build}"}
    return [row(PEER, version, w.name, "vjp", timing, **about)]


PARTS = {
    **{w.name: lambda w=w: measure_rollouts(w) for w in (W1, W2, W3)},
    **{f"W4-{n}": lambda n=n: measure_vjp(chain(n)) for n in CHAIN_LENGTHS},
}

if __name__ == "__main__":
    use_one_thread()
    command_line(__doc__, "benchmarks.peers.casadi_tuned", PARTS)
