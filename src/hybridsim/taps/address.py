"""Addresses of scalars: `joint.tau[elbow]`, `body.twist[pole].omega.z`, `body.pose[link_*].p`, `step.time`.

An address is a quantity of the catalogue, a selection of its rows by the model's own names (with wildcards, several
separated by commas, all if left out), and a selection of components by name or by the name of a group of them. What a
network reads may be some steps ago: `joint.qd[elbow]@2`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hybridsim.core.errors import TapError
from hybridsim.core.messages import name_hint
from hybridsim.taps.catalog import BY_NAME, USER_INPUT, Axis, Form, Quantity

_PATTERN = re.compile(
    r"^(?P<name>[a-z_]+\.[A-Za-z_]\w*)(\[(?P<rows>[^\[\]]*)\])?(\.(?P<components>[\w.]+))?"
    r"(\s*@\s*(?P<past>\d+))?$"
)

MOST_STEPS = 1000
"""That a network may look back."""
NO_CONTACTS = (
    "the simulator watches no contacts; choose a contact model, impulse or compliant, and shapes that can touch"
)
"""What is wrong with addresses of contacts where there are none."""
AxisNames = Mapping[Axis, tuple[str, ...]]
"""The model's names along each axis; handed to the taps, which do not know the model."""


@dataclass(frozen=True)
class Selection:
    """Scalars of one quantity, as indices."""

    address: str
    quantity: Quantity
    rows: tuple[int, ...]
    row_names: tuple[str, ...]
    total_rows: int
    """Rows that the quantity has in all."""
    components: tuple[int, ...]
    """Indices of components; empty for quantities with a single number per row."""
    past: int = 0
    """How many steps ago; now by default."""

    @property
    def per_row(self) -> int:
        """Scalars in each selected row."""
        return len(self.components) or 1

    @property
    def size(self) -> int:
        """Scalars in all."""
        return len(self.rows) * self.per_row


def select(address: str, names: AxisNames, inputs: Mapping[str, int], *, write: bool) -> Selection:
    """Resolve an address for a model with these names; raises `TapError` with the nearest valid names.

    Args:
        address: what the user wrote.
        names: the model's names along each axis.
        inputs: user inputs and their sizes.
        write: whether the address is an output; a change of `q` is addressed by degree of freedom.
    """
    match = _PATTERN.match(address.strip())
    if match is None:
        raise TapError(f"cannot read the address {address!r}; write group.quantity[names].component")
    quantity = _quantity(match["name"], address, inputs).of(names)
    past = int(match["past"] or 0)
    if past > MOST_STEPS:
        raise TapError(f"{address!r}: no more than the last {MOST_STEPS} steps are remembered")
    if write and past:
        raise TapError(f"{address!r}: the past cannot be changed")
    if write and quantity.form is Form.INPUT:
        raise TapError(f"{address!r} can be read but not changed")
    axis = quantity.write_axis if write else quantity.axis
    row_names = names[axis] if axis is not Axis.NONE else ("",)
    if axis is Axis.CONTACT and not row_names:
        raise TapError(f"{address!r}: {NO_CONTACTS}")
    if not row_names:
        raise TapError(f"{address!r}: the model has no {axis.value} of which there could be {quantity.name}")
    rows = _rows(match["rows"], row_names, address)
    components = _components(match["components"], quantity.components, address)
    return Selection(address, quantity, rows, tuple(row_names[i] for i in rows), len(row_names), components, past)


def _quantity(name: str, address: str, inputs: Mapping[str, int]) -> Quantity:
    group, _, rest = name.partition(".")
    if group == USER_INPUT:
        if rest not in inputs:
            raise TapError(f"{address!r}: no user input named {rest!r}; {name_hint(rest, inputs)}")
        components = tuple(str(i) for i in range(inputs[rest])) if inputs[rest] > 1 else ()
        return Quantity(name, Axis.NONE, "", "User input.", "", components, Form.INPUT)
    if name not in BY_NAME:
        raise TapError(f"{address!r}: there is no quantity {name!r}; {name_hint(name, BY_NAME)}")
    return BY_NAME[name]


def _rows(patterns: str | None, names: Sequence[str], address: str) -> tuple[int, ...]:
    if patterns is None or patterns.strip() in ("", "*"):
        return tuple(range(len(names)))
    chosen: list[int] = []
    for pattern in (part.strip() for part in patterns.split(",")):
        found = [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
        # a joint with several degrees of freedom is addressed by its own name, too
        found = found or [i for i, name in enumerate(names) if name.startswith(f"{pattern}.")]
        if not found:
            joints = list(dict.fromkeys(name.partition(".")[0] for name in names))
            raise TapError(f"{address!r}: nothing is named {pattern!r}; {name_hint(pattern, [*names, *joints])}")
        chosen += [i for i in found if i not in chosen]
    return tuple(chosen)


def _components(wanted: str | None, names: Sequence[str], address: str) -> tuple[int, ...]:
    if wanted is None:
        return tuple(range(len(names)))
    found = tuple(i for i, name in enumerate(names) if name == wanted or name.startswith(f"{wanted}."))
    if not found:
        groups = list(dict.fromkeys(name.partition(".")[0] for name in names))
        raise TapError(f"{address!r}: there is no component {wanted!r}; {name_hint(wanted, [*names, *groups])}")
    return found
