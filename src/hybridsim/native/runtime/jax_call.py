"""Compiled rollouts as JAX functions, inside `jit`, `grad`, `jvp` and `vmap`.

Three primitives represent the three kernels. The tangent primitive is linear in the tangents, and its transpose is the
reverse sweep. `vmap` adds trajectories, or directions if only tangents are mapped; shared parameters stay shared.

Arrays are rows of cells: fixed (1 or B, fixed), free (1 or B, free), initial (B, x), inputs (1 or B, T, s); tangents
have a second axis of directions.
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

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.runtime import xla_fallback
from hybridsim.native.runtime.call import LoadedKernel
from hybridsim.native.runtime.rollout import Rollout, segment_length
from hybridsim.native.runtime.xla_handler import register_handler

Array = jnp.ndarray

Shapes = dict[str, tuple[int, ...]]
"""Shapes of arrays, by the record field of their address."""


class NativeCall:
    """A rollout callable from JAX; compared by identity."""

    def __init__(
        self,
        rollout: Rollout,
        *,
        threads: Callable[[int, int], int] = lambda batch, steps: 1,
        fallback: Callable[..., tuple[Array, Array]] | None = None,
        warn: Callable[[str], None] = warnings.warn,
    ):
        """Wrap a rollout.

        Args:
            rollout: rollout to call.
            threads: number of threads, from the numbers of trajectories and steps.
            fallback: the same function in plain JAX, used for derivatives that have no native code; if omitted, such
                derivatives raise.
            warn: called with the reason when the fallback is used.
        """
        self.rollout, self.threads, self._fallback, self._warn = rollout, threads, fallback, warn
        self._handler_names: dict[tuple, str] = {}

    def use_fallback(self, reason: str) -> Callable[..., tuple[Array, Array]] | None:
        """The rollout in plain JAX, after a warning with the reason; None if there is no fallback."""
        if self._fallback is not None:
            self._warn(reason)
        return self._fallback

    @cached_property
    def derivatives_unsupported_reason(self) -> str:
        """Why the native back-end does not support the derivatives; empty if it does. Raises without a fallback."""
        try:
            self.rollout.check_derivatives_supported()
        except UnsupportedOperationError as error:
            if self._fallback is None:
                raise
            return str(error)
        return ""

    def __call__(self, fixed: Array, free: Array, initial: Array, inputs: Array) -> tuple[Array, Array]:
        """Final states (B, x) and outputs (B, T, y)."""
        end, outputs = forward_p.bind(fixed, free, initial, inputs, call=self)
        return end, outputs

    def handler_name(self, name: str, arguments: Shapes, results: tuple[str, ...], *, summed: bool) -> str:
        """Name of the FFI target that calls a kernel for arrays of these shapes."""
        key = (name, tuple(arguments.items()), results, summed)
        if key not in self._handler_names:
            self._handler_names[key] = self._register_handler(name, arguments, results, summed=summed)
        return self._handler_names[key]

    def kernel(self, name: str, shapes: Shapes, *, summed: bool) -> LoadedKernel:
        """The kernel for arrays of these shapes."""
        shared = shapes["fixed"][0] == shapes["free"][0] == 1 and (summed or name != "gradient")
        return self.rollout.kernel(name, shapes["x0"][0], shared=shared)

    def _register_handler(self, name: str, arguments: Shapes, results: tuple[str, ...], *, summed: bool) -> str:
        rollout = self.rollout
        batch, steps = arguments["x0"][0], arguments["s"][1]
        directions = max((shape[1] for field, shape in arguments.items() if field.startswith("t_")), default=0)
        kernel = self.kernel(name, arguments, summed=summed)
        compiled = kernel.compiled
        segment = segment_length(steps, 8 * compiled.cells_per_state)
        constants = {"batch": batch, "steps": steps, "segment": segment, "directions": directions}
        constants["chunk"] = rollout.gradient_rows(kernel, batch)[1]
        for field, shape in arguments.items():
            cells = 1
            strides = []
            for size in reversed(shape):
                strides.insert(0, cells if size > 1 else 0)
                cells *= size
            names = ("_stride", "_direction", "_step") if field == "t_s" else ("_stride", "_step")
            constants |= {field + suffix: stride for suffix, stride in zip(names, strides[:-1], strict=False)}
        return register_handler(
            kernel.library.addresses[compiled.name],
            constants,
            list(arguments),
            results,
            groups=-(-batch // compiled.group_size),
            threads=self.threads(batch, steps),
            work_cells=compiled.work_cells,
            state_memory_cells=rollout.state_memory_cells(kernel, steps, segment, directions),
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
"""Arguments and results; the last result of `gradient_p`, the gradient with respect to the inputs, is optional."""


def _results(primitive: Primitive, *, with_input_gradient: bool = True) -> tuple[str, ...]:
    names = _FIELDS[primitive][1]
    return names if with_input_gradient else names[:-1]


def _result_shapes(
    primitive: Primitive, call: NativeCall, shapes: Shapes, *, summed: bool = False, with_input_gradient: bool = True
) -> list[tuple[int, ...]]:
    sizes = call.rollout.sizes
    batch, steps = shapes["x0"][0], shapes["s"][1]
    directions = max((shape[1] for field, shape in shapes.items() if field.startswith("t_")), default=0)
    rows = batch
    if sizes.large_leaves and primitive is gradient_p:
        rows = call.rollout.gradient_rows(call.kernel("gradient", shapes, summed=summed), batch)[0]
    result_shapes = {
        "x_end": (batch, sizes.x), "y": (batch, steps, sizes.y),
        "t_end": (batch, directions, sizes.x), "t_y": (batch, directions, steps, sizes.y),
        "d_free": (rows, sizes.free), "d_x0": (batch, sizes.x), "d_s": (batch, steps, sizes.s),
    }  # fmt: skip
    return [result_shapes[field] for field in _results(primitive, with_input_gradient=with_input_gradient)]


def _abstract_eval(primitive: Primitive):
    def rule(*arguments, call: NativeCall, **options):
        shapes = dict(zip(_FIELDS[primitive][0], (a.shape for a in arguments), strict=True))
        return [
            ShapedArray(shape, np.dtype(np.float64)) for shape in _result_shapes(primitive, call, shapes, **options)
        ]

    return rule


def _lowering(primitive: Primitive, name: str):
    def rule(context, *operands, call: NativeCall, summed: bool = False, with_input_gradient: bool = True):
        shapes = dict(zip(_FIELDS[primitive][0], (a.shape for a in context.avals_in), strict=True))
        results = _results(primitive, with_input_gradient=with_input_gradient)
        return ffi_lowering(call.handler_name(name, shapes, results, summed=summed))(context, *operands)

    return rule


def _forward_jvp(primals, tangents, *, call: NativeCall):
    if not isinstance(tangents[0], ad.Zero):
        raise TypeError("a native rollout cannot be differentiated with respect to its fixed parameters")
    if call.derivatives_unsupported_reason:
        fallback = call.use_fallback(call.derivatives_unsupported_reason)
        assert fallback is not None
        return jax.jvp(fallback, primals, tuple(ad.instantiate_zeros(t) for t in tangents))
    end, outputs = forward_p.bind(*primals, call=call)
    sizes = call.rollout.sizes
    zero_shapes = ((1, 1, sizes.free), (1, 1, sizes.x), (1, 1, 1, sizes.s))
    directions = [
        jnp.zeros(shape) if isinstance(t, ad.Zero) else jnp.expand_dims(t, 1)
        for t, shape in zip(tangents[1:], zero_shapes, strict=True)
    ]
    t_end, t_outputs = tangent_p.bind(*primals, *directions, call=call)
    return (end, outputs), (t_end[:, 0], t_outputs[:, 0])


def _tangent_transpose(cotangents, fixed, free, initial, inputs, *tangents, call: NativeCall):
    """Cotangents of the tangents, from those of the results (B, D, …); each direction becomes a trajectory."""
    shapes = [t.aval.shape if ad.is_undefined_primal(t) else t.shape for t in tangents]
    batch, steps, sizes = initial.shape[0], inputs.shape[1], call.rollout.sizes
    directions = max(shape[1] for shape in shapes)
    ct_end, ct_outputs = (
        jnp.zeros(shape) if isinstance(ct, ad.Zero) else ct
        for ct, shape in zip(
            cotangents[:2],
            ((batch, directions, sizes.x), (batch, directions, steps, sizes.y)),
            strict=True,
        )
    )

    def repeat_directions(array):
        return array if array.shape[0] == 1 and batch > 1 else jnp.repeat(array, directions, axis=0)

    def merge_directions(array):
        return array.reshape(batch * directions, *array.shape[2:])

    arrays = [
        repeat_directions(fixed),
        repeat_directions(free),
        jnp.repeat(initial, directions, axis=0),
        repeat_directions(inputs),
    ]
    summed = shapes[0][:2] == (1, 1) and batch * directions > 1
    d_free, *d_arrays = gradient_p.bind(
        *arrays,
        merge_directions(ct_end),
        merge_directions(ct_outputs),
        call=call,
        summed=summed,
        with_input_gradient=ad.is_undefined_primal(tangents[2]),
    )
    if summed:
        # rows may be partial sums over trajectories
        d_free = jnp.sum(d_free, axis=0, keepdims=True)
    results = []
    for tangent, shape, gradient in zip_longest(tangents, shapes, (d_free, *d_arrays)):
        if not ad.is_undefined_primal(tangent):
            results.append(None)
            continue
        if gradient is d_free and summed:
            results.append(gradient[None])
            continue
        gradient = gradient.reshape(batch, directions, *gradient.shape[1:])
        axes = tuple(k for k, (n, m) in enumerate(zip(gradient.shape, shape, strict=True)) if n != m)
        results.append(jnp.sum(gradient, axis=axes, keepdims=True) if axes else gradient)
    return [None] * 4 + results


def _fold_batch(arrays, dims, size: int, batch: int):
    """Fold the mapped axes of arrays into the batch; arrays shared by all trajectories stay shared."""
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


def _batch_sizes(arrays, dims) -> tuple[int, int]:
    """Size of the mapped axis, and of the batch of trajectories within it."""
    size = next(a.shape[d] for a, d in zip(arrays, dims, strict=True) if d is not None)
    initial, dim = arrays[2], dims[2]
    shape = initial.shape if dim is None else np.delete(initial.shape, dim)
    return size, int(shape[0])


def _batch_trajectories(primitive: Primitive):
    """Batching rule that maps by adding trajectories."""

    def rule(arrays, dims, *, call: NativeCall, **options):
        size, batch = _batch_sizes(arrays, dims)
        folded = _fold_batch(arrays, dims, size, batch)
        # the initial state determines the number of trajectories, so it is never shared
        if folded[2].shape[0] != size * batch:
            folded[2] = jnp.broadcast_to(folded[2], (size * batch, folded[2].shape[1]))
        if options.get("summed"):
            # sums are over the trajectories of each mapped element, not over mapped elements
            d_free, *results = primitive.bind(*folded, call=call, **(options | {"summed": False}))
            d_free = jnp.sum(d_free.reshape(size, batch, -1), axis=1, keepdims=True)
            return [d_free, *(r.reshape(size, batch, *r.shape[1:]) for r in results)], [0] * (1 + len(results))
        results = primitive.bind(*folded, call=call, **options)
        return [r.reshape(size, batch, *r.shape[1:]) for r in results], [0] * len(results)

    return rule


def _batch_directions(arrays, dims, *, call: NativeCall):
    """Batching rule that maps by adding directions, if only tangents are mapped."""
    if any(dim is not None for dim in dims[:4]):
        return _batch_trajectories(tangent_p)(arrays, dims, call=call)
    size, batch = _batch_sizes(arrays, dims)
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
    results = tangent_p.bind(*arrays[:4], *folded, call=call)
    return [t.reshape(batch, size, directions, *t.shape[2:]) for t in results], [1, 1]


def _second_derivative(
    primals, tangents, *, call: NativeCall, summed: bool | None = None, with_input_gradient: bool = True
):
    """Second derivatives, which the native back-end does not support."""
    fallback = call.use_fallback("native rollouts support first derivatives only")
    if fallback is None:
        raise NotImplementedError("native rollouts support first derivatives only; use backend='xla' for second ones")
    tangents = tuple(ad.instantiate_zeros(t) for t in tangents)
    if summed is None:
        return jax.jvp(partial(xla_fallback.tangents, fallback), primals, tangents)
    shapes = dict(zip(_FIELDS[gradient_p][0], (a.shape for a in primals), strict=True))
    rows = _result_shapes(gradient_p, call, shapes, summed=summed)[0][0]
    return jax.jvp(lambda *a: xla_fallback.gradient(fallback, rows, *a)[: 2 + with_input_gradient], primals, tangents)


for _primitive, _name in ((forward_p, "forward"), (tangent_p, "tangent"), (gradient_p, "gradient")):
    _primitive.def_abstract_eval(_abstract_eval(_primitive))
    _primitive.def_impl(partial(xla.apply_primitive, _primitive))
    mlir.register_lowering(_primitive, _lowering(_primitive, _name), platform="cpu")
ad.primitive_jvps[forward_p] = _forward_jvp
ad.primitive_jvps[tangent_p] = _second_derivative
ad.primitive_jvps[gradient_p] = _second_derivative
ad.primitive_transposes[tangent_p] = _tangent_transpose
batching.primitive_batchers[forward_p] = _batch_trajectories(forward_p)
batching.primitive_batchers[gradient_p] = _batch_trajectories(gradient_p)
batching.primitive_batchers[tangent_p] = _batch_directions
