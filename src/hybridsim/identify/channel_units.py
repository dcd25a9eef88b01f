"""Units of channels and commands: what they measure in the simulation, in SI units or pixels."""

from collections.abc import Iterator, Mapping

from hybridsim.core.errors import Problem
from hybridsim.core.messages import name_list
from hybridsim.data.channel import ColumnSettings
from hybridsim.data.units import UNITS
from hybridsim.identify.command_actuators import is_torque_actuator
from hybridsim.params.setup import Setup
from hybridsim.sim.sensors import FRAME_PREFIX, Sensors, SensorTerm
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.catalogue import CATALOGUE, Axis

_SI_UNITS = {
    "angle": "rad",
    "angular velocity": "rad/s",
    "angular acceleration": "rad/s²",
    "length": "m",
    "velocity": "m/s",
    "acceleration": "m/s²",
    "time": "s",
    "force": "N",
    "torque": "N·m",
    "current": "A",
    "voltage": "V",
    "pixels": "px",
}
_QUANTITIES = {unit: quantity for quantity, unit in _SI_UNITS.items()}
_ELECTRICAL = ("current", "voltage", "pixels")
"""Quantities of units that are related to mechanical ones by a gain, which may be free."""
_CATALOGUE = {quantity.name: quantity for quantity in CATALOGUE}


def channel_units(setup: Setup, column_units: Mapping[str, str]) -> dict[str, str]:
    """Units of all channels; empty where unknown.

    Args:
        setup: setup with the sensors of the channels.
        column_units: units of the columns in the files, by channel.
    """
    units = {}
    for k, name in enumerate(setup.sensors.names):
        unit = UNITS.get(column_units.get(name, ""), UNITS[""])
        measured = _measured_quantity(setup.sim, setup.sensors, k)
        units[name] = _SI_UNITS.get(unit.quantity, "") or _SI_UNITS.get(measured, "")
    return units


def channel_unit_problem(sim: Simulator, sensors: Sensors, index: int, channel: ColumnSettings) -> Problem | None:
    """Problem of a channel whose unit is not one of the quantity that it measures; None if there is none."""
    return _problem(channel, _measured_quantity(sim, sensors, index), f"{sensors.addresses[index]} is")


def command_unit_problem(sim: Simulator, actuator: str, command: ColumnSettings) -> Problem | None:
    """Problem of a command whose unit is not one of the torque or force that its actuator takes, if there is one."""
    actuators = sim.model.actuator
    index = actuators.names.index(actuator)
    if not is_torque_actuator(actuators, index) or not sim.actuation.is_default:
        return None
    joint = sim.model.topology.joint_types[actuators.joints[index]].joint
    return _problem(command, "force" if joint.translational_dofs[0] else "torque", f"the command of {actuator!r} is")


def _problem(column: ColumnSettings, expected: str, subject: str) -> Problem | None:
    given = UNITS[column.unit].quantity
    if not expected or not given or given in (expected, *_ELECTRICAL) or column.scale != 1.0:
        return None
    units = name_list(unit for unit, entry in UNITS.items() if entry.quantity == expected)
    article = "an" if expected[0] in "aeiou" else "a"
    return Problem(
        f"unit {column.unit!r} of {column.series_name!r} is a unit of {given}, but {subject} {article} {expected}",
        f"choose one of {units}; if a factor relates them, specify it as scale",
        code="data.unit",
        element=column.series_name,
    )


def _measured_quantity(sim: Simulator, sensors: Sensors, channel: int) -> str:
    """What a channel measures, such as `angle`; empty if it is unknown, or if a gain converts it."""
    if channel >= len(sensors.terms) or float(sensors.gain[channel]) != 1.0:
        return ""
    quantities = {_quantity(sim, term) for term in sensors.terms[channel]}
    return quantities.pop() if len(quantities) == 1 else ""


def _quantity(sim: Simulator, term: SensorTerm) -> str:
    if term.quantity == FRAME_PREFIX:
        return "length"
    entry = _CATALOGUE.get(term.quantity)
    if entry is None:
        return ""
    units = entry.unit.split(", ")
    if entry.axis is Axis.COORDINATE:
        unit = dict(_coordinate_units(sim)).get(term.entry, "")
    elif entry.axis is Axis.DOF and len(units) == 2:
        unit = units[dict(_translational_dofs(sim)).get(term.entry, False)]
    else:
        # of two units, the first one belongs to the first three components
        width = max(len(entry.components), 1)
        unit = units[0] if len(units) == 1 else units[term.entry % width >= 3] if width == 6 else ""
    return _QUANTITIES.get(unit, "")


def _coordinate_units(sim: Simulator) -> Iterator[tuple[int, str]]:
    topology = sim.model.topology
    for type_, (first, _), master in zip(topology.joint_types, topology.q_slices, topology.masters, strict=True):
        if master < 0:
            yield from enumerate(type_.joint.coordinates.values(), first)


def _translational_dofs(sim: Simulator) -> Iterator[tuple[int, bool]]:
    topology = sim.model.topology
    for type_, (first, _), master in zip(topology.joint_types, topology.v_slices, topology.masters, strict=True):
        if master < 0:
            yield from enumerate(type_.joint.translational_dofs, first)
