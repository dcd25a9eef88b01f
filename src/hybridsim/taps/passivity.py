"""What networks that promise something must be wired to: a promise about power holds for matching velocities only.

A network with a method `check_wiring(wired)` is asked when a blueprint meets a model; the wiring is told number by
number, in the network's own order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hybridsim.core.errors import TapError
from hybridsim.taps.address import Selection

VELOCITY = {
    "joint.passive": "joint.qd",
    "joint.actuation": "joint.qd",
    "joint.tau": "joint.qd",
    "body.external_force": "body.twist",
    "contact.friction_force": "contact.slip_velocity",
}
"""Forces, and the velocities along which they do work, number by number."""


class Scalar(NamedTuple):
    """One number."""

    quantity: str
    row: str
    """Name of the joint, body or contact; empty for a network that has one of each row."""
    component: int
    past: int

    @property
    def place(self) -> tuple[str, int]:
        """What a force and its velocity have in common."""
        return self.row, self.component


@dataclass(frozen=True)
class Wired:
    """What a network reads and changes."""

    kind: str
    """Name of its class."""
    outputs: tuple[Scalar, ...]
    inputs: tuple[Scalar, ...]
    mode: str

    def needs_mode(self, mode: str) -> None:
        """Raise unless the output is used in this way."""
        if self.mode != mode:
            raise TapError(f"{self.kind} keeps its promise with mode {mode!r} only, not {self.mode!r}")

    def needs_velocities(self, inputs: Sequence[Scalar]) -> None:
        """Raise unless these inputs are the velocities along which the outputs do work, in their order."""
        wanted = [(VELOCITY.get(out.quantity), *out.place, 0) for out in self.outputs]
        if [tuple(read) for read in inputs] != wanted:
            names = ", ".join(dict.fromkeys(VELOCITY.values()))
            raise TapError(
                f"{self.kind} must read the velocities along which its outputs do work ({names}), of the same joints "
                "or bodies in the same order, where it expects them; otherwise it could add energy"
            )

    def needs_quantities(self, inputs: Sequence[Scalar], quantity: str) -> None:
        """Raise unless these inputs are a quantity of what the outputs are of, in their order."""
        if [(read.quantity, read.row, read.past) for read in inputs] != [(quantity, o.row, 0) for o in self.outputs]:
            raise TapError(
                f"{self.kind} must read {quantity} of the joints that it changes, in the same order, where it expects "
                "that; for hinges and slides only, whose coordinates are called like their velocities"
            )


def wired(net: object, outputs: Sequence[Selection], inputs: Sequence[Selection], mode: str, per_row: Sequence[bool]):
    """The wiring of a network; `per_row` says of which inputs it gets one row at a time, as of outputs if of any."""
    each = any(per_row)
    changed = [scalar for out in outputs for scalar in _scalars(out, each)]
    read = [scalar for one, alone in zip(inputs, per_row, strict=True) for scalar in _scalars(one, alone)]
    return Wired(type(net).__name__, tuple(changed), tuple(read), mode)


def _scalars(selection: Selection, per_row: bool) -> list[Scalar]:
    rows = [""] if per_row else selection.row_names
    return [
        Scalar(selection.quantity.name, row, component, selection.past)
        for row in rows
        for component in selection.components or (0,)
    ]
