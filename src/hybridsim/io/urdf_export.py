"""Writing changed parameters back into the user's own URDF file, and nothing else.

The file is read once more, giving the model as it was. Where the given model differs, the attribute that
holds the value is changed in the text; a number that did not change keeps its spelling.
"""

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from hybridsim.core.errors import ModelError, ModelWarning, Problem, Severity
from hybridsim.io import xml
from hybridsim.io.compare import changes_outside_urdf, require_same_structure, value
from hybridsim.io.edit import Change, write_atomically
from hybridsim.io.urdf import Base, describe
from hybridsim.io.urdf_export_inertial import ROUNDING, InertialWriter
from hybridsim.io.urdf_inertia import InertiaPolicy
from hybridsim.io.urdf_text import UrdfText
from hybridsim.io.xml import Element
from hybridsim.model.assemble import assemble
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.merge import merge_fixed
from hybridsim.model.model import Model
from hybridsim.model.specs import BodySpec, JointKind, ModelSpec
from hybridsim.spatial.transform import Pose

NOT_IN_URDF = "not expressible in URDF"


def export_urdf(
    original: str | Path,
    model: Model,
    out: str | Path,
    *,
    base: Base = "fixed",
    inertia: InertiaPolicy = "file",
    packages: Mapping[str, str | Path] | None = None,
    allowed: Sequence[str | Path] = (),
    merge: bool = True,
    lenient: Collection[str] | str = (),
) -> list[Change]:
    """Write the original file with the model's parameters; all else in it stays as it is, byte for byte.

    A body that absorbed links on fixed joints gets its whole change in the main link's own `<inertial>`.

    Args:
        original: the URDF file that the model was loaded from.
        model: the model with changed numbers.
        out: file to write; may be the original.
        base: as when the model was loaded, like all that follow; see `read_urdf`.
        inertia: see `read_urdf`.
        packages: see `read_urdf`.
        allowed: see `read_urdf`.
        merge: whether fixed links were merged.
        lenient: codes of errors to pass over, or `all`.

    Returns:
        What changed, in the order of the file. Changes that URDF cannot hold come last, with a note; they are
        also named in a `ModelWarning`.

    Raises:
        ModelError: the model is not this file's, its new values are impossible, or a file cannot be used.
    """
    passed_over = {lenient} if isinstance(lenient, str) else set(lenient)

    def described(root: Element) -> ModelSpec:
        spec, problems = describe(root, Path(original), base, inertia, packages, allowed)
        errors = [p for p in problems if p.severity is Severity.ERROR and not passed_over & {p.code, "all"}]
        if errors:
            raise ModelError(errors)
        return spec

    source, robot = xml.read(original)
    comparison = _Comparison(UrdfText(source, robot), described(robot), merge)
    require_same_structure(comparison.old, model, str(original))
    changes = comparison.changes(model)
    edited = comparison.text.edited()
    described(xml.parse(edited, str(out)))  # impossible values must not reach the disk
    write_atomically(out, edited)
    _warn(changes, robot, Path(original), Path(out))
    return changes


