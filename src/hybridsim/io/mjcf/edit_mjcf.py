"""Export of changed parameters into the original MJCF file."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.core.files import write_atomically
from hybridsim.io.compare import (
    PARAMETERS,
    require_round_trip,
    require_same_structure,
    shape_data_changes,
    unwritten_changes,
)
from hybridsim.io.edit_xml import Change
from hybridsim.io.mjcf.edit_document import Baseline, MjcfEditor
from hybridsim.io.mjcf.edit_inertials import MjcfInertialEditor
from hybridsim.io.mjcf.edit_joints import DOF_ATTRIBUTES, MjcfJointEditor
from hybridsim.io.mjcf.edit_placements import MjcfPlacementEditor
from hybridsim.io.mjcf.edit_settings import SURFACE_ATTRIBUTES, edit_home, edit_options, edit_pairs, edit_surfaces
from hybridsim.io.mjcf.read_convert import ImportedMjcf
from hybridsim.io.mjcf.read_mjcf import import_mjcf
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model

MJCF_PARAMETERS = {
    *("body.mass", "body.com", "body.inertia", "joint.placement.p", "joint.placement.R", "joint.axis", "joint.anchor"),
    *("joint.rest", "joint.lower", "joint.upper", "joint.effort_limit"),
    *(f"joint.{field}" for field, _, _ in DOF_ATTRIBUTES),
    *("actuator.gear", "actuator.gain", "actuator.bias", "actuator.command_lower", "actuator.command_upper"),
    *("actuator.force_lower", "actuator.force_upper"),
    *(f"geometry.{surface.field}" for surface in SURFACE_ATTRIBUTES),
    *("geometry.pair_friction", "gravity", "home", "timestep"),
}
"""Paths of the parameters that are written to an MJCF file."""
_GEOMETRY_NOT_WRITTEN = (
    "sizes, placements, vertices and heights of shapes, and frames, are not written to existing MJCF files"
)
_GEOMETRY = {
    *("geometry.size", "geometry.placement.p", "geometry.placement.R", "frame_placement.p", "frame_placement.R")
} - MJCF_PARAMETERS
_PATHS = {parameter.path for parameter in PARAMETERS}
_NOT_WRITTEN = {"not supported by MJCF": _PATHS - MJCF_PARAMETERS - _GEOMETRY, _GEOMETRY_NOT_WRITTEN: _GEOMETRY}
"""Paths of the parameters that are not written to an MJCF file, by reason."""


def export_mjcf(
    original: str | Path, model: Model, out: str | Path, *, allowed_folders: Sequence[str | Path] = ()
) -> list[Change]:
    """Write the parameters of a model into the MJCF file that it was loaded from.

    Only values that differ from the file are changed; comments, unknown attributes and the formatting of other values
    are preserved. Before it is written, the new content is read back and compared with the model.

    Args:
        original: the MJCF file that the model was loaded from.
        model: the model with changed parameters.
        out: file to write; may be the original.
        allowed_folders: as for `read_mjcf`.

    Returns:
        The changes. Those that MJCF does not support have a note and are listed in a `ModelWarning`.

    Raises:
        ModelError: the model does not belong to the file, or a change cannot be written.
        FileError: the file cannot be written.
    """
    model = jax.tree.map(np.asarray, model)
    imported = import_mjcf(original, allowed_folders=allowed_folders)
    baseline = _baseline(imported, model)
    before, editor = baseline.model, MjcfEditor(imported)
    MjcfInertialEditor(editor, baseline, model).edit()
    MjcfPlacementEditor(editor, baseline, model).edit()
    MjcfJointEditor(editor, before, model).edit()
    edit_options(editor, before, model)
    edit_surfaces(editor, before, model)
    edit_pairs(editor, before, model)
    edit_home(editor, before, model)
    if editor.problems:
        raise ModelError(editor.problems)
    data, written = editor.edits.apply(), before
    if editor.edits:
        new_spec = import_mjcf(original, allowed_folders=allowed_folders, source=data).spec
        written = assemble(merge_fixed_joints(new_spec)[0] if baseline.is_merged else new_spec)
    require_round_trip(written, model, MJCF_PARAMETERS, str(original))
    unwritten = [
        change
        for note, paths in _NOT_WRITTEN.items()
        for change in unwritten_changes(before, model, _PATHS - paths, note)
    ]
    unwritten += shape_data_changes(before, model, _GEOMETRY_NOT_WRITTEN)
    _warn(original, out, imported, unwritten)
    write_atomically(out, data)
    return editor.changes + unwritten


def _baseline(imported: ImportedMjcf, model: Model) -> Baseline:
    """The model as read from the file, merged if `model` is.

    Raises:
        ModelError: `model` does not belong to the file.
    """
    merged_spec, merged_into = merge_fixed_joints(imported.spec)
    before = assemble(merged_spec)
    if before.topology != model.topology and (unmerged := assemble(imported.spec)).topology == model.topology:
        require_same_structure(unmerged, model, imported.document.file)
        return Baseline(unmerged, imported.spec, {}, is_merged=False)
    require_same_structure(before, model, imported.document.file)
    return Baseline(before, merged_spec, merged_into, is_merged=True)


def _warn(original: str | Path, out: str | Path, imported: ImportedMjcf, unwritten: Sequence[Change]) -> None:
    texts = [str(change) for change in unwritten]
    if texts:
        warnings.warn(f"changes not written to {out}:\n" + "\n".join(texts), ModelWarning, stacklevel=3)
    root = imported.document.root
    has_file_references = any(
        attribute.startswith("file") for node in root.walk() for attribute in node.element.attributes
    )
    has_includes = any(node.element.file != imported.document.file for node in root.walk())
    if (has_file_references or has_includes) and Path(original).resolve().parent != Path(out).resolve().parent:
        message = f"{out} refers to other files by paths relative to the folder of {original}"
        warnings.warn(f"{message}; copy these files as well", ModelWarning, stacklevel=3)
