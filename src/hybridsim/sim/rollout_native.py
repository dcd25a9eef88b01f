"""Rollouts by native code: the simulator split into what is compiled in and what is handed over.

Values that JAX traces (to differentiate, map or `jit` over them) are parameters of the kernel. All others are known,
and their zeros and ones become part of the code; the rest is handed over, so that no change of a value compiles
anything anew. Should a zero become something else, that entry is handed over from then on.
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
from hybridsim.sim.partition import partition_simulator, runtime_cells, threads_for
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs

_calls: dict[Any, NativeCall | str] = {}
"""Rollouts that this process has prepared, by everything but values; or the reason why there is no native code."""


def roll_out(sim: Simulator, run: RolloutCarry, inputs: Inputs, steps: int) -> tuple[RolloutCarry, RolloutOutput]:
    """Where a simulation ends, and its rows; raises `UnsupportedPrimitive` if something has no native code."""
    arrays, others = partition_simulator(sim)
    traced, known = eqx.partition(arrays, lambda x: isinstance(x, Tracer))
    call = _prepared(traced, known, others, run, _one_step(inputs))
    forms = call.rollout.forms
    fixed = forms.fixed.pack(known)
    if not any(isinstance(x, Tracer) for x in jax.tree.leaves((sim, run, inputs))):
        return _now(call, fixed, run, inputs, steps)
    free, start = forms.free.pack_traced(traced), forms.carry.pack_traced(run)
    rows = jax.vmap(forms.inputs.pack_traced)(inputs) if forms.inputs.size else jnp.zeros((steps, 0))
    end, outputs = call(jnp.asarray(fixed)[None], free[None], start[None], rows[None])
    return forms.carry.unpack_traced(end[0]), forms.outputs.unpack_traced(outputs[0])


@cache
def warn_once(reason: str) -> None:
    """Say that native code cannot be used."""
    warnings.warn(f"using XLA instead of native code: {reason}", stacklevel=4)


def _now(
    call: NativeCall, fixed: np.ndarray, run: RolloutCarry, inputs: Inputs, steps: int
) -> tuple[RolloutCarry, RolloutOutput]:
    """Run at once, without XLA: nothing is traced."""
    forms = call.rollout.forms
    rows = forms.inputs.pack(inputs, (steps,))[None]
    start = forms.carry.pack(run)[None]
    result = call.rollout.forward(fixed, np.zeros(0), start, rows)
    return forms.carry.unpack(result.end[0]), forms.outputs.unpack(result.outputs[0])


def _prepared(traced: Any, known: Any, others: Any, run: RolloutCarry, inputs: Inputs) -> NativeCall:
    """The rollout of a simulator of this form, from before if its zeros and ones are still there."""
    leaves, structure = jax.tree.flatten((traced, known, run, inputs))
    decisive = tuple(jax.tree.leaves(others))
    key = (structure, decisive, tuple((np.shape(x), _type_of(x)) for x in leaves))
    call = _calls.get(key)
    if isinstance(call, str):
        raise UnsupportedPrimitive(call)
    varying = runtime_cells(known)
    if call is not None:
        row = call.rollout.forms.fixed.pack(known)
        if call.rollout.fits(row):
            return call
        varying |= call.rollout.varying | call.rollout.changed_cells(row)

    def step(fixed, free, run, inputs):
        return guarded_step(eqx.combine(fixed, free, others), run, inputs)

    try:
        rollout = Rollout(
            step,
            known,
            traced,
            run,
            inputs,
            outputs=RolloutOutput(run.state.q, run.state.qd, run.state.t),
            varying=varying,
            key=cache_key(structure, decisive),
        )
        rollout.check_supported()
    except UnsupportedPrimitive as error:
        _calls[key] = str(error)
        raise
    otherwise = None
    if others.backend == "auto":
        otherwise = partial(_by_xla, rollout.forms, others)
    call = _calls[key] = NativeCall(rollout, threads=threads_for, otherwise=otherwise, warn=warn_once)
    return call


def _by_xla(forms: StepLayouts, others: Any, fixed, free, start, inputs) -> tuple[jax.Array, jax.Array]:
    """The same rollout from and to rows of cells, by XLA: for derivatives that have no native code."""

    def one(fixed, free, start, inputs):
        sim = eqx.combine(forms.fixed.unpack_traced(fixed), forms.free.unpack_traced(free), others)
        steps = inputs.shape[0]
        run, rows = rollout_xla.roll_out(
            sim, forms.carry.unpack_traced(start), forms.inputs.unpack_traced(inputs), steps
        )
        return forms.carry.pack_traced(run), jax.vmap(forms.outputs.pack_traced)(rows)

    shared = [len(a) == 1 and a is not start for a in (fixed, free, start, inputs)]
    rows = [a[0] if once else a for a, once in zip((fixed, free, start, inputs), shared, strict=True)]
    return jax.vmap(one, in_axes=[None if once else 0 for once in shared])(*rows)


def _type_of(x: Any) -> str:
    return str(x.dtype if hasattr(x, "dtype") else np.result_type(x))


def _one_step(inputs: Inputs) -> Inputs:
    """Shapes of the inputs of one step."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), inputs)
