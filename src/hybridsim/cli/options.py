"""Options common to several commands: the model, the options of its loader, and choices by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from hybridsim.contact.choices import CONTACTS
from hybridsim.core.errors import HybridsimError, ModelError, Problem, Severity
from hybridsim.core.messages import spelling_suggestion
from hybridsim.io.load_options import Base, InertiaPolicy
from hybridsim.sim.choices import INTEGRATORS

if TYPE_CHECKING:
    from hybridsim.model.model import Model

    IntegratorName = ContactName = str
else:
    IntegratorName = Literal[tuple(INTEGRATORS)]
    ContactName = Literal[tuple(CONTACTS)]

ModelName = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(metavar="MODEL", help="A URDF or MJCF file, or a built-in mechanism."),
]


@dataclass(frozen=True)
class ModelLoader:
    """Loader of model files, with its options as flags."""

    base: Base = "fixed"
    """Whether a URDF's root link is fixed to the world or free to move."""
    inertia: InertiaPolicy = "file"
    """Treatment of moving URDF links without mass or inertia: use the values of the file (file), compute them from the
    shapes (from_geometry), or report an error (error)."""
    packages: Mapping[str, Path] = field(default_factory=dict)
    """Folders of ROS packages, to resolve package:// paths: --packages my_robot /path/to/my_robot."""
    allowed_folders: tuple[Path, ...] = ()
    """Folders outside that of the model from which meshes and included files may be read."""
    tolerate: tuple[str, ...] = ()
    """Codes of problems to be tolerated, such as inertia.triangle, or all."""

    def inspect(self, name: str) -> "tuple[Model | None, list[Problem]]":
        """Model, if it can be used, and its errors and warnings."""
        from hybridsim.io.load import inspect_model
        from hybridsim.robots.built_in import BUILT_IN

        options = {option.name: getattr(self, option.name) for option in fields(self)}
        if name in BUILT_IN and not Path(name).exists():
            if used := [
                f"--{option.replace('_', '-')}"
                for option in options
                if options[option] != getattr(ModelLoader(), option)
            ]:
                message = f"{', '.join(used)}: applies to model files only, and {name!r} is a built-in mechanism"
                return None, [Problem(message, "remove it, or specify a file", code="option.built_in")]
            return BUILT_IN[name](), []
        if not Path(name).exists() and not Path(name).suffix:
            fix = f"{spelling_suggestion(name, BUILT_IN)} Built-in mechanisms are {', '.join(BUILT_IN)}".lstrip()
            return None, [Problem(f"no file and no built-in mechanism is named {name!r}", fix, code="file.missing")]
        return inspect_model(name, **options)

    def load(self, name: str) -> "Model":
        """Load a model; raises `ModelError` if it cannot be used, prints warnings to standard error."""
        from hybridsim.cli.output import print_problems

        model, problems = self.inspect(name)
        if model is None:
            raise ModelError(problems)
        print_problems([p for p in problems if p.severity is not Severity.NOTE], stderr=True)
        return model


Loader = Annotated[ModelLoader, tyro.conf.OmitArgPrefixes]
"""Loader whose flags have no prefix."""


def require_new_files(outputs: Iterable[Path | None], inputs: Iterable[str | Path], *, force: bool) -> None:
    """Raise if a command would overwrite one of its inputs, or without `force` another file."""
    sources = [Path(name) for name in inputs if Path(name).exists()]
    existing = [out for out in outputs if out is not None and out.exists()]
    for out in existing:
        if any(out.samefile(source) for source in sources):
            raise HybridsimError(f"{out} is an input of this command and would be overwritten; choose another file")
    for out in existing:
        if out.is_file() and not force:
            raise HybridsimError(f"{out} already exists; --force overwrites it, --out selects another file")
