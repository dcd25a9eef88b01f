"""Names of the rows of parameters in a setup, the position of each in its array, and its unit."""

from dataclasses import dataclass

from hybridsim.model.joints import JointType
from hybridsim.model.topology import Topology
from hybridsim.params.catalog import Rows
from hybridsim.params.setup import Setup

SCALAR = (JointType.REVOLUTE, JointType.PRISMATIC)
"""Joints with one axis and one coordinate."""


@dataclass(frozen=True)
class Row:
    """One row."""

    name: str
    index: int
    slides: bool = False
    """Of two units, does the second one count?"""

    def unit(self, units: str) -> str:
        """The one that counts."""
        turning, _, sliding = units.partition(", ")
        return sliding if sliding and self.slides else turning


def rows_of(kind: Rows, setup: Setup) -> tuple[Row, ...]:
    """All rows of a kind."""
    model, topology = setup.sim.model, setup.sim.model.topology
    joints = tuple(zip(topology.joint_names, topology.joint_types, topology.mimics, strict=True))
    geometry = model.geometry
    match kind:
        case Rows.NONE:
            return (Row("", 0),)
        case Rows.DOF:
            return _degrees_of_freedom(topology)
        case Rows.COORDINATE:
            # quaternions are left out: their numbers are not free of each other
            first = topology.tree_q_slices
            return tuple(
                Row(name, first[k][0], type is JointType.PRISMATIC)
                for k, (name, type, _) in enumerate(joints)
                if type in SCALAR
            )
        case Rows.AXIS:
            return tuple(Row(name, k) for k, (name, type, _) in enumerate(joints) if type in SCALAR)
        case Rows.MIMIC:
            return tuple(
                Row(name, k, type is JointType.PRISMATIC)
                for k, (name, type, master) in enumerate(joints)
                if master >= 0
            )
        case Rows.ACTUATOR:
            slides = [topology.joint_types[j] is JointType.PRISMATIC for j in model.actuator.joints]
            return tuple(map(Row, model.actuator.names, range(model.nu), slides))
        case _:
            names = {
                Rows.BODY: topology.body_names,
                Rows.JOINT: topology.joint_names,
                Rows.FRAME: topology.frame_names,
                Rows.SHAPE: tuple(info.name for info in geometry.infos),
                Rows.SHAPE_PAIR: tuple("|".join(pair) for pair in geometry.friction_pairs),
                Rows.CHANNEL: setup.sensors.names,
            }[kind]
            return tuple(Row(name, k) for k, name in enumerate(names))


def _degrees_of_freedom(topology: Topology) -> tuple[Row, ...]:
    slides = []
    for kind in topology.joint_types:
        slides += [kind is JointType.PRISMATIC or part.startswith("v") for part in kind.dof_names]
    return tuple(map(Row, topology.tree_dof_names, range(topology.mv), slides))
