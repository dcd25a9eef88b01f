"""Units of channels in a fit: SI units or pixels."""

from hybridsim.data.units import UNITS
from hybridsim.params.setup import Setup
from hybridsim.sim.sensors import FRAME_PREFIX

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


def channel_units(setup: Setup, column_units: dict[str, str]) -> dict[str, str]:
    """Units of all channels; empty where unknown.

    Args:
        setup: setup with the sensors of the channels.
        column_units: units of the columns in the files, by channel.
    """
    units = {}
    for k, name in enumerate(setup.sensors.names):
        unit = UNITS.get(column_units.get(name, ""), UNITS[""])
        units[name] = _SI_UNITS.get(unit.quantity, "") or _measured_unit(setup, k)
    return units


def _measured_unit(setup: Setup, channel: int) -> str:
    """Unit of the quantity that a channel measures, if its gain is one."""
    sensors, topology = setup.sensors, setup.sim.model.topology
    if channel >= len(sensors.terms) or float(sensors.gain[channel]) != 1.0:
        return ""
    term = sensors.terms[channel][0]
    if term.quantity == FRAME_PREFIX:
        return "m"
    slices = {"joint.q": topology.q_slices, "joint.qd": topology.v_slices}.get(term.quantity)
    if slices is None:
        return ""
    joint = next(k for k, (first, last) in enumerate(slices) if first <= term.entry < last)
    joint_type = topology.joint_types[joint].joint
    units = joint_type.coordinates if term.quantity == "joint.q" else joint_type.dofs
    return list(units.values())[term.entry - slices[joint][0]]
