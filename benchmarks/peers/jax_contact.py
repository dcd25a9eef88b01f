"""Rollouts with contact of simulators written in JAX, and their reverse-mode gradients.

Import after `measure.use_one_thread`, which must set XLA's flags before jax is imported.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.contact_workloads import check_final_state, gradient_variables
from benchmarks.measure import Row, row
from benchmarks.peers.jax_rollouts import compile_function, time_call
from benchmarks.workloads import Workload, initial_coordinates

jax.config.update("jax_enable_x64", True)

Step = Callable[[Any, jax.Array], tuple[Any, jax.Array]]
Simulator = Callable[[jax.Array, jax.Array, jax.Array], tuple[Any, Step]]
"""(parameters, q0, qd0) → initial state, and step: state, torques → new state, new coordinates."""


class Plan(NamedTuple):
    """Steps per trajectory; None if not measured."""

    forward: int | None
    gradient: int | None


def measure(
    peer: str, version: str, w: Workload, simulator: Simulator, plans: dict[int, Plan], method: str = ""
) -> list[Row]:
    """Rollouts, and gradients with respect to the parameters, if any, or to the initial state and all torques.

    Args:
        peer: name of the peer.
        version: version of its packages.
        w: the workload.
        simulator: the peer's simulator.
        plans: plans by batch size.
        method: variant of the peer.
    """

    def end_and_loss(parameters, q0, qd0, torques):
        state, step = simulator(parameters, q0, qd0)

        def one(state, torques):
            state, q = step(state, torques)
            return state, (q, jnp.sum(q**2))

        _, (q, terms) = jax.lax.scan(jax.checkpoint(one), state, torques)
        return q[-1], jnp.sum(terms)

    def loss(*arguments):
        return end_and_loss(*arguments)[1]

    functions = {
        "forward": end_and_loss,
        "gradient": jax.grad(loss, argnums=0 if len(w.parameters) else (1, 2, 3)),
    }
    hinges = w.nv - (6 if w.is_free else 0)
    rows = []
    for batch, plan in plans.items():
        for what, steps in plan._asdict().items():
            if steps is None:
                continue
            arguments = (
                jnp.tile(w.parameters, (batch, 1)),
                jnp.asarray(initial_coordinates(w, batch)),
                jnp.zeros((batch, w.nv)),
                jnp.zeros((batch, steps, hinges)),
            )
            if batch == 1:
                arguments = tuple(a[0] for a in arguments)
            run, compile_s = compile_function(functions[what], arguments, batch)
            result = run(*arguments)
            if what == "forward":
                note = check_final_state(w, np.asarray(result[0] if batch == 1 else result[0][0]))
            else:
                size = max(float(np.max(np.abs(np.asarray(x)))) for x in jax.tree.leaves(result) if x.size)
                note = f"{gradient_variables(w)}; largest entry {size:.1e}"
            timing = time_call(run, arguments)
            about = {"batch": batch, "steps": steps, "compile_s": compile_s, "method": method, "note": note}
            rows.append(row(peer, version, w.name, what, timing, **about))
    return rows
