"""Options that the commands share: which model, and how to read it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from hybridsim.core.errors import ModelError, Problem

if TYPE_CHECKING:
    from hybridsim.model.model import Model

ModelName = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(metavar="MODEL", help="A URDF or MJCF file, or a built-in mechanism."),
]


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a model file."""

    base: Literal["fixed", "free"] = "fixed"
    """Whether a URDF's root link is fixed to the world or free to move."""
    inertia: Literal["file", "from_geometry", "error"] = "file"
    """Missing inertias of a URDF: take the file as it is, compute them from the shapes, or refuse."""
    packages: dict[str, Path] = field(default_factory=dict)
    """Folders of the ROS packages that package:// paths name: --packages my_robot /path/to/my_robot."""
    allowed: tuple[Path, ...] = ()
    """Folders outside the model's own that meshes and included files may lie in."""
    lenient: tuple[str, ...] = ()
    """Codes of problems that shall not stop the import, e.g. inertia.triangle, or all."""

    def inspect(self, name: str) -> "tuple[Model | None, list[Problem]]":
        """The model, if it can be used, and everything that is wrong or doubtful about it."""
        from hybridsim.io.load import inspect_model
        from hybridsim.models import BUILT_IN

        if name in BUILT_IN and not Path(name).exists():
            return BUILT_IN[name](), []
        if not Path(name).exists():
            names = ", ".join(BUILT_IN)
            fix = f"give the path of a URDF or MJCF file, or one of {names}"
            return None, [Problem(f"there is no file and no built-in mechanism {name!r}", fix, code="file.missing")]
        return inspect_model(
            name,
            base=self.base,
            inertia=self.inertia,
            packages=self.packages,
            allowed=self.allowed,
            lenient=self.lenient,
        )

    def load(self, name: str) -> "Model":
        """The model; raises `ModelError` if it cannot be used, prints warnings to standard error."""
        from rich.console import Console

        model, problems = self.inspect(name)
        if model is None:
            raise ModelError(problems)
        for problem in problems:
            Console(stderr=True, highlight=False).print(str(problem), style="yellow", markup=False, soft_wrap=True)
        return model


Reading = Annotated[ReadingOptions, tyro.conf.OmitArgPrefixes]
"""The options, as flags without a prefix."""
