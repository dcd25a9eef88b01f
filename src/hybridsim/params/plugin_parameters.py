"""Parameters of what users plug into a simulator: contact, stages of actuation, grafted networks.

Their classes may be the user's own, so their arrays are found by looking: every array of floats is a parameter, called
by the attributes that lead to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.tree_util import KeyPath

from hybridsim.dynamics.actuation import TransportDelay
from hybridsim.networks.frozen_fields import given_fields
from hybridsim.params.catalog import Parameter, RowAxis, Sign
from hybridsim.params.leaves import Path, format_path, parse_path, path_from_keys
from hybridsim.params.rows import RowName, row_names
from hybridsim.params.setup import Setup

DERIVED_FIELDS = ("inverse_mass", "joints")
"""Fields of contact that follow from the model and are no parameters."""
_NO_ADHESION = "a contact never pulls"
_ADDS_ENERGY = "a negative one would add energy"


def _parameter(unit: str, text: str, floor: Sign = Sign.NONNEGATIVE, reason: str = "", **more: Any) -> Parameter:
    return Parameter("", RowAxis.NONE, unit, text, sign=floor, reason=reason, **more)


_CONTACT = {
    "friction": _parameter("-", "Coulomb friction coefficient of a pair.", reason=_ADDS_ENERGY),
    "restitution": _parameter(
        "-", "Speed after an impact by that before.", reason="more would add energy", upper_limit=1.0
    ),
    "softness": _parameter("-", "By how much a contact gives way.", reason=_NO_ADHESION),
    "cfm": _parameter("1/kg", "Constraint force mixing.", reason=_NO_ADHESION, typical=0.01),
    "stiffness": _parameter("N/mⁿ", "Stiffness of a contact.", reason=_NO_ADHESION, typical=1e4),
    "damping": _parameter("N·s/mⁿ⁺¹", "Damping of a contact.", reason=_ADDS_ENERGY, typical=1e4),
    "exponent": _parameter(
        "-", "Power n of the penetration.", reason="a force that falls with penetration has no answer"
    ),
    "law.transition": _parameter(
        "m/s", "Speed over which friction rises.", Sign.POSITIVE, "it is divided by", typical=0.01
    ),
    "law.static": _parameter("-", "Static friction by sliding friction.", reason=_ADDS_ENERGY),
    "law.stribeck": _parameter("m/s", "Speed over which static friction decays.", Sign.POSITIVE, "it is divided by"),
    "law.exponent": _parameter("-", "Power with which static friction decays.", reason="friction decays with speed"),
    "stabilisation.time": _parameter(
        "s", "Time in which a penetration is undone.", reason="it is a time", typical=0.01
    ),
    "stabilisation.erp": _parameter(
        "-", "Share of a penetration undone in a step.", reason="it is a share", upper_limit=1.0
    ),
    "stabilisation.alpha": _parameter("1/s", "Baumgarte's α.", reason=_ADDS_ENERGY, typical=100.0),
    "stabilisation.beta": _parameter("1/s", "Baumgarte's β.", reason=_NO_ADHESION, typical=100.0),
}
_STAGES = {
    "kp": _parameter("N·m/rad, N/m", "Stiffness of a servo.", reason="a servo pulls towards its command"),
    "kd": _parameter("N·m·s/rad, N·s/m", "Damping of a servo.", reason=_ADDS_ENERGY),
    "limit": _parameter("as the signal", "Largest signal.", reason="it limits both directions"),
    "stall_force": _parameter("N·m, N", "Largest force, at standstill.", reason="it limits both directions"),
    "no_load_speed": _parameter("rad/s, m/s", "Speed without load.", Sign.POSITIVE, "it is divided by"),
    "time_constant": _parameter("s", "Time constant of a lag.", reason="it is a time", typical=0.01),
    "delay": _parameter("s", "Time by which a signal is late.", reason="it is a time", typical=0.01),
    "stiffness": _parameter("N·m/rad, N/m", "Stiffness of a spring.", reason="a spring pulls back", typical=100.0),
    "damping": _parameter("N·m·s/rad, N·s/m", "Damping of a spring.", reason=_ADDS_ENERGY),
    "rotor_inertia": _parameter("kg·m², kg", "Inertia of a rotor.", Sign.POSITIVE, "it is divided by", typical=0.01),
}


@dataclass(frozen=True)
class PluginArray:
    """One array of such a part."""

    name: str
    path: Path
    shape: tuple[int, ...]
    parameter: Parameter
    rows: tuple[RowName, ...] = ()
    """Its entries by name; without any they are called by their indices."""
    frozen_fields: tuple[str, ...] = ()
    """Of a network's numbers that are learned only if they are named: the fields to name."""

    @property
    def entry_names(self) -> tuple[str, ...]:
        """Names of all of its numbers, row by row."""
        if self.rows:
            return tuple(f"{self.name}[{row.name}]" for row in self.rows)
        if not self.shape:
            return (self.name,)
        return tuple(f"{self.name}[{','.join(map(str, index))}]" for index in np.ndindex(self.shape))


