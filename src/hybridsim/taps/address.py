"""Addresses of scalars: `joint.tau[elbow]`, `body.twist[pole].omega.z`, `body.pose[link_*].p`, `step.time`.

An address is a quantity of the catalogue, a selection of its rows by the names of the model (comma-separated, with
wildcards; all rows by default), and a selection of components by name or group name. Inputs of networks may be lagged
by a number of time steps: `joint.qd[elbow]@2`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hybridsim.core.errors import TapError
from hybridsim.core.messages import name_hint
from hybridsim.taps.catalogue import BY_NAME, USER_INPUT, Axis, Form, Quantity

_PATTERN = re.compile(
    r"^(?P<name>[a-z_]+\.[A-Za-z_]\w*)(\[(?P<rows>[^\[\]]*)\])?(\.(?P<components>[\w.]+))?"
    r"(\s*@\s*(?P<lag>\d+))?$"
)

MAX_LAG = 1000
"""Largest lag of an input [time steps]."""
NO_CONTACTS = (
    "the simulator has no candidate pairs; choose a contact model, impulse or compliant, and shapes that can collide"
)
"""Error message for addresses of contacts in a simulator without candidate pairs."""
AxisNames = Mapping[Axis, tuple[str, ...]]
"""Names of the elements of each axis; passed to the taps, which do not depend on the model."""


@dataclass(frozen=True)
class Selection:
    """Scalars of one quantity selected by an address, as indices."""

    address: str
    quantity: Quantity
    rows: tuple[int, ...]
    row_names: tuple[str, ...]
    total_rows: int
    """Number of rows of the quantity."""
    components: tuple[int, ...]
    """Indices of components; empty for quantities with one scalar per row."""
    lag: int = 0
    """Lag [time steps]; 0 for the current value."""

    @property
    def scalars_per_row(self) -> int:
        """Number of scalars in each selected row."""
        return len(self.components) or 1

    @property
    def size(self) -> int:
        """Total number of scalars."""
        return len(self.rows) * self.scalars_per_row


def select(address: str, names: AxisNames, inputs: Mapping[str, int], *, write: bool) -> Selection:
    """Resolve an address for a model with these names; raises `TapError` with the nearest valid names.

    Args:
        address: address given by the user.
        names: names of the model along each axis.
        inputs: user inputs and their sizes.
        write: whether the address is an output; changes of `q` are addressed by degree of freedom.
    """
    match = _PATTERN.match(address.strip())
    if match is None:
        raise TapError(f"cannot parse the address {address!r}; write group.quantity[names].component", address=address)
    quantity = _quantity(match["name"], address, inputs).with_names(names)
    lag = int(match["lag"] or 0)
    if lag > MAX_LAG:
        raise TapError(f"{address!r}: the lag must be at most {MAX_LAG} steps", address=address)
    if write and lag:
        raise TapError(f"{address!r}: an output cannot have a lag", address=address)
    if write and quantity.form is Form.READ_ONLY:
        raise TapError(f"{address!r} is read-only", address=address)
    axis = quantity.write_axis if write else quantity.axis
    row_names = names[axis] if axis is not Axis.NONE else ("",)
    if axis is Axis.CONTACT and not row_names:
        raise TapError(f"{address!r}: {NO_CONTACTS}", address=address)
    if not row_names:
        raise TapError(f"{address!r}: the model has no {axis.value}, so {quantity.name} is empty", address=address)
    rows = _rows(match["rows"], row_names, address)
    components = _components(match["components"], quantity.components, address)
    return Selection(address, quantity, rows, tuple(row_names[i] for i in rows), len(row_names), components, lag)


def _quantity(name: str, address: str, inputs: Mapping[str, int]) -> Quantity:
    group, _, input_name = name.partition(".")
    if group == USER_INPUT:
        if input_name not in inputs:
            raise TapError(
                f"{address!r}: no user input named {input_name!r}; {name_hint(input_name, inputs)}", address=address
            )
        components = tuple(str(i) for i in range(inputs[input_name])) if inputs[input_name] > 1 else ()
        return Quantity(name, Axis.NONE, "", "User input.", "", components, Form.READ_ONLY)
    if name not in BY_NAME:
        raise TapError(f"{address!r}: there is no quantity {name!r}; {name_hint(name, BY_NAME)}", address=address)
    return BY_NAME[name]


def _rows(patterns: str | None, names: Sequence[str], address: str) -> tuple[int, ...]:
    if patterns is None or patterns.strip() in ("", "*"):
        return tuple(range(len(names)))
    selected: list[int] = []
    for pattern in (part.strip() for part in patterns.split(",")):
        matches = [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
        # a joint name selects all of its degrees of freedom
        matches = matches or [i for i, name in enumerate(names) if name.startswith(f"{pattern}.")]
        if not matches:
            joints = list(dict.fromkeys(name.partition(".")[0] for name in names))
            raise TapError(
                f"{address!r}: nothing is named {pattern!r}; {name_hint(pattern, [*names, *joints])}", address=address
            )
        selected += [i for i in matches if i not in selected]
    return tuple(selected)


def _components(component: str | None, names: Sequence[str], address: str) -> tuple[int, ...]:
    if component is None:
        return tuple(range(len(names)))
    matches = tuple(i for i, name in enumerate(names) if name == component or name.startswith(f"{component}."))
    if not matches:
        groups = list(dict.fromkeys(name.partition(".")[0] for name in names))
        raise TapError(
            f"{address!r}: there is no component {component!r}; {name_hint(component, [*names, *groups])}",
            address=address,
        )
    return matches
