"""Writing changed parameters back into the user's own MJCF file, everything else in it untouched."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax
import numpy as np

from hybridsim.core.errors import ModelError, ModelWarning, Problem
from hybridsim.io.compare import rows, value
from hybridsim.io.edit import Change, write_atomically
from hybridsim.io.mjcf import import_mjcf
from hybridsim.io.mjcf_convert import ImportedMjcf
from hybridsim.io.mjcf_pen import Pen
from hybridsim.io.mjcf_write_bodies import BodyWriter
from hybridsim.io.mjcf_write_joints import JointWriter
from hybridsim.io.mjcf_write_world import write_friction, write_home, write_options
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec
from hybridsim.spatial.transform import Pose

ROUNDING = 1e-12
"""Relative difference that angles in degrees, quaternions and merged inertias may pick up on their way."""

_JOINT_FIELDS_WITHOUT_PLACE = (
    "breakaway",
    "stribeck_velocity",
    "friction_width",
    "limit_stiffness",
    "limit_damping",
)


def export_mjcf(
    original: str | Path, model: Model, out: str | Path, *, allowed: Sequence[str | Path] = ()
) -> list[Change]:
    """Write the parameters of a model that was loaded from an MJCF file back into the file.

    Only the values that differ from the file are changed; comments, unknown attributes and the spelling of
    all other numbers stay as they are. The new text is read again before it is written, and must give the
    model.

    Args:
        original: the MJCF file that the model was loaded from.
        model: the model with changed parameters.
        out: where to write; may be the original.
        allowed: as for `read_mjcf`.

    Returns:
        What changed. A row with a note says what MJCF has no place for; a `ModelWarning` says so as well.

    Raises:
        ModelError: the model does not belong to the file, or a change cannot be written into it.
    """
    model = jax.tree.map(np.asarray, model)
    imported = import_mjcf(original, allowed=allowed)
    before, spec, carriers, merged = _baseline(imported, model)
    pen = Pen(imported)
    BodyWriter(pen, spec, carriers, before, model).write()
    JointWriter(pen, before, model).write()
    write_options(pen, before, model)
    write_friction(pen, before, model)
    write_home(pen, before, model)
    if pen.problems:
        raise ModelError(pen.problems)
    data = pen.edits.apply()
    if pen.edits:
        _verify(original, data, model, merged, allowed)
    left_out = list(_without_place(before, model))
    _warn(original, out, imported, left_out)
    write_atomically(out, data)
    return pen.changes + left_out


def _baseline(imported: ImportedMjcf, model: Model) -> tuple[Model, ModelSpec, dict[str, tuple[str, Pose]], bool]:
    """The model as the file has it, built the way that the given one was."""
    merged_spec, carriers = merge_fixed(imported.spec)
    for spec, poses, merged in ((merged_spec, carriers, True), (imported.spec, {}, False)):
        before = assemble(spec)
        same = (
            before.topology == model.topology
            and before.actuator.names == model.actuator.names
            and before.actuator.joints == model.actuator.joints
            and [info.name for info in before.geometry.infos] == [info.name for info in model.geometry.infos]
        )
        if same:
            return before, spec, poses, merged
    message = f"model {model.name!r} does not have the bodies, joints, actuators and shapes of this file"
    fix = "export into the file that the model was loaded from"
    raise ModelError([Problem(message, fix, imported.document.file, code="export.mismatch")])


def _verify(original: str | Path, data: bytes, model: Model, merged: bool, allowed: Sequence[str | Path]) -> None:
    """Read the new text, as if it stood in the original's place, and compare."""
    imported = import_mjcf(original, allowed=allowed, source=data)
    written = assemble(merge_fixed(imported.spec)[0] if merged else imported.spec)
    problems = [
        Problem(
            f"{what} of {name!r} would be read back as {got}, not {wanted}",
            "a default, another option or an included file overrides it; write it out in the file",
            str(original),
            code="export.verify",
        )
        for what, name, got, wanted in _differences(written, model)
    ]
    if problems:
        raise ModelError(problems)


