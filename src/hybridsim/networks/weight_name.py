"""Names of the numbers of grafted networks, such as `graft[0].net.weights[1][2,3]`, taken apart."""

import re
from dataclasses import dataclass

_NAME = re.compile(r"^graft\[(\d+)\](.*)$")
_OF_LAYER = re.compile(
    r"^(?P<part>.*)\.(?:(?P<kind>weights|biases)\[(?P<layer>\d+)\]"
    r"|layers\[(?P<theirs>\d+)\]\.(?P<alike>weight|bias))\[(?P<index>\d+(?:,\d+)?)\]$"
)


@dataclass(frozen=True)
class WeightName:
    """Where a number is."""

    graft: int
    part: str
    """The perceptron within the network: empty if it is the network itself, `.net` for what a module calls so."""
    layer: int | None = None
    """Of an `MLP`, or of linear `layers` as those of `equinox.nn.MLP`; none for any other number."""
    column: int | None = None
    """Which input of its layer it multiplies; none for biases."""

    @property
    def is_of_first_layer(self) -> bool:
        """Does it multiply what the perceptron reads?"""
        return self.layer == 0 and self.column is not None


def weight_name(name: str) -> WeightName | None:
    """What a name of a parameter says; none if it is not one of a network."""
    if not (found := _NAME.match(name)):
        return None
    graft, rest = int(found[1]), found[2]
    if not (of_layer := _OF_LAYER.match(rest)):
        return WeightName(graft, rest)
    is_matrix, index = (of_layer["kind"] or of_layer["alike"]).startswith("weight"), of_layer["index"].split(",")
    if is_matrix != (len(index) == 2):
        return WeightName(graft, rest)  # such as the gains of a normalisation
    column = int(index[1]) if is_matrix else None
    return WeightName(graft, of_layer["part"], int(of_layer["layer"] or of_layer["theirs"]), column)


def is_of_network(name: str) -> bool:
    """Is a parameter of this name a number of a network?"""
    return weight_name(name) is not None
