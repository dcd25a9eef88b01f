"""Writing changed parameters back into the user's own MJCF file, everything else in it untouched."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.core.files import write_atomically
from hybridsim.io.compare import PARAMETERS, changed_data, require_read_back, require_same_structure, unwritten_changes
from hybridsim.io.edit_xml import Change
from hybridsim.io.mjcf.edit_bodies import PlacementWriter
from hybridsim.io.mjcf.edit_document import Baseline, Pen
from hybridsim.io.mjcf.edit_inertials import InertialWriter
from hybridsim.io.mjcf.edit_joints import JointWriter
from hybridsim.io.mjcf.edit_world import write_home, write_options, write_pairs, write_surfaces
from hybridsim.io.mjcf.read_convert import ImportedMjcf
from hybridsim.io.mjcf.read_mjcf import import_mjcf
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model

_JOINT_FIELDS = ("breakaway", "stribeck_velocity", "friction_width", "limit_stiffness", "limit_damping")
_NOT_IN_MJCF = ("geometry.restitution", "geometry.stiffness", "geometry.damping")
_SURFACE = ("geometry.friction", "geometry.recovery_time", "geometry.softness", *_NOT_IN_MJCF)
_SHAPES_STAY = "shapes and frames are not written back"
_NOT_WRITTEN = {
    "MJCF has no place for it": {
        *(f"joint.{field}" for field in (*_JOINT_FIELDS, "mimic_ratio", "mimic_offset")),
        *_NOT_IN_MJCF,
    },
    _SHAPES_STAY: {
        parameter.path
        for parameter in PARAMETERS
        if parameter.owner in ("shape", "frame") and parameter.path not in _SURFACE
    },
}
"""Paths of the parameters that are not written into an MJCF file, by the reason."""
_PATHS = {parameter.path for parameter in PARAMETERS}
MJCF_HOLDS = _PATHS.difference(*_NOT_WRITTEN.values())
"""Paths of the parameters that are written into an MJCF file."""


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
    baseline = _baseline(imported, model)
    before, pen = baseline.model, Pen(imported)
    InertialWriter(pen, baseline, model).write()
    PlacementWriter(pen, baseline, model).write()
    JointWriter(pen, before, model).write()
    write_options(pen, before, model)
    write_surfaces(pen, before, model)
    write_pairs(pen, before, model)
    write_home(pen, before, model)
    if pen.problems:
        raise ModelError(pen.problems)
    data = pen.edits.apply()
    if pen.edits:
        again = import_mjcf(original, allowed=allowed, source=data).spec
        written = assemble(merge_fixed_joints(again)[0] if baseline.is_merged else again)
        require_read_back(written, model, MJCF_HOLDS, str(original))
    left_out = [
        change
        for note, paths in _NOT_WRITTEN.items()
        for change in unwritten_changes(before, model, _PATHS - paths, note)
    ]
    left_out += changed_data(before, model, _SHAPES_STAY)
    _warn(original, out, imported, left_out)
    write_atomically(out, data)
    return pen.changes + left_out


def _baseline(imported: ImportedMjcf, model: Model) -> Baseline:
    """The model as the file has it, built the way that the given one was.

    Raises:
        ModelError: the model is not that of the file.
    """
    merged_spec, carriers = merge_fixed_joints(imported.spec)
    before = assemble(merged_spec)
    if before.topology != model.topology and (plain := assemble(imported.spec)).topology == model.topology:
        require_same_structure(plain, model, imported.document.file)
        return Baseline(plain, imported.spec, {}, is_merged=False)
    require_same_structure(before, model, imported.document.file)
    return Baseline(before, merged_spec, carriers, is_merged=True)


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
