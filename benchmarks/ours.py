"""hybridsim's native code on the workloads of the gradient benchmark, one thread, arrays prepared.

Reverse sweeps give the gradient with respect to the workload's parameters, the initial state and the torque at every
step; sensitivities and differences that with respect to the parameters alone. Compile times are from the traced step to
loaded machine code, with the caches of JAX and hybridsim empty.
"""

import os
import tempfile
import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Row, Timing, best, check, check_motion, command_line, require, row, use_one_thread
from benchmarks.peers.mujoco_reference import accelerations, check_gradient
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
    network,
    network_parameters,
    random_states,
)

PEER = "hybridsim native"
EPSILON = 1e-6
"""Step of finite differences, relative to the parameter."""
METHODS = ("", "reverse", "sensitivities", "differences")
"""The first is the rollout without a gradient."""
STATES = 64
"""Number of different states in repeated single calls."""


def prepare(make: Callable, bind: Callable) -> tuple[Callable, float, float]:
    """Prepare a call; returns it with the CPU times of compiling it and of loading it from disk [s].

    Args:
        make: returns a new rollout.
        bind: binds a rollout to its arguments.
    """
    import jax

    from hybridsim.native.runtime.rollout import Rollout

    before = os.environ.get("HYBRIDSIM_CACHE")
    times = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYBRIDSIM_CACHE"] = folder
        for _ in range(2):
            jax.clear_caches()
            compilations, start = Rollout.compilations, time.process_time()
            call = bind(make())
            times.append(time.process_time() - start)
    if before is None:
        del os.environ["HYBRIDSIM_CACHE"]
    else:
        os.environ["HYBRIDSIM_CACHE"] = before
    if Rollout.compilations != compilations:
        raise RuntimeError("the code was not found on disk")
    return call, *times


class Motion:
    """Arguments of a batch of rollouts of a workload."""

    def __init__(self, w: Workload, batch: int, steps: int, **options):
        from benchmarks.ours_models import step_of

        self.w, self.steps, self.options = w, steps, options
        self.step, self.examples = step_of(w, **options)
        layouts = self.rollout().layouts
        # velocities and internal states are initially zero
        state = np.hstack([initial_coordinates(w, batch), np.zeros((batch, layouts.carry.size - w.nq))])
        self.parameters, self.torques = layouts.free.pack(self.examples[1]), np.zeros((1, steps, layouts.inputs.size))
        self.fixed, self.start = layouts.fixed.pack(self.examples[0]), state
        self.ct_end, self.ct_loss = np.zeros((1, layouts.carry.size)), np.ones((1, 1, 1))

    def rollout(self):
        from hybridsim.native.runtime.rollout import Rollout

        return Rollout(self.step, *self.examples, outputs=np.zeros(()), key=f"{self.w.title} {self.options}")

    def arguments(self) -> tuple:
        return self.fixed, self.parameters, self.start, self.torques

    def forward(self, rollout, threads: int = 1) -> Callable:
        return rollout.bind_forward(*self.arguments(), threads=threads)

    def reverse(self, rollout, threads: int = 1) -> Callable:
        return rollout.bind_gradient(*self.arguments(), self.ct_end, self.ct_loss, threads=threads)

    def sensitivities(self, rollout) -> Callable:
        """Gradient with respect to the parameters from forward sensitivities."""
        n = len(self.parameters)
        call = rollout.bind_tangents(*self.arguments(), np.eye(n)[None], np.zeros((1, n, self.start.shape[1])))
        return lambda: call().output_tangents.sum(axis=(-2, -1))

    def differences(self, rollout) -> Callable:
        """Central differences of the first trajectory: two rollouts per parameter, as lanes of one call."""
        h = EPSILON * np.abs(self.parameters)
        shifted = np.concatenate([self.parameters + np.diag(h), self.parameters - np.diag(h)])
        start = np.repeat(self.start[:1], len(shifted), axis=0)
        call = rollout.bind_forward(self.fixed, shifted, start, self.torques)

        def gradient():
            plus, minus = np.split(call().outputs.sum(axis=(1, 2)), 2)
            return (plus - minus) / (2.0 * h)

        return gradient


def measure_rollouts(
    w: Workload, batches: tuple[int, ...] = (1, BATCH), selected: tuple[str, ...] = METHODS
) -> list[Row]:
    """Forward, and gradients by the selected methods, of one trajectory and of a batch."""
    version = require("hybridsim", "jax", "llvmlite")
    rows = []
    for batch in batches:
        motion = Motion(w, batch, w.steps if batch == 1 else min(w.steps, BATCH_STEPS))
        methods = {"": motion.forward, "reverse": motion.reverse, "sensitivities": motion.sensitivities}
        if batch == 1:
            methods["differences"] = motion.differences
        for method, bind in methods.items():
            if method not in selected:
                continue
            call, compile_s, cached_s = prepare(motion.rollout, bind)
            note = check_result(w, motion.steps, method, call())
            about = {"batch": batch, "steps": motion.steps, "compile_s": compile_s, "cached_s": cached_s, "note": note}
            what = "gradient" if method else "forward"
            rows.append(row(PEER, version, w.name, what, best(call), method=method, **about))
    return rows


def check_result(w: Workload, steps: int, method: str, result) -> str:
    """Compare the results of the first trajectory with the references; returns a summary."""
    if method == "differences":
        return check_motion(w, steps, parameters=result, tolerance=1e-5)
    if method == "sensitivities":
        return check_motion(w, steps, parameters=result[0])
    loss = result.outputs[0].sum()
    if not method:
        return check_motion(w, steps, loss=loss)
    q0, qd0 = np.split(result.initial[0], [w.nq])  # without contact there is no internal state
    if w.is_free:  # angular velocity first
        qd0 = np.concatenate([qd0[3:6], qd0[:3], qd0[6:]])
    return check_motion(w, steps, loss=loss, parameters=result.free[0], q0=q0, qd0=qd0)


