"""Names of the rows of parameter arrays in a setup, with the index and the unit of each row."""

from dataclasses import dataclass

from hybridsim.model.topology import Topology
from hybridsim.params.catalogue import RowKind
from hybridsim.params.setup import Setup


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


def row_names(kind: RowKind, setup: Setup) -> tuple[RowName, ...]:
    """All rows of a kind."""
    model, topology = setup.sim.model, setup.sim.model.topology
    joints = [(name, type.joint) for name, type in zip(topology.joint_names, topology.joint_types, strict=True)]
    geometry = model.geometry
    match kind:
        case RowKind.NONE:
            return (RowName("", 0),)
        case RowKind.DOF:
            return _dof_rows(topology)
        case RowKind.COORDINATE:
            # quaternions are omitted: their entries are not independent
            slices = topology.tree_q_slices
            return tuple(
                RowName(name, slices[k][0], *joint.translational_dofs)
                for k, (name, joint) in enumerate(joints)
                if joint.is_single_axis
            )
        case RowKind.SINGLE_AXIS_JOINT:
            return tuple(RowName(name, k) for k, (name, joint) in enumerate(joints) if joint.is_single_axis)
        case RowKind.MIMIC:
            return tuple(
                RowName(name, k, *joint.translational_dofs)
                for k, (name, joint) in enumerate(joints)
                if topology.masters[k] >= 0
            )
        case RowKind.ACTUATOR:
            is_translational = [topology.joint_types[j].joint.translational_dofs[0] for j in model.actuator.joints]
            return tuple(map(RowName, model.actuator.names, range(model.nu), is_translational))
        case _:
            names = {
                RowKind.BODY: topology.body_names,
                RowKind.JOINT: topology.joint_names,
                RowKind.FRAME: topology.frame_names,
                RowKind.SHAPE: tuple(info.name for info in geometry.infos),
                RowKind.SHAPE_PAIR: tuple("|".join(pair) for pair in geometry.friction_pairs),
                RowKind.CHANNEL: setup.sensors.names,
            }[kind]
            return tuple(RowName(name, k) for k, name in enumerate(names))


def _dof_rows(topology: Topology) -> tuple[RowName, ...]:
    is_translational = [flag for type in topology.joint_types for flag in type.joint.translational_dofs]
    return tuple(map(RowName, topology.tree_dof_names, range(topology.tree_nv), is_translational))
