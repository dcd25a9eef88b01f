"""Inputs of networks one by one: which scalar every column of a first layer reads."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import jax

from hybridsim.taps.address import Selection
from hybridsim.taps.blueprint import Blueprint, BoundBlueprint, BoundGraft, Graft
from hybridsim.taps.networks import MLP

_FIRST_LAYER = re.compile(r"^graft\[(\d+)\]\.weights\[0\]\[\d+,(\d+)\]$")


@dataclass(frozen=True, order=True)
class Column:
    """One input of a network."""

    graft: int
    """Number of the graft."""
    column: int
    """Number of the input."""
    address: str
    """What is read: a scalar, or of a network per element one of each row."""
    outputs: tuple[str, ...]
    """What the network changes."""
    entries: tuple[int, ...]
    """Places of its weights in θ."""

    def __str__(self) -> str:
        return f"{self.address} → {', '.join(self.outputs)}"


def columns_of(blueprint: BoundBlueprint, labels: Sequence[str]) -> tuple[Column, ...]:
    """Inputs of all networks whose first layers are free.

    Args:
        blueprint: bound to a model.
        labels: names of the entries of θ.
    """
    entries: dict[tuple[int, int], list[int]] = {}
    for k, label in enumerate(labels):
        if found := _FIRST_LAYER.match(label):
            entries.setdefault((int(found[1]), int(found[2])), []).append(k)
    columns = []
    for number, graft in enumerate(blueprint.grafts):
        outputs = tuple(out.address for out in graft.outputs)
        for column, address in enumerate(input_addresses(graft)):
            if (number, column) in entries:
                columns.append(Column(number, column, address, outputs, tuple(entries[number, column])))
    return tuple(columns)


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


def pruned(blueprint: Blueprint, bound: BoundBlueprint, keep: Collection[tuple[int, int]]) -> Blueprint:
    """A blueprint whose networks read nothing but the inputs that are kept; those that keep none are left out.

    Args:
        blueprint: whose networks are perceptrons wherever inputs are left out.
        bound: the same, bound to its model.
        keep: numbers of grafts and columns.
    """
    grafts = []
    for number, (graft, resolved) in enumerate(zip(blueprint.grafts, bound.grafts, strict=True)):
        addresses = input_addresses(resolved)
        own = [column for column in range(len(addresses)) if (number, column) in keep]
        if not isinstance(graft.net, MLP) or len(own) == len(addresses):
            grafts.append(graft)
        elif own:
            reads = [addresses[column] for column in own]
            grafts.append(Graft(graft.outputs, reads, graft.net.reading(own), mode=graft.mode, per=graft.per))
    return Blueprint(*grafts, inputs=dict(blueprint.inputs))
