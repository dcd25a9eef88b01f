"""CasADi as in its manual: the step and its reverse derivative as generated C, looped in C. The reference peer.

The step is one expression (casadi_model.py), differentiated by CasADi; masses, lengths, inertias, torques and states
are inputs; gravity, time step and springs are constants. Gradients are with respect to the initial state (q, qd), the
torque of every step, and the parameters. The trajectories of a batch are computed one after the other.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.measure import (
    Row,
    Timing,
    best,
    check,
    check_motion,
    command_line,
    require,
    require_program,
    row,
    use_one_thread,
)
from benchmarks.peers.casadi_build import Library, compile_library
from benchmarks.peers.mujoco_reference import accelerations, check_gradient
from benchmarks.workloads import (
    BATCH,
    BATCH_STEPS,
    CHAIN_LENGTHS,
    OTHER_BATCHES,
    W1,
    W2,
    W3,
    Workload,
    chain,
    initial_coordinates,
    network,
    network_parameters,
    random_states,
)

PEER = "CasADi C"
COMPILER = ("gcc", "-O3", "-march=native", "-w")
FLAGS = " ".join(COMPILER[:3])
STATES = 64
"""Number of different states in repeated single calls."""


def require_casadi() -> str:
    """Require CasADi and the compiler; returns the version of CasADi, or exits if one is missing."""
    require_program(COMPILER[0])
    return require("casadi")


def library(part: str, functions: Callable, w: Workload) -> Library:
    """Compile the part of the driver that calls these functions, for a workload."""
    sizes = {"NQ": w.nq, "NV": w.nv, "NP": len(w.parameters), part: 1}
    return compile_library(COMPILER, "casadi_plain.c", functions, sizes)


class Rollouts:
    """Rollouts of a batch, each with its own initial state, torques and parameters."""

    def __init__(self, w: Workload, lib: Library, batch: int, steps: int):
        start = np.hstack([initial_coordinates(w, batch), np.zeros((batch, w.nv))])
        inputs = [start, np.zeros((batch, steps, w.nv)), np.tile(w.parameters, (batch, 1))]
        self.losses, states = np.zeros(batch), np.zeros((steps + 1, w.nq + w.nv))
        self.outputs = [np.zeros_like(a) for a in inputs]
        arguments = (batch, steps, *inputs, self.losses, states)
        self.forward = lib.bind("rollouts", *arguments)
        self.gradient = lib.bind("gradients", *arguments, *self.outputs)


def measure_rollouts(w: Workload, batches: tuple[int, ...] = (1, BATCH)) -> list[Row]:
    """Forward and gradient of one trajectory and of batches."""
    version = require_casadi()
    from benchmarks.peers import casadi_model

    lib = library("ROLLOUTS", lambda: (casadi_model.step(w), casadi_model.step_vjp(w)), w)
    rows = []
    for batch in batches:
        steps = w.steps if batch == 1 else min(w.steps, BATCH_STEPS)
        run = Rollouts(w, lib, batch, steps)
        run.gradient()
        start, _, parameters = (a[0] for a in run.outputs)
        summary = check_motion(w, steps, loss=run.losses[0], parameters=parameters, q0=start[: w.nq], qd0=start[w.nq :])
        about = {"batch": batch, "steps": steps, "compile_s": lib.compile_s, "note": f"{summary}; {FLAGS}"}
        rows.append(row(PEER, version, w.name, "forward", best(run.forward), **about))
        rows.append(row(PEER, version, w.name, "gradient", best(run.gradient), method="reverse", **about))
    return rows


def measure_dynamics(w: Workload) -> list[Row]:
    """Forward dynamics and its reverse derivative, one state after the other."""
    version = require_casadi()
    from benchmarks.peers import casadi_model

    q, qd, tau = random_states(w, STATES)
    g = np.random.default_rng(1).normal(size=tau.shape)
    qdd, gradients = np.zeros_like(qd), [np.zeros_like(a) for a in (q, qd, tau)]
    gradients.append(np.zeros((STATES, len(w.parameters))))
    calls = STATES * max(1, 3000 // w.nv**2)
    count = (calls, STATES, q, qd, tau, w.parameters)
    rows = []

    def add(what, lib, call, note):
        total = best(call)
        timing = Timing(total.cpu / calls, total.wall / calls)
        note = f"{note}; mean of {calls} calls; {FLAGS}"
        rows.append(row(PEER, version, w.name, what, timing, compile_s=lib.compile_s, note=note))

    lib = library("VALUE", lambda: [casadi_model.acceleration(w)], w)
    call = lib.bind("accelerations", *count, qdd)
    call()
    error = check("accelerations", qdd, accelerations(w, q, qd, tau), 1e-9)
    add("value", lib, call, f"equal to MuJoCo's to {error:.0e}")

    lib = library("VJP", lambda: [casadi_model.acceleration_vjp(w)], w)
    call = lib.bind("accelerations_vjp", *count, g, *gradients)
    call()
    check_gradient(w, (q, qd, tau), g, gradients)
    add("vjp", lib, call, f"with respect to q, qd, τ and {len(w.parameters)} parameters ({w.parameter_names})")
    return rows


def measure_network() -> list[Row]:
    """Loss and gradient of the 175-parameter network."""
    version = require_casadi()
    from benchmarks.peers import casadi_model

    p, x = network_parameters()
    inputs = x + np.linspace(-0.5, 0.5, STATES)[:, None]
    losses, gradient, calls = np.zeros(STATES), np.zeros(len(p)), 100 * STATES
    sizes = {"NX": len(x), "NETWORK": 1}
    lib = compile_library(COMPILER, "casadi_plain.c", lambda: [casadi_model.network_gradient(len(p), len(x))], sizes)
    total = best(lib.bind("networks", calls, STATES, p, inputs, losses, gradient))
    check("losses", losses, [np.sum(np.square(network(p, x, np.tanh))) for x in inputs], 1e-12)
    timing = Timing(total.cpu / calls, total.wall / calls)
    note = f"mean of {calls} calls; {FLAGS}"
    about = {"method": "reverse", "compile_s": lib.compile_s, "note": note}
    return [row(PEER, version, "5a", "value and gradient", timing, **about)]


PARTS = {
    "W1": lambda: measure_rollouts(W1),
    "W2": lambda: measure_rollouts(W2),
    "W3": lambda: [*measure_rollouts(W3), *measure_dynamics(W3)],
    "5a": measure_network,
    "batches": lambda: measure_rollouts(W1, OTHER_BATCHES),
    **{f"W4-{n}": lambda n=n: measure_dynamics(chain(n)) for n in CHAIN_LENGTHS},
}

if __name__ == "__main__":
    use_one_thread()
    command_line(__doc__, "benchmarks.peers.casadi_plain", PARTS)
