"""Parameter addresses: `body.mass[link*]`, `joint.placement[elbow].z`, `contact.friction[foot*|floor]`, `graft[0]`.

An address consists of a parameter of the catalogue, a selection of its rows by the model's names, and a selection of
components, like the address of a tap. Rows and components may be omitted (all of them), may contain wildcards, and may
be comma-separated lists.
"""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from hybridsim.core.errors import ParameterError
from hybridsim.core.messages import name_hint, pluralize
from hybridsim.params.catalogue import BY_NAME, INERTIAL, ROTATION_VECTOR, ParameterForm, ParameterKind
from hybridsim.params.inertial_parameters import scalar_inertial_parameters
from hybridsim.params.leaves import LeafEntry, leaf_at, parse_path
from hybridsim.params.parametrization import Magnitude, RotationVector, UnitAxis
from hybridsim.params.plugin_parameters import PluginArray, actuation_arrays, contact_arrays, graft_arrays
from hybridsim.params.rows import RowName, row_names
from hybridsim.params.scalar_parameter import GroupMember, ScalarParameter
from hybridsim.params.setup import Setup
from hybridsim.taps.address import NO_CONTACTS

PLUGIN_ARRAYS = {"contact": contact_arrays, "actuation": actuation_arrays, "graft": graft_arrays}
"""Functions that list the parameter arrays of user-pluggable components, by the first word of an address."""

SURFACE_PARAMETERS = {field: f"geometry.{field}" for field in ("friction", "restitution", "softness")}
SURFACE_PARAMETERS["stabilization.recovery_time"] = "geometry.recovery_time"
"""Contact parameters that are taken from the surfaces unless the contact model specifies them."""

PatternMatcher = Callable[[str], list[int]]
"""Indices of the rows that match a pattern."""


def scalar_parameters(address: str, setup: Setup) -> tuple[ScalarParameter, ...]:
    """Scalar parameters that an address selects, in order; raises `ParameterError` with the closest valid names."""
    text = address.strip()
    head = text.partition(".")[0].partition("[")[0]
    if head in PLUGIN_ARRAYS:
        return _plugin_parameters(text, head, setup)
    if head == INERTIAL.name:
        rows, variant = _split(text, head)
        available = row_names(INERTIAL.row_kind, setup)
        selected = [available[k] for k in _matching_rows(rows, available, text)]
        return scalar_inertial_parameters(text, selected, variant, setup)
    candidates = [name for name in BY_NAME if text == name or text.startswith((f"{name}.", f"{name}["))]
    if not candidates:
        name = text.partition("[")[0]
        valid = [
            *BY_NAME,
            INERTIAL.name,
            *(array.name for list_arrays in PLUGIN_ARRAYS.values() for array in list_arrays(setup)),
        ]
        raise ParameterError(f"there is no parameter {name!r}", name_hint(name, valid))
    kind = BY_NAME[max(candidates, key=len)]
    rows, patterns = _split(text, kind.name)
    available = row_names(kind.row_kind, setup)
    selected = [available[k] for k in _matching_rows(rows, available, text)]
    if not selected:
        raise ParameterError(f"{address!r} matches nothing: there is no {kind.row_kind}")
    components = _matching_components(patterns, kind.components, text)
    return tuple(p for row in selected for p in _row_parameters(kind, row, components, setup))


def _split(text: str, name: str) -> tuple[str | None, str]:
    """Row and component patterns of an address that begins with a parameter name."""
    suffix = text[len(name) :]
    rows = None
    if suffix.startswith("["):
        rows, closing, suffix = suffix[1:].partition("]")
        if not closing:
            raise ParameterError(f"cannot parse the address {text!r}: missing closing bracket", "add it")
    if suffix and not suffix.startswith("."):
        raise ParameterError(f"cannot parse the address {text!r}", "write group.parameter[names].component")
    return rows, suffix[1:]


