"""Compiled rollouts as JAX functions, inside `jit`, `grad`, `jvp` and `vmap`.

Three primitives stand for the three kernels. The rollout's derivative along directions is linear in them, and the
transpose of that linear map is the reverse sweep. A `vmap` becomes more trajectories, or more directions if only
those are mapped; parameters that are shared stay shared.

Arrays are rows of cells: fixed (1 or B, f), free (1 or B, p), start (B, n), inputs (1 or B, T, m); tangents have a
second axis of directions.
"""

import warnings
from collections.abc import Callable
from functools import cached_property, partial
from itertools import zip_longest

import jax
import numpy as np
from jax import numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.ffi import ffi_lowering
from jax.interpreters import ad, batching, mlir, xla

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.runtime import xla_fallback
from hybridsim.native.runtime.call import LoadedKernel
from hybridsim.native.runtime.rollout import Rollout, segment_length
from hybridsim.native.runtime.xla_handler import register_handler

Array = jnp.ndarray

Shapes = dict[str, tuple[int, ...]]
"""Shapes of arrays, by the field of the record that holds their address."""


class NativeCall:
    """A rollout that JAX can call; compared by identity."""

    def __init__(
        self,
        rollout: Rollout,
        *,
        threads: Callable[[int, int], int] = lambda batch, steps: 1,
        otherwise: Callable[..., tuple[Array, Array]] | None = None,
        warn: Callable[[str], None] = warnings.warn,
    ):
        """Make a rollout callable.

        Args:
            rollout: what to call.
            threads: how many to use for so many trajectories and steps.
            otherwise: the same function without native code, for derivatives that have none; they are errors if it
                is not given.
            warn: is told the reason when that is used.
        """
        self.rollout, self.threads, self._otherwise, self._warn = rollout, threads, otherwise, warn
        self._handlers: dict[tuple, str] = {}

    def xla_fallback(self, reason: str) -> Callable[..., tuple[Array, Array]] | None:
        """The same function without native code, if there is one; then the reason is told."""
        if self._otherwise is not None:
            self._warn(reason)
        return self._otherwise

    @cached_property
    def missing_derivatives(self) -> str:
        """What in the derivatives has no native code; empty if they have."""
        try:
            self.rollout.check_derivatives_supported()
        except UnsupportedPrimitive as error:
            if self._otherwise is None:
                raise
            return str(error)
        return ""

    def __call__(self, fixed: Array, free: Array, start: Array, inputs: Array) -> tuple[Array, Array]:
        """The last state (B, n) and what was streamed out (B, T, y)."""
        end, outputs = forward_p.bind(fixed, free, start, inputs, call=self)
        return end, outputs

    def handler(self, name: str, arguments: Shapes, results: tuple[str, ...], *, summed: bool) -> str:
        """The name under which XLA calls a kernel for arrays of these shapes."""
        key = (name, tuple(arguments.items()), results, summed)
        if key not in self._handlers:
            self._handlers[key] = self._new_handler(name, arguments, results, summed=summed)
        return self._handlers[key]

    def kernel(self, name: str, shapes: Shapes, *, summed: bool) -> LoadedKernel:
        """The kernel for arrays of these shapes."""
        together = shapes["fixed"][0] == shapes["free"][0] == 1 and (summed or name != "gradient")
        return self.rollout.kernel(name, shapes["x0"][0], together=together)

    def _new_handler(self, name: str, arguments: Shapes, results: tuple[str, ...], *, summed: bool) -> str:
        rollout = self.rollout
        batch, steps = arguments["x0"][0], arguments["s"][1]
        directions = max((shape[1] for field, shape in arguments.items() if field.startswith("t_")), default=0)
        kernel = self.kernel(name, arguments, summed=summed)
        entry = kernel.entry
        segment = segment_length(steps, 8 * entry.per_state)
        numbers = {"batch": batch, "steps": steps, "segment": segment, "directions": directions}
        numbers["chunk"] = rollout.gradient_rows(kernel, batch)[1]
        for field, shape in arguments.items():
            cells = 1
            strides = []
            for size in reversed(shape):
                strides.insert(0, cells if size > 1 else 0)
                cells *= size
            names = ("_stride", "_direction", "_step") if field == "t_s" else ("_stride", "_step")
            numbers |= {field + suffix: stride for suffix, stride in zip(names, strides[:-1], strict=False)}
        return register_handler(
            kernel.library.addresses[entry.name],
            numbers,
            list(arguments),
            results,
            groups=-(-batch // entry.lanes),
            threads=self.threads(batch, steps),
            work=entry.work,
            states=rollout.state_cells(kernel, steps, segment, directions),
        )


# the primitives

forward_p = Primitive("native_rollout")
tangent_p = Primitive("native_rollout_tangents")
gradient_p = Primitive("native_rollout_gradient")
for _primitive in (forward_p, tangent_p, gradient_p):
    _primitive.multiple_results = True

_FIELDS = {
    forward_p: (("fixed", "free", "x0", "s"), ("x_end", "y")),
    tangent_p: (("fixed", "free", "x0", "s", "t_free", "t_x0", "t_s"), ("t_end", "t_y")),
    gradient_p: (("fixed", "free", "x0", "s", "ct_end", "ct_y"), ("d_free", "d_x0", "d_s")),
}
"""Arguments and results. A gradient may be had without the last, that of what is streamed in (`of_inputs`)."""


def _results(primitive: Primitive, *, of_inputs: bool = True) -> tuple[str, ...]:
    names = _FIELDS[primitive][1]
    return names if of_inputs else names[:-1]


def _result_shapes(
    primitive: Primitive, call: NativeCall, shapes: Shapes, *, summed: bool = False, of_inputs: bool = True
) -> list[tuple[int, ...]]:
    sizes = call.rollout.sizes
    batch, steps = shapes["x0"][0], shapes["s"][1]
    directions = max((shape[1] for field, shape in shapes.items() if field.startswith("t_")), default=0)
    rows = batch
    if sizes.large and primitive is gradient_p:
        rows = call.rollout.gradient_rows(call.kernel("gradient", shapes, summed=summed), batch)[0]
    known = {
        "x_end": (batch, sizes.x), "y": (batch, steps, sizes.y),
        "t_end": (batch, directions, sizes.x), "t_y": (batch, directions, steps, sizes.y),
        "d_free": (rows, sizes.free), "d_x0": (batch, sizes.x), "d_s": (batch, steps, sizes.s),
    }  # fmt: skip
    return [known[field] for field in _results(primitive, of_inputs=of_inputs)]


def _abstract(primitive: Primitive):
    def rule(*arguments, call: NativeCall, **how):
        shapes = dict(zip(_FIELDS[primitive][0], (a.shape for a in arguments), strict=True))
        return [ShapedArray(shape, np.dtype(np.float64)) for shape in _result_shapes(primitive, call, shapes, **how)]

    return rule


def _lowering(primitive: Primitive, name: str):
    def rule(context, *operands, call: NativeCall, summed: bool = False, of_inputs: bool = True):
        shapes = dict(zip(_FIELDS[primitive][0], (a.shape for a in context.avals_in), strict=True))
        results = _results(primitive, of_inputs=of_inputs)
        return ffi_lowering(call.handler(name, shapes, results, summed=summed))(context, *operands)

    return rule


def _forward_jvp(primals, tangents, *, call: NativeCall):
    if not isinstance(tangents[0], ad.Zero):
        raise TypeError("parameters that a native rollout holds fixed cannot be differentiated")
    if call.missing_derivatives:
        other = call.xla_fallback(call.missing_derivatives)
        assert other is not None
        return jax.jvp(other, primals, tuple(ad.instantiate_zeros(t) for t in tangents))
    end, outputs = forward_p.bind(*primals, call=call)
    sizes = call.rollout.sizes
    nothing = ((1, 1, sizes.free), (1, 1, sizes.x), (1, 1, 1, sizes.s))
    given = [
        jnp.zeros(shape) if isinstance(t, ad.Zero) else jnp.expand_dims(t, 1)
        for t, shape in zip(tangents[1:], nothing, strict=True)
    ]
    t_end, t_outputs = tangent_p.bind(*primals, *given, call=call)
    return (end, outputs), (t_end[:, 0], t_outputs[:, 0])


def _tangent_transpose(cotangents, fixed, free, start, inputs, *tangents, call: NativeCall):
    """Pull cotangents (B, D, …) back; each direction is a trajectory of its own."""
    shapes = [t.aval.shape if ad.is_undefined_primal(t) else t.shape for t in tangents]
    batch, steps, sizes = start.shape[0], inputs.shape[1], call.rollout.sizes
    directions = max(shape[1] for shape in shapes)
    ct_end, ct_outputs = (
        jnp.zeros(shape) if isinstance(ct, ad.Zero) else ct
        for ct, shape in zip(
            cotangents[:2],
            ((batch, directions, sizes.x), (batch, directions, steps, sizes.y)),
            strict=True,
        )
    )

    def repeated(array):
        return array if array.shape[0] == 1 and batch > 1 else jnp.repeat(array, directions, axis=0)

    def merged(array):
        return array.reshape(batch * directions, *array.shape[2:])

    arrays = [repeated(fixed), repeated(free), jnp.repeat(start, directions, axis=0), repeated(inputs)]
    summed = shapes[0][:2] == (1, 1) and batch * directions > 1
    d_free, *others = gradient_p.bind(
        *arrays,
        merged(ct_end),
        merged(ct_outputs),
        call=call,
        summed=summed,
        of_inputs=ad.is_undefined_primal(tangents[2]),
    )
    if summed:
        # rows may be partial sums over trajectories
        d_free = jnp.sum(d_free, axis=0, keepdims=True)
    results = []
    for tangent, shape, gradient in zip_longest(tangents, shapes, (d_free, *others)):
        if not ad.is_undefined_primal(tangent):
            results.append(None)
            continue
        if gradient is d_free and summed:
            results.append(gradient[None])
            continue
        gradient = gradient.reshape(batch, directions, *gradient.shape[1:])
        axes = tuple(k for k, (have, want) in enumerate(zip(gradient.shape, shape, strict=True)) if have != want)
        results.append(jnp.sum(gradient, axis=axes, keepdims=True) if axes else gradient)
    return [None] * 4 + results


def _merged_batch(arrays, dims, size: int, batch: int):
    """Arrays with a mapped axis folded into the batch; what is shared by all trajectories stays shared."""
    folded = []
    for array, dim in zip(arrays, dims, strict=True):
        if dim is None:
            if array.shape[0] == 1 and size * batch > 1:
                folded.append(array)
                continue
            array = jnp.broadcast_to(array[None], (size, *array.shape))
        else:
            array = jnp.moveaxis(array, dim, 0)
        if array.shape[1] != batch:
            array = jnp.broadcast_to(array, (size, batch, *array.shape[2:]))
        folded.append(array.reshape(size * batch, *array.shape[2:]))
    return folded


def _batch_of(arrays, dims) -> tuple[int, int]:
    """How many are mapped, and how many trajectories each of them has."""
    size = next(a.shape[d] for a, d in zip(arrays, dims, strict=True) if d is not None)
    start, dim = arrays[2], dims[2]
    shape = start.shape if dim is None else np.delete(start.shape, dim)
    return size, int(shape[0])


def _by_trajectory(primitive: Primitive):
    """Mapping means more trajectories."""

    def rule(arrays, dims, *, call: NativeCall, **how):
        size, batch = _batch_of(arrays, dims)
        folded = _merged_batch(arrays, dims, size, batch)
        # the state decides how many trajectories there are, so it is never shared
        if folded[2].shape[0] != size * batch:
            folded[2] = jnp.broadcast_to(folded[2], (size * batch, folded[2].shape[1]))
        if how.get("summed"):
            # the sum is wanted within each of the mapped, not over them
            d_free, *results = primitive.bind(*folded, call=call, **(how | {"summed": False}))
            d_free = jnp.sum(d_free.reshape(size, batch, -1), axis=1, keepdims=True)
            return [d_free, *(r.reshape(size, batch, *r.shape[1:]) for r in results)], [0] * (1 + len(results))
        results = primitive.bind(*folded, call=call, **how)
        return [r.reshape(size, batch, *r.shape[1:]) for r in results], [0] * len(results)

    return rule


def _by_direction(arrays, dims, *, call: NativeCall):
    """Mapping tangents alone means more directions."""
    if any(dim is not None for dim in dims[:4]):
        return _by_trajectory(tangent_p)(arrays, dims, call=call)
    size, batch = _batch_of(arrays, dims)
    directions = max(
        (a.shape if d is None else np.delete(a.shape, d))[1] for a, d in zip(arrays[4:], dims[4:], strict=True)
    )
    folded = []
    for array, dim in zip(arrays[4:], dims[4:], strict=True):
        if dim is None:
            array = jnp.broadcast_to(array[:, None], (array.shape[0], size, *array.shape[1:]))
        else:
            array = jnp.moveaxis(array, dim, 1)
        array = jnp.broadcast_to(array, (*array.shape[:2], directions, *array.shape[3:]))
        folded.append(array.reshape(array.shape[0], size * directions, *array.shape[3:]))
    slopes = tangent_p.bind(*arrays[:4], *folded, call=call)
    return [t.reshape(batch, size, directions, *t.shape[2:]) for t in slopes], [1, 1]


def _second_derivative(primals, tangents, *, call: NativeCall, summed: bool | None = None, of_inputs: bool = True):
    """The derivative of a derivative has no native code."""
    other = call.xla_fallback("native rollouts have first derivatives only")
    if other is None:
        raise NotImplementedError("native rollouts have first derivatives only; for second ones use backend='xla'")
    tangents = tuple(ad.instantiate_zeros(t) for t in tangents)
    if summed is None:
        return jax.jvp(partial(xla_fallback.tangents, other), primals, tangents)
    shapes = dict(zip(_FIELDS[gradient_p][0], (a.shape for a in primals), strict=True))
    rows = _result_shapes(gradient_p, call, shapes, summed=summed)[0][0]
    return jax.jvp(lambda *a: xla_fallback.gradient(other, rows, *a)[: 2 + of_inputs], primals, tangents)


for _primitive, _name in ((forward_p, "forward"), (tangent_p, "tangent"), (gradient_p, "gradient")):
    _primitive.def_abstract_eval(_abstract(_primitive))
    _primitive.def_impl(partial(xla.apply_primitive, _primitive))
    mlir.register_lowering(_primitive, _lowering(_primitive, _name), platform="cpu")
ad.primitive_jvps[forward_p] = _forward_jvp
ad.primitive_jvps[tangent_p] = _second_derivative
ad.primitive_jvps[gradient_p] = _second_derivative
ad.primitive_transposes[tangent_p] = _tangent_transpose
batching.primitive_batchers[forward_p] = _by_trajectory(forward_p)
batching.primitive_batchers[gradient_p] = _by_trajectory(gradient_p)
batching.primitive_batchers[tangent_p] = _by_direction