def measure_dynamics(w: Workload) -> list[Row]:
    """Forward dynamics and its vector–Jacobian product, one state after the other."""
    from benchmarks.ours_models import dynamics_of
    from hybridsim.native.runtime.rollout import Rollout

    version = require("hybridsim", "jax", "llvmlite")
    functions, examples = dynamics_of(w)
    q, qd, tau = random_states(w, STATES)
    inputs = (q, qd, tau, np.random.default_rng(1).normal(size=tau.shape))
    repeats = STATES * max(1, 3000 // w.nv**2)
    streamed = {"value": tau[0], "vjp": (w.parameters, q[0], qd[0], tau[0])}
    rows = []
    for what, function in functions.items():

        def make(what=what, function=function):
            def step(fixed, free, carry, inputs):
                return carry, function(fixed, free, inputs)

            one = tuple(x[0] for x in inputs)
            return Rollout(step, *examples, None, one, outputs=streamed[what], key=f"{w.title} {what}")

        layouts = make().layouts
        cells = np.tile(layouts.inputs.pack(inputs, (STATES,)), (repeats // STATES, 1))[None]
        arguments = (layouts.fixed.pack(examples[0]), layouts.free.pack(examples[1]), np.zeros((1, 0)), cells)
        call, compile_s, cached_s = prepare(make, lambda r, arguments=arguments: r.bind_forward(*arguments))
        note = f"mean of {repeats} calls"
        if not w.is_free:  # MuJoCo defines velocities of a free body differently; the rollout of W3 is checked instead
            outputs = call().outputs[0, :STATES]
            if what == "value":
                note += f"; equal to MuJoCo's to {check('qdd', outputs, accelerations(w, q, qd, tau), 1e-9):.0e}"
            else:
                wrt_parameters, *wrt_state = np.split(outputs, np.cumsum([len(w.parameters), w.nq, w.nv]), axis=1)
                check_gradient(w, (q, qd, tau), inputs[3], [*wrt_state, wrt_parameters])
        about = {"steps": repeats, "compile_s": compile_s, "cached_s": cached_s, "note": note}
        rows.append(row(PEER, version, w.name, what, best(call), **about))
    return rows


def measure_network() -> list[Row]:
    """Loss and gradient of the 175-parameter network by every method, one input after the other."""
    import jax

    from benchmarks.ours_models import network_loss
    from hybridsim.native.runtime.rollout import Rollout

    version = require("hybridsim", "jax", "llvmlite")
    p, x = network_parameters()
    inputs = x + np.linspace(-0.5, 0.5, STATES)[:, None]
    no_state, n = np.zeros((1, 0)), len(p)
    h = EPSILON * np.maximum(np.abs(p), 0.1)
    shifted = np.concatenate([p + np.diag(h), p - np.diag(h)])

    def loss(fixed, free, carry, x):
        return carry, network_loss(free, x)

    def loss_and_gradient(fixed, free, carry, x):
        return carry, jax.value_and_grad(network_loss)(free, x)

    def differences(rollout):
        call = rollout.bind_forward(np.zeros(0), shifted, np.zeros((2 * n, 0)), inputs[None])

        def gradients():
            plus, minus = np.split(call().outputs[..., 0], 2)
            return ((plus - minus) / (2.0 * h[:, None])).T

        return gradients

    def sensitivities(rollout):
        call = rollout.bind_tangents(np.zeros(0), p, no_state, inputs[None], np.eye(n)[None], np.zeros((1, n, 0)))
        return lambda: call().output_tangents[0, :, :, 0].T

    def reverse(rollout):
        call = rollout.bind_forward(np.zeros(0), p, no_state, inputs[None])
        return lambda: call().outputs[0, :, 1:]

    methods = {"reverse": (loss_and_gradient, reverse), "sensitivities": (loss, sensitivities)}
    methods["differences"] = (loss, differences)
    rows, expected = [], None
    for method, (step, bind) in methods.items():

        def make(step=step, method=method):
            return Rollout(step, None, p, None, x, key=f"network {method}")

        call, compile_s, cached_s = prepare(make, bind)
        expected = np.array(call()) if expected is None else expected
        error = check("gradients", call(), expected, 1e-6)
        total = best(call)
        timing = Timing(total.cpu / STATES, total.wall / STATES)
        about = {"method": method, "compile_s": compile_s, "cached_s": cached_s}
        note = f"mean of {STATES} inputs; equal to the reverse sweep's to {error:.0e}"
        rows.append(row(PEER, version, "5a", "value and gradient", timing, **about, note=note))
    losses = [np.sum(np.square(network(p, x, np.tanh))) for x in inputs]
    check("losses", [network_loss(p, x) for x in inputs], losses, 1e-12)
    return rows


PARTS = {
    "W1": lambda: measure_rollouts(W1),
    "W2": lambda: measure_rollouts(W2),
    "W3": lambda: [*measure_rollouts(W3, selected=("", "reverse")), *measure_dynamics(W3)],
    "5a": measure_network,
    **{f"W4-{n}": lambda n=n: measure_dynamics(chain(n)) for n in CHAIN_LENGTHS},
}

if __name__ == "__main__":
    use_one_thread()
    command_line(__doc__, "benchmarks.ours", PARTS)
