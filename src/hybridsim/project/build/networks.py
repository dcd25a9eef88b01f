"""Conversion between network tables and networks.

A network is determined by its table and the numbers of its inputs and outputs, so that tables and weights suffice to
restore a blueprint.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax

from hybridsim.core.derived_table import ComponentTable, table_of
from hybridsim.core.errors import TapError
from hybridsim.networks.choices import NETWORKS, SIZES
from hybridsim.networks.mlp import MLP
from hybridsim.project.schema.grafts import GraftEntry
from hybridsim.taps.address import AxisNames, select
from hybridsim.taps.blueprint import BoundGraft, Graft


class SeededGraft(NamedTuple):
    """Graft of a project with the random seed of its initial weights."""

    entry: GraftEntry
    seed: int

    @property
    def outputs(self) -> tuple[str, ...]:
        """Addresses of the outputs."""
        return _as_tuple(self.entry.outputs)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Addresses of the inputs."""
        return _as_tuple(self.entry.inputs)

    def graft(self, names: AxisNames, inputs: Mapping[str, int]) -> Graft:
        """The graft with its network, for a model with these names and user inputs."""
        return make_graft(self.entry, names, inputs, self.seed)


def make_graft(entry: GraftEntry, names: AxisNames, inputs: Mapping[str, int], seed: int) -> Graft:
    """Graft of a table.

    Args:
        entry: the table.
        names: axis names of the model.
        inputs: user inputs and their sizes.
        seed: random seed of the initial weights, unless the table specifies one.

    Raises:
        TapError: an address does not match the model, or the network does not support its wiring.
    """
    settings = {key: value for key, value in entry.settings.items() if key != "network"}
    unwired: Any = Graft(**settings, net=lambda x: x)
    input_taps = tuple(select(address, names, inputs, write=False) for address in unwired.inputs)
    output_taps = tuple(select(address, names, inputs, write=True) for address in unwired.outputs)
    bound = BoundGraft(unwired.net, output_taps, input_taps, unwired.mode, unwired.per)
    size_in = sum(tap.scalars_per_row if bound.is_per_row(tap) else tap.size for tap in input_taps)
    size_out = sum(tap.scalars_per_row if bound.per == "element" else tap.size for tap in output_taps)
    return Graft(**settings, net=make_network(entry.network, size_in, size_out, seed))


def make_network(table: ComponentTable, inputs: int, outputs: int, seed: int) -> Callable:
    """Network with initial weights.

    Args:
        table: kind and settings.
        inputs: number of inputs.
        outputs: number of outputs.
        seed: random seed of the initial weights, unless the table specifies one.

    Raises:
        TapError: the kind does not support these numbers of inputs and outputs.
    """
    kind: Any = table.component
    sizes = kind.sizes(inputs, outputs)
    if sizes is None:
        actual = f"{inputs} inputs and {outputs} outputs"
        raise TapError(f"a network of kind {kind_name(kind)!r} {kind.wiring}; it cannot have {actual}")
    defaults = {"seed": seed} if "seed" in type(table).model_fields else {}
    return kind(**sizes, **defaults | table.settings)


def kind_name(kind: type) -> str:
    """Name of a kind of networks."""
    return next(name for name in NETWORKS if NETWORKS[name] is kind)


def table_settings(net: Any) -> dict[str, Any] | None:
    """Settings of the table of a network, without its weights and scales; None for user-defined networks.

    They are those of its method `settings`, or of the first MLP in it.
    """
    kind = next((name for name in NETWORKS if NETWORKS[name] is type(net)), None)
    if kind is None:
        return None
    part = net if hasattr(net, "settings") else next(iter(mlps_in(net)), None)
    keys = table_of(type(net), SIZES).model_fields
    settings = {} if part is None else {key: value for key, value in part.settings().items() if key in keys}
    table_of(type(net), SIZES).model_validate(settings)
    return {"kind": kind, **settings}


def mlps_in(net: Any) -> list[MLP]:
    """MLPs within a network."""
    leaves = jax.tree.leaves(net, is_leaf=lambda x: isinstance(x, MLP))
    return [leaf for leaf in leaves if isinstance(leaf, MLP)]


def _as_tuple(addresses: str | tuple[str, ...]) -> tuple[str, ...]:
    return (addresses,) if isinstance(addresses, str) else addresses
