"""Writing changed mass properties and placements of bodies into an MJCF file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from hybridsim.core.errors import Severity
from hybridsim.io.edit import number_text, numbers_text
from hybridsim.io.mjcf_node import Node
from hybridsim.io.mjcf_pen import ORIENTATIONS, Pen
from hybridsim.io.mjcf_poses import joint_motion, matrix_of
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.joints import JointType
from hybridsim.model.model import Model
from hybridsim.model.specs import BodySpec, JointKind, JointSpec, ModelSpec, Source, identity_pose
from hybridsim.model.validate import inertial_problems
from hybridsim.spatial.transform import Pose

_MOTIONS = {JointType.REVOLUTE: JointKind.REVOLUTE, JointType.PRISMATIC: JointKind.PRISMATIC}


@dataclass
class BodyWriter:
    """Compares the bodies of two models and writes the difference."""

    pen: Pen
    spec: ModelSpec
    """Description that `before` was assembled from, body by body."""
    carriers: dict[str, tuple[str, Pose]]
    """Carrier and pose in it of every body that was merged into another."""
    before: Model
    after: Model

    def write(self) -> None:
        """Write all changes of bodies."""
        for i, body in enumerate(self.spec.bodies):
            self._write_inertial(i, body)
            self._write_placement(i, body)

    def _write_inertial(self, i: int, body: BodySpec) -> None:
        old, new = _inertial_of(self.before, i), _inertial_of(self.after, i)
        changed = (
            old.mass != new.mass,
            not np.array_equal(old.com, new.com),
            not np.array_equal(old.inertia, new.inertia),
        )
        if not any(changed):
            return
        pen, owner = self.pen, self.pen.imported.owners[body.name]
        if body.name != owner:
            pen.refuse(None, f"{body.name!r}, a massless part of body {owner!r}, has got mass", "give it to the body")
            return
        node = pen.place("body", owner, "inertia")
        if node is None or not self._may_have_inertial(node, owner):
            return
        own, changed = self._own_part(body.name, new, changed)
        impossible = [p for p in inertial_problems(owner, own, Source()) if p.severity is Severity.ERROR]
        if impossible:
            fix = "choose mass properties that leave the body's own part possible"
            pen.refuse(node, impossible[0].message, fix)
            return
        self._edit_inertial(node, own, changed)
        for parameter, unit in (("mass", "kg"), ("com", "m"), ("inertia", "kg·m²")):
            before, after = getattr(self.before.body, parameter)[i], getattr(self.after.body, parameter)[i]
            if np.any(before != after):
                pen.note(node.element, owner, f"{parameter} [{unit}]", before, after)

    def _may_have_inertial(self, node: Node, owner: str) -> bool:
        compiler = self.pen.imported.mjspec.compiler
        changed = f"inertia of body {owner!r} has changed"
        if int(compiler.inertiafromgeom) == 1:
            message = f"{changed}, but <compiler inertiafromgeom='true'> overrides it"
            self.pen.refuse(node, message, "set inertiafromgeom to 'auto' in the file")
            return False
        if compiler.settotalmass > 0.0:
            message = f"{changed}, but <compiler settotalmass='...'> rescales it"
            self.pen.refuse(node, message, "remove settotalmass from the file")
            return False
        return True

    def _own_part(self, name: str, new: Inertial, changed: Sequence[bool]) -> tuple[Inertial, Sequence[bool]]:
        """What the body's own inertial must be, and which of mass, centre and inertia of it have changed.

        The whole change goes to the body itself; the bodies that were merged into it stay as they are.
        """
        described = self.pen.imported.spec.bodies
        merged = [body for body in described if self.carriers.get(body.name, ("",))[0] == name]
        if not merged:
            return new, changed
        rest = sum((body.inertial.moved(self.carriers[body.name][1]) for body in merged), Inertial())
        own = next(body.inertial for body in described if body.name == name)
        left = new - rest
        changed = (changed[0], any(changed[:2]), True)
        mass, com = left.mass if changed[0] else own.mass, left.com if changed[1] else own.com
        return Inertial(mass, com, left.inertia), changed

    def _edit_inertial(self, node: Node, inertial: Inertial, changed: Sequence[bool]) -> None:
        pen, entries = self.pen, inertial.entries()
        existing = next((child for child in node.children if child.tag == "inertial"), None)
        if existing is None:
            xml = (
                f'<inertial pos="{numbers_text(inertial.com)}" mass="{number_text(inertial.mass)}" '
                f'fullinertia="{numbers_text(entries)}"/>'
            )
            pen.edits.insert_child(node.element, xml)
            return
        element = existing.element
        if not pen.is_main(existing):
            pen.refuse(existing, f"the <inertial> of body {node.get('name')!r} stands in another file")
            return
        if changed[0]:
            pen.set(element, "mass", inertial.mass)
        if changed[1]:
            pen.set(element, "pos", inertial.com)
        if changed[2]:
            turned = any(name in element.attributes for name in ORIENTATIONS)
            if "diaginertia" in element.attributes and not turned and not entries[3:].any():
                pen.set(element, "diaginertia", entries[:3])
            else:
                pen.remove(element, ("diaginertia", *ORIENTATIONS))
                pen.set(element, "fullinertia", entries)

    def _write_placement(self, i: int, body: BodySpec) -> None:
        """Position and orientation of a body, from the placement of its first joint."""
        pen, owner = self.pen, self.pen.imported.owners[body.name]
        is_first = pen.imported.owners.get(body.parent) != owner
        if not is_first or body.joint.kind is JointKind.FREE:
            return
        old, new = self._drawn_pose(self.before, i), self._drawn_pose(self.after, i)
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
            quats = [Rotation.from_matrix(X.R).as_quat(canonical=True, scalar_first=True) for X in (old, new)]
            pen.remove(element, ORIENTATIONS[1:])
            pen.set(element, "quat", quats[1])
            pen.note(element, owner, "quat", *quats)

    def _drawn_pose(self, model: Model, i: int) -> Pose:
        """Pose of the body in its carrier where the file draws it: with the joint at its `ref`."""
        joints: Any = model.joint
        placement = Pose(joints.placement.R[i], joints.placement.p[i])
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
        _, X_CP = self.carriers.get(first.parent, (body.parent, identity_pose()))
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


def _inertial_of(model: Model, i: int) -> Inertial:
    bodies: Any = model.body
    return Inertial(float(bodies.mass[i]), bodies.com[i], inertia_matrix(bodies.inertia[i]))
