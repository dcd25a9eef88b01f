"""hybridsim through XLA on the workloads of the gradient benchmark, on one core.

The same step functions as in ours.py, in a scan under `jit`. Gradients are with respect to the parameters. Long
workloads have fewer steps; the time per step and trajectory is the same.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.measure import FASTER_XLA, Row, command_line, require, row, use_one_thread
from benchmarks.workloads import (
    BATCH,
    CHAIN_LENGTHS,
    OTHER_BATCHES,
    W1,
    W2,
    W3,
    Workload,
    chain,
    network_parameters,
    random_states,
)

PEER = "hybridsim XLA"
STATES = 64


def measure_rollouts(w: Workload, lengths: dict[int, int], modes: tuple[str, ...] | None = None) -> list[Row]:
    """Forward and gradients of one trajectory and of batches."""
    version = require("hybridsim", "jax")
    from benchmarks.ours_models import step_of
    from benchmarks.peers import jax_rollouts

    step, (fixed, _, (_, qd0, aux), torques) = step_of(w)

    def simulator(parameters, q0):
        def one(state):
            new, _ = step(fixed, parameters, state, torques)
            return new, new[0]

        return (q0, qd0, aux), one

    return jax_rollouts.measure(PEER, version, w, simulator, lengths, modes or jax_rollouts.MODES)


def measure_dynamics(w: Workload) -> list[Row]:
    """Forward dynamics and its vector–Jacobian product, one state after the other."""
    from benchmarks.ours_models import dynamics_of

    functions, (fixed, parameters) = dynamics_of(w)
    q, qd, tau = random_states(w, STATES)
    inputs = (q, qd, tau, np.random.default_rng(1).normal(size=tau.shape))
    return [
        time_sequence(w.name, what, "", lambda p, x, f=function: f(fixed, p, x), parameters, inputs)
        for what, function in functions.items()
    ]


def measure_network() -> list[Row]:
    """Loss and gradient of the 175-parameter network in both modes."""
    import jax

    from benchmarks.ours_models import network_loss

    p, x = network_parameters()
    inputs = x + np.linspace(-0.5, 0.5, STATES)[:, None]
    modes = {"reverse mode": jax.value_and_grad(network_loss), "forward mode": jax.jacfwd(network_loss)}
    return [time_sequence("5a", "value and gradient", mode, function, p, inputs) for mode, function in modes.items()]


def time_sequence(workload: str, what: str, method: str, function: Callable, parameters, inputs) -> Row:
    """Row of a function of parameters and an input, called in a loop over all inputs."""
    version = require("hybridsim", "jax")
    import jax

    from benchmarks.peers.jax_rollouts import compile_function, time_call

    def all_inputs(parameters, inputs):
        return jax.lax.map(lambda x: function(parameters, x), inputs)

    run, compile_s = compile_function(all_inputs, (parameters, inputs))
    timing = time_call(run, (parameters, inputs))
    about = {"method": method, "steps": STATES, "compile_s": compile_s, "note": f"mean of {STATES} calls"}
    return row(PEER, version, workload, what, timing, **about)


PARTS = {
    "W1": lambda: measure_rollouts(W1, {1: 500, BATCH: 500}),
    "W2": lambda: measure_rollouts(W2, {1: 500, BATCH: 50}),
    "W3": lambda: measure_rollouts(W3, {1: 50}, ("reverse mode",)),
    "5a": measure_network,
    "batches": lambda: measure_rollouts(W1, dict.fromkeys(OTHER_BATCHES, 500), ("reverse mode",)),
    **{f"W4-{n}": lambda n=n: measure_dynamics(chain(n)) for n in CHAIN_LENGTHS},
}

if __name__ == "__main__":
    use_one_thread(FASTER_XLA)
    command_line(__doc__, "benchmarks.ours_xla", PARTS)
