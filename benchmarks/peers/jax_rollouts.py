"""Rollouts of simulators written in JAX, and their gradients in both modes.

Import after `measure.use_one_thread`, which must set XLA's flags before jax is imported.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Row, Timing, best, check_motion, cpu_seconds, row
from benchmarks.workloads import Body, Workload, initial_coordinates

jax.config.update("jax_enable_x64", True)

Simulator = Callable[[jax.Array, jax.Array], tuple[Any, Callable[[Any], tuple[Any, jax.Array]]]]
"""(parameters, q0) → initial state, and step: state → new state, new coordinates."""


def stack(bodies: list[Body], quantity: str) -> jax.Array:
    """A quantity of all bodies as one array, differentiable with respect to the parameters."""

    def array(value):
        parts = value if isinstance(value, tuple | list) else None
        return jnp.asarray(value, float) if parts is None else jnp.stack([jnp.asarray(x, float) for x in parts])

    return jnp.stack([array(getattr(body, quantity)) for body in bodies])


MODES = ("forward mode", "reverse mode")


def measure(
    peer: str, version: str, w: Workload, simulator: Simulator, lengths: dict[int, int], modes: Sequence[str] = MODES
) -> list[Row]:
    """Forward, and the gradient with respect to the parameters in both modes, of one trajectory and of batches.

    Args:
        peer: name of the peer.
        version: version of its packages.
        w: the workload.
        simulator: the peer's simulator.
        lengths: steps per trajectory, by batch size.
        modes: modes of differentiation.
    """
    rows = []
    for batch, steps in lengths.items():
        arguments = jnp.tile(w.parameters, (batch, 1)), jnp.asarray(initial_coordinates(w, batch))
        if batch == 1:
            arguments = tuple(a[0] for a in arguments)
        functions = {
            "": _loss(simulator, steps, rematerialize=False),
            "forward mode": jax.jacfwd(_loss(simulator, steps, rematerialize=False)),
            "reverse mode": jax.grad(_loss(simulator, steps, rematerialize=True)),
        }
        for mode in ("", *modes):
            run, compile_s = compile_function(functions[mode], arguments, batch)
            result = np.asarray(run(*arguments) if batch == 1 else run(*arguments)[0])
            summary = check_motion(w, steps, **{"parameters" if mode else "loss": result})
            timing = time_call(run, arguments)
            note = f"{w.parameter_names}; {summary}" if mode else summary
            about = {"batch": batch, "steps": steps, "compile_s": compile_s, "note": note}
            what = "gradient" if mode else "forward"
            rows.append(row(peer, version, w.name, what, timing, method=mode, **about))
    return rows


def compile_function(function: Callable, arguments: tuple, batch: int = 1) -> tuple[Callable, float]:
    """Compile a function for its arguments; returns it with the CPU time of compilation [s]."""
    jax.clear_caches()
    start = cpu_seconds()
    run = jax.jit(function if batch == 1 else jax.vmap(function)).lower(*arguments).compile()
    return run, cpu_seconds() - start


def time_call(run: Callable, arguments: tuple) -> Timing:
    """Best times of a call; CPU time of all threads."""
    return best(lambda: jax.block_until_ready(run(*arguments)), clock="process", min_samples=2)


def _loss(simulator: Simulator, steps: int, rematerialize: bool) -> Callable:
    """(parameters, q0) → loss; with `rematerialize` the reverse sweep recomputes each step from its state."""

    def loss(parameters, q0):
        state, step = simulator(parameters, q0)

        def one(state, _):
            state, q = step(state)
            return state, jnp.sum(q**2)

        _, terms = jax.lax.scan(jax.checkpoint(one) if rematerialize else one, state, None, length=steps)
        return jnp.sum(terms)

    return loss
