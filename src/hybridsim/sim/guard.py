"""A step that tells when a simulation diverges, and then stays at the last good state."""

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
    """A simulation under way."""

    state: State
    """The last good state, at the time of the present one."""
    ok: Bool[AnyArray, ""]
    """Has every step so far been usable?"""
    completed_steps: Int[AnyArray, ""]
    """Steps up to the first that was not."""
    failed_dof: Int[AnyArray, ""]
    """The degree of freedom that was first to blame; 0 if there was none."""


class RolloutOutput(NamedTuple):
    """What a rollout keeps of every step."""

    q: Float[AnyArray, "*rows nq"]
    qd: Float[AnyArray, "*rows nv"]
    t: Float[AnyArray, "*rows"]


def initial_carry(state: State) -> RolloutCarry:
    """A simulation that has not taken a step."""
    q, qd, t = (as_floats(x) for x in (state.q, state.qd, state.t))
    aux = jax.tree.map(as_array, state.aux)
    return RolloutCarry(State(q, qd, t, aux), np.asarray(True), np.asarray(0), np.asarray(0))


def guarded_step(sim: Simulator, run: RolloutCarry, inputs: Inputs) -> tuple[RolloutCarry, RolloutOutput]:
    """One step; once a trajectory has diverged it stays at its last good state."""
    state, ok = run.state, run.ok
    sim.check_aux(state)
    # a diverged trajectory goes on computing, but from a harmless state, so that its gradient stays finite
    safe = jax.tree.map(lambda x, home: jnp.where(ok, x, home), state, sim.initial_state())
    new = next_state(sim, safe, inputs)
    bad = _bad_dofs(sim, new)
    still_ok = ok & ~bad.any()
    kept = jax.tree.map(lambda x, old: jnp.where(still_ok, x, old), new, state)
    kept = eqx.tree_at(lambda s: s.t, kept, state.t + sim.dt)
    failed_dof = jnp.where(ok & ~still_ok, jnp.argmax(bad), run.failed_dof)
    return RolloutCarry(kept, still_ok, run.completed_steps + jnp.where(still_ok, 1, 0), failed_dof), RolloutOutput(
        kept.q, kept.qd, kept.t
    )


def _bad_dofs(sim: Simulator, state: State) -> Array:
    """Which degrees of freedom have a coordinate or velocity that is not finite or far too large."""

    def bad(x):
        return ~(jnp.abs(x) < DIVERGENCE_LIMIT)

    topology = sim.model.topology
    bad_q, bad_qd = bad(state.q), bad(state.qd)
    if topology.nq == topology.nv:
        return bad_q | bad_qd
    own = [(q, v) for q, v, m in zip(topology.q_slices, topology.v_slices, topology.mimics, strict=True) if m < 0]
    parts = [jnp.broadcast_to(bad_q[q0:q1].any(), (v1 - v0,)) for (q0, q1), (v0, v1) in own if q1 > q0]
    return jnp.concatenate(parts) | bad_qd
