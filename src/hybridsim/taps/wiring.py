"""What networks are wired to: for tables and pictures of a blueprint."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hybridsim.taps.blueprint import BoundBlueprint
from hybridsim.taps.columns import input_addresses
from hybridsim.taps.networks import MLP

NORMALISERS = ("_shift", "_scale", "_point")
"""How arrays of a network end that say in which units, or where, it computes: no weights."""


@dataclass(frozen=True)
class Wire:
    """One number that a network reads."""

    address: str
    strength: float | None
    """Norm of its weights in the first layer; None where there is no such layer."""

    @property
    def is_cut(self) -> bool:
        """Has it no influence?"""
        return self.strength == 0.0


@dataclass(frozen=True)
class Wiring:
    """One graft."""

    kind: str
    """Class of the network."""
    shape: str
    """Its layers in words, such as 4→8→8→1; empty for what has none."""
    inputs: tuple[Wire, ...]
    outputs: tuple[str, ...]
    mode: str
    per: str
    weights: int
    """Numbers that a fit may change, without normalisation."""


def wirings(blueprint: BoundBlueprint) -> tuple[Wiring, ...]:
    """All grafts of a blueprint."""
    found = []
    for graft in blueprint.grafts:
        addresses, net = input_addresses(graft), graft.net
        strengths: list[float | None] = [None] * len(addresses)
        shape = ""
        if isinstance(net, MLP):
            strengths = [float(x) for x in np.linalg.norm(np.asarray(net.weights[0]), axis=0)]
            shape = "→".join(str(n) for n in (len(addresses), *(W.shape[0] for W in net.weights)))
        found.append(
            Wiring(
                type(net).__name__,
                shape,
                tuple(Wire(*pair) for pair in zip(addresses, strengths, strict=True)),
                tuple(out.address for out in graft.outputs),
                graft.mode,
                graft.per,
                weight_count(net),
            )
        )
    return tuple(found)


def weight_count(net: Any) -> int:
    """Numbers of a network that are no normalisation."""
    return sum(np.size(leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(net)[0] if is_weight(path, leaf))


def is_weight(path: tuple, leaf: Any) -> bool:
    """Is a leaf of a network, found by this path, an array of weights?"""
    name = str(getattr(path[-1], "name", "")) if path else ""
    return hasattr(leaf, "dtype") and np.issubdtype(leaf.dtype, np.floating) and not name.endswith(NORMALISERS)
