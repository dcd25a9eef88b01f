"""What networks are wired to: for tables and pictures of a blueprint."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np

from hybridsim.networks.frozen_fields import weights_of
from hybridsim.networks.mlp import MLP
from hybridsim.networks.prune import input_addresses
from hybridsim.taps.blueprint import BoundBlueprint


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
    """Numbers that a fit may change."""


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
    """Numbers of a network that a fit may change."""
    return sum(np.size(leaf) for leaf in jax.tree.leaves(eqx.filter(net, weights_of(net))))
