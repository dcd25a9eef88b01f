"""MJCF reader: converts the model compiled by MuJoCo to a model description.

MuJoCo resolves defaults, angle units, orientations and inertias of geoms. Its conventions are converted as follows:

- A body with several joints becomes a chain of massless bodies named `body:joint` that ends in the body.
- `q` equals MuJoCo's `qpos` entry by entry. The `ref` of a joint is part of its placement.
- A body without joints is fixed to its parent; so is a mocap body, with a warning.
- Unnamed elements are named by their kind and MuJoCo id: `body3`, `joint5`, `geom0`, `site1`, `actuator2`, with an
  underscore appended if the file uses the name for another element.
- Features disabled by `<option><flag>` are disabled in the description: gravity, damping or friction become zero,
  limits infinite, and so on.
"""

from collections.abc import Sequence
from pathlib import Path

from hybridsim.core.errors import Problem
from hybridsim.io.mjcf.read_compile import compile_with_mujoco
from hybridsim.io.mjcf.read_convert import ImportedMjcf, MjcfConverter
from hybridsim.io.mjcf.read_document import open_document
from hybridsim.io.mjcf.read_validate import require_valid
from hybridsim.model.specs import ModelSpec


def read_mjcf(path: str | Path, *, allowed_folders: Sequence[str | Path] = ()) -> tuple[ModelSpec, list[Problem]]:
    """Read an MJCF file.

    Args:
        path: the file.
        allowed_folders: folders outside the model's folder from which included files and meshes may be read.

    Returns:
        The description of the mechanism, and all problems, including unsupported features.

    Raises:
        ModelError: the file cannot be read, exceeds the size limits, has unknown names, or does not compile.
    """
    imported = import_mjcf(path, allowed_folders=allowed_folders)
    return imported.spec, imported.problems


def import_mjcf(
    path: str | Path, *, allowed_folders: Sequence[str | Path] = (), source: bytes | None = None
) -> ImportedMjcf:
    """Read an MJCF file and keep its elements for editing; `source` replaces the content of the file."""
    document = open_document(path, allowed_folders, source)
    require_valid(document)
    mjspec, compiled = compile_with_mujoco(document)
    return MjcfConverter(document, mjspec, compiled).convert(Path(path).stem)
