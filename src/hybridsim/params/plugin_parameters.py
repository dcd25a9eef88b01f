"""Parameters of pluggable components: contact model, actuation stages, grafted networks.

Their classes may be user-defined, so their parameters are discovered: every floating-point array is a parameter
array, named by its attribute path. The tables below give units and bounds; a parameter that is not listed has none.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.tree_util import KeyPath

from hybridsim.core.derived_table import derived_fields
from hybridsim.networks.frozen_fields import frozen_fields
from hybridsim.params.catalogue import ParameterKind, RowKind, Sign
from hybridsim.params.leaves import Path, format_path, parse_path, path_from_keys
from hybridsim.params.rows import RowName, row_names
from hybridsim.params.setup import Setup

_NO_ADHESION = "a negative value would make the contact adhesive"
_ADDS_ENERGY = "a negative value would add energy"
_NOT_RESTORING = "a negative value would make the equilibrium unstable"
_SYMMETRIC = "it is a symmetric limit"
_DIVIDES = "it is a divisor"
_TIME = "it is a time"


def _kind(
    unit: str, description: str, sign: Sign = Sign.NONNEGATIVE, reason: str = "", **options: Any
) -> ParameterKind:
    return ParameterKind("", RowKind.NONE, unit, description, sign=sign, reason=reason, **options)


CONTACT_KINDS = {
    "friction": _kind("-", "Coulomb friction coefficient of a candidate pair.", reason=_ADDS_ENERGY),
    "restitution": _kind(
        "-",
        "Coefficient of restitution.",
        reason="a coefficient of restitution is between zero and one",
        upper_limit=1.0,
    ),
    "softness": _kind(
        "-",
        "Contact softness, relative to the apparent inverse mass.",
        reason="a negative softness makes the contact problem ill-posed",
    ),
    "cfm": _kind(
        "1/kg",
        "Constraint force mixing.",
        reason="a negative value makes the contact problem ill-posed",
        typical=0.01,
    ),
    "stiffness": _kind("N/mⁿ", "Contact stiffness.", reason=_NO_ADHESION, typical=1e4),
    "damping": _kind("N·s/mⁿ⁺¹", "Contact damping.", reason=_ADDS_ENERGY, typical=1e4),
    "exponent": _kind(
        "-", "Exponent n of the penetration.", reason="a force that decreases with penetration is unstable"
    ),
    "law.transition_velocity": _kind(
        "m/s", "Sliding speed over which friction builds up.", Sign.POSITIVE, _DIVIDES, typical=0.01
    ),
    "law.static_ratio": _kind("-", "Ratio of static to sliding friction.", reason=_ADDS_ENERGY),
    "law.stribeck_velocity": _kind("m/s", "Stribeck velocity.", Sign.POSITIVE, _DIVIDES),
    "law.exponent": _kind("-", "Exponent of the Stribeck curve.", reason="static friction decays with speed"),
    "stabilization.recovery_time": _kind(
        "s", "Time constant of the correction of penetration.", reason=_TIME, typical=0.01
    ),
    "stabilization.erp": _kind(
        "-", "Fraction of the penetration corrected per step.", reason="it is a fraction", upper_limit=1.0
    ),
    "stabilization.alpha": _kind("1/s", "Baumgarte's α.", reason=_ADDS_ENERGY, typical=100.0),
    "stabilization.beta": _kind("1/s", "Baumgarte's β.", reason=_NO_ADHESION, typical=100.0),
}
"""Parameters of contact models, their friction laws and stabilizations, by attribute path."""
STAGE_KINDS = {
    "kp": _kind("N·m/rad, N/m", "Proportional gain of a servo.", reason=_NOT_RESTORING),
    "kd": _kind("N·m·s/rad, N·s/m", "Derivative gain of a servo.", reason=_ADDS_ENERGY),
    "limit": _kind("signal unit", "Saturation limit.", reason=_SYMMETRIC),
    "stall_force": _kind("N·m, N", "Stall force: largest force at standstill.", reason=_SYMMETRIC),
    "no_load_speed": _kind("rad/s, m/s", "No-load speed.", Sign.POSITIVE, _DIVIDES),
    "time_constant": _kind("s", "Time constant of a lag.", reason=_TIME, typical=0.01),
    "delay": _kind("s", "Transport delay.", reason=_TIME, typical=0.01),
    "stiffness": _kind("N·m/rad, N/m", "Spring stiffness.", reason=_NOT_RESTORING, typical=100.0),
    "damping": _kind("N·m·s/rad, N·s/m", "Spring damping.", reason=_ADDS_ENERGY),
    "rotor_inertia": _kind("kg·m², kg", "Rotor inertia.", Sign.POSITIVE, _DIVIDES, typical=0.01),
}
"""Parameters of actuation stages by field."""


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
        kind = CONTACT_KINDS.get(field, _kind("", f"{field} of {type(contact).__name__}.", Sign.NONE))
        kind = replace(kind, name=f"contact.{field}")
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
            kind = STAGE_KINDS.get(field, _kind("", f"{field} of {type(stage).__name__}.", Sign.NONE))
            if field in limits:
                kind = replace(kind, upper_limit=limits[field][0], reason=limits[field][1])
            kind = replace(kind, name=f"actuation[{k}].{field}")
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


def _float_arrays(component: Any) -> Iterator[tuple[Path, Any]]:
    """Floating-point arrays with their paths."""
    return ((path, leaf) for _, path, leaf in _float_arrays_with_keys(component))


def _float_arrays_with_keys(component: Any) -> Iterator[tuple[KeyPath, Path, Any]]:
    """Floating-point arrays with their JAX key paths and `Path`s."""
    for keys, leaf in jax.tree_util.tree_flatten_with_path(component)[0]:
        path = path_from_keys(keys)
        if path and hasattr(leaf, "dtype") and np.issubdtype(leaf.dtype, np.floating):
            yield keys, path, leaf