def _matching_rows(patterns: str | None, available: Sequence[RowName], address: str) -> list[int]:
    names = [row.name for row in available]

    def match(pattern: str) -> list[int]:
        matches = [k for k, name in enumerate(names) if fnmatchcase(name, pattern)]
        # the name of a joint with several degrees of freedom selects all of them
        return matches or [k for k, name in enumerate(names) if name.startswith(f"{pattern}.")]

    return _match_patterns(patterns, names, address, match)


def _match_patterns(patterns: str | None, names: Sequence[str], address: str, match: PatternMatcher) -> list[int]:
    """Rows that match any of a comma-separated list of patterns, in the order of the patterns."""
    if patterns is None or patterns.strip() in ("", "*"):
        return list(range(len(names)))
    selected: list[int] = []
    for pattern in (part.strip() for part in patterns.split(",")):
        matches = match(pattern)
        if not matches:
            joints = [name.partition(".")[0] for name in names]
            raise ParameterError(f"{address!r}: nothing is named {pattern!r}", name_hint(pattern, [*names, *joints]))
        selected += [k for k in matches if k not in selected]
    return selected


def _matching_components(patterns: str, names: Sequence[str], address: str) -> list[int]:
    if not patterns:
        return list(range(len(names))) or [0]
    selected: list[int] = []
    for pattern in (part.strip() for part in patterns.split(",")):
        matches = [k for k, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not matches:
            raise ParameterError(f"{address!r}: there is no component {pattern!r}", name_hint(pattern, names))
        selected += [k for k in matches if k not in selected]
    return selected


def _row_parameters(kind: ParameterKind, row: RowName, components: list[int], setup: Setup) -> list[ScalarParameter]:
    """Scalar parameters of one row."""
    name = f"{kind.name}[{row.name}]" if row.name else kind.name
    names = [f"{name}.{c}" for c in kind.components] or [name]
    unit, path = row.unit(kind.unit), parse_path(kind.path)
    if kind.form is ParameterForm.POSE:
        R = np.asarray(leaf_at(setup, (*path, "R")))[row.index]
        rotation = RotationVector(name, row.index, (0.0,) * 3, (*path, "R"), tuple(map(tuple, R.tolist())))
        position = [LeafEntry((*path, "p"), 3 * row.index + k) for k in range(3)]
        locations = position + [GroupMember(rotation, k) for k in range(3)]
        units = [unit] * 3 + ["rad"] * len(ROTATION_VECTOR)
    elif kind.form is ParameterForm.AXIS:
        axis = np.asarray(leaf_at(setup, path))[row.index]
        group = UnitAxis(name, row.index, tuple(axis.tolist()), path)
        locations, units = [GroupMember(group, k) for k in range(3)], [unit] * 3
    elif kind.form is ParameterForm.MAGNITUDE:
        vector = np.asarray(leaf_at(setup, path))
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            raise ParameterError("gravity is zero and has no direction", "free gravity.z instead of gravity.magnitude")
        group = Magnitude(name, 0, (length,), path, tuple(vector.tolist()))
        locations, units = [GroupMember(group, 0)], [unit]
    else:
        width = len(names)
        locations = [LeafEntry(path, width * row.index + k) for k in range(width)]
        units = [row.unit(component_unit) for component_unit in kind.unit.split("; ")]
        units *= width // len(units)
    return [ScalarParameter(names[k], units[k], kind, locations[k]) for k in components]


def _plugin_parameters(address: str, head: str, setup: Setup) -> tuple[ScalarParameter, ...]:
    """Scalar parameters of contact, actuation or networks."""
    arrays, result = PLUGIN_ARRAYS[head](setup), []
    for part in _split_indices(address, head):
        count_before = len(result)
        for array in arrays:
            if not _has_all_fields(part, array.frozen_fields):
                continue
            if _is_match(part, array.name):
                result += _entry_parameters(array, range(len(array.entry_names)))
            elif (patterns := _entry_patterns(part, array.name)) is not None:
                result += _entry_parameters(array, _matching_entries(patterns, array, address, setup))
        if len(result) == count_before:
            raise _not_found_error(part, head, arrays, setup)
    return tuple(result)


def _split_indices(address: str, head: str) -> list[str]:
    """`graft[0,1].weights` as two addresses."""
    if head == "contact" or not address.startswith(f"{head}["):
        return [address]
    indices, _, suffix = address[len(head) + 1 :].partition("]")
    return [f"{head}[{index.strip()}]{suffix}" for index in indices.split(",")]


def _has_all_fields(address: str, fields: Sequence[str]) -> bool:
    """Whether an address names all of these fields."""
    return set(fields) <= {part.partition("[")[0] for part in address.split(".")}


def _is_match(pattern: str, name: str) -> bool:
    """Whether a pattern matches the name of a leaf or one of its parents; brackets may hold wildcards: `graft[*]`."""
    escaped = pattern.replace("[", "[[]")
    return any(fnmatchcase(name, escaped + suffix) for suffix in ("", ".*", "[[]*"))


def _entry_patterns(address: str, name: str) -> str | None:
    """Content of the last bracket of an address if everything before it selects a leaf."""
    prefix, bracket, patterns = address.rpartition("[")
    is_leaf = bracket and patterns.endswith("]") and fnmatchcase(name, prefix.replace("[", "[[]"))
    return patterns[:-1] if is_leaf else None


def _matching_entries(patterns: str, array: PluginArray, address: str, setup: Setup) -> Iterable[int]:
    if array.kind.name.startswith("contact.") and array.rows:
        names = [row.name for row in array.rows]
        return _match_patterns(patterns, names, address, setup.sim.contact.candidates.match)
    if array.rows:
        return _matching_rows(patterns, array.rows, address)
    index_patterns = [part.strip() for part in patterns.split(",")]
    shape = "×".join(map(str, array.shape))
    if len(index_patterns) != len(array.shape):
        description = f"an array of shape {shape}" if array.shape else "a scalar"
        count = pluralize(len(array.shape), "index", "indices")
        raise ParameterError(f"{address!r}: {array.name} is {description} and takes {count}")
    indices = np.ndindex(array.shape)
    selected = [k for k, index in enumerate(indices) if all(map(fnmatchcase, map(str, index), index_patterns))]
    if not selected:
        raise ParameterError(f"{address!r}: the index is out of range for {array.name}, which has shape {shape}")
    return selected


def _entry_parameters(array: PluginArray, indices: Iterable[int]) -> list[ScalarParameter]:
    names, kind = array.entry_names, array.kind
    units = [row.unit(kind.unit) for row in array.rows] or [kind.unit] * len(names)
    return [ScalarParameter(names[k], units[k], kind, LeafEntry(array.path, k)) for k in indices]


def _not_found_error(address: str, head: str, arrays: Sequence[PluginArray], setup: Setup) -> ParameterError:
    contact = setup.sim.contact
    if head == "contact" and not contact.candidates.nc:
        return ParameterError(f"{address!r}: {NO_CONTACTS}")
    if head == "contact" and _is_unspecified(contact, field := address.partition("[")[0].partition(".")[2]):
        model = type(contact).__name__
        if field in SURFACE_PARAMETERS:
            alternative = f"free {SURFACE_PARAMETERS[field]}, or pass {field} to {model}"
            return ParameterError(f"{address!r}: this {model} takes its {field} from the surfaces", alternative)
        message = f"{address!r}: this {model} derives its {field} from the time step"
        return ParameterError(message, "pass a value to make it a parameter")
    return ParameterError(f"there is no parameter {address!r}", name_hint(address, [array.name for array in arrays]))


def _is_unspecified(component: Any, field: str) -> bool:
    """Whether a component has this field but no value was specified for it."""
    for name in field.split("."):
        component = getattr(component, name, "")
    return component is None
