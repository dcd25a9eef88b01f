"""What a network can do without: inputs of a perceptron one by one, or a network of another kind as a whole."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import jax
import numpy as np

from hybridsim.core.errors import TapError
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.mlp import MLP
from hybridsim.networks.weight_name import weight_name
from hybridsim.taps.address import Selection
from hybridsim.taps.blueprint import Blueprint, BoundBlueprint, BoundGraft, Graft

WHOLE, CONSTANT = -1, -2
"""In place of the number of an input: all of them, or none, where a perceptron is nothing but a constant."""


@dataclass(frozen=True, order=True)
class Column:
    """One input of a perceptron, or all inputs of another network."""

    graft: int
    """Number of the graft."""
    column: int
    """Number of the input, `WHOLE`, or `CONSTANT`."""
    address: str
    """What is read: a scalar, or of a network per element one of each row; for a whole network, its kind too."""
    outputs: tuple[str, ...]
    """What the network changes."""
    entries: tuple[int, ...]
    """Places in θ of the weights without which nothing comes of it."""

    def __str__(self) -> str:
        return f"{self.address} → {', '.join(self.outputs)}"


def columns_of(blueprint: BoundBlueprint, labels: Sequence[str]) -> tuple[Column, ...]:
    """Inputs of all perceptrons whose first layers are free, and all other networks with free numbers as a whole.

    A perceptron whose last biases are free may be a constant, if it has no input.

    Args:
        blueprint: bound to a model.
        labels: names of the entries of θ.
    """
    inputs: dict[tuple[int, int | None], list[int]] = {}
    for k, found in enumerate(map(weight_name, labels)):
        if found and found.is_of_first_layer and not found.part and isinstance(blueprint.grafts[found.graft].net, MLP):
            inputs.setdefault((found.graft, found.column), []).append(k)
    columns = []
    for number, graft in enumerate(blueprint.grafts):
        outputs = tuple(out.address for out in graft.outputs)
        own = [
            Column(number, column, address, outputs, tuple(inputs[number, column]))
            for column, address in enumerate(input_addresses(graft))
            if (number, column) in inputs
        ]
        columns += own
        entries = _last_layers(number, labels)
        if own:
            biases = tuple(k for k in entries if ".biases[" in labels[k])
            columns += [Column(number, CONSTANT, "a constant", outputs, biases)] if biases else []
        elif entries:
            reads = ", ".join(read.address for read in graft.inputs)
            columns.append(Column(number, WHOLE, f"{type(graft.net).__name__}({reads})", outputs, entries))
    return tuple(columns)


def _last_layers(graft: int, labels: Sequence[str]) -> tuple[int, ...]:
    """Places of a network's last layers in θ, of all its perceptrons; if it has other numbers, too, of all of them."""
    everything: list[int] = []
    others = False
    layers: dict[str, dict[int, list[int]]] = {}
    for k, found in enumerate(map(weight_name, labels)):
        if found is None or found.graft != graft:
            continue
        everything.append(k)
        if found.layer is not None:
            layers.setdefault(found.part, {}).setdefault(found.layer, []).append(k)
        else:
            others |= ".input_bias[" not in found.part
    last = [k for own in layers.values() for k in own[max(own)]]
    return tuple(everything if others else sorted(last))


def input_addresses(graft: BoundGraft) -> list[str]:
    """What every number that a network reads is, in order."""
    return [address for read in graft.inputs for address in _scalars(read, graft.is_per_row(read))]


def _scalars(read: Selection, per_row: bool) -> list[str]:
    name, components = read.quantity.name, read.quantity.components
    ago = f"@{read.past}" if read.past else ""
    parts = [f".{components[k]}{ago}" for k in read.components] or [ago]
    if per_row:
        rows = "" if len(read.rows) == read.total_rows else f"[{','.join(read.row_names)}]"
        return [f"{name}{rows}{part}" for part in parts]
    return [f"{name}{f'[{row}]' if row else ''}{part}" for row in read.row_names for part in parts]


def reseeded(net: Any, seed: int) -> Any:
    """A network with the first weights of another seed; of what is no MLP, those inside of it."""
    numbers = count(seed)
    return jax.tree.map(
        lambda x: x.reseeded(next(numbers)) if isinstance(x, MLP) else x, net, is_leaf=lambda x: isinstance(x, MLP)
    )


def silenced(graft: Graft, inputs: int) -> Any:
    """The network of a graft that reads so many numbers, of the same form, but such that it is as if there were none.

    Raises:
        TapError: there is no such network.
    """
    if graft.mode == "replace" and not isinstance(graft.net, Lagrangian):
        raise TapError(
            f"{', '.join(graft.outputs)}: a network that replaces a quantity cannot be tried without; "
            'use mode "add" or "scale"'
        )
    net: Any = graft.net
    if hasattr(net, "silenced"):
        return net.silenced()
    quiet: Any = jax.tree.map(lambda x: np.zeros_like(x) if hasattr(x, "dtype") else x, graft.net)
    with jax.enable_x64(True):
        told = np.asarray(quiet(np.random.default_rng(0).normal(size=inputs)))
    if told.any():
        raise TapError(
            f"{', '.join(graft.outputs)}: {type(graft.net).__name__} does something even if all its numbers are zero; "
            "give it a method silenced() that returns one of the same form that does nothing"
        )
    return quiet


def pruned(
    blueprint: Blueprint,
    bound: BoundBlueprint,
    left_out: Collection[tuple[int, int]],
    constants: Collection[int] = (),
) -> Blueprint:
    """A blueprint whose networks do without some inputs; those that do without all are left out.

    Args:
        blueprint: whose networks are perceptrons wherever single inputs are left out.
        bound: the same, bound to its model.
        left_out: numbers of grafts and inputs, or of grafts and `WHOLE`.
        constants: numbers of grafts that are a constant if they do without all inputs.
    """
    grafts = []
    for number, (graft, resolved) in enumerate(zip(blueprint.grafts, bound.grafts, strict=True)):
        addresses = input_addresses(resolved)
        own = [column for column in range(len(addresses)) if (number, column) not in left_out]
        if (not own and number not in constants) or (number, WHOLE) in left_out:
            continue
        if not isinstance(graft.net, MLP) or len(own) == len(addresses):
            grafts.append(graft)
        else:
            reads = [addresses[column] for column in own or (0,)]
            net = graft.net.reading(own) if own else graft.net.constant()
            grafts.append(Graft(graft.outputs, reads, net, mode=graft.mode, per=graft.per))
    return Blueprint(*grafts, inputs=dict(blueprint.inputs))
