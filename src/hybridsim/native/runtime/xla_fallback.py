"""Derivatives of a rollout by XLA, where the native back-end does not support them.

`fallback(fixed, free, initial, inputs)` returns final states and outputs like a native call, but in plain JAX; the
functions below return the same arrays as the native tangent and gradient kernels.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

Array = jnp.ndarray
Fallback = Callable[..., tuple[Array, Array]]


def tangents(
    fallback: Fallback, fixed: Array, free: Array, initial: Array, inputs: Array, *directions: Array
) -> list[Array]:
    """Derivatives of final states and outputs along directions."""

    def directional_derivative(*tangents):
        full = tuple(jnp.broadcast_to(t, a.shape) for t, a in zip(tangents, primals, strict=True))
        return jax.jvp(partial(fallback, fixed), primals, full)[1]

    primals = _broadcast_to_trajectories(free, initial, inputs)
    count = max(t.shape[1] for t in directions)
    directions = tuple(jnp.broadcast_to(t, (t.shape[0], count, *t.shape[2:])) for t in directions)
    return list(jax.vmap(directional_derivative, in_axes=1, out_axes=1)(*directions))


def gradient(
    fallback: Fallback,
    rows: int,
    fixed: Array,
    free: Array,
    initial: Array,
    inputs: Array,
    ct_end: Array,
    ct_outputs: Array,
) -> list[Array]:
    """Gradient with respect to free parameters, initial states and inputs.

    Args:
        fallback: rollout in plain JAX.
        rows: number of rows of the gradient with respect to the parameters, one per trajectory or per sum over several.
        fixed: fixed parameters.
        free: free parameters.
        initial: initial states.
        inputs: inputs of every step.
        ct_end: cotangents of the final states.
        ct_outputs: cotangents of the outputs.
    """
    results, vjp = jax.vjp(partial(fallback, fixed), *_broadcast_to_trajectories(free, initial, inputs))
    cotangents = tuple(jnp.broadcast_to(ct, r.shape) for ct, r in zip((ct_end, ct_outputs), results, strict=True))
    d_free, *gradients = vjp(cotangents)
    if rows != len(d_free):
        # the total is in the first partial sum
        d_free = jnp.pad(jnp.sum(d_free, axis=0, keepdims=True), ((0, rows - 1), (0, 0)))
    return [d_free, *gradients]


def _broadcast_to_trajectories(free: Array, initial: Array, inputs: Array) -> tuple[Array, ...]:
    """Broadcast arrays to one row per trajectory, so that each trajectory has its own gradient."""
    return tuple(jnp.broadcast_to(a, (len(initial), *a.shape[1:])) for a in (free, initial, inputs))
