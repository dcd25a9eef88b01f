"""Numbers of a network that are given and not learned: in which units it computes, or where its force acts.

    class Spring(eqx.Module):
        stiffness: jax.Array
        length: jax.Array = eqx.field(metadata=GIVEN)

A fit of the whole network leaves them alone; only one that names them, `Free("graft[0].length")`, changes them.
"""

from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np
from jax.tree_util import DictKey, GetAttrKey, KeyPath, SequenceKey

from hybridsim.core.errors import TapError

GIVEN = {"hybridsim_given": True}
"""Metadata of a field that no fit changes unless it is named."""


def weights_of(net: Any) -> Any:
    """The same tree with what is a weight in place of its leaves: arrays of floats that are not given."""

    def is_weight(keys: KeyPath, leaf: Any) -> bool:
        return hasattr(leaf, "dtype") and np.issubdtype(leaf.dtype, np.floating) and not given_fields(net, keys)

    return jax.tree_util.tree_map_with_path(is_weight, net)


def given_fields(net: Any, keys: KeyPath) -> tuple[str, ...]:
    """The fields on a path, and at its end, that are given; none if all is learned."""
    found = []
    for key in keys:
        if isinstance(key, GetAttrKey):
            if is_dataclass(net) and any(f.name == key.name and GIVEN.keys() <= f.metadata.keys() for f in fields(net)):
                found.append(key.name)
            net = getattr(net, key.name)
        elif isinstance(key, SequenceKey):
            net = net[key.idx]
        elif isinstance(key, DictKey):
            net = net[key.key]
        else:
            break
    return tuple(found)


def usual_size(name: str, value: Any, *, or_zero: bool = False) -> np.ndarray:
    """A size that a network is given, as an array.

    Raises:
        TapError: it is not finite and positive, so that nothing comes of the network, or a promise is broken.
    """
    size = np.asarray(value, dtype=float)
    if not np.all(np.isfinite(size) & (size >= 0.0 if or_zero else size > 0.0)):
        raise TapError(f"{name} must be {'zero or ' if or_zero else ''}positive and finite, not {value!r}")
    return size
