"""What networks remember: values of quantities at the beginnings of earlier steps.

A graft that reads `joint.qd[elbow]@2` sees the velocity of two steps ago. The past is part of the simulation's state:
a rollout stays a pure function of where it starts. Before so many steps were made, the past is as the present, or zero
for what is not yet known where a network is.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.types import AnyArray
from hybridsim.taps.address import Selection
from hybridsim.taps.blueprint import BoundBlueprint

STEPS = "steps"
"""Entry of a history that counts the steps so far; no quantity is called so."""

History = dict[str, Float[AnyArray, "..."]]
"""Past values by the names of quantities, (steps, rows, numbers per row), the last step's first; and the count."""


def blank(blueprint: BoundBlueprint) -> History:
    """The history before the first step; empty if nobody reads any."""
    sizes: dict[str, tuple[int, int, int]] = {}
    for graft in blueprint.grafts:
        for read in graft.inputs:
            if read.past:
                name = read.quantity.name
                depth = max(read.past, sizes.get(name, (0,))[0])
                sizes[name] = (depth, read.total_rows, max(len(read.quantity.components), 1))
    return {name: np.zeros(size) for name, size in sizes.items()} | ({STEPS: np.zeros(())} if sizes else {})


def advanced(history: Mapping[str, Any], values: Mapping[str, Any]) -> History:
    """The history one step later.

    Args:
        history: so far.
        values: of the step that is over, as grafts read them.
    """
    found = {}
    for name, past in history.items():
        if name == STEPS:
            found[name] = past + 1.0
        else:
            now = jnp.reshape(values[name], past.shape[1:])
            found[name] = jnp.concatenate([now[None], past[:-1]])
    return found


def recalled(history: Mapping[str, Any], read: Selection, now: Any) -> Float[Array, "rows width"]:
    """What was some steps ago; what is now, or nothing, if there was no such step."""
    past = jnp.asarray(history[read.quantity.name][read.past - 1])
    present = jnp.zeros(past.shape) if now is None else jnp.reshape(now, past.shape)
    return jnp.where(history[STEPS] >= read.past, past, present)
