"""Reading MJCF: MuJoCo compiles the file, the compiled values become bodies, joints, shapes and actuators.

MuJoCo resolves defaults, angles, orientations and inertias of shapes. Its conventions are turned into ours:

- A body with several joints becomes a chain of massless bodies named `body:joint` that ends in the body.
- `q` equals MuJoCo's `qpos`, entry by entry. A joint's `ref` is absorbed in its placement.
- A body without joints is fixed to its parent; so is a mocap body, with a warning.
- Elements without a name are called by their kind and MuJoCo's number: `body3`, `joint5`, `geom0`, `site1`,
  `actuator2`. An underscore is added to made-up names that the file uses for something else.
- Switches of `<option><flag>` act on the values: with gravity switched off, it is zero, and so on.
"""

from collections.abc import Sequence
from pathlib import Path

from hybridsim.core.errors import Problem
from hybridsim.io.mjcf.read_compile import compiled_by_mujoco
from hybridsim.io.mjcf.read_convert import Converter, ImportedMjcf
from hybridsim.io.mjcf.read_document import open_document
from hybridsim.io.mjcf.read_validate import require_sound
from hybridsim.model.specs import ModelSpec


def read_mjcf(path: str | Path, *, allowed: Sequence[str | Path] = ()) -> tuple[ModelSpec, list[Problem]]:
    """Read an MJCF file.

    Args:
        path: the file.
        allowed: folders outside the model's own that included files and meshes may lie in.

    Returns:
        The description of the mechanism, and everything that is wrong with it or not supported.

    Raises:
        ModelError: the file cannot be read, would become too large, has wrong names, or MuJoCo refuses it.
    """
    imported = import_mjcf(path, allowed=allowed)
    return imported.spec, imported.problems


def import_mjcf(path: str | Path, *, allowed: Sequence[str | Path] = (), source: bytes | None = None) -> ImportedMjcf:
    """Like `read_mjcf`, with the file's elements; `source` stands in for the bytes of the file."""
    document = open_document(path, allowed, source)
    require_sound(document)
    mjspec, compiled = compiled_by_mujoco(document)
    return Converter(document, mjspec, compiled).imported(Path(path).stem)
