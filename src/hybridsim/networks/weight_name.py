"""Parsed names of the parameters of grafted networks, such as `graft[0].net.weights[1][2,3]`."""

import re
from dataclasses import dataclass

_NAME = re.compile(r"^graft\[(\d+)\](.*)$")
_LAYER = re.compile(
    r"^(?P<part>.*)\.(?:(?P<kind>weights|biases)\[(?P<layer>\d+)\]"
    r"|layers\[(?P<eqx_layer>\d+)\]\.(?P<eqx_kind>weight|bias))\[(?P<index>\d+(?:,\d+)?)\]$"
)


@dataclass(frozen=True)
class WeightName:
    """Location of a parameter within the grafted networks."""

    graft: int
    part: str
    """Path of the MLP within the network: empty for the network itself, `.net` for a field `net`."""
    layer: int | None = None
    """Layer of an `MLP`, or of linear `layers` as in `equinox.nn.MLP`; None for other arrays."""
    column: int | None = None
    """Index of the input of the layer that it multiplies; None for biases."""

    @property
    def is_first_layer_weight(self) -> bool:
        """Whether it multiplies an input of the MLP."""
        return self.layer == 0 and self.column is not None


def parse_weight_name(name: str) -> WeightName | None:
    """Parse the name of a parameter; None if it is not a parameter of a grafted network."""
    if not (match := _NAME.match(name)):
        return None
    graft, path = int(match[1]), match[2]
    if not (layer_match := _LAYER.match(path)):
        return WeightName(graft, path)
    kind, index = layer_match["kind"] or layer_match["eqx_kind"], layer_match["index"].split(",")
    is_matrix = kind.startswith("weight")
    if is_matrix != (len(index) == 2):
        return WeightName(graft, path)  # such as the gains of a normalization layer
    column = int(index[1]) if is_matrix else None
    return WeightName(graft, layer_match["part"], int(layer_match["layer"] or layer_match["eqx_layer"]), column)


def is_graft_parameter(name: str) -> bool:
    """Whether a parameter belongs to a grafted network: a weight, or a coefficient such as that of drag."""
    return parse_weight_name(name) is not None
