"""CasADi: the step and its reverse derivative as generated C, compiled with a hand-written driver. The peer to beat.

The equations are written for this benchmark (casadi_equations.py). Masses, lengths, inertias, torques and states are
inputs; gravity, time step and springs are constants of the code. Every gradient is with respect to the start (q, qd),
the torque of every step, and the parameters.

A batch is measured twice: one trajectory after the other, as the generated C is meant to be used, and ("vectors") with
the same C compiled for types that hold several trajectories, which takes a driver of one's own. Each is compiled in
three ways and the fastest one is reported.
"""

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.peers.measure import (
    Row,
    Timing,
    best,
    check,
    check_motion,
    command_line,
    cpu_seconds,
    needs,
    needs_program,
    row,
)
from benchmarks.peers.mujoco_reference import accelerations
from benchmarks.peers.workloads import (
    CHAIN_LENGTHS,
    W1,
    W2,
    W3,
    Workload,
    chain,
    network,
    network_parameters,
    random_states,
    starts,
)

PEER = "CasADi code"
COMPILER = ("g++", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-w")
"""No -ffast-math. The two -fno flags change no result: they drop errno and floating-point exceptions."""
BATCH = 1024
BATCH_STEPS = 500
"""Steps of a batch, where the workload itself has more."""
STATES = 64
"""Different states that repeated single calls go through."""
LONG = 32
"""Largest mechanism [dof] that is compiled in more than one way; beyond it the compiler needs minutes."""


def installed() -> str:
    """Version of CasADi; ends the program where it or the compiler is missing."""
    needs_program(COMPILER[0])
    return needs("casadi")


@dataclass(frozen=True)
class Build:
    """A way to compile."""

    lanes: int = 1
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        lanes = f"{self.lanes} trajectories per quantity" if self.lanes > 1 else ""
        return ", ".join(filter(None, ["g++ -O3", *self.flags, lanes]))


NOT_INLINED = ("-fno-inline-functions-called-once",)
"""Long functions stay functions: their tests for wanted outputs then divide the code into blocks of a good size."""
SCALAR = ("-fno-tree-slp-vectorize",)
"""Independent operations of one trajectory are not gathered in vectors, which seldom pays in short functions."""


def builds(long: bool) -> dict[str, list[Build]]:
    """Ways to try: plain C, and vectors in one and two registers (none where the driver has no vectors)."""
    if long:
        return {"": [Build(flags=NOT_INLINED)]}
    plain = [Build(), Build(flags=SCALAR), Build(flags=NOT_INLINED)]
    width = vector_width()
    vectors = [Build(width), Build(width, NOT_INLINED), Build(2 * width)]
    return {"": plain} | ({", vectors": vectors} if width > 1 else {})


def vector_width() -> int:
    """Doubles per vector register; 1 where the driver has no vectors for the machine."""
    command = [COMPILER[0], "-march=native", "-dM", "-E", "-x", "c++", "/dev/null"]
    macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return 8 if "__AVX512F__" in macros else 4 if "__AVX2__" in macros else 1


@dataclass
class Library:
    """A compiled driver."""

    functions: ctypes.CDLL
    build: Build
    compile_s: float
    folder: tempfile.TemporaryDirectory = field(repr=False)

    def bound(self, name: str, *arguments: int | np.ndarray) -> Callable[[], None]:
        """A call whose arguments are converted once; the converted arrays keep their memory alive."""
        pointer = ctypes.c_void_p
        converted = [ctypes.c_long(a) if isinstance(a, int) else a.ctypes.data_as(pointer) for a in arguments]
        return functools.partial(getattr(self.functions, name), *converted)


def compiled(part: str, functions: Callable[[], Sequence], sizes: dict[str, int], build: Build) -> Library:
    """Generate, compile and load; the compile time runs from the first symbol to the loaded library.

    Args:
        part: of the driver.
        functions: returns the CasADi functions that the part calls.
        sizes: macros of the driver.
        build: way to compile.
    """
    import casadi

    start = cpu_seconds()
    folder = tempfile.TemporaryDirectory()
    generator = casadi.CodeGenerator("generated.c")
    for function in functions():
        generator.add(function)
    generator.generate(f"{folder.name}/")
    macros = {"GENERATED": '"generated.c"', "LANES": build.lanes, part: 1} | sizes
    defined = [f"-D{name}={value}" for name, value in macros.items()]
    source, library = Path(__file__).with_name("casadi_driver.cpp"), Path(folder.name, "driver.so")
    files = [f"-I{folder.name}", "-shared", "-fPIC", str(source), "-o", str(library), "-lmvec", "-lm"]
    subprocess.run([*COMPILER, *build.flags, *defined, *files], check=True)
    loaded = ctypes.CDLL(str(library))
    return Library(loaded, build, cpu_seconds() - start, folder)


def fastest(libraries: list[Library], prepare: Callable[[Library], Callable[[], None]]) -> Library:
    """The library whose prepared call takes the least time."""
    if len(libraries) == 1:
        return libraries[0]
    calls = [prepare(library) for library in libraries]
    # in turns, so that a slow moment of the machine does not decide
    times = [[best(call, budget=0.2).cpu for call in calls] for _ in range(5)]
    return libraries[int(np.argmin(np.min(times, axis=0)))]


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


def unblocked(array: np.ndarray) -> np.ndarray:
    """The inverse of `blocks`."""
    moved = np.moveaxis(array, -1, 1)
    return moved.reshape(-1, *moved.shape[2:])


class Rollouts:
    """Motions of a batch, each with its own start, torques and parameters."""

    def __init__(self, w: Workload, kept: int, library: Library, batch: int, steps: int):
        lanes = library.build.lanes
        start = np.hstack([starts(w, batch), np.zeros((batch, w.nv))])
        self.inputs = [
            blocks(start, lanes),
            blocks(np.zeros((batch, steps, w.nv)), lanes),
            blocks(np.tile(w.parameters, (batch, 1)), lanes),
        ]
        self.losses = aligned_zeros(batch // lanes, lanes)
        self.states = aligned_zeros(steps + 1, w.nq + 2 * w.nv + 2 * _hinges(w) + kept, lanes)
        self.outputs = [aligned_zeros(*a.shape) for a in self.inputs]
        arguments = (batch // lanes, steps, *self.inputs, self.losses, self.states)
        self.forward = library.bound("rollouts", *arguments)
        self.gradient = library.bound("gradients", *arguments, *self.outputs)

    def check_direction(self) -> None:
        """The gradients of all motions together against a central difference along a random direction."""
        self.gradient()
        draw = np.random.default_rng(2)
        directions = [draw.normal(size=a.shape) * 1e-6 for a in self.inputs]
        slope = sum(float(np.vdot(g, d)) for g, d in zip(self.outputs, directions, strict=True))
        sums = []
        for sign in (1.0, -2.0, 1.0):  # forth, back, and home again
            for a, d in zip(self.inputs, directions, strict=True):
                a += sign * d
            self.forward()
            sums.append(float(np.sum(self.losses)))
        check("gradient against differences", slope, 0.5 * (sums[0] - sums[1]), 1e-4)


def _hinges(w: Workload) -> int:
    return w.nv - 6 * w.is_free


def _sizes(w: Workload) -> dict[str, int]:
    return {"NQ": w.nq, "NV": w.nv, "NH": _hinges(w), "NP": len(w.parameters)}


def measure_rollouts(w: Workload) -> list[Row]:
    """Forward and gradient of one trajectory and of a batch."""
    version = installed()
    from benchmarks.peers import casadi_functions

    def functions():
        return casadi_functions.step(w), casadi_functions.step_vjp(w)

    kept = casadi_functions.Symbols(w).kept.numel()
    sizes, short = _sizes(w) | {"NK": kept}, min(w.steps, BATCH_STEPS)
    rows = []
    for label, ways in builds(long=False).items():
        libraries = [compiled("ROLLOUTS", functions, sizes, way) for way in ways]
        library = fastest(libraries, lambda lib: Rollouts(w, kept, lib, BATCH // 8, short).gradient)
        Rollouts(w, kept, library, library.build.lanes, min(w.steps, 100)).check_direction()
        for batch, steps in ((1, w.steps), (BATCH, short)):
            if batch < library.build.lanes:
                continue
            run = Rollouts(w, kept, library, batch, steps)
            run.gradient()
            start, _, parameters = (unblocked(a)[0] for a in run.outputs)
            gradients = {"parameters": parameters, "q0": start[: w.nq], "qd0": start[w.nq :]}
            found = check_motion(w, steps, loss=run.losses.flat[0], **gradients)
            note = f"{steps} steps; {found}; {library.build}"
            for what, call in (("forward", run.forward), ("gradient", run.gradient)):
                timing = best(call, budget=2.0)
                about = {"batch": batch, "steps": steps, "compile_s": library.compile_s, "note": note}
                rows.append(row(PEER, version, w.name, what + label, timing, **about))
    return rows


class Calls:
    """Forward dynamics or its reverse derivative at many states, in a loop of the driver."""

    def __init__(self, w: Workload, name: str, library: Library):
        lanes = library.build.lanes
        q, qd, tau = random_states(w, STATES)
        g = np.random.default_rng(1).normal(size=tau.shape)
        states = [blocks(a, lanes) for a in (q, qd, tau)]
        parameters = blocks(np.tile(w.parameters, (lanes, 1)), lanes)
        count = STATES // lanes
        self.name, self.calls = name, count * max(1, 3000 // w.nv**2)
        if name == "accelerations":
            self.inputs, shapes = [*states, parameters], [states[1].shape]
        else:
            of_parameters = (count, len(w.parameters), lanes)
            self.inputs, shapes = [*states, parameters, blocks(g, lanes)], [*(a.shape for a in states), of_parameters]
        self.outputs = [aligned_zeros(*shape) for shape in shapes]
        self.run = library.bound(name, self.calls, count, *self.inputs, *self.outputs)


def measure_dynamics(w: Workload) -> list[Row]:
    """Forward dynamics and its reverse derivative, one state at a time and in vectors."""
    version = installed()
    from benchmarks.peers import casadi_functions

    parts = {
        "VALUE": ("forward dynamics", "accelerations", casadi_functions.acceleration),
        "VJP": ("forward dynamics vjp", "accelerations_vjp", casadi_functions.acceleration_vjp),
    }
    rows = []
    for label, ways in builds(long=w.nv > LONG).items():
        for part, (what, name, make) in parts.items():
            libraries = [compiled(part, lambda: [make(w)], _sizes(w), way) for way in ways]  # noqa: B023
            library = fastest(libraries, lambda lib: Calls(w, name, lib).run)  # noqa: B023
            calls = Calls(w, name, library)
            calls.run()
            note = _check_calls(w, calls)
            total = best(calls.run, budget=2.0)
            timing = Timing(total.cpu / calls.calls, total.wall / calls.calls)
            about = {"batch": library.build.lanes, "compile_s": library.compile_s}
            note = f"{w.title}; {note}; mean of {calls.calls} calls; {library.build}"
            rows.append(row(PEER, version, w.name, what + label, timing, **about, note=note))
    return rows


def _check_calls(w: Workload, calls: Calls) -> str:
    """Accelerations against MuJoCo's, gradients against differences of those along a random direction."""
    q, qd, tau = (unblocked(a) for a in calls.inputs[:3])
    if calls.name == "accelerations":
        error = check("accelerations", unblocked(calls.outputs[0]), accelerations(w, q, qd, tau), 1e-9)
        return f"as MuJoCo's to {error:.0e}"
    g = unblocked(calls.inputs[4])
    point = (q, qd, tau, w.parameters)
    draw, h = np.random.default_rng(3), 1e-5
    # masses and moments must stay positive: parameters move by a fraction of themselves
    direction = [draw.normal(size=a.shape) * (np.abs(a) if a is w.parameters else 1.0) for a in point]
    ends = [
        np.sum(g * accelerations(w, *(a + sign * h * d for a, d in zip(point, direction, strict=True))))
        for sign in (1.0, -1.0)
    ]
    slope = sum(np.sum(unblocked(a) * d) for a, d in zip(calls.outputs, direction, strict=True))
    check("gradients", slope, (ends[0] - ends[1]) / (2 * h), 1e-5)
    return f"with respect to q, qd, τ and {len(w.parameters)} parameters ({w.parameter_names})"


def measure_network() -> list[Row]:
    """Loss and gradient of the 175-parameter network."""
    version = installed()
    from benchmarks.peers import casadi_functions

    p, x = network_parameters()
    libraries = [
        compiled("NETWORK", lambda: [casadi_functions.network_gradient(len(p), len(x))], {"NX": len(x)}, way)
        for way in builds(long=False)[""]
    ]
    inputs = x + np.linspace(-0.5, 0.5, STATES)[:, None]
    losses, gradient, calls = np.zeros(STATES), np.zeros(len(p)), 100 * STATES
    arguments = (calls, STATES, p, inputs, losses, gradient)
    library = fastest(libraries, lambda lib: lib.bound("networks", *arguments))
    total = best(library.bound("networks", *arguments), budget=2.0)
    check("losses", losses, [np.sum(np.square(network(p, x, np.tanh))) for x in inputs], 1e-12)
    timing = Timing(total.cpu / calls, total.wall / calls)
    note = f"175 parameters, tanh of libm; mean of {calls} calls; {library.build}"
    about = {"compile_s": library.compile_s, "note": note}
    return [row(PEER, version, "5a", "value and gradient", timing, **about)]


PARTS = {
    "W1": lambda: measure_rollouts(W1),
    "W2": lambda: measure_rollouts(W2),
    "W3": lambda: [*measure_rollouts(W3), *measure_dynamics(W3)],
    "5a": measure_network,
    **{f"W4-{n}": lambda n=n: measure_dynamics(chain(n)) for n in CHAIN_LENGTHS},
}

if __name__ == "__main__":
    command_line(__doc__, "benchmarks.peers.casadi_code", PARTS)
