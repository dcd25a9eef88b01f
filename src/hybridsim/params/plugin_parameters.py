"""Parameters of pluggable components: contact model, actuation stages, grafted networks.

Their classes may be user-defined, so their parameters are discovered: every floating-point array is a parameter
array, named by its attribute path. Its field declares unit and limits (`core/parameter_field.py`); without that there
are none.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.tree_util import KeyPath

from hybridsim.core.derived_table import derived_fields
from hybridsim.core.parameter_field import ParameterField, parameter_field
from hybridsim.networks.frozen_fields import frozen_fields
from hybridsim.params.catalogue import ParameterKind, RowKind
from hybridsim.params.leaves import Path, format_path, leaf_at, parse_path, path_from_keys
from hybridsim.params.rows import RowName, row_names
from hybridsim.params.setup import Setup


@dataclass(frozen=True)
class PluginArray:
    """A parameter array of a pluggable component."""

    name: str
    path: Path
    shape: tuple[int, ...]
    kind: ParameterKind
    rows: tuple[RowName, ...] = ()
    """Names of its entries; if empty, they are addressed by indices."""
    frozen_fields: tuple[str, ...] = ()
    """Frozen fields of a network on its path: free only if an address names all of them."""

    @property
    def entry_names(self) -> tuple[str, ...]:
        """Addresses of all entries, row-major."""
        if self.rows:
            return tuple(f"{self.name}[{row.name}]" for row in self.rows)
        if not self.shape:
            return (self.name,)
        return tuple(f"{self.name}[{','.join(map(str, index))}]" for index in np.ndindex(self.shape))


def contact_arrays(setup: Setup) -> tuple[PluginArray, ...]:
    """Parameter arrays of the contact model, most of them with one entry per candidate pair."""
    contact = setup.sim.contact
    pairs = tuple(RowName(pair.name, k) for k, pair in enumerate(contact.candidates.pairs))
    arrays, derived = [], derived_fields(type(contact))
    for path, leaf in _float_arrays(contact):
        if path[0] in derived:
            continue
        field = format_path(path)[1:]
        kind = _kind(f"contact.{field}", contact, path)
        rows = pairs if leaf.shape == (len(pairs),) else ()
        arrays.append(PluginArray(kind.name, (*parse_path("sim.contact"), *path), leaf.shape, kind, rows))
    return tuple(arrays)


def actuation_arrays(setup: Setup) -> tuple[PluginArray, ...]:
    """Parameter arrays of the actuation stages, addressed by stage index."""
    arrays, actuators = [], row_names(RowKind.ACTUATOR, setup)
    for k, stage in enumerate(setup.sim.actuation.stages):
        limits = stage.upper_limits(setup.sim.dt)
        for path, leaf in _float_arrays(stage):
            field = format_path(path)[1:]
            kind = _kind(f"actuation[{k}].{field}", stage, path)
            if field in limits:
                kind = replace(kind, upper_limit=limits[field][0], reason=limits[field][1])
            rows = actuators if leaf.shape == (len(actuators),) else ()
            array_path = (*parse_path("sim.actuation.stages"), k, *path)
            arrays.append(PluginArray(kind.name, array_path, leaf.shape, kind, rows))
    return tuple(arrays)


def graft_arrays(setup: Setup) -> tuple[PluginArray, ...]:
    """Parameter arrays of the grafted networks, addressed by graft index."""
    arrays = []
    for k, graft in enumerate(setup.sim.blueprint.grafts):
        for keys, path, leaf in _float_arrays_with_keys(graft.net):
            frozen = frozen_fields(graft.net, keys)
            description = "Frozen field of a network." if frozen else "Weights of a network."
            name = f"graft[{k}]{format_path(path)}"
            kind = ParameterKind(name, RowKind.NONE, "", description, is_weight=True)
            array_path = (*parse_path("sim.blueprint.grafts"), k, "net", *path)
            arrays.append(PluginArray(name, array_path, leaf.shape, kind, frozen_fields=frozen))
    return tuple(arrays)


def _kind(name: str, component: Any, path: Path) -> ParameterKind:
    """Kind of the parameter at a path in a component, as its field declares it."""
    *owner_path, field = path
    owner = type(leaf_at(component, tuple(owner_path)))
    declared = parameter_field(owner, field) if isinstance(field, str) else None
    info = declared or ParameterField(description=f"{format_path(path)[1:]} of {type(component).__name__}.")
    return ParameterKind(name, RowKind.NONE, **vars(info))


def _float_arrays(component: Any) -> Iterator[tuple[Path, Any]]:
    """Floating-point arrays with their paths."""
    return ((path, leaf) for _, path, leaf in _float_arrays_with_keys(component))


def _float_arrays_with_keys(component: Any) -> Iterator[tuple[KeyPath, Path, Any]]:
    """Floating-point arrays with their JAX key paths and `Path`s."""
    for keys, leaf in jax.tree_util.tree_flatten_with_path(component)[0]:
        path = path_from_keys(keys)
        if path and hasattr(leaf, "dtype") and np.issubdtype(leaf.dtype, np.floating):
            yield keys, path, leaf
