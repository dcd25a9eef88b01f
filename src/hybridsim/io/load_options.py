"""Options for loading a model file: names, meanings and defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Literal, TypedDict

from pydantic import Field

from hybridsim.core.specification import specification

Base = Literal["fixed", "free"]
"""Whether the root link of a URDF is fixed to the world or free-floating."""
InertiaPolicy = Literal["file", "from_geometry", "error"]
"""Treatment of missing inertias: use the file's values, compute them from the collision shapes, or report an error."""


class LoadKwargs(TypedDict, total=False):
    """Keyword arguments of `load_model`, `inspect_model` and `export`."""

    base: Base
    """Whether the root link of a URDF is `fixed` to the world (the default) or `free`. A root link named `world` is the
    world itself; MJCF files define the base themselves."""
    inertia: InertiaPolicy
    """Treatment of moving URDF links without mass or inertia: `file` uses the values of the file (the default),
    `from_geometry` computes them from the collision shapes, `error` reports an error."""
    packages: Mapping[str, str | Path]
    """Folders of ROS packages in `package://` paths; other packages are searched for in the folders above the file."""
    allowed_folders: Sequence[str | Path]
    """Folders outside the model's folder from which meshes and included files may be read."""
    merge: bool
    """Merge bodies on fixed joints into their parents (the default); they remain available as named frames."""
    tolerate: Sequence[str] | str
    """Codes of errors to downgrade to warnings, such as `inertia.triangle`, or `all`. Only errors in inertias, limits,
    shapes and meshes can be downgraded; any other error makes the model unusable."""


@specification
class LoadOptions:
    """Options for loading a model file."""

    _: KW_ONLY
    base: Base = "fixed"
    """Whether a URDF's root link is fixed to the world or free to move."""
    inertia: InertiaPolicy = "file"
    """Treatment of moving URDF links without mass or inertia: use the values of the file (`file`), compute them from
    the shapes (`from_geometry`), or report an error (`error`)."""
    packages: Mapping[str, str | Path] = Field(default_factory=dict)
    """Folders of ROS packages, to resolve `package://` paths."""
    allowed_folders: Sequence[str | Path] = ()
    """Folders outside that of the model from which meshes and included files may be read."""
    merge: bool = True
    """Merge bodies on fixed joints into their parents; they remain available as named frames."""
    tolerate: str | Sequence[str] = ()
    """Codes of problems to be tolerated, such as `inertia.triangle`, or `all`."""


def option_hint(option: str, value: str | list[str] | dict[str, str]) -> str:
    """Spelling of an option in Python and on the command line: `base='free' (--base free)`."""
    words = [value] if isinstance(value, str) else value
    if isinstance(value, dict):
        words = [word for pair in value.items() for word in pair]
    return f"{option}={value!r} (--{option.replace('_', '-')} {' '.join(words)})"
