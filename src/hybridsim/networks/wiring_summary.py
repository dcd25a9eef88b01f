"""Summary of the wiring of networks, for tables and drawings of a blueprint."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np

from hybridsim.networks.frozen_fields import weight_mask
from hybridsim.networks.mlp import MLP
from hybridsim.networks.prune import input_addresses
from hybridsim.taps.blueprint import BoundBlueprint


@dataclass(frozen=True)
class Wire:
    """One scalar input of a network."""

    address: str
    strength: float | None
    """Norm of its weights in the first layer; None for networks other than `MLP`."""

    @property
    def is_pruned(self) -> bool:
        """Whether all its weights are zero."""
        return self.strength == 0.0


@dataclass(frozen=True)
class WiringSummary:
    """Wiring of one graft."""

    kind: str
    """Class name of the network."""
    shape: str
    """Layer sizes, such as 4→8→8→1; empty for networks other than `MLP`."""
    inputs: tuple[Wire, ...]
    outputs: tuple[str, ...]
    mode: str
    per: str
    weights: int
    """Number of weights."""


def wiring_summaries(blueprint: BoundBlueprint) -> tuple[WiringSummary, ...]:
    """Wirings of all grafts of a blueprint."""
    result = []
    for graft in blueprint.grafts:
        addresses, net = input_addresses(graft), graft.net
        strengths: list[float | None] = [None] * len(addresses)
        shape = ""
        if isinstance(net, MLP):
            strengths = [float(x) for x in np.linalg.norm(np.asarray(net.weights[0]), axis=0)]
            shape = "→".join(str(n) for n in (len(addresses), *(W.shape[0] for W in net.weights)))
        result.append(
            WiringSummary(
                type(net).__name__,
                shape,
                tuple(Wire(*pair) for pair in zip(addresses, strengths, strict=True)),
                tuple(out.address for out in graft.outputs),
                graft.mode,
                graft.per,
                weight_count(net),
            )
        )
    return tuple(result)


def weight_count(net: Any) -> int:
    """Number of weights of a network, frozen fields excluded."""
    return sum(np.size(leaf) for leaf in jax.tree.leaves(eqx.filter(net, weight_mask(net))))
