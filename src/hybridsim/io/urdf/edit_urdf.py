"""Export of changed parameters into the original URDF file.

Where the model differs from the file, the attribute that holds the value is edited; unchanged values keep their
formatting.
"""

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.io.attributes import MAX_NUMBER
from hybridsim.io.compare import shape_data_changes, to_value, unwritten_changes
from hybridsim.io.edit_xml import Change
from hybridsim.io.model_rows import entry, inertial_of, is_rotation, pose_of, row
from hybridsim.io.urdf.dof_attributes import DOF_ATTRIBUTES
from hybridsim.io.urdf.edit_inertial import FRAME_ROUNDING, UrdfInertialEditor
from hybridsim.io.urdf.edit_surface import UrdfSurfaceEditor
from hybridsim.io.urdf.edit_text import UrdfEdits
from hybridsim.io.urdf.read_contact import FIELDS
from hybridsim.io.urdf.read_elements import roll_pitch_yaw
from hybridsim.io.xml import Element
from hybridsim.model.assemble import assemble
from hybridsim.model.compound_joints import axes_of, elementary_types
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model
from hybridsim.model.specs import BodySpec, JointKind, ModelSpec

NOT_IN_URDF = "not supported by URDF"

URDF_PARAMETERS = (
    *("body.mass", "body.com", "body.inertia", "joint.placement.p", "joint.placement.R", "joint.axis"),
    *("joint.lower", "joint.upper", "joint.mimic_ratio", "joint.mimic_offset"),
    *(f"joint.{name}" for name in DOF_ATTRIBUTES),
    *(f"geometry.{name}" for name in FIELDS.values()),
)
"""Paths of the parameters that URDF supports."""


