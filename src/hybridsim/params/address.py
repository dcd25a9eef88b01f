"""Addresses of parameters: `body.mass[link*]`, `joint.placement[elbow].z`, `contact.friction[foot*|floor]`, `graft[0]`.

An address is a parameter of the catalogue, a selection of its rows by the model's own names, and one of its components,
like an address of a tap. Rows and components may be left out (all), have wildcards, and be several, with commas.
"""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from hybridsim.core.errors import ParameterError
from hybridsim.core.messages import advice
from hybridsim.params.catalog import BY_NAME, INERTIAL, TURNS, Form, Parameter
from hybridsim.params.inertial_parameters import inertial_coordinates
from hybridsim.params.leaves import Number, dotted, leaf_at
from hybridsim.params.parametrization import Magnitude, Turned, UnitAxis
from hybridsim.params.plugin_parameters import OpenLeaf, actuation_leaves, contact_leaves, graft_leaves
from hybridsim.params.rows import Row, rows_of
from hybridsim.params.scalar_parameter import Coordinate, Part
from hybridsim.params.setup import Setup
from hybridsim.taps.address import NO_CONTACTS

OPEN_PARTS = {"contact": contact_leaves, "actuation": actuation_leaves, "graft": graft_leaves}
"""Where the parameters of parts come from that users plug in."""

FROM_SURFACES = {field: f"geometry.{field}" for field in ("friction", "restitution", "softness")}
FROM_SURFACES["stabilisation.time"] = "geometry.recovery_time"
"""Numbers of contact that surfaces tell, unless contact has its own."""

Matching = Callable[[str], list[int]]
"""Which rows a pattern means."""


def coordinates_at(address: str, setup: Setup) -> tuple[Coordinate, ...]:
    """The numbers that an address means, in order; raises `ParameterError` with the nearest valid names."""
    text = address.strip()
    head = text.partition(".")[0].partition("[")[0]
    if head in OPEN_PARTS:
        return _of_open_part(text, head, setup)
    if head == INERTIAL.name:
        rows, variant = _split(text, head)
        known = rows_of(INERTIAL.rows, setup)
        return inertial_coordinates(text, [known[k] for k in _chosen(rows, known, text)], variant, setup)
    fitting = [name for name in BY_NAME if text == name or text.startswith((f"{name}.", f"{name}["))]
    if not fitting:
        name = text.partition("[")[0]
        valid = [*BY_NAME, INERTIAL.name, *(leaf.name for find in OPEN_PARTS.values() for leaf in find(setup))]
        raise ParameterError(f"there is no parameter {name!r}; {advice(name, valid)}")
    parameter = BY_NAME[max(fitting, key=len)]
    rows, wanted = _split(text, parameter.name)
    known = rows_of(parameter.rows, setup)
    chosen = [known[k] for k in _chosen(rows, known, text)]
    if not chosen:
        raise ParameterError(f"{address!r} matches nothing: the model has no {parameter.rows}")
    components = _components(wanted, parameter.components, text)
    return tuple(c for row in chosen for c in _row_coordinates(parameter, row, components, setup))


def _split(text: str, name: str) -> tuple[str | None, str]:
    """Rows and components of an address that begins with a name."""
    rest = text[len(name) :]
    rows = None
    if rest.startswith("["):
        rows, closed, rest = rest[1:].partition("]")
        if not closed:
            raise ParameterError(f"cannot read the address {text!r}: a bracket is not closed")
    if rest and not rest.startswith("."):
        raise ParameterError(f"cannot read the address {text!r}; write group.parameter[names].component")
    return rows, rest[1:]


def _chosen(patterns: str | None, known: Sequence[Row], address: str) -> list[int]:
    names = [row.name for row in known]

    def matching(pattern: str) -> list[int]:
        found = [k for k, name in enumerate(names) if fnmatchcase(name, pattern)]
        # a joint with several degrees of freedom is addressed by its own name, too
        return found or [k for k, name in enumerate(names) if name.startswith(f"{pattern}.")]

    return _matches(patterns, names, address, matching)


def _matches(patterns: str | None, names: Sequence[str], address: str, matching: Matching) -> list[int]:
    """Rows that one of several patterns matches, in the order of the patterns."""
    if patterns is None or patterns.strip() in ("", "*"):
        return list(range(len(names)))
    chosen: list[int] = []
    for pattern in (part.strip() for part in patterns.split(",")):
        found = matching(pattern)
        if not found:
            joints = [name.partition(".")[0] for name in names]
            raise ParameterError(f"{address!r}: nothing is named {pattern!r}; {advice(pattern, [*names, *joints])}")
        chosen += [k for k in found if k not in chosen]
    return chosen