def contact_arrays(setup: Setup) -> tuple[PluginArray, ...]:
    """Numbers of contact, most of them per pair of shapes."""
    contact = setup.sim.contact
    pairs = tuple(RowName(pair.name, k) for k, pair in enumerate(contact.candidates.pairs))
    found = []
    for path, leaf in _float_arrays(contact):
        if path[0] in DERIVED_FIELDS:
            continue
        field = format_path(path)[1:]
        parameter = _CONTACT.get(field, _parameter("", f"A {type(contact).__name__}'s {field}.", Sign.NONE))
        parameter = replace(parameter, name=f"contact.{field}")
        rows = pairs if leaf.shape == (len(pairs),) else ()
        found.append(PluginArray(parameter.name, (*parse_path("sim.contact"), *path), leaf.shape, parameter, rows))
    return tuple(found)


def actuation_arrays(setup: Setup) -> tuple[PluginArray, ...]:
    """Numbers of the stages of actuation, called by the number of their stage."""
    found, motors = [], row_names(RowAxis.ACTUATOR, setup)
    for k, stage in enumerate(setup.sim.actuation.stages):
        for path, leaf in _float_arrays(stage):
            field = format_path(path)[1:]
            parameter = _STAGES.get(field, _parameter("", f"A {type(stage).__name__}'s {field}.", Sign.NONE))
            if isinstance(stage, TransportDelay):
                longest = stage.samples * float(np.min(setup.sim.dt))
                parameter = replace(parameter, upper_limit=longest, reason="the stage remembers no more steps")
            parameter = replace(parameter, name=f"actuation[{k}].{field}")
            rows = motors if leaf.shape == (len(motors),) else ()
            where = (*parse_path("sim.actuation.stages"), k, *path)
            found.append(PluginArray(parameter.name, where, leaf.shape, parameter, rows))
    return tuple(found)


def graft_arrays(setup: Setup) -> tuple[PluginArray, ...]:
    """Numbers of the grafted networks, called by the number of their graft."""
    found = []
    for k, graft in enumerate(setup.sim.blueprint.grafts):
        for keys, path, leaf in _float_arrays_with_keys(graft.net):
            given = given_fields(graft.net, keys)
            text = "Given to a network, and not learned." if given else "Weights of a network."
            name = f"graft[{k}]{format_path(path)}"
            parameter = Parameter(name, RowAxis.NONE, "", text, is_weight=True)
            where = (*parse_path("sim.blueprint.grafts"), k, "net", *path)
            found.append(PluginArray(name, where, leaf.shape, parameter, frozen_fields=given))
    return tuple(found)


def _float_arrays(part: Any) -> Iterator[tuple[Path, Any]]:
    """Arrays of floats, and the way to each."""
    return ((path, leaf) for _, path, leaf in _float_arrays_with_keys(part))


def _float_arrays_with_keys(part: Any) -> Iterator[tuple[KeyPath, Path, Any]]:
    """Arrays of floats, and the way to each as JAX and as we spell it."""
    for keys, leaf in jax.tree_util.tree_flatten_with_path(part)[0]:
        path = path_from_keys(keys)
        if path and hasattr(leaf, "dtype") and np.issubdtype(leaf.dtype, np.floating):
            yield keys, path, leaf
