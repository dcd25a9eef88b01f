"""Options for loading a model file: names, meanings and defaults."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypedDict, get_args

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
    tolerate: Collection[str] | str
    """Codes of errors to downgrade to warnings, such as `inertia.triangle`, or `all`. Only errors in inertias, limits,
    shapes and meshes can be downgraded; any other error makes the model unusable."""


@dataclass(frozen=True)
class LoadOptions:
    """Options for loading a model file, with defaults; see `LoadKwargs`."""

    base: Base = "fixed"
    inertia: InertiaPolicy = "file"
    packages: Mapping[str, str | Path] = field(default_factory=dict)
    allowed_folders: Sequence[str | Path] = ()
    merge: bool = True
    tolerate: Collection[str] | str = ()

    def __post_init__(self):
        for name, choices in (("base", get_args(Base)), ("inertia", get_args(InertiaPolicy))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}")


def option_hint(option: str, value: str | list[str] | dict[str, str]) -> str:
    """Spelling of an option in Python and on the command line: `base='free' (--base free)`."""
    words = [value] if isinstance(value, str) else value
    if isinstance(value, dict):
        words = [word for pair in value.items() for word in pair]
    return f"{option}={value!r} (--{option.replace('_', '-')} {' '.join(words)})"
