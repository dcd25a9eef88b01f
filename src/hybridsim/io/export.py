"""Writing changed parameters back into the user's own model file: the counterpart of `load_model`."""

import warnings
from pathlib import Path
from typing import Unpack

import jax
import numpy as np

from hybridsim.core.errors import ModelError, ModelWarning, Severity
from hybridsim.core.files import write_atomically
from hybridsim.io import xml
from hybridsim.io.compare import require_read_back, require_same_structure
from hybridsim.io.edit_xml import Changes
from hybridsim.io.lenience import judged
from hybridsim.io.load import read_spec
from hybridsim.io.load_options import Options, Reading
from hybridsim.io.mjcf.edit_mjcf import export_mjcf
from hybridsim.io.urdf.edit_urdf import URDF_HOLDS, UrdfEditor
from hybridsim.io.xml import Element
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec


def export(original: str | Path, model: Model, out: str | Path, **reading: Unpack[Reading]) -> Changes:
    """Write a model's parameters into the file that it was loaded from; all else in it stays as it is, byte for byte.

    Only values that differ from the file are changed: comments, unknown elements and the spelling of other numbers
    stay. The new text is read again before it is written, and must give the model.

    Args:
        original: the URDF or MJCF file that the model was loaded from.
        model: the model with changed numbers.
        out: file to write; may be the original.
        **reading: as when the model was loaded, see `Reading`.

    Returns:
        What changed, in the order of the file. Changes that the format cannot hold come last, with a note; they are
        also named in a `ModelWarning`. `print` shows a table.

    Raises:
        ModelError: the model is not this file's, its new values are impossible, or a file cannot be used.
    """
    options = Options(**reading)
    model = jax.tree.map(np.asarray, model)
    source, root = xml.read(original)
    spec = _usable_spec(original, source, root, options)
    if root.tag == "mujoco":
        return Changes(export_mjcf(original, model, out, allowed=options.allowed))
    editor = UrdfEditor(source, root, spec, options.merge)
    require_same_structure(editor.old, model, str(original))
    text = editor.edited(model)
    written = _usable_spec(original, text, xml.parse(text, str(out)), options)
    merged = merge_fixed_joints(written)[0] if options.merge else written
    require_read_back(assemble(merged), model, URDF_HOLDS, str(original), editor.unwritten)
    write_atomically(out, text)
    changes = Changes(editor.changes)
    for doubt in _doubts(changes, root, Path(original), Path(out)):
        warnings.warn(doubt, ModelWarning, stacklevel=2)
    return changes


def _usable_spec(path: str | Path, source: bytes, root: Element, options: Options) -> ModelSpec:
    """What a text describes, if it can be used."""
    spec, problems = read_spec(path, source, root, options)
    errors = [p for p in judged(problems, options.lenient, str(path)) if p.severity is Severity.ERROR]
    if errors:
        raise ModelError(errors)
    return spec


def _doubts(changes: Changes, robot: Element, original: Path, out: Path) -> list[str]:
    doubts = []
    lost = [str(change) for change in changes if change.note]
    if lost:
        doubts.append(f"{out} does not hold these changes:\n" + "\n".join(lost))
    meshes = {element.get("filename") for element in robot.walk() if element.tag == "mesh"}
    home = original.absolute().parent
    if out.absolute().parent != home and any("://" not in uri for uri in meshes):
        doubts.append(f"{out} names meshes relative to its folder, but they are in {home}")
    return doubts
