"""Rollouts: many steps, with gradients in bounded memory, and a status instead of NaN.

Reverse-mode gradients recompute each step from its stored start, so they need memory for the states only; beyond
`CHAIN` steps even those are recomputed from the start of every √T-th step.
"""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from hybridsim.core.result import DIVERGENCE_LIMIT, Status
from hybridsim.core.types import AnyArray, Numbers, StatusCode, require_float64
from hybridsim.sim.integrate import next_state
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State, as_inputs

CHAIN = 1000
"""Steps whose states a reverse sweep keeps without further thought."""


class Trajectory(eqx.Module):
    """States at the start and after every step, and what became of them."""

    q: Float[AnyArray, "rows nq"]
    qd: Float[AnyArray, "rows nv"]
    t: Float[AnyArray, " rows"]
    final: State
    """The last state, to go on from."""
    status: StatusCode
    """`Status.OK`, or `Status.DIVERGED`: then every row from `failed_step` on repeats the last good state."""
    failed_step: Int[AnyArray, ""]
    """First step whose result was not usable, counted from 0; -1 if there was none."""
    failed_dof: Int[AnyArray, ""]
    """The degree of freedom that was first to blame; -1 if there was none."""


def rollout(
    sim: Simulator, state: State, inputs: Inputs | Numbers | None = None, *, steps: int | None = None
) -> Trajectory:
    """Simulate many steps; a pure function to differentiate, `jit` and `vmap`.

    Args:
        sim: the simulator.
        state: where to start.
        inputs: commands (T, nu), or `Inputs` whose leaves have a leading axis T; zero commands by default.
        steps: number of steps; may be left out if `inputs` tells it.
    """
    require_float64()
    inputs, steps = _per_step(inputs, sim.model.nu, steps)
    start = jax.tree.map(jnp.asarray, state)
    run = (start, jnp.asarray(True), jnp.asarray(-1), jnp.asarray(-1))
    body = jax.checkpoint(partial(_guarded_step, sim, start))
    (final, ok, failed_step, failed_dof), (q, qd, t) = _scan(body, run, (jnp.arange(steps), inputs), steps)
    return Trajectory(
        q=jnp.concatenate([start.q[None], q]),
        qd=jnp.concatenate([start.qd[None], qd]),
        t=jnp.concatenate([start.t[None], t]),
        final=final,
        status=jnp.where(ok, Status.OK.value, Status.DIVERGED.value),
        failed_step=failed_step,
        failed_dof=failed_dof,
    )


def simulate(
    sim: Simulator,
    state: State | None = None,
    inputs: Inputs | Numbers | None = None,
    *,
    steps: int | None = None,
) -> Trajectory:
    """Compile and run a rollout in double precision, whatever JAX is set to; the result holds NumPy arrays.

    Args:
        sim: the simulator.
        state: where to start; the model's home configuration at rest by default.
        inputs: as for `rollout`.
        steps: as for `rollout`.
    """
    with jax.enable_x64(True):
        state = sim.initial_state() if state is None else state
        return jax.tree.map(np.asarray, _compiled_rollout(sim, state, inputs, steps=steps))


def failure(sim: Simulator, trajectory: Trajectory, *, first_step: int = 0) -> str:
    """What went wrong in a rollout, in words; empty if nothing did.

    Args:
        sim: the simulator.
        trajectory: what came of it.
        first_step: number of the rollout's first step, if it continues another one.
    """
    if int(trajectory.status) == Status.OK:
        return ""
    place, dof = int(trajectory.failed_step), sim.model.topology.dof_names[int(trajectory.failed_dof)]
    where = f"step {first_step + place} (t = {float(trajectory.t[place]):g} s) at joint {dof!r}"
    return (
        f"the simulation diverged in {where}: position or velocity not finite or beyond {DIVERGENCE_LIMIT:g}. "
        "A smaller time step or the implicit integrator may help."
    )


_compiled_rollout = eqx.filter_jit(rollout)


def _guarded_step(sim: Simulator, start: State, run, step):
    """One step; once a trajectory has diverged it stays at its last good state."""
    state, ok, failed_step, failed_dof = run
    index, inputs = step
    # a diverged trajectory goes on computing, but from a harmless state, so that its gradient stays finite
    safe = jax.tree.map(lambda x, x0: jnp.where(ok, x, x0), state, start)
    new = next_state(sim, safe, inputs)
    bad = _bad_dofs(sim, new)
    still_ok = ok & ~bad.any()
    failed_now = ok & bad.any()
    kept = jax.tree.map(lambda x, old: jnp.where(still_ok, x, old), new, state)
    kept = eqx.tree_at(lambda s: s.t, kept, state.t + sim.dt)
    failed_step = jnp.where(failed_now, index, failed_step)
    failed_dof = jnp.where(failed_now, jnp.argmax(bad), failed_dof)
    return (kept, still_ok, failed_step, failed_dof), (kept.q, kept.qd, kept.t)


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


def _scan(body, run, xs, steps: int):
    """`lax.scan`, in checkpointed blocks of about √T steps when there are many."""
    if steps <= CHAIN:
        return jax.lax.scan(body, run, xs)
    block = _block_length(steps)
    blocks = steps // block

    def run_block(run, xs):
        return jax.lax.scan(body, run, xs)

    head = jax.tree.map(lambda x: x[: blocks * block].reshape(blocks, block, *x.shape[1:]), xs)
    run, ys = jax.lax.scan(jax.checkpoint(run_block), run, head)
    ys = jax.tree.map(lambda y: y.reshape(blocks * block, *y.shape[2:]), ys)
    if blocks * block == steps:
        return run, ys
    run, rest = jax.lax.scan(body, run, jax.tree.map(lambda x: x[blocks * block :], xs))
    return run, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), ys, rest)


def _block_length(steps: int) -> int:
    """A divisor of `steps` near its root, so that no second loop is compiled, or the root itself."""
    root = math.isqrt(steps)
    near = sorted(range(max(root // 2, 1), 2 * root + 1), key=lambda n: abs(n - root))
    return next((n for n in near if steps % n == 0), root)


def _per_step(given: Inputs | Numbers | None, nu: int, steps: int | None) -> tuple[Inputs, int]:
    if given is None:
        if steps is None:
            raise ValueError("rollout needs the number of steps, or inputs that tell it")
        return Inputs(jnp.zeros((steps, nu))), steps
    inputs = as_inputs(given, nu)
    lengths = {x.shape[0] for x in jax.tree.leaves(inputs)}
    if len(lengths) != 1 or (steps is not None and lengths != {steps}):
        raise ValueError(f"inputs have {sorted(lengths)} rows, but the rollout has {steps or 'one number of'} steps")
    if inputs.u.shape[1:] != (nu,):
        raise ValueError(f"commands have shape {inputs.u.shape}, but the model has {nu} actuators: give (T, {nu})")
    return inputs, lengths.pop()