class _Comparison:
    """Finds where a model differs from its file and edits the text there."""

    def __init__(self, text: UrdfText, spec: ModelSpec, merge: bool):
        self.text = text
        merged, self.placements = merge_fixed(spec) if merge else (spec, {})
        self.bodies = merged.bodies
        self.inertials = InertialWriter(text, spec, self.placements)
        self.old = assemble(merged)
        self._changes: list[Change] = []

    def changes(self, new: Model) -> list[Change]:
        """Edit everything in which `new` differs; what cannot be written comes last."""
        row = 0
        for body in self.bodies:
            # compound joints are chains of elementary ones in the model
            count = {JointKind.UNIVERSAL: 2, JointKind.PLANAR: 3}.get(body.joint.kind, 1)
            rows = range(row, row + count)
            row += count
            self._changes += self.inertials.write(body, _inertial(self.old, rows[-1]), _inertial(new, rows[-1]))
            self._placement(body, rows, new)
            self._axes(body, rows, new)
            self._dynamics(body, rows, new)
            self._limits(body, rows, new)
            self._mimic(body, rows[0], new)
        self._changes += changes_outside_urdf(self.old, new, NOT_IN_URDF)
        return sorted(self._changes, key=lambda change: (bool(change.note), change.line))

    def _note(self, body: BodySpec, parameter: str, before, after, element: Element | None, note: str = "") -> None:
        line = element.line if element is not None else 0
        self._changes.append(Change(f"joint {body.joint.name!r}", line, parameter, value(before), value(after), note))

    def _placement(self, body: BodySpec, rows: range, new: Model) -> None:
        for row in rows:
            before, after = _pose(self.old, row), _pose(new, row)
            moved, turned = not np.array_equal(before.p, after.p), not np.array_equal(before.R, after.R)
            if not (moved or turned):
                continue
            joint = self.text.joints.get(body.joint.name)
            note = "" if joint is not None and row == rows[0] else NOT_IN_URDF
            if joint is not None and not note:
                parent = joint.child("parent")
                _, X_BL = self.placements.get(parent.get("link") if parent is not None else "", ("", None))
                # in the file the origin is in the link's frame, in the model in that of the link's carrier
                X_LJ = after if X_BL is None else X_BL.inverse() @ after
                size = 0.0 if X_BL is None else float(np.abs(after.p).max() + np.abs(X_BL.p).max())
                if moved:
                    self.text.set_numbers(joint, "origin", "xyz", np.asarray(X_LJ.p), ROUNDING * size)
                if turned:
                    _require_rotation(after.R, joint)
                    self.text.set_numbers(joint, "origin", "rpy", rpy(X_LJ.R), ROUNDING)
            if moved:
                self._note(body, "origin [m]", before.p, after.p, joint, note)
            if turned:
                self._note(body, "origin rpy [rad]", rpy(before.R), rpy(after.R), joint, note)

    def _axes(self, body: BodySpec, rows: range, new: Model) -> None:
        for row, tag in zip(rows, ("axis", "axis2", ""), strict=False):
            before, after = _row(self.old.joint.axis, row), _row(new.joint.axis, row)
            if np.array_equal(before, after):
                continue
            joint = self.text.joints.get(body.joint.name)
            note = NOT_IN_URDF if joint is None or body.joint.kind is JointKind.PLANAR else ""
            if joint is not None and not note:
                self.text.set_numbers(joint, tag, "xyz", after)
            self._note(body, "axis", before, after, joint, note)

    def _dynamics(self, body: BodySpec, rows: range, new: Model) -> None:
        places = {"damping": ("dynamics", "damping"), "friction": ("dynamics", "friction")}
        places["effort_limit"] = ("limit", "effort")
        for parameter, (tag, attribute) in places.items():
            before, after = self._per_dof(parameter, rows, self.old), self._per_dof(parameter, rows, new)
            if np.array_equal(before, after):
                continue
            joint = self.text.joints.get(body.joint.name)
            # one number in the file stands for all degrees of freedom of the joint
            note = NOT_IN_URDF if joint is None or np.unique(after).size > 1 else ""
            if joint is not None and not note:
                self.text.set_numbers(joint, tag, attribute, after[:1])
            self._note(body, parameter.replace("_", " "), _scalar(before), _scalar(after), joint, note)

    def _limits(self, body: BodySpec, rows: range, new: Model) -> None:
        before = {end: self._per_dof(end, rows, self.old) for end in ("lower", "upper")}
        after = {end: self._per_dof(end, rows, new) for end in ("lower", "upper")}
        changed = [end for end in before if not np.array_equal(before[end], after[end])]
        if not changed:
            return
        joint = self.text.joints.get(body.joint.name)
        kind = body.joint.kind
        single = kind in (JointKind.REVOLUTE, JointKind.CONTINUOUS, JointKind.PRISMATIC)
        note = "" if joint is not None and single else NOT_IN_URDF
        if joint is not None and not note:
            unlimited = all(np.isinf(after[end]).all() for end in after)
            if kind is JointKind.REVOLUTE and unlimited:
                self.text.set_type(joint, "continuous")
            else:
                if kind is JointKind.CONTINUOUS:
                    self.text.set_type(joint, "revolute")
                limit = joint.child("limit")
                has_range = limit is not None and {"lower", "upper"} & limit.attributes.keys()
                # a bound that the file leaves out is read as 0, so a range is written whole
                for end in changed if has_range and kind is not JointKind.CONTINUOUS else after:
                    self.text.set_numbers(joint, "limit", end, after[end])
        for end in changed:
            self._note(body, end, _scalar(before[end]), _scalar(after[end]), joint, note)

    def _mimic(self, body: BodySpec, row: int, new: Model) -> None:
        for parameter, attribute in (("mimic_ratio", "multiplier"), ("mimic_offset", "offset")):
            before = float(_row(getattr(self.old.joint, parameter), row))
            after = float(_row(getattr(new.joint, parameter), row))
            if before == after:
                continue
            joint = self.text.joints.get(body.joint.name)
            note = "" if joint is not None and body.joint.mimic else NOT_IN_URDF
            if joint is not None and not note:
                self.text.set_numbers(joint, "mimic", attribute, [after])
            self._note(body, parameter.replace("_", " "), before, after, joint, note)

    def _per_dof(self, parameter: str, rows: range, model: Model) -> np.ndarray:
        slices = model.topology.tree_v_slices
        return np.asarray(getattr(model.joint, parameter))[slices[rows[0]][0] : slices[rows[-1]][1]]


