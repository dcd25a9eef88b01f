"""Frozen fields: arrays of a network that are not learned, such as scales and points of application.

    class Spring(eqx.Module):
        stiffness: jax.Array
        length: jax.Array = eqx.field(metadata=FROZEN)

A fit of the whole network does not change them; they are free only if named, as in `Free("graft[0].length")`.
"""

from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np
from jax.tree_util import DictKey, GetAttrKey, KeyPath, SequenceKey

from hybridsim.core.errors import TapError

FROZEN = {"hybridsim_frozen": True}
"""Field metadata that makes an array fixed in a fit unless the fit names it."""


def weight_mask(net: Any) -> Any:
    """Mask of the weights of a network: its floating-point arrays that are not frozen."""

    def is_weight(keys: KeyPath, leaf: Any) -> bool:
        return hasattr(leaf, "dtype") and np.issubdtype(leaf.dtype, np.floating) and not frozen_fields(net, keys)

    return jax.tree_util.tree_map_with_path(is_weight, net)


def frozen_fields(net: Any, keys: KeyPath) -> tuple[str, ...]:
    """Names of the frozen fields along a path, including its end."""
    names = []
    for key in keys:
        if isinstance(key, GetAttrKey):
            if is_dataclass(net) and any(
                f.name == key.name and FROZEN.keys() <= f.metadata.keys() for f in fields(net)
            ):
                names.append(key.name)
            net = getattr(net, key.name)
        elif isinstance(key, SequenceKey):
            net = net[key.idx]
        elif isinstance(key, DictKey):
            net = net[key.key]
        else:
            break
    return tuple(names)


def as_scale(name: str, value: Any, *, allow_zero: bool = False) -> np.ndarray:
    """Convert a scale of a network to an array.

    Raises:
        TapError: the scale is not positive and finite, which would disable the network or break its passivity.
    """
    scale = np.asarray(value, dtype=float)
    if not np.all(np.isfinite(scale) & (scale >= 0.0 if allow_zero else scale > 0.0)):
        raise TapError(f"{name} must be {'nonnegative' if allow_zero else 'positive'} and finite, not {value!r}")
    return scale
