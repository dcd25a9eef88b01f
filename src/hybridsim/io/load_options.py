"""The options of reading a model file: one place for their names, meanings and defaults."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypedDict, get_args

Base = Literal["fixed", "free"]
"""Whether a URDF's root link is fixed to the world or moves freely."""
InertiaPolicy = Literal["file", "from_geometry", "error"]
"""What to do about missing inertias: take the file as it is, compute them from the shapes, or refuse the file."""


class Reading(TypedDict, total=False):
    """How to read a model file; the keyword arguments of `load_model`, `inspect_model` and `export`."""

    base: Base
    """Whether a URDF's root link is `fixed` to the world (the default) or `free`. A root called `world` is the world
    itself, and an MJCF file says so on its own."""
    inertia: InertiaPolicy
    """What to do about moving links of a URDF without mass or inertia: take the `file` as it is (the default), compute
    them `from_geometry`, the collision shapes, or treat them as an `error`."""
    packages: Mapping[str, str | Path]
    """Folders of the ROS packages that a URDF's `package://` paths name; others are searched above the file."""
    allowed: Sequence[str | Path]
    """Folders outside the model's own that meshes and included files may lie in."""
    merge: bool
    """Merge bodies on fixed joints into their parents (the default); they live on as named frames."""
    lenient: Collection[str] | str
    """Codes of problems that shall not stop the import, such as `inertia.triangle`, or `all`. Only doubtful inertias,
    limits, shapes and meshes can be passed over; the rest leaves no usable model."""


@dataclass(frozen=True)
class Options:
    """A `Reading` with every option settled."""

    base: Base = "fixed"
    inertia: InertiaPolicy = "file"
    packages: Mapping[str, str | Path] = field(default_factory=dict)
    allowed: Sequence[str | Path] = ()
    merge: bool = True
    lenient: Collection[str] | str = ()

    def __post_init__(self):
        for name, choices in (("base", get_args(Base)), ("inertia", get_args(InertiaPolicy))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is one of {', '.join(choices)}, not {getattr(self, name)!r}")


def setting(option: str, value: str | list[str] | dict[str, str]) -> str:
    """How to set an option in Python and on the command line: `base='free' (--base free)`."""
    words = [value] if isinstance(value, str) else value
    if isinstance(value, dict):
        words = [word for pair in value.items() for word in pair]
    return f"{option}={value!r} (--{option} {' '.join(words)})"
