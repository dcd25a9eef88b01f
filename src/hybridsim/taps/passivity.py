"""Wiring checks of structured networks: passivity holds only for power-conjugate velocities.

A network with a method `check_wiring(wiring)` is checked when a blueprint is bound to a model; the wiring lists its
inputs and outputs scalar by scalar, in the order of the network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hybridsim.core.errors import TapError
from hybridsim.taps.address import Selection

CONJUGATE_VELOCITY = {
    "joint.passive": "joint.qd",
    "joint.actuation": "joint.qd",
    "joint.tau": "joint.qd",
    "body.external_wrench": "body.twist",
    "contact.friction_force": "contact.slip_velocity",
}
"""Power-conjugate velocity of each force, component by component."""


class TapScalar(NamedTuple):
    """One scalar input or output of a network."""

    quantity: str
    row: str
    """Name of the joint, body or contact; empty for a per-element network, which sees only the row of its element."""
    component: int
    lag: int

    @property
    def row_component(self) -> tuple[str, int]:
        """Row and component, which are equal for a force and its power-conjugate velocity."""
        return self.row, self.component


@dataclass(frozen=True)
class GraftWiring:
    """Inputs and outputs of a network, scalar by scalar."""

    kind: str
    """Class name of the network."""
    outputs: tuple[TapScalar, ...]
    inputs: tuple[TapScalar, ...]
    mode: str

    def require_mode(self, mode: str) -> None:
        """Raise unless the graft has this mode."""
        if self.mode != mode:
            raise TapError(f"{self.kind} is valid only with mode {mode!r}, not {self.mode!r}")

    def require_velocities(self, inputs: Sequence[TapScalar]) -> None:
        """Raise unless these inputs are the power-conjugate velocities of the outputs, in the same order."""
        expected = [(CONJUGATE_VELOCITY.get(out.quantity), *out.row_component, 0) for out in self.outputs]
        if [tuple(scalar) for scalar in inputs] != expected:
            names = ", ".join(dict.fromkeys(CONJUGATE_VELOCITY.values()))
            raise TapError(
                f"{self.kind} must read the power-conjugate velocities of its outputs ({names}), of the same joints "
                "or bodies in the same order and at the expected positions of its inputs; otherwise it is not passive"
            )

    def require_quantities(self, inputs: Sequence[TapScalar], quantity: str) -> None:
        """Raise unless these inputs are this quantity for the joints of the outputs, in the same order."""
        if [(scalar.quantity, scalar.row, scalar.lag) for scalar in inputs] != [
            (quantity, o.row, 0) for o in self.outputs
        ]:
            raise TapError(
                f"{self.kind} must read {quantity} of the joints of its outputs, in the same order and at the expected "
                "positions of its inputs; only revolute and prismatic joints are supported"
            )


def graft_wiring(
    net: object, outputs: Sequence[Selection], inputs: Sequence[Selection], mode: str, per_row: Sequence[bool]
):
    """Wiring of a network.

    Args:
        net: the network.
        outputs: its outputs.
        inputs: its inputs.
        mode: mode of the graft.
        per_row: for each input, whether a call reads only the row of its element; if this holds for any input, a call
            also writes only that row.
    """
    is_per_element = any(per_row)
    output_scalars = [scalar for out in outputs for scalar in _scalars(out, is_per_element)]
    input_scalars = [scalar for each, is_row in zip(inputs, per_row, strict=True) for scalar in _scalars(each, is_row)]
    return GraftWiring(type(net).__name__, tuple(output_scalars), tuple(input_scalars), mode)


def _scalars(selection: Selection, per_row: bool) -> list[TapScalar]:
    rows = [""] if per_row else selection.row_names
    return [
        TapScalar(selection.quantity.name, row, component, selection.lag)
        for row in rows
        for component in selection.components or (0,)
    ]