def _differences(written: Model, model: Model) -> Iterator[tuple[str, str, object, object]]:
    """Parameters that MJCF can hold and that differ by more than rounding."""
    topology = model.topology
    bodies, joints = topology.body_names, topology.joint_names
    shapes = [info.name for info in model.geometry.infos]
    # per degree of freedom or coordinate; the names of those joints are given per entry
    dofs = [name for name, kind in zip(joints, topology.joint_types, strict=True) for _ in range(kind.nv)]
    coordinates = [name for name, kind in zip(joints, topology.joint_types, strict=True) for _ in range(kind.nq)]
    pairs = [
        ("mass", bodies, written.body.mass, model.body.mass),
        ("centre of mass", bodies, written.body.com, model.body.com),
        ("inertia", bodies, written.body.inertia, model.body.inertia),
        ("placement", joints, written.joint.placement.p, model.joint.placement.p),
        ("orientation", joints, written.joint.placement.R, model.joint.placement.R),
        ("axis", joints, written.joint.axis, model.joint.axis),
        ("anchor", joints, written.joint.anchor, model.joint.anchor),
        ("rest position", coordinates, written.joint.rest, model.joint.rest),
        ("friction", shapes, written.geometry.friction, model.geometry.friction),
        ("gravity", ["option"] * 3, written.gravity, model.gravity),
        ("starting configuration", coordinates, written.home, model.home),
        ("timestep", ["option"], [written.timestep], [model.timestep]),
    ]
    for name in ("armature", "stiffness", "damping", "friction", "lower", "upper", "effort_limit"):
        pairs.append((name, dofs, getattr(written.joint, name), getattr(model.joint, name)))
    for name in ("gear", "gain", "bias", "control_lower", "control_upper", "force_lower", "force_upper"):
        pairs.append((name, model.actuator.names, getattr(written.actuator, name), getattr(model.actuator, name)))
    for what, names, got, wanted in pairs:
        for name, a, b in zip(names, np.asarray(got), np.asarray(wanted), strict=True):
            scale = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
            if not np.allclose(a, b, rtol=ROUNDING, atol=ROUNDING * max(scale, 1e-3)):
                yield what, name, value(a), value(b)


def _without_place(before: Model, after: Model) -> Iterator[Change]:
    """Changes of parameters that MJCF cannot hold, or that are not written back."""
    topology, old, new = before.topology, before.geometry, after.geometry
    shapes = [info.name for info in old.infos]
    frames = (before.frame_placement, after.frame_placement)
    tables = [
        *(
            (
                "joint",
                field,
                getattr(before.joint, field),
                getattr(after.joint, field),
                topology.tree_dof_names,
            )
            for field in _JOINT_FIELDS_WITHOUT_PLACE
        ),
        ("geom", "size [m]", old.size, new.size, shapes),
        ("geom", "placement.p [m]", old.placement.p, new.placement.p, shapes),
        ("geom", "placement.R", old.placement.R, new.placement.R, shapes),
        ("frame", "placement.p [m]", frames[0].p, frames[1].p, topology.frame_names),
        ("frame", "placement.R", frames[0].R, frames[1].R, topology.frame_names),
    ]
    for what, parameter, was, now, names in tables:
        note = "MJCF has no place for it" if what == "joint" else "shapes and frames are not written back"
        for name, row_before, row_after in rows(was, now, names):
            yield Change(f"{what} {name!r}", 0, parameter, row_before, row_after, note)


def _warn(original: str | Path, out: str | Path, imported: ImportedMjcf, left_out: Sequence[Change]) -> None:
    texts = [str(change) for change in left_out]
    if texts:
        warnings.warn("not written into MJCF:\n" + "\n".join(texts), ModelWarning, stacklevel=3)
    root = imported.document.root
    names_files = any(attribute.startswith("file") for node in root.walk() for attribute in node.element.attributes)
    includes = any(node.element.file != imported.document.file for node in root.walk())
    if (names_files or includes) and Path(original).resolve().parent != Path(out).resolve().parent:
        message = f"{out} names other files by paths that start in the folder of {original}"
        warnings.warn(f"{message}; copy them along", ModelWarning, stacklevel=3)
