"""Units of channels as the fit has them: SI units, pixels, or what the file counts in."""

from hybridsim.data.units import UNITS
from hybridsim.model.joints import JointType
from hybridsim.params.setup import Setup
from hybridsim.sim.sensors import FRAME_PREFIX

_OF_QUANTITY = {
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


def channel_units(setup: Setup, told: dict[str, str]) -> dict[str, str]:
    """Unit of every channel, as far as it is known.

    Args:
        setup: whose sensors they are.
        told: units of the columns in the files, by the name of the channel.
    """
    found = {}
    for k, name in enumerate(setup.sensors.names):
        unit = UNITS.get(told.get(name, ""), UNITS[""])
        found[name] = _OF_QUANTITY.get(unit.quantity, "") or _measured_unit(setup, k)
    return found


def _measured_unit(setup: Setup, channel: int) -> str:
    """Unit of what a channel measures, if it measures that as it is."""
    sensors, topology = setup.sensors, setup.sim.model.topology
    if channel >= len(sensors.terms) or float(sensors.gain[channel]) != 1.0:
        return ""
    place = sensors.terms[channel][0]
    if place.quantity == FRAME_PREFIX:
        return "m"
    slices = {"joint.q": topology.q_slices, "joint.qd": topology.v_slices}.get(place.quantity)
    if slices is None:
        return ""
    joint = next(k for k, (first, last) in enumerate(slices) if first <= place.entry < last)
    unit = {JointType.REVOLUTE: "rad", JointType.PRISMATIC: "m"}.get(topology.joint_types[joint], "")
    return f"{unit}/s" if unit and place.quantity == "joint.qd" else unit
