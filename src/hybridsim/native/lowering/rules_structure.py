"""Lowering rules of structural primitives (reshape, slice, concatenate, pad), which only rearrange node ids."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridsim.native.lowering.lower import Lowering, Nodes


def _reshape(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    order = equation.params.get("dimensions")
    array = arguments[0] if order is None else arguments[0].transpose(order)
    return [array.reshape(equation.params["new_sizes"])]


def _squeeze(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return [np.squeeze(arguments[0], tuple(equation.params["dimensions"]))]


def _expand_dims(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return [np.expand_dims(arguments[0], tuple(equation.params["dimensions"]))]


def _transpose(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return [arguments[0].transpose(equation.params["permutation"])]


def _broadcast_in_dim(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    shape, axes = equation.params["shape"], equation.params["broadcast_dimensions"]
    expanded = [1] * len(shape)
    for size, axis in zip(arguments[0].shape, axes, strict=True):
        expanded[axis] = size
    return [np.broadcast_to(arguments[0].reshape(expanded), shape)]


def _tile(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return [np.tile(arguments[0], equation.params["reps"])]


def _concatenate(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return [np.concatenate(arguments, equation.params["dimension"])]


def _stack(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return [np.stack(arguments, equation.params["axis"])]


def _unstack(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return list(np.moveaxis(arguments[0], equation.params["axis"], 0))


def _split(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    ends = np.cumsum(equation.params["sizes"])[:-1]
    return list(np.split(arguments[0], ends, axis=equation.params["axis"]))


def _slice(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    params = equation.params
    strides = params["strides"] or [1] * arguments[0].ndim
    ranges = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return [arguments[0][tuple(slice(a, b, s) for a, b, s in ranges)]]


def _rev(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    return [np.flip(arguments[0], tuple(equation.params["dimensions"]))]


def _pad(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    x, fill = arguments
    return [pad(x, fill.item(), equation.params["padding_config"])]


def pad(x: Nodes, fill: int, padding: Sequence[tuple[int, int, int]]) -> Nodes:
    """Pad an array before, after and between its elements; negative padding removes elements."""
    result = np.asarray(x)
    for axis, (low, high, interior) in enumerate(padding):
        n = result.shape[axis]
        spread_size = n + max(n - 1, 0) * interior
        shape = [*result.shape[:axis], spread_size + max(low, 0) + max(high, 0), *result.shape[axis + 1 :]]
        padded = np.full(shape, fill, dtype=np.int64)
        region = [slice(None)] * result.ndim
        region[axis] = slice(max(low, 0), max(low, 0) + spread_size, interior + 1)
        padded[tuple(region)] = result
        region[axis] = slice(-min(low, 0), padded.shape[axis] + min(high, 0))
        result = padded[tuple(region)]
    return result


def _iota(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    shape, axis = equation.params["shape"], equation.params["dimension"]
    values = np.arange(shape[axis]).astype(equation.params["dtype"])
    view = values.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return [np.broadcast_to(lowering.constants(view), shape)]


def _empty(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Uninitialized memory, which programs write before reading."""
    aval = equation.outvars[0].aval
    return [lowering.constants(np.zeros(aval.shape, aval.dtype))]


RULES = {
    "reshape": _reshape,
    "squeeze": _squeeze,
    "expand_dims": _expand_dims,
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast_in_dim,
    "tile": _tile,
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "split": _split,
    "slice": _slice,
    "rev": _rev,
    "pad": _pad,
    "iota": _iota,
    "empty": _empty,
    "empty2": _empty,
}
