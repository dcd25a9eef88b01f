"""Derivatives of a rollout by another function of the same arrays, where they have no native code.

`other(fixed, free, start, inputs)` returns the last states and what is streamed out, as a native call does, but in
plain JAX; the functions below return what the native kernels for derivatives would.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

Array = jnp.ndarray
Fallback = Callable[..., tuple[Array, Array]]


def tangents(
    other: Fallback, fixed: Array, free: Array, start: Array, inputs: Array, *directions: Array
) -> list[Array]:
    """Derivatives along directions."""

    def along(*slopes):
        given = tuple(jnp.broadcast_to(t, a.shape) for t, a in zip(slopes, primals, strict=True))
        return jax.jvp(partial(other, fixed), primals, given)[1]

    primals = _for_each(free, start, inputs)
    count = max(t.shape[1] for t in directions)
    directions = tuple(jnp.broadcast_to(t, (t.shape[0], count, *t.shape[2:])) for t in directions)
    return list(jax.vmap(along, in_axes=1, out_axes=1)(*directions))


def gradient(
    other: Fallback,
    rows: int,
    fixed: Array,
    free: Array,
    start: Array,
    inputs: Array,
    ct_end: Array,
    ct_outputs: Array,
) -> list[Array]:
    """Cotangents pulled back.

    Args:
        other: the rollout.
        rows: of the gradient of parameters: one for each trajectory, or partial sums over them.
        fixed: parameters.
        free: parameters to differentiate.
        start: first states.
        inputs: what is streamed in.
        ct_end: cotangents of the last states.
        ct_outputs: cotangents of what is streamed out.
    """
    results, pull = jax.vjp(partial(other, fixed), *_for_each(free, start, inputs))
    given = tuple(jnp.broadcast_to(ct, r.shape) for ct, r in zip((ct_end, ct_outputs), results, strict=True))
    d_free, *gradients = pull(given)
    if rows != len(d_free):
        # all in the first of the partial sums
        d_free = jnp.pad(jnp.sum(d_free, axis=0, keepdims=True), ((0, rows - 1), (0, 0)))
    return [d_free, *gradients]


def _for_each(free: Array, start: Array, inputs: Array) -> tuple[Array, ...]:
    """Arrays with a row for every trajectory, so that each has its own gradient."""
    return tuple(jnp.broadcast_to(a, (len(start), *a.shape[1:])) for a in (free, start, inputs))
