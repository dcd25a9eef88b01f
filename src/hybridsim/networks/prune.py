"""Pruning of networks: single inputs of MLPs, and other networks as a whole."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import jax
import numpy as np

from hybridsim.core.errors import TapError
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.mlp import MLP
from hybridsim.networks.weight_name import parse_weight_name
from hybridsim.taps.address import Selection
from hybridsim.taps.blueprint import Blueprint, BoundBlueprint, BoundGraft, Graft

WHOLE, CONSTANT = -1, -2
"""Special values of an input index: the network as a whole, and the constant output of an MLP without inputs."""


@dataclass(frozen=True, order=True)
class PruningUnit:
    """Unit of pruning: an input or the constant output of an MLP, or another network as a whole."""

    graft: int
    """Index of the graft."""
    column: int
    """Input column: index of the input, `WHOLE`, or `CONSTANT`."""
    address: str
    """Address of the input, without a row for per-element networks; for a whole network, its class and inputs."""
    outputs: tuple[str, ...]
    """Addresses of the network's outputs."""
    entries: tuple[int, ...]
    """Indices in θ of the weights that, set to zero, remove its effect."""

    def __str__(self) -> str:
        return f"{self.address} → {', '.join(self.outputs)}"


def pruning_units(blueprint: BoundBlueprint, names: Sequence[str]) -> tuple[PruningUnit, ...]:
    """Inputs of all MLPs with free first layers, and all other networks with free parameters as a whole.

    An MLP whose output biases are free has a `CONSTANT` unit too: without inputs it may remain as a constant.

    Args:
        blueprint: blueprint bound to a model.
        names: names of the entries of θ.
    """
    inputs: dict[tuple[int, int | None], list[int]] = {}
    for k, weight in enumerate(map(parse_weight_name, names)):
        if (
            weight
            and weight.is_first_layer_weight
            and not weight.part
            and isinstance(blueprint.grafts[weight.graft].net, MLP)
        ):
            inputs.setdefault((weight.graft, weight.column), []).append(k)
    units = []
    for index, graft in enumerate(blueprint.grafts):
        outputs = tuple(out.address for out in graft.outputs)
        input_units = [
            PruningUnit(index, column, address, outputs, tuple(inputs[index, column]))
            for column, address in enumerate(input_addresses(graft))
            if (index, column) in inputs
        ]
        units += input_units
        entries = _output_weights(index, names)
        if input_units:
            biases = tuple(k for k in entries if ".biases[" in names[k])
            units += [PruningUnit(index, CONSTANT, "a constant", outputs, biases)] if biases else []
        elif entries:
            addresses = ", ".join(selection.address for selection in graft.inputs)
            units.append(PruningUnit(index, WHOLE, f"{type(graft.net).__name__}({addresses})", outputs, entries))
    return tuple(units)


def _output_weights(graft: int, names: Sequence[str]) -> tuple[int, ...]:
    """Indices in θ of a network's output-layer weights, or of all its weights if some do not belong to a layer."""
    all_weights: list[int] = []
    has_other_weights = False
    layers: dict[str, dict[int, list[int]]] = {}
    for k, weight in enumerate(map(parse_weight_name, names)):
        if weight is None or weight.graft != graft:
            continue
        all_weights.append(k)
        if weight.layer is not None:
            layers.setdefault(weight.part, {}).setdefault(weight.layer, []).append(k)
        else:
            has_other_weights |= ".input_bias[" not in weight.part
    last = [k for by_layer in layers.values() for k in by_layer[max(by_layer)]]
    return tuple(all_weights if has_other_weights else sorted(last))


def input_addresses(graft: BoundGraft) -> list[str]:
    """Addresses of all scalar inputs of a network, in order."""
    return [address for inputs in graft.inputs for address in _scalars(inputs, graft.is_per_row(inputs))]


def _scalars(inputs: Selection, per_row: bool) -> list[str]:
    name, components = inputs.quantity.name, inputs.quantity.components
    lag = f"@{inputs.lag}" if inputs.lag else ""
    suffixes = [f".{components[k]}{lag}" for k in inputs.components] or [lag]
    if per_row:
        rows = "" if len(inputs.rows) == inputs.total_rows else f"[{','.join(inputs.row_names)}]"
        return [f"{name}{rows}{suffix}" for suffix in suffixes]
    return [f"{name}{f'[{row}]' if row else ''}{suffix}" for row in inputs.row_names for suffix in suffixes]


def reseed(net: Any, seed: int) -> Any:
    """Reinitialize a network, or every network within it, that has a method `reseed`, with another seed."""
    seeds = count(seed)

    def has_seed(x: Any) -> bool:
        return hasattr(x, "reseed")

    return jax.tree.map(lambda x: x.reseed(next(seeds)) if has_seed(x) else x, net, is_leaf=has_seed)


def ablate(graft: Graft, inputs: int) -> Any:
    """Network of the same structure as that of a graft, but without effect.

    Args:
        graft: the graft.
        inputs: number of inputs of its network.

    Raises:
        TapError: the effect of the network cannot be removed.
    """
    if graft.mode == "replace" and not isinstance(graft.net, Lagrangian):
        raise TapError(
            f"{', '.join(graft.outputs)}: a network that replaces a quantity cannot be ablated; "
            'use mode "add" or "scale"'
        )
    net: Any = graft.net
    if hasattr(net, "ablate"):
        return net.ablate()
    zeroed: Any = jax.tree.map(lambda x: np.zeros_like(x) if hasattr(x, "dtype") else x, graft.net)
    with jax.enable_x64(True):
        output = np.asarray(zeroed(np.random.default_rng(0).normal(size=inputs)))
    if output.any():
        raise TapError(
            f"{', '.join(graft.outputs)}: the output of {type(graft.net).__name__} is not zero even if all its arrays "
            "are; give it a method ablate() that returns a network of the same structure without effect"
        )
    return zeroed


def prune(
    blueprint: Blueprint,
    bound: BoundBlueprint,
    removed: Collection[tuple[int, int]],
    constants: Collection[int] = (),
) -> Blueprint:
    """Remove inputs from the networks of a blueprint, and networks without remaining inputs.

    Args:
        blueprint: the blueprint; networks with single inputs to remove must be MLPs.
        bound: the same, bound to its model.
        removed: indices of grafts and inputs to remove, or of grafts and `WHOLE`.
        constants: indices of grafts that remain as a constant if all their inputs are removed.
    """
    grafts = []
    for index, (graft, bound_graft) in enumerate(zip(blueprint.grafts, bound.grafts, strict=True)):
        addresses = input_addresses(bound_graft)
        remaining = [column for column in range(len(addresses)) if (index, column) not in removed]
        if (not remaining and index not in constants) or (index, WHOLE) in removed:
            continue
        if not isinstance(graft.net, MLP) or len(remaining) == len(addresses):
            grafts.append(graft)
        else:
            inputs = [addresses[column] for column in remaining or (0,)]
            net = graft.net.select_inputs(remaining) if remaining else graft.net.drop_inputs()
            grafts.append(Graft(graft.outputs, inputs, net, mode=graft.mode, per=graft.per))
    return Blueprint(*grafts, inputs=dict(blueprint.inputs))
