"""Rollouts by native code: the simulator is split into compile-time constants and run-time values.

Traced values (those under differentiation, `vmap` or `jit`) are the free parameters of the kernel, all others its fixed
parameters. Structural zeros, ones and infinities among the fixed ones (`partition.py`) are compiled in as constants,
the remaining values are passed at run time, so that changing a value does not recompile. If a compiled-in value
changes, the kernel is recompiled once with that entry as a run-time value.
"""

import warnings
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.lowering.step_graphs import StepLayouts
from hybridsim.native.runtime.jax_call import NativeCall
from hybridsim.native.runtime.rollout import Rollout
from hybridsim.sim import rollout_xla
from hybridsim.sim.cache_key import cache_key
from hybridsim.sim.guard import RolloutCarry, RolloutOutput, guarded_step
from hybridsim.sim.partition import partition_simulator, runtime_cells, thread_count
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs

_calls: dict[Any, NativeCall | str] = {}
"""Compiled rollouts of this process, or reasons why there is no native code, keyed by everything except values."""


def roll_out(sim: Simulator, carry: RolloutCarry, inputs: Inputs, steps: int) -> tuple[RolloutCarry, RolloutOutput]:
    """Final carry and outputs of a rollout; raises `UnsupportedOperationError` if an operation has no native code."""
    arrays, static = partition_simulator(sim)
    traced, untraced = eqx.partition(arrays, lambda x: isinstance(x, Tracer))
    call = _native_call(traced, untraced, static, carry, _step_shapes(inputs))
    layouts = call.rollout.layouts
    untraced_row = layouts.fixed.pack(untraced)
    if not any(isinstance(x, Tracer) for x in jax.tree.leaves((sim, carry, inputs))):
        return _run_eagerly(call, untraced_row, carry, inputs, steps)
    traced_row, initial = layouts.free.pack_traced(traced), layouts.carry.pack_traced(carry)
    rows = jax.vmap(layouts.inputs.pack_traced)(inputs) if layouts.inputs.size else jnp.zeros((steps, 0))
    final, outputs = call(jnp.asarray(untraced_row)[None], traced_row[None], initial[None], rows[None])
    return layouts.carry.unpack_traced(final[0]), layouts.outputs.unpack_traced(outputs[0])


@cache
def warn_once(reason: str) -> None:
    """Warn that native code cannot be used."""
    warnings.warn(f"using XLA instead of native code: {reason}", stacklevel=4)


def _run_eagerly(
    call: NativeCall, untraced_row: np.ndarray, carry: RolloutCarry, inputs: Inputs, steps: int
) -> tuple[RolloutCarry, RolloutOutput]:
    """Run without XLA, if nothing is traced."""
    layouts = call.rollout.layouts
    rows = layouts.inputs.pack(inputs, (steps,))[None]
    initial = layouts.carry.pack(carry)[None]
    result = call.rollout.forward(untraced_row, np.zeros(0), initial, rows)
    return layouts.carry.unpack(result.end[0]), layouts.outputs.unpack(result.outputs[0])


def _native_call(traced: Any, untraced: Any, static: Any, carry: RolloutCarry, inputs: Inputs) -> NativeCall:
    """Compiled rollout of a simulator with this structure; recompiled if a compiled-in value has changed."""
    leaves, structure = jax.tree.flatten((traced, untraced, carry, inputs))
    static_leaves = tuple(jax.tree.leaves(static))
    key = (structure, static_leaves, tuple((np.shape(x), _dtype_name(x)) for x in leaves))
    call = _calls.get(key)
    if isinstance(call, str):
        raise UnsupportedOperationError(call)
    varying = runtime_cells(untraced)
    if call is not None:
        untraced_row = call.rollout.layouts.fixed.pack(untraced)
        if call.rollout.is_compatible(untraced_row):
            return call
        varying |= call.rollout.runtime_cells | call.rollout.mismatched_cells(untraced_row)

    def step(untraced, traced, carry, inputs):
        return guarded_step(eqx.combine(untraced, traced, static), carry, inputs)

    try:
        rollout = Rollout(
            step,
            untraced,
            traced,
            carry,
            inputs,
            outputs=RolloutOutput(carry.state.q, carry.state.qd, carry.state.t),
            runtime_cells=varying,
            key=cache_key(structure, static_leaves),
        )
        rollout.check_supported()
    except UnsupportedOperationError as error:
        _calls[key] = str(error)
        raise
    fallback = None
    if static.backend == "auto":
        fallback = partial(_xla_rollout, rollout.layouts, static)
    call = _calls[key] = NativeCall(rollout, threads=thread_count, fallback=fallback, warn=warn_once)
    return call


def _xla_rollout(
    layouts: StepLayouts, static: Any, untraced_rows, traced_rows, initial, inputs
) -> tuple[jax.Array, jax.Array]:
    """XLA rollout with the packed arguments and results of `NativeCall`, for derivatives without native code."""

    def single_rollout(untraced_row, traced_row, initial, inputs):
        untraced, traced = layouts.fixed.unpack_traced(untraced_row), layouts.free.unpack_traced(traced_row)
        sim = eqx.combine(untraced, traced, static)
        steps = inputs.shape[0]
        carry, outputs = rollout_xla.roll_out(
            sim, layouts.carry.unpack_traced(initial), layouts.inputs.unpack_traced(inputs), steps
        )
        return layouts.carry.pack_traced(carry), jax.vmap(layouts.outputs.pack_traced)(outputs)

    arguments = (untraced_rows, traced_rows, initial, inputs)
    shared = [len(a) == 1 and a is not initial for a in arguments]
    rows = [a[0] if is_shared else a for a, is_shared in zip(arguments, shared, strict=True)]
    return jax.vmap(single_rollout, in_axes=[None if is_shared else 0 for is_shared in shared])(*rows)


def _dtype_name(x: Any) -> str:
    return str(x.dtype if hasattr(x, "dtype") else np.result_type(x))


def _step_shapes(inputs: Inputs) -> Inputs:
    """Shapes of the inputs of one step."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), inputs)
