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
from hybridsim.params.catalog import Floor, Parameter, Rows
from hybridsim.params.leaves import Path, dotted, path_of, spelled
from hybridsim.params.rows import Row, rows_of
from hybridsim.params.setup import Setup

FOUND_BY_SIMULATOR = ("inverse_mass", "joints")
"""Fields of contact that follow from the model and are no parameters."""
_GIVES_WAY = "a contact never pulls"
_ADDS_ENERGY = "a negative one would add energy"


def _known(unit: str, text: str, floor: Floor = Floor.ZERO, why: str = "", **more: Any) -> Parameter:
    return Parameter("", Rows.NONE, unit, text, floor=floor, why=why, **more)


_CONTACT = {
    "friction": _known("-", "Coulomb friction coefficient of a pair.", why=_ADDS_ENERGY),
    "restitution": _known("-", "Speed after an impact by that before.", why="more would add energy", most=1.0),
    "softness": _known("-", "By how much a contact gives way.", why=_GIVES_WAY),
    "cfm": _known("1/kg", "Constraint force mixing.", why=_GIVES_WAY, typical=0.01),
    "stiffness": _known("N/mⁿ", "Stiffness of a contact.", why=_GIVES_WAY, typical=1e4),
    "damping": _known("N·s/mⁿ⁺¹", "Damping of a contact.", why=_ADDS_ENERGY, typical=1e4),
    "exponent": _known("-", "Power n of the penetration.", why="a force that falls with penetration has no answer"),
    "law.transition": _known(
        "m/s", "Speed over which friction rises.", Floor.ABOVE_ZERO, "it is divided by", typical=0.01
    ),
    "law.static": _known("-", "Static friction by sliding friction.", why=_ADDS_ENERGY),
    "law.stribeck": _known("m/s", "Speed over which static friction decays.", Floor.ABOVE_ZERO, "it is divided by"),
    "law.exponent": _known("-", "Power with which static friction decays.", why="friction decays with speed"),
    "stabilisation.time": _known("s", "Time in which a penetration is undone.", why="it is a time", typical=0.01),
    "stabilisation.erp": _known("-", "Share of a penetration undone in a step.", why="it is a share", most=1.0),
    "stabilisation.alpha": _known("1/s", "Baumgarte's α.", why=_ADDS_ENERGY, typical=100.0),
    "stabilisation.beta": _known("1/s", "Baumgarte's β.", why=_GIVES_WAY, typical=100.0),
}
_STAGES = {
    "kp": _known("N·m/rad, N/m", "Stiffness of a servo.", why="a servo pulls towards its command"),
    "kd": _known("N·m·s/rad, N·s/m", "Damping of a servo.", why=_ADDS_ENERGY),
    "limit": _known("as the signal", "Largest signal.", why="it limits both directions"),
    "stall_force": _known("N·m, N", "Largest force, at standstill.", why="it limits both directions"),
    "no_load_speed": _known("rad/s, m/s", "Speed without load.", Floor.ABOVE_ZERO, "it is divided by"),
    "time_constant": _known("s", "Time constant of a lag.", why="it is a time", typical=0.01),
    "delay": _known("s", "Time by which a signal is late.", why="it is a time", typical=0.01),
    "stiffness": _known("N·m/rad, N/m", "Stiffness of a spring.", why="a spring pulls back", typical=100.0),
    "damping": _known("N·m·s/rad, N·s/m", "Damping of a spring.", why=_ADDS_ENERGY),
    "rotor_inertia": _known("kg·m², kg", "Inertia of a rotor.", Floor.ABOVE_ZERO, "it is divided by", typical=0.01),
}


@dataclass(frozen=True)
class OpenLeaf:
    """One array of such a part."""

    name: str
    path: Path
    shape: tuple[int, ...]
    parameter: Parameter
    rows: tuple[Row, ...] = ()
    """Its entries by name; without any they are called by their indices."""
    given_fields: tuple[str, ...] = ()
    """Of a network's numbers that are learned only if they are named: the fields to name."""

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of all of its numbers, row by row."""
        if self.rows:
            return tuple(f"{self.name}[{row.name}]" for row in self.rows)
        if not self.shape:
            return (self.name,)
        return tuple(f"{self.name}[{','.join(map(str, index))}]" for index in np.ndindex(self.shape))


def contact_leaves(setup: Setup) -> tuple[OpenLeaf, ...]:
    """Numbers of contact, most of them per pair of shapes."""
    contact = setup.sim.contact
    pairs = tuple(Row(pair.name, k) for k, pair in enumerate(contact.watched.pairs))
    found = []
    for path, leaf in _arrays(contact):
        if path[0] in FOUND_BY_SIMULATOR:
            continue
        field = spelled(path)[1:]
        parameter = _CONTACT.get(field, _known("", f"A {type(contact).__name__}'s {field}.", Floor.NONE))
        parameter = replace(parameter, name=f"contact.{field}")
        rows = pairs if leaf.shape == (len(pairs),) else ()
        found.append(OpenLeaf(parameter.name, (*dotted("sim.contact"), *path), leaf.shape, parameter, rows))
    return tuple(found)


def actuation_leaves(setup: Setup) -> tuple[OpenLeaf, ...]:
    """Numbers of the stages of actuation, called by the number of their stage."""
    found, motors = [], rows_of(Rows.ACTUATOR, setup)
    for k, stage in enumerate(setup.sim.actuation.stages):
        for path, leaf in _arrays(stage):
            field = spelled(path)[1:]
            parameter = _STAGES.get(field, _known("", f"A {type(stage).__name__}'s {field}.", Floor.NONE))
            if isinstance(stage, TransportDelay):
                longest = stage.samples * float(np.min(setup.sim.dt))
                parameter = replace(parameter, most=longest, why="the stage remembers no more steps")
            parameter = replace(parameter, name=f"actuation[{k}].{field}")
            rows = motors if leaf.shape == (len(motors),) else ()
            where = (*dotted("sim.actuation.stages"), k, *path)
            found.append(OpenLeaf(parameter.name, where, leaf.shape, parameter, rows))
    return tuple(found)


def graft_leaves(setup: Setup) -> tuple[OpenLeaf, ...]:
    """Numbers of the grafted networks, called by the number of their graft."""
    found = []
    for k, graft in enumerate(setup.sim.blueprint.grafts):
        for keys, path, leaf in _arrays_by_key(graft.net):
            given = given_fields(graft.net, keys)
            text = "Given to a network, and not learned." if given else "Weights of a network."
            name = f"graft[{k}]{spelled(path)}"
            parameter = Parameter(name, Rows.NONE, "", text, is_weight=True)
            where = (*dotted("sim.blueprint.grafts"), k, "net", *path)
            found.append(OpenLeaf(name, where, leaf.shape, parameter, given_fields=given))
    return tuple(found)


def _arrays(part: Any) -> Iterator[tuple[Path, Any]]:
    """Arrays of floats, and the way to each."""
    return ((path, leaf) for _, path, leaf in _arrays_by_key(part))


def _arrays_by_key(part: Any) -> Iterator[tuple[KeyPath, Path, Any]]:
    """Arrays of floats, and the way to each as JAX and as we spell it."""
    for keys, leaf in jax.tree_util.tree_flatten_with_path(part)[0]:
        path = path_of(keys)
        if path and hasattr(leaf, "dtype") and np.issubdtype(leaf.dtype, np.floating):
            yield keys, path, leaf
