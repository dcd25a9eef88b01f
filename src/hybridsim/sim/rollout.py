"""Rollouts: many steps, with gradients in bounded memory, and a status instead of NaN.

The simulator's `backend` selects native code or XLA; both run the same guarded step.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.core.result import DIVERGENCE_LIMIT, Status
from hybridsim.core.types import AnyArray, ArrayLike, StatusCode, require_float64
from hybridsim.sim import rollout_native, rollout_xla
from hybridsim.sim.guard import RolloutCarry, RolloutOutput, initial_carry
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State, as_inputs


class Trajectory(eqx.Module):
    """Initial state, state after every step, and status of a rollout."""

    q: Float[AnyArray, "rows nq"]
    qd: Float[AnyArray, "rows nv"]
    t: Float[AnyArray, " rows"]
    final: State
    """Final state, from which another rollout can continue."""
    status: StatusCode
    """`Status.OK`, or `Status.DIVERGED`: then every row from `failed_step` on repeats the last valid state."""
    failed_step: Int[AnyArray, ""]
    """Index of the first step that diverged; -1 if none did."""
    failed_dof: Int[AnyArray, ""]
    """First degree of freedom that diverged in that step; -1 if none did."""


def rollout(
    sim: Simulator, state: State, inputs: Inputs | ArrayLike | None = None, *, steps: int | None = None
) -> Trajectory:
    """Trajectory over many steps; a pure function that can be differentiated, jitted and vmapped.

    Args:
        sim: the simulator.
        state: initial state.
        inputs: commands (T, nu), or `Inputs` whose leaves have a leading axis T; zero commands by default.
        steps: number of steps; by default the length of `inputs`.
    """
    require_float64()
    inputs, steps = _inputs_and_steps(inputs, sim.model.nu, steps)
    initial = initial_carry(state)
    final, outputs = _roll_out(sim, initial, inputs, steps)
    xp = np if isinstance(outputs.q, np.ndarray) else jnp  # if nothing is traced, native code has run eagerly
    return Trajectory(
        q=xp.concatenate([initial.state.q[None], outputs.q]),
        qd=xp.concatenate([initial.state.qd[None], outputs.qd]),
        t=xp.concatenate([initial.state.t[None], outputs.t]),
        final=final.state,
        status=xp.where(final.ok, Status.OK.value, Status.DIVERGED.value),
        failed_step=xp.where(final.ok, -1, final.completed_steps),
        failed_dof=xp.where(final.ok, -1, final.failed_dof),
    )


def simulate(
    sim: Simulator,
    state: State | None = None,
    inputs: Inputs | ArrayLike | None = None,
    *,
    steps: int | None = None,
) -> Trajectory:
    """Compile and run a rollout in double precision, regardless of JAX's settings; the result holds NumPy arrays.

    Args:
        sim: the simulator.
        state: initial state; the home configuration at rest by default.
        inputs: as for `rollout`.
        steps: as for `rollout`.
    """
    with jax.enable_x64(True):
        state = sim.initial_state() if state is None else state
        function = _compiled_rollout if _uses_xla(sim) else rollout
        return jax.tree.map(np.asarray, function(sim, state, inputs, steps=steps))


def failure_message(sim: Simulator, trajectory: Trajectory, *, first_step: int = 0) -> str:
    """Error message of a diverged rollout; empty for a rollout that did not diverge.

    Args:
        sim: the simulator.
        trajectory: result of the rollout.
        first_step: index of the rollout's first step, if it continues another one.
    """
    if int(trajectory.status) == Status.OK:
        return ""
    failed_step, dof = int(trajectory.failed_step), sim.model.topology.dof_names[int(trajectory.failed_dof)]
    where = f"step {first_step + failed_step} (t = {float(trajectory.t[failed_step]):g} s) at joint {dof!r}"
    return (
        f"the simulation diverged in {where}: its position or velocity is not finite or exceeds {DIVERGENCE_LIMIT:g}. "
        "A smaller time step or the implicit integrator may help."
    )


_compiled_rollout = eqx.filter_jit(rollout)
_compiled_xla_rollout = eqx.filter_jit(rollout_xla.roll_out)


def _roll_out(sim: Simulator, carry: RolloutCarry, inputs: Inputs, steps: int) -> tuple[RolloutCarry, RolloutOutput]:
    if _uses_xla(sim):
        return rollout_xla.roll_out(sim, carry, inputs, steps)
    try:
        return rollout_native.roll_out(sim, carry, inputs, steps)
    except UnsupportedOperationError as error:
        if sim.backend == "native":
            raise
        rollout_native.warn_once(str(error))
        return _compiled_xla_rollout(sim, carry, inputs, steps)


def _uses_xla(sim: Simulator) -> bool:
    return sim.backend == "xla" or (sim.backend == "auto" and jax.default_backend() != "cpu")


def _inputs_and_steps(inputs: Inputs | ArrayLike | None, nu: int, steps: int | None) -> tuple[Inputs, int]:
    if steps is not None and (not isinstance(steps, int | np.integer) or steps < 0):
        raise ValueError(f"the number of steps must be a nonnegative integer, not {steps!r}")
    if inputs is None:
        if steps is None:
            raise ValueError("rollout needs the number of steps or inputs")
        return Inputs(np.zeros((steps, nu))), steps
    inputs = as_inputs(inputs, nu)
    lengths = {x.shape[0] for x in jax.tree.leaves(inputs)}
    if len(lengths) != 1 or (steps is not None and lengths != {steps}):
        expected = "the same number for all" if steps is None else steps
        raise ValueError(f"inputs have {sorted(lengths)} rows; expected {expected}")
    if inputs.u.shape[1:] != (nu,):
        raise ValueError(f"commands have shape {inputs.u.shape}, but the model has {nu} actuators: expected (T, {nu})")
    return inputs, lengths.pop()
