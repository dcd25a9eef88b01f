"""Rollouts by native code: the simulator is split into compile-time constants and run-time values.

Values that JAX traces (to differentiate, map or `jit` over them) are parameters of the kernel. All others are known:
their zeros and ones are compiled in as constants, the remaining values are passed at run time, so that changing a value
does not recompile. If a compiled-in zero or one changes, the kernel is recompiled once with that entry as a run-time
value.
"""

import warnings
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from hybridsim.core.errors import UnsupportedPrimitive
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
"""Rollouts compiled by this process, by everything except values; or the reason why there is no native code."""


def roll_out(sim: Simulator, run: RolloutCarry, inputs: Inputs, steps: int) -> tuple[RolloutCarry, RolloutOutput]:
    """Final carry and outputs of a rollout; raises `UnsupportedPrimitive` if an operation has no native code."""
    arrays, static = partition_simulator(sim)
    traced, known = eqx.partition(arrays, lambda x: isinstance(x, Tracer))
    call = _native_call(traced, known, static, run, _step_shapes(inputs))
    layouts = call.rollout.layouts
    fixed = layouts.fixed.pack(known)
    if not any(isinstance(x, Tracer) for x in jax.tree.leaves((sim, run, inputs))):
        return _run_eagerly(call, fixed, run, inputs, steps)
    free, start = layouts.free.pack_traced(traced), layouts.carry.pack_traced(run)
    rows = jax.vmap(layouts.inputs.pack_traced)(inputs) if layouts.inputs.size else jnp.zeros((steps, 0))
    end, outputs = call(jnp.asarray(fixed)[None], free[None], start[None], rows[None])
    return layouts.carry.unpack_traced(end[0]), layouts.outputs.unpack_traced(outputs[0])


@cache
def warn_once(reason: str) -> None:
    """Warn that native code cannot be used."""
    warnings.warn(f"using XLA instead of native code: {reason}", stacklevel=4)


def _run_eagerly(
    call: NativeCall, fixed: np.ndarray, run: RolloutCarry, inputs: Inputs, steps: int
) -> tuple[RolloutCarry, RolloutOutput]:
    """Run without XLA, if nothing is traced."""
    layouts = call.rollout.layouts
    rows = layouts.inputs.pack(inputs, (steps,))[None]
    start = layouts.carry.pack(run)[None]
    result = call.rollout.forward(fixed, np.zeros(0), start, rows)
    return layouts.carry.unpack(result.end[0]), layouts.outputs.unpack(result.outputs[0])


def _native_call(traced: Any, known: Any, static: Any, run: RolloutCarry, inputs: Inputs) -> NativeCall:
    """Compiled rollout of a simulator of this structure, cached as long as its zeros and ones are unchanged."""
    leaves, structure = jax.tree.flatten((traced, known, run, inputs))
    static_leaves = tuple(jax.tree.leaves(static))
    key = (structure, static_leaves, tuple((np.shape(x), _dtype_name(x)) for x in leaves))
    call = _calls.get(key)
    if isinstance(call, str):
        raise UnsupportedPrimitive(call)
    varying = runtime_cells(known)
    if call is not None:
        row = call.rollout.layouts.fixed.pack(known)
        if call.rollout.is_compatible(row):
            return call
        varying |= call.rollout.varying | call.rollout.mismatched_cells(row)

    def step(fixed, free, run, inputs):
        return guarded_step(eqx.combine(fixed, free, static), run, inputs)

    try:
        rollout = Rollout(
            step,
            known,
            traced,
            run,
            inputs,
            outputs=RolloutOutput(run.state.q, run.state.qd, run.state.t),
            varying=varying,
            key=cache_key(structure, static_leaves),
        )
        rollout.check_supported()
    except UnsupportedPrimitive as error:
        _calls[key] = str(error)
        raise
    fallback = None
    if static.backend == "auto":
        fallback = partial(_xla_rollout, rollout.layouts, static)
    call = _calls[key] = NativeCall(rollout, threads=thread_count, fallback=fallback, warn=warn_once)
    return call


def _xla_rollout(layouts: StepLayouts, static: Any, fixed, free, start, inputs) -> tuple[jax.Array, jax.Array]:
    """The same rollout from and to flat rows, by XLA: for derivatives that have no native code."""

    def one(fixed, free, start, inputs):
        sim = eqx.combine(layouts.fixed.unpack_traced(fixed), layouts.free.unpack_traced(free), static)
        steps = inputs.shape[0]
        run, rows = rollout_xla.roll_out(
            sim, layouts.carry.unpack_traced(start), layouts.inputs.unpack_traced(inputs), steps
        )
        return layouts.carry.pack_traced(run), jax.vmap(layouts.outputs.pack_traced)(rows)

    shared = [len(a) == 1 and a is not start for a in (fixed, free, start, inputs)]
    rows = [a[0] if is_shared else a for a, is_shared in zip((fixed, free, start, inputs), shared, strict=True)]
    return jax.vmap(one, in_axes=[None if is_shared else 0 for is_shared in shared])(*rows)


def _dtype_name(x: Any) -> str:
    return str(x.dtype if hasattr(x, "dtype") else np.result_type(x))


def _step_shapes(inputs: Inputs) -> Inputs:
    """Shapes of the inputs of one step."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), inputs)
