"""History of lagged inputs: values of quantities in previous steps.

A graft that reads `joint.qd[elbow]@2` sees the velocity two steps ago. The history is part of the simulation's state,
so that a rollout stays a pure function of its initial state. If the lag reaches back beyond the first step, a lagged
value equals the current value, or zero if the quantity is computed after the graft.
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
"""Key of the step count in a history; no quantity has this name."""

History = dict[str, Float[AnyArray, "..."]]
"""Previous values by quantity, (lags, rows, components), latest first; and the step count."""


def initial_history(blueprint: BoundBlueprint) -> History:
    """History before the first step; empty if no graft reads lagged values."""
    sizes: dict[str, tuple[int, int, int]] = {}
    for graft in blueprint.grafts:
        for selection in graft.inputs:
            if selection.lag:
                name = selection.quantity.name
                depth = max(selection.lag, sizes.get(name, (0,))[0])
                sizes[name] = (depth, selection.total_rows, max(len(selection.quantity.components), 1))
    return {name: np.zeros(size) for name, size in sizes.items()} | ({STEPS: np.zeros(())} if sizes else {})


def advance_history(history: Mapping[str, Any], values: Mapping[str, Any]) -> History:
    """History one step later.

    Args:
        history: current history.
        values: quantities of the completed step, as read by grafts.
    """
    new = {}
    for name, previous in history.items():
        if name == STEPS:
            new[name] = previous + 1.0
        else:
            current = jnp.reshape(values[name], previous.shape[1:])
            new[name] = jnp.concatenate([current[None], previous[:-1]])
    return new


def lagged_value(history: Mapping[str, Any], selection: Selection, current: Any) -> Float[Array, "rows width"]:
    """Lagged value of a quantity; until enough steps have been taken, the current value, or zero if it is None."""
    lagged = jnp.asarray(history[selection.quantity.name][selection.lag - 1])
    fallback = jnp.zeros(lagged.shape) if current is None else jnp.reshape(current, lagged.shape)
    return jnp.where(history[STEPS] >= selection.lag, lagged, fallback)