class UrdfEditor:
    """Edits the text of a file where a model differs from it."""

    def __init__(self, source: bytes, robot: Element, spec: ModelSpec, merge: bool):
        """Prepare a file for editing.

        Args:
            source: content of the file.
            robot: its root element.
            spec: its description.
            merge: whether links on fixed joints were merged when the model was loaded.
        """
        merged, self.merged_into = merge_fixed_joints(spec) if merge else (spec, {})
        self.bodies = merged.bodies
        self.edits = UrdfEdits(source, robot)
        self.inertials = UrdfInertialEditor(self.edits, spec, self.merged_into)
        self.surfaces = UrdfSurfaceEditor(self.edits, spec)
        self.old = assemble(merged)
        """The model as read from the file."""
        self.changes: list[Change] = []
        """Changes so far."""
        self.unwritten: set[tuple[str, str]] = set()
        """Path and row of each supported parameter that cannot be written for this joint or value."""

    def edit(self, new: Model) -> bytes:
        """Content of the file with the parameters of `new`.

        Raises:
            ModelError: a value is invalid.
        """
        start = 0
        for body in self.bodies:
            # compound joints are chains of elementary ones in the model
            rows = range(start, start + len(elementary_types(body.joint.kind)))
            start = rows.stop
            self.changes += self.inertials.edit(body, inertial_of(self.old, rows[-1]), inertial_of(new, rows[-1]))
            self._edit_placement(body, rows, new)
            self._edit_axes(body, rows, new)
            self._edit_dynamics(body, rows, new)
            self._edit_limits(body, rows, new)
            self._edit_mimic(body, rows[0], new)
        self._edit_surfaces(new)
        self.changes += unwritten_changes(self.old, new, URDF_PARAMETERS, NOT_IN_URDF)
        self.changes += shape_data_changes(self.old, new, NOT_IN_URDF)
        # in file order, unwritten changes last
        self.changes.sort(key=lambda change: (bool(change.note), change.line))
        return self.edits.apply()

    def _joint(self, body: BodySpec) -> Element | None:
        """Element of a joint; None for the joint of the root link."""
        return self.edits.joints.get(body.joint.name)

    def _record_change(self, body: BodySpec, parameter: str, before, after, note: str = "") -> None:
        joint = self._joint(body)
        line = joint.line if joint is not None else 0
        self.changes.append(
            Change(f"joint {body.joint.name!r}", line, parameter, to_value(before), to_value(after), note)
        )

    def _mark_unwritten(self, path: str, rows: range, per_dof: bool = False) -> str:
        """Mark rows of a parameter as unwritten; returns the note on them."""
        topology = self.old.topology
        names = topology.joint_names[rows[0] : rows[-1] + 1]
        if per_dof:
            slices = topology.tree_v_slices
            names = topology.tree_dof_names[slices[rows[0]][0] : slices[rows[-1]][1]]
        self.unwritten |= {(path, name) for name in names}
        return NOT_IN_URDF

    def _edit_placement(self, body: BodySpec, rows: range, new: Model) -> None:
        for k in rows:
            before, after = pose_of(self.old.joint.placement, k), pose_of(new.joint.placement, k)
            translated, rotated = not np.array_equal(before.p, after.p), not np.array_equal(before.R, after.R)
            if not (translated or rotated):
                continue
            joint = self._joint(body)
            note = ""
            if joint is None or k != rows[0]:
                note = self._mark_unwritten("joint.placement.p", range(k, k + 1))
                self._mark_unwritten("joint.placement.R", range(k, k + 1))
            else:
                parent = joint.child("parent")
                _, X_BL = self.merged_into.get(parent.get("link") if parent is not None else "", ("", None))
                # the origin in the file refers to the parent link, the one in the model to the body it is merged into
                X_LJ = after if X_BL is None else X_BL.inverse() @ after
                size = 0.0 if X_BL is None else float(np.abs(after.p).max() + np.abs(X_BL.p).max())
                if translated:
                    self.edits.set_numbers(joint, "origin", "xyz", np.asarray(X_LJ.p), FRAME_ROUNDING * size)
                if rotated:
                    _require_rotation(after.R, joint)
                    self.edits.set_numbers(joint, "origin", "rpy", roll_pitch_yaw(X_LJ.R), FRAME_ROUNDING)
            if translated:
                self._record_change(body, "origin [m]", before.p, after.p, note)
            if rotated:
                self._record_change(body, "origin rpy [rad]", roll_pitch_yaw(before.R), roll_pitch_yaw(after.R), note)

    def _edit_axes(self, body: BodySpec, rows: range, new: Model) -> None:
        for k, tag in zip(rows, ("axis", "axis2", ""), strict=False):
            before, after = row(self.old.joint.axis, k), row(new.joint.axis, k)
            if np.array_equal(before, after):
                continue
            joint, note = self._joint(body), ""
            if joint is None or len(axes_of(body.joint)) < len(rows):
                note = self._mark_unwritten("joint.axis", range(k, k + 1))
            else:
                self.edits.set_numbers(joint, tag, "xyz", after)
            self._record_change(body, "axis", before, after, note)

    def _edit_dynamics(self, body: BodySpec, rows: range, new: Model) -> None:
        for parameter, (tag, attribute) in DOF_ATTRIBUTES.items():
            before, after = self._per_dof(parameter, rows, self.old), self._per_dof(parameter, rows, new)
            if np.array_equal(before, after):
                continue
            joint, note = self._joint(body), ""
            # one value in the file applies to all degrees of freedom of the joint
            if joint is None or np.unique(after).size > 1:
                note = self._mark_unwritten(f"joint.{parameter}", rows, per_dof=True)
            else:
                self.edits.set_numbers(joint, tag, attribute, _finite_limits(after[:1]))
            self._record_change(body, parameter.replace("_", " "), _scalar(before), _scalar(after), note)

    def _edit_limits(self, body: BodySpec, rows: range, new: Model) -> None:
        before = {end: self._per_dof(end, rows, self.old) for end in ("lower", "upper")}
        after = {end: self._per_dof(end, rows, new) for end in ("lower", "upper")}
        changed = [end for end in before if not np.array_equal(before[end], after[end])]
        if not changed:
            return
        joint, kind, note = self._joint(body), body.joint.kind, ""
        if joint is None or kind not in (JointKind.REVOLUTE, JointKind.CONTINUOUS, JointKind.PRISMATIC):
            for end in changed:
                note = self._mark_unwritten(f"joint.{end}", rows, per_dof=True)
        elif kind is JointKind.REVOLUTE and all(np.isinf(after[end]).all() for end in after):
            self.edits.set_type(joint, "continuous")
        else:
            if kind is JointKind.CONTINUOUS:
                self.edits.set_type(joint, "revolute")
            limit = joint.child("limit")
            has_range = limit is not None and {"lower", "upper"} & limit.attributes.keys()
            # an absent limit is read as 0, so both are written
            for end in changed if has_range and kind is not JointKind.CONTINUOUS else after:
                self.edits.set_numbers(joint, "limit", end, _finite_limits(after[end]))
        for end in changed:
            self._record_change(body, end, _scalar(before[end]), _scalar(after[end]), note)

    def _edit_mimic(self, body: BodySpec, k: int, new: Model) -> None:
        before, after = self._coupling(body, k, self.old), self._coupling(body, k, new)
        for parameter, attribute, old_value, new_value in zip(
            ("mimic_ratio", "mimic_offset"), ("multiplier", "offset"), before, after, strict=True
        ):
            if old_value == new_value:
                continue
            joint, note = self._joint(body), ""
            if joint is None or not body.joint.mimic:
                note = self._mark_unwritten(f"joint.{parameter}", range(k, k + 1))
            else:
                self.edits.set_numbers(joint, "mimic", attribute, [new_value])
            self._record_change(body, parameter.replace("_", " "), old_value, new_value, note)

    def _coupling(self, body: BodySpec, k: int, model: Model) -> tuple[float, float]:
        """Ratio and offset with respect to the joint named in the file, which may itself be a mimic joint."""
        ratio, offset = entry(model.joint.mimic_ratio, k), entry(model.joint.mimic_offset, k)
        joint = self._joint(body)
        mimic = joint.child("mimic") if joint is not None and body.joint.mimic else None
        if mimic is None or mimic.get("joint") == body.joint.mimic:
            return ratio, offset
        master = model.topology.joint_index(mimic.get("joint"))
        master_ratio = entry(model.joint.mimic_ratio, master)
        # the ratio is arbitrary if the master does not move
        own_ratio = ratio / master_ratio if master_ratio else 0.0
        return own_ratio, offset - own_ratio * entry(model.joint.mimic_offset, master)

    def _edit_surfaces(self, new: Model) -> None:
        names = {f"shape {info.name!r}": info.name for info in self.old.geometry.infos}
        changes = self.surfaces.edit(self.old, new)
        self.unwritten |= {(f"geometry.{c.parameter}", names[c.element]) for c in changes if c.note}
        self.changes += changes

    def _per_dof(self, parameter: str, rows: range, model: Model) -> np.ndarray:
        slices = model.topology.tree_v_slices
        return row(getattr(model.joint, parameter), slice(slices[rows[0]][0], slices[rows[-1]][1]))


def _require_rotation(R, joint: Element) -> None:
    if not is_rotation(R):
        message = f"orientation of joint {joint.get('name')!r} is not a rotation matrix"
        fix = "R must be orthonormal; update it, for example, with Pose.retract"
        raise ModelError([Problem(message, fix, joint.file, joint.line, code="export.rotation")])


def _finite_limits(limits: np.ndarray) -> np.ndarray:
    """Limits without `inf`, which not every URDF parser accepts."""
    return np.clip(limits, -MAX_NUMBER, MAX_NUMBER)


def _scalar(values: np.ndarray) -> np.ndarray:
    """Scalar if all degrees of freedom have the same value."""
    return np.asarray(values[0] if np.unique(values).size == 1 else values)
