"""Export of changed body placements into an MJCF file."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.io.mjcf.edit_document import ORIENTATIONS, Baseline, MjcfEditor
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.mjcf.read_poses import one_dof_joint_transform, rotation_matrix
from hybridsim.io.mjcf.write_elements import quaternion
from hybridsim.io.model_rows import pose_of
from hybridsim.model.model import Model
from hybridsim.model.specs import BodySpec, JointKind, JointSpec, identity_pose
from hybridsim.spatial.transform import Pose


@dataclass
class MjcfPlacementEditor:
    """Edits the placements of the bodies in which two models differ."""

    editor: MjcfEditor
    before: Baseline
    after: Model

    def edit(self) -> None:
        """Record all edits."""
        for i, body in enumerate(self.before.spec.bodies):
            self._edit_placement(i, body)

    def _edit_placement(self, i: int, body: BodySpec) -> None:
        """Position and orientation of a body, from the placement of its first joint."""
        editor, owner = self.editor, self.editor.imported.owners[body.name]
        is_first = editor.imported.owners.get(body.parent) != owner
        if not is_first or body.joint.kind is JointKind.FREE:
            return
        old, new = self._reference_pose(self.before.model, i), self._reference_pose(self.after, i)
        rotated = (old.R != new.R).any()
        if not rotated and not (old.p != new.p).any():
            return
        node = editor.editable_node("body", owner, "placement")
        if node is None:
            return
        X_FC = self._file_frame(node, body, owner).inverse()
        old, new = X_FC @ old, X_FC @ new
        element = node.element
        if (old.p != new.p).any():
            editor.set_numbers(element, "pos", np.asarray(new.p))
            editor.record_change(element, owner, "pos [m]", old.p, new.p)
        if rotated:
            quats = [quaternion(X.R) for X in (old, new)]
            editor.remove(element, ORIENTATIONS[1:])
            editor.set_numbers(element, "quat", quats[1])
            editor.record_change(element, owner, "quat", *quats)

    def _reference_pose(self, model: Model, i: int) -> Pose:
        """Pose of the body in its parent as written in the file: with the joint at its `ref`."""
        joints: Any = model.joint
        placement = pose_of(joints.placement, i)
        kind = model.topology.joint_types[i]
        if kind.nv != 1:
            return placement
        m = self.editor.imported.compiled
        index = self.editor.imported.ids["joint", model.topology.joint_names[i]]
        joint = JointSpec("", JointKind(kind.value), joints.axis[i], anchor=joints.anchor[i])
        return placement @ one_dof_joint_transform(joint, float(m.qpos0[m.jnt_qposadr[index]]))

    def _file_frame(self, node: Node, body: BodySpec, owner: str) -> Pose:
        """Pose X_CF of the frame F in which the file specifies the placement, in the parent body C of the model."""
        imported = self.editor.imported
        first = next(b for b in imported.spec.bodies if imported.owners[b.name] == owner)
        _, X_CP = self.before.merged_into.get(first.parent, (body.parent, identity_pose()))
        if node.parent is None or node.parent.tag != "frame":
            return X_CP
        m, index = imported.compiled, imported.ids["body", owner]
        mjs_body = next(b for b in imported.mjspec.bodies if b.id == index)
        quat = mjs_body.quat
        if any(name in node.element.attributes for name in ORIENTATIONS[1:]):
            compiler = imported.mjspec.compiler
            quat = imported.mjspec.resolve_orientation(
                degree=compiler.degree, sequence=compiler.eulerseq, orientation=mjs_body.alt
            )
        X_PB = Pose(rotation_matrix(m.body_quat[index]), m.body_pos[index].copy())
        X_FB = Pose(rotation_matrix(quat), np.array(mjs_body.pos))
        return X_CP @ X_PB @ X_FB.inverse()
