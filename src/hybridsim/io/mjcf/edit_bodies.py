"""Writing changed placements of bodies into an MJCF file."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.io.mjcf.edit_document import ORIENTATIONS, Baseline, Pen
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.mjcf.read_poses import joint_motion, matrix_of
from hybridsim.io.mjcf.write_elements import quaternion
from hybridsim.io.model_rows import pose_of
from hybridsim.model.joints import JointType
from hybridsim.model.model import Model
from hybridsim.model.specs import BodySpec, JointKind, JointSpec, identity_pose
from hybridsim.spatial.transform import Pose

_MOTIONS = {JointType.REVOLUTE: JointKind.REVOLUTE, JointType.PRISMATIC: JointKind.PRISMATIC}


@dataclass
class PlacementWriter:
    """Compares the placements of the bodies of two models and writes the difference."""

    pen: Pen
    before: Baseline
    after: Model

    def write(self) -> None:
        """Write all changes."""
        for i, body in enumerate(self.before.spec.bodies):
            self._write_placement(i, body)

    def _write_placement(self, i: int, body: BodySpec) -> None:
        """Position and orientation of a body, from the placement of its first joint."""
        pen, owner = self.pen, self.pen.imported.owners[body.name]
        is_first = pen.imported.owners.get(body.parent) != owner
        if not is_first or body.joint.kind is JointKind.FREE:
            return
        old, new = self._drawn_pose(self.before.model, i), self._drawn_pose(self.after, i)
        turned = (old.R != new.R).any()
        if not turned and not (old.p != new.p).any():
            return
        node = pen.place("body", owner, "placement")
        if node is None:
            return
        X_FC = self._file_frame(node, body, owner).inverse()
        old, new = X_FC @ old, X_FC @ new
        element = node.element
        if (old.p != new.p).any():
            pen.set(element, "pos", np.asarray(new.p))
            pen.note(element, owner, "pos [m]", old.p, new.p)
        if turned:
            quats = [quaternion(X.R) for X in (old, new)]
            pen.remove(element, ORIENTATIONS[1:])
            pen.set(element, "quat", quats[1])
            pen.note(element, owner, "quat", *quats)

    def _drawn_pose(self, model: Model, i: int) -> Pose:
        """Pose of the body in its carrier where the file draws it: with the joint at its `ref`."""
        joints: Any = model.joint
        placement = pose_of(joints.placement, i)
        kind = _MOTIONS.get(model.topology.joint_types[i])
        if kind is None:
            return placement
        m = self.pen.imported.compiled
        index = self.pen.imported.ids["joint", model.topology.joint_names[i]]
        joint = JointSpec("", kind, joints.axis[i], anchor=joints.anchor[i])
        return placement @ joint_motion(joint, float(m.qpos0[m.jnt_qposadr[index]]))

    def _file_frame(self, node: Node, body: BodySpec, owner: str) -> Pose:
        """Pose X_CF, in the carrier, of the frame in which the file places the body."""
        imported = self.pen.imported
        first = next(b for b in imported.spec.bodies if imported.owners[b.name] == owner)
        _, X_CP = self.before.carriers.get(first.parent, (body.parent, identity_pose()))
        if node.parent is None or node.parent.tag != "frame":
            return X_CP
        m, index = imported.compiled, imported.ids["body", owner]
        written = next(b for b in imported.mjspec.bodies if b.id == index)
        quat = written.quat
        if any(name in node.element.attributes for name in ORIENTATIONS[1:]):
            compiler = imported.mjspec.compiler
            quat = imported.mjspec.resolve_orientation(
                degree=compiler.degree, sequence=compiler.eulerseq, orientation=written.alt
            )
        X_PB = Pose(matrix_of(m.body_quat[index]), m.body_pos[index].copy())
        X_FB = Pose(matrix_of(quat), np.array(written.pos))
        return X_CP @ X_PB @ X_FB.inverse()