def _components(wanted: str, names: Sequence[str], address: str) -> list[int]:
    if not wanted:
        return list(range(len(names))) or [0]
    chosen: list[int] = []
    for pattern in (part.strip() for part in wanted.split(",")):
        found = [k for k, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not found:
            raise ParameterError(f"{address!r}: there is no component {pattern!r}; {advice(pattern, names)}")
        chosen += [k for k in found if k not in chosen]
    return chosen


def _row_coordinates(parameter: Parameter, row: Row, components: list[int], setup: Setup) -> list[Coordinate]:
    """Coordinates of one row."""
    name = f"{parameter.name}[{row.name}]" if row.name else parameter.name
    labels = [f"{name}.{c}" for c in parameter.components] or [name]
    unit, path = row.unit(parameter.unit), dotted(parameter.path)
    if parameter.form is Form.POSE:
        R = np.asarray(leaf_at(setup, (*path, "R")))[row.index]
        turned = Turned(name, row.index, (0.0,) * 3, (*path, "R"), tuple(map(tuple, R.tolist())))
        places = [Number((*path, "p"), 3 * row.index + k) for k in range(3)] + [Part(turned, k) for k in range(3)]
        units = [unit] * 3 + ["rad"] * len(TURNS)
    elif parameter.form is Form.AXIS:
        axis = np.asarray(leaf_at(setup, path))[row.index]
        family = UnitAxis(name, row.index, tuple(axis.tolist()), path)
        places, units = [Part(family, k) for k in range(3)], [unit] * 3
    elif parameter.form is Form.MAGNITUDE:
        vector = np.asarray(leaf_at(setup, path))
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            raise ParameterError("gravity is zero and has no direction; free gravity.z instead of gravity.magnitude")
        places, units = [Part(Magnitude(name, 0, (length,), path, tuple(vector.tolist())), 0)], [unit]
    else:
        width = len(labels)
        places, units = [Number(path, width * row.index + k) for k in range(width)], [unit] * width
    return [Coordinate(labels[k], units[k], parameter, places[k]) for k in components]


def _of_open_part(address: str, head: str, setup: Setup) -> tuple[Coordinate, ...]:
    """Coordinates of contact, actuation or networks."""
    leaves, found = OPEN_PARTS[head](setup), []
    for single in _one_by_one(address, head):
        before = len(found)
        for leaf in leaves:
            if not _names_all(single, leaf.given_fields):
                continue
            if _is_part(leaf.name, single):
                found += _entries(leaf, range(len(leaf.entries)))
            elif (rows := _selected(single, leaf.name)) is not None:
                found += _entries(leaf, _entries_matching(rows, leaf, address, setup))
        if len(found) == before:
            raise ParameterError(_nothing_there(single, head, leaves, setup))
    return tuple(found)


def _one_by_one(address: str, head: str) -> list[str]:
    """`graft[0,1].weights` as two addresses."""
    if head == "contact" or not address.startswith(f"{head}["):
        return [address]
    numbers, _, rest = address[len(head) + 1 :].partition("]")
    return [f"{head}[{number.strip()}]{rest}" for number in numbers.split(",")]


def _names_all(address: str, fields: Sequence[str]) -> bool:
    """Are fields among the parts of an address?"""
    return set(fields) <= {part.partition("[")[0] for part in address.split(".")}


def _is_part(name: str, pattern: str) -> bool:
    """Is a leaf what a pattern means, or inside of it? The pattern may have wildcards in its brackets: `graft[*]`."""
    escaped = pattern.replace("[", "[[]")
    return any(fnmatchcase(name, escaped + rest) for rest in ("", ".*", "[[]*"))


def _selected(address: str, name: str) -> str | None:
    """What stands in the last bracket of an address whose rest means a leaf."""
    rest, bracket, rows = address.rpartition("[")
    return rows[:-1] if bracket and rows.endswith("]") and fnmatchcase(name, rest.replace("[", "[[]")) else None


def _entries_matching(patterns: str, leaf: OpenLeaf, address: str, setup: Setup) -> Iterable[int]:
    if leaf.parameter.name.startswith("contact.") and leaf.rows:
        names = [row.name for row in leaf.rows]
        return _matches(patterns, names, address, setup.sim.contact.watched.matching)
    if leaf.rows:
        return _chosen(patterns, leaf.rows, address)
    wanted = [part.strip() for part in patterns.split(",")]
    if len(wanted) != len(leaf.shape):
        shape = "one number" if not leaf.shape else f"{'×'.join(map(str, leaf.shape))} numbers"
        raise ParameterError(f"{address!r}: {leaf.name} is {shape} and takes {len(leaf.shape)} indices")
    places = np.ndindex(leaf.shape)
    chosen = [k for k, index in enumerate(places) if all(map(fnmatchcase, map(str, index), wanted))]
    if not chosen:
        raise ParameterError(f"{address!r}: {leaf.name} has the shape {'×'.join(map(str, leaf.shape))}")
    return chosen


def _entries(leaf: OpenLeaf, indices: Iterable[int]) -> list[Coordinate]:
    names, parameter = leaf.entries, leaf.parameter
    units = [row.unit(parameter.unit) for row in leaf.rows] or [parameter.unit] * len(names)
    return [Coordinate(names[k], units[k], parameter, Number(leaf.path, k)) for k in indices]


def _nothing_there(address: str, head: str, leaves: Sequence[OpenLeaf], setup: Setup) -> str:
    contact = setup.sim.contact
    if head == "contact" and not contact.watched.nc:
        return f"{address!r}: {NO_CONTACTS}"
    if head == "contact" and _is_left_out(contact, field := address.partition("[")[0].partition(".")[2]):
        what = type(contact).__name__
        if field in FROM_SURFACES:
            elsewhere = f"free {FROM_SURFACES[field]}, or give {what} a {field} of its own"
            return f"{address!r}: this {what} takes its {field} from the surfaces; {elsewhere}"
        return f"{address!r}: this {what} chooses its {field} by the time step; give it one of its own"
    return f"there is no parameter {address!r}; {advice(address, [leaf.name for leaf in leaves])}"


def _is_left_out(part: Any, field: str) -> bool:
    """Is it something that could have been given, but was not?"""
    for name in field.split("."):
        part = getattr(part, name, "")
    return part is None
