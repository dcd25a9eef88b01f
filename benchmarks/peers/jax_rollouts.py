"""Rollouts of simulators that are written in JAX, and their gradients in the faster of the two modes.

Import after `measure.one_thread`, which must set XLA's flags before jax is imported.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.measure import Row, best, check_motion, cpu_seconds, row
from benchmarks.peers.workloads import Body, Workload, starts

jax.config.update("jax_enable_x64", True)

BATCH = 1024

Simulator = Callable[[jax.Array, jax.Array], tuple[Any, Callable[[Any], tuple[Any, jax.Array]]]]
"""(parameters, q0) → the state to start from, and the step: state → new state, new coordinates."""


def stacked(bodies: list[Body], quantity: str) -> jax.Array:
    """A quantity of all bodies as one array, differentiable with respect to the parameters."""

    def array(value):
        parts = value if isinstance(value, tuple | list) else None
        return jnp.asarray(value, float) if parts is None else jnp.stack([jnp.asarray(x, float) for x in parts])

    return jnp.stack([array(getattr(body, quantity)) for body in bodies])


def measure(peer: str, version: str, w: Workload, simulator: Simulator, *, steps: int, batch_steps: int) -> list[Row]:
    """Forward and gradient with respect to the parameters, of one trajectory and of a batch.

    Args:
        peer: name for the rows.
        version: of its packages.
        w: the workload.
        simulator: the peer.
        steps: of one trajectory.
        batch_steps: of each trajectory of the batch.
    """
    rows = []
    for batch, length in ((1, steps), (BATCH, batch_steps)):
        arguments = jnp.tile(w.parameters, (batch, 1)), jnp.asarray(starts(w, batch))
        if batch == 1:
            arguments = tuple(a[0] for a in arguments)

        def prepared(function, batch=batch, arguments=arguments):
            start = cpu_seconds()
            function = function if batch == 1 else jax.vmap(function)
            compiled = jax.jit(function).lower(*arguments).compile()
            return compiled, cpu_seconds() - start

        def timed(run, arguments=arguments):
            return best(lambda: jax.block_until_ready(run(*arguments)), clock="process", budget=3.0, least=2)

        def first(value, batch=batch):
            return np.asarray(value if batch == 1 else value[0])

        run, compile_s = prepared(_loss(simulator, length, remember=True))
        found = check_motion(w, length, loss=first(run(*arguments)))
        about = {"batch": batch, "steps": length}
        note = f"{length} steps; {found}"
        rows.append(row(peer, version, w.name, "forward", timed(run), **about, compile_s=compile_s, note=note))

        modes = {
            "forward mode": jax.jacfwd(_loss(simulator, length, remember=True)),
            "reverse mode": jax.grad(_loss(simulator, length, remember=False)),
        }
        results = {}
        for mode, function in modes.items():
            run, compile_s = prepared(function)
            found = check_motion(w, length, parameters=first(run(*arguments)))
            results[mode] = (timed(run), compile_s, found)
        mode = min(results, key=lambda name: results[name][0].cpu)
        other = next(name for name in results if name != mode)
        timing, compile_s, found = results[mode]
        note = f"{length} steps; {mode} ({other}: {1e3 * results[other][0].cpu:.4g} ms); {w.parameter_names}; {found}"
        rows.append(row(peer, version, w.name, "gradient", timing, **about, compile_s=compile_s, note=note))
    return rows


def _loss(simulator: Simulator, steps: int, remember: bool) -> Callable:
    """(parameters, q0) → loss; without `remember` a reverse sweep computes each step again from its state."""

    def loss(parameters, q0):
        state, step = simulator(parameters, q0)

        def one(state, _):
            state, q = step(state)
            return state, jnp.sum(q**2)

        _, terms = jax.lax.scan(one if remember else jax.checkpoint(one), state, None, length=steps)
        return jnp.sum(terms)

    return loss
