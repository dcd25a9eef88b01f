"""Export of changed parameters into the original model file: the counterpart of `load_model`."""

import warnings
from pathlib import Path
from typing import Unpack

import jax
import numpy as np

from hybridsim.core.errors import ModelError, ModelWarning, Severity
from hybridsim.core.files import write_atomically
from hybridsim.io import xml
from hybridsim.io.compare import require_round_trip, require_same_structure
from hybridsim.io.convert import WRITERS
from hybridsim.io.edit_xml import Changes
from hybridsim.io.load import read_spec
from hybridsim.io.load_options import LoadKwargs, LoadOptions
from hybridsim.io.mjcf.edit_mjcf import export_mjcf
from hybridsim.io.mjcf.write_mjcf import write_mjcf
from hybridsim.io.tolerated_problems import downgrade_tolerated
from hybridsim.io.urdf.edit_urdf import URDF_PARAMETERS, UrdfEditor
from hybridsim.io.urdf.write_urdf import write_urdf
from hybridsim.io.xml import Element
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec


def export(original: str | Path, model: Model, out: str | Path, **kwargs: Unpack[LoadKwargs]) -> Changes:
    """Write the parameters of a model into the file that it was loaded from, preserving everything else byte for byte.

    Only values that differ from the file are changed: comments, unknown elements and the formatting of other values are
    preserved. Before it is written, the new content is read back and compared with the model.

    Args:
        original: the URDF or MJCF file that the model was loaded from.
        model: the model with changed parameters.
        out: file to write; may be the original.
        **kwargs: the options that the model was loaded with; see `LoadKwargs`.

    Returns:
        The changes; for URDF in file order. Changes that the format does not support come last, with a note, and are
        also listed in a `ModelWarning`. `print` shows a table.

    Raises:
        ModelError: the model does not belong to the file, its values are invalid, or a file cannot be read.
        FileError: the file cannot be written.
    """
    options = LoadOptions(**kwargs)
    model = jax.tree.map(np.asarray, model)
    source, root = xml.read(original)
    spec = _require_spec(original, source, root, options)
    if root.tag == "mujoco":
        return Changes(export_mjcf(original, model, out, allowed_folders=options.allowed_folders))
    editor = UrdfEditor(source, root, spec, options.merge)
    require_same_structure(editor.old, model, str(original))
    text = editor.edit(model)
    written = _require_spec(original, text, xml.parse(text, str(out)), options)
    merged = merge_fixed_joints(written)[0] if options.merge else written
    require_round_trip(assemble(merged), model, URDF_PARAMETERS, str(original), editor.unwritten)
    write_atomically(out, text)
    changes = Changes(editor.changes)
    for message in _warning_messages(changes, root, Path(original), Path(out)):
        warnings.warn(message, ModelWarning, stacklevel=2)
    return changes


def has_format_of(out: str | Path, original: str | Path) -> bool:
    """Whether the extension of a new file is that of the original, or stands for the format of its content."""
    suffix = Path(out).suffix.lower()
    if suffix == Path(original).suffix.lower():
        return True
    writer = write_mjcf if xml.read(original)[1].tag == "mujoco" else write_urdf
    return WRITERS.get(suffix) is writer


def _require_spec(path: str | Path, source: bytes, root: Element, options: LoadOptions) -> ModelSpec:
    """Description in a model file; raises if it has errors."""
    spec, problems = read_spec(path, source, root, options)
    errors = [p for p in downgrade_tolerated(problems, options.tolerate, str(path)) if p.severity is Severity.ERROR]
    if errors:
        raise ModelError(errors)
    return spec


def _warning_messages(changes: Changes, robot: Element, original: Path, out: Path) -> list[str]:
    messages = []
    unwritten = [str(change) for change in changes if change.note]
    if unwritten:
        messages.append(f"changes not written to {out}:\n" + "\n".join(unwritten))
    meshes = {element.get("filename") for element in robot.walk() if element.tag == "mesh"}
    folder = original.absolute().parent
    if out.absolute().parent != folder and any("://" not in uri for uri in meshes):
        messages.append(f"{out} refers to meshes by relative paths, but they are in {folder}")
    return messages
