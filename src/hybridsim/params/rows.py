"""Names of the rows of parameter arrays in a setup, with the index and the unit of each row."""

from dataclasses import dataclass

from hybridsim.model.joints import JointType
from hybridsim.model.topology import Topology
from hybridsim.params.catalog import RowAxis
from hybridsim.params.setup import Setup

SINGLE_AXIS_JOINTS = (JointType.REVOLUTE, JointType.PRISMATIC)
"""Joints with one axis and one coordinate."""


@dataclass(frozen=True)
class RowName:
    """Name and index of one row."""

    name: str
    index: int
    is_translational: bool = False
    """Whether the second of two units (rotation, translation) applies."""

    def unit(self, units: str) -> str:
        """The unit that applies to this row."""
        rotation, _, translation = units.partition(", ")
        return translation if translation and self.is_translational else rotation


def row_names(axis: RowAxis, setup: Setup) -> tuple[RowName, ...]:
    """All rows along an axis."""
    model, topology = setup.sim.model, setup.sim.model.topology
    joints = tuple(zip(topology.joint_names, topology.joint_types, topology.mimics, strict=True))
    geometry = model.geometry
    match axis:
        case RowAxis.NONE:
            return (RowName("", 0),)
        case RowAxis.DOF:
            return _dof_rows(topology)
        case RowAxis.COORDINATE:
            # quaternions are omitted: their entries are not independent
            slices = topology.tree_q_slices
            return tuple(
                RowName(name, slices[k][0], type is JointType.PRISMATIC)
                for k, (name, type, _) in enumerate(joints)
                if type in SINGLE_AXIS_JOINTS
            )
        case RowAxis.SINGLE_AXIS_JOINT:
            return tuple(RowName(name, k) for k, (name, type, _) in enumerate(joints) if type in SINGLE_AXIS_JOINTS)
        case RowAxis.MIMIC:
            return tuple(
                RowName(name, k, type is JointType.PRISMATIC)
                for k, (name, type, master) in enumerate(joints)
                if master >= 0
            )
        case RowAxis.ACTUATOR:
            is_translational = [topology.joint_types[j] is JointType.PRISMATIC for j in model.actuator.joints]
            return tuple(map(RowName, model.actuator.names, range(model.nu), is_translational))
        case _:
            names = {
                RowAxis.BODY: topology.body_names,
                RowAxis.JOINT: topology.joint_names,
                RowAxis.FRAME: topology.frame_names,
                RowAxis.SHAPE: tuple(info.name for info in geometry.infos),
                RowAxis.SHAPE_PAIR: tuple("|".join(pair) for pair in geometry.friction_pairs),
                RowAxis.CHANNEL: setup.sensors.names,
            }[axis]
            return tuple(RowName(name, k) for k, name in enumerate(names))


def _dof_rows(topology: Topology) -> tuple[RowName, ...]:
    is_translational = []
    for type in topology.joint_types:
        is_translational += [type is JointType.PRISMATIC or name.startswith("v") for name in type.dof_names]
    return tuple(map(RowName, topology.tree_dof_names, range(topology.mv), is_translational))
