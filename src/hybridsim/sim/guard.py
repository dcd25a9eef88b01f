"""Simulation step that detects divergence and then holds the last valid state."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from hybridsim.core.result import DIVERGENCE_LIMIT
from hybridsim.core.types import AnyArray, as_array, as_floats
from hybridsim.sim.integrate import next_state
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State


class RolloutCarry(NamedTuple):
    """Loop carry of a rollout."""

    state: State
    """Last valid state, but with the current time."""
    ok: Bool[AnyArray, ""]
    """Whether no step has diverged so far."""
    completed_steps: Int[AnyArray, ""]
    """Number of steps completed before divergence."""
    failed_dof: Int[AnyArray, ""]
    """First degree of freedom that diverged; 0 if none did."""


class RolloutOutput(NamedTuple):
    """Outputs of one step of a rollout."""

    q: Float[AnyArray, "*rows nq"]
    qd: Float[AnyArray, "*rows nv"]
    t: Float[AnyArray, "*rows"]


def initial_carry(state: State) -> RolloutCarry:
    """Carry before the first step."""
    q, qd, t = (as_floats(x) for x in (state.q, state.qd, state.t))
    aux = jax.tree.map(as_array, state.aux)
    return RolloutCarry(State(q, qd, t, aux), np.asarray(True), np.asarray(0), np.asarray(0))


def guarded_step(sim: Simulator, carry: RolloutCarry, inputs: Inputs) -> tuple[RolloutCarry, RolloutOutput]:
    """Advance by one step; a diverged trajectory holds its last valid state."""
    state, ok = carry.state, carry.ok
    sim.check_aux(state)
    # after divergence the step is evaluated at the home state, so that the gradient stays finite
    safe = jax.tree.map(lambda x, home: jnp.where(ok, x, home), state, sim.home_state())
    new = next_state(sim, safe, inputs)
    diverged = _diverged_dofs(sim, new)
    still_ok = ok & ~diverged.any()
    valid = jax.tree.map(lambda x, old: jnp.where(still_ok, x, old), new, state)
    valid = eqx.tree_at(lambda s: s.t, valid, state.t + sim.dt)
    failed_dof = jnp.where(ok & ~still_ok, jnp.argmax(diverged), carry.failed_dof)
    return RolloutCarry(valid, still_ok, carry.completed_steps + jnp.where(still_ok, 1, 0), failed_dof), RolloutOutput(
        valid.q, valid.qd, valid.t
    )


def _diverged_dofs(sim: Simulator, state: State) -> Array:
    """Mask of the degrees of freedom whose position or velocity is not finite or exceeds `DIVERGENCE_LIMIT`."""

    def is_diverged(x):
        return ~(jnp.abs(x) < DIVERGENCE_LIMIT)

    topology = sim.model.topology
    diverged_q, diverged_qd = is_diverged(state.q), is_diverged(state.qd)
    if topology.nq == topology.nv:
        return diverged_q | diverged_qd
    slices = [(q, v) for q, v, m in zip(topology.q_slices, topology.v_slices, topology.masters, strict=True) if m < 0]
    parts = [jnp.broadcast_to(diverged_q[q0:q1].any(), (v1 - v0,)) for (q0, q1), (v0, v1) in slices if q1 > q0]
    return jnp.concatenate(parts) | diverged_qd
