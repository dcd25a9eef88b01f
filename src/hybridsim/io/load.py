"""Loading a model file, whatever its format."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from hybridsim.core.errors import ModelError, ModelWarning, Problem, Severity
from hybridsim.io.mjcf import read_mjcf
from hybridsim.io.urdf import read_urdf
from hybridsim.io.xml import read
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed
from hybridsim.model.model import Model

ALL = "all"
"""Stands for every problem code in `lenient`."""

_FORGIVABLE = ("inertia.", "mesh.", "geometry.", "contact.", "limit.order", "limit.missing", "limit.velocity")
"""Beginnings of the codes of problems that leave a model to simulate; with others leniency cannot help."""


def load_model(
    path: str | Path,
    *,
    base: Literal["fixed", "free"] = "fixed",
    inertia: Literal["file", "from_geometry", "error"] = "file",
    packages: Mapping[str, str | Path] | None = None,
    allowed: Sequence[str | Path] = (),
    merge: bool = True,
    lenient: Collection[str] | str = (),
) -> Model:
    """Load a URDF or MJCF file; the root element tells which it is.

    Args:
        path: the file.
        base: whether a URDF's root link is fixed to the world or free; an MJCF file says so itself.
        inertia: what to do about missing inertias of a URDF: take the `file` as it is, compute them
            `from_geometry`, or treat them as an `error`.
        packages: folders of the ROS packages that a URDF's `package://` paths name.
        allowed: folders outside the model's own that meshes and included files may lie in.
        merge: merge bodies on fixed joints into their parents; they live on as named frames.
        lenient: codes of problems that shall not stop the import, such as `inertia.triangle`, or `all`. Only
            doubtful inertias, limits, shapes and meshes can be passed over; the rest leaves no usable model.

    Returns:
        The model. All doubts about it are in one `ModelWarning`.

    Raises:
        ModelError: the model cannot be used; carries every problem found.
    """
    model, problems = inspect_model(
        path, base=base, inertia=inertia, packages=packages, allowed=allowed, merge=merge, lenient=lenient
    )
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if model is None or errors:
        raise ModelError(errors or problems)
    doubts = [str(problem) for problem in problems]
    if doubts:
        count = "1 warning" if len(doubts) == 1 else f"{len(doubts)} warnings"
        warnings.warn(f"{path} has {count}:\n" + "\n".join(doubts), ModelWarning, stacklevel=2)
    return model


def inspect_model(
    path: str | Path,
    *,
    base: Literal["fixed", "free"] = "fixed",
    inertia: Literal["file", "from_geometry", "error"] = "file",
    packages: Mapping[str, str | Path] | None = None,
    allowed: Sequence[str | Path] = (),
    merge: bool = True,
    lenient: Collection[str] | str = (),
) -> tuple[Model | None, list[Problem]]:
    """Everything that is wrong or doubtful about a model file, and the model if it can be used.

    Takes the arguments of `load_model`, and does not raise.
    """
    try:
        _, root = read(path)
        if root.tag == "robot":
            spec, problems = read_urdf(path, base=base, inertia=inertia, packages=packages, allowed=allowed)
        elif root.tag == "mujoco":
            _refuse_urdf_options(path, base, inertia, packages)
            spec, problems = read_mjcf(path, allowed=allowed)
        else:
            fix = "the root element must be <robot> (URDF) or <mujoco> (MJCF)"
            message = f"this is neither URDF nor MJCF: its root element is <{root.tag}>"
            raise ModelError([Problem(message, fix, str(path), root.line, code="xml.format")])
    except ModelError as error:
        return None, list(error.problems)
    problems = [_judged(problem, lenient) for problem in problems]
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None, problems
    return assemble(merge_fixed(spec)[0] if merge else spec), problems


def _judged(problem: Problem, lenient: Collection[str] | str) -> Problem:
    """The problem, as a warning if the user asked to be lenient about it and a model is left."""
    codes = [lenient] if isinstance(lenient, str) else lenient
    asked = ALL in codes or problem.code in codes
    if problem.severity is Severity.ERROR and asked and problem.code.startswith(_FORGIVABLE):
        return replace(problem, severity=Severity.WARNING)
    return problem


def _refuse_urdf_options(path: str | Path, base: str, inertia: str, packages: object) -> None:
    given = {
        "base": (base != "fixed", "write <freejoint/> into the root body"),
        "inertia": (inertia != "file", "MJCF has <compiler inertiafromgeom='...'/>"),
        "packages": (bool(packages), "MJCF has no package:// paths; use `allowed` for folders elsewhere"),
    }
    problems = [
        Problem(f"option {name!r} applies to URDF, and this is MJCF", fix, str(path), code=f"option.{name}")
        for name, (is_given, fix) in given.items()
        if is_given
    ]
    if problems:
        raise ModelError(problems)