def rpy(R) -> np.ndarray:
    """Roll, pitch and yaw [rad] of a rotation matrix; the roll is 0 where they are not unique."""
    R = np.asarray(R, dtype=float)
    level = math.hypot(R[0, 0], R[1, 0])
    pitch = math.atan2(-R[2, 0], level)
    roll = math.atan2(R[2, 1], R[2, 2]) if level > 1e-15 else 0.0
    # the yaw that is left after the roll is undone: as exact as R itself, however steep the pitch
    s, c = math.sin(roll), math.cos(roll)
    return np.array([roll, pitch, math.atan2(s * R[0, 2] - c * R[0, 1], c * R[1, 1] - s * R[1, 2])])


def _require_rotation(R, joint: Element) -> None:
    R = np.asarray(R)
    if not np.allclose(R @ R.T, np.eye(3), rtol=0.0, atol=1e-9) or np.linalg.det(R) < 0.0:
        message = f"placement of joint {joint.get('name')!r} is not a rotation"
        fix = "keep R orthonormal, for example with Pose.retract"
        raise ModelError([Problem(message, fix, joint.file, joint.line, code="export.rotation")])


def _row(array, row: int) -> np.ndarray:
    return np.asarray(np.asarray(array, dtype=float)[row])


def _inertial(model: Model, row: int) -> Inertial:
    body = model.body
    entries = inertia_matrix(_row(body.inertia, row))
    return Inertial(float(_row(body.mass, row)), _row(body.com, row), entries)


def _pose(model: Model, row: int) -> Pose:
    placement = model.joint.placement
    return Pose(_row(placement.R, row), _row(placement.p, row))


def _scalar(values: np.ndarray) -> np.ndarray:
    """One number where all degrees of freedom share it."""
    return np.asarray(values[0] if np.unique(values).size == 1 else values)


def _warn(changes: Sequence[Change], robot: Element, original: Path, out: Path) -> None:
    lost = [str(change) for change in changes if change.note]
    if lost:
        warnings.warn(f"{out} does not hold these changes:\n" + "\n".join(lost), ModelWarning, stacklevel=3)
    meshes = {element.get("filename") for element in robot.walk() if element.tag == "mesh"}
    if out.absolute().parent != original.absolute().parent and any("://" not in uri for uri in meshes):
        message = f"{out} names meshes relative to its folder, but they are in {original.absolute().parent}"
        warnings.warn(message, ModelWarning, stacklevel=3)
