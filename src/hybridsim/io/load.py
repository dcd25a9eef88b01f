"""Loading of URDF and MJCF files."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from hybridsim.core.errors import ModelError, ModelWarning, Problem, Severity
from hybridsim.io.load_options import LoadKwargs, LoadOptions
from hybridsim.io.mjcf.read_mjcf import import_mjcf
from hybridsim.io.tolerated_problems import downgrade_tolerated
from hybridsim.io.urdf.read_urdf import read_urdf
from hybridsim.io.xml import Element, read
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec
from hybridsim.model.topology import ModelSource

MAX_LISTED = 20
"""Maximum number of problems with the same code that are listed individually; further ones are only counted."""


def load_model(path: str | Path, **kwargs: Unpack[LoadKwargs]) -> Model:
    """Load a URDF or MJCF file; the root element determines the format.

    Args:
        path: the file.
        **kwargs: options `base`, `inertia`, `packages`, `allowed_folders`, `merge`, `tolerate`; see `LoadKwargs`.

    Returns:
        The model. All warnings about the file are issued as one `ModelWarning`.

    Raises:
        ModelError: the file has errors; carries all of them.
    """
    model, problems = inspect_model(path, **kwargs)
    if model is None:
        raise ModelError([problem for problem in problems if problem.severity is Severity.ERROR])
    messages = [str(problem) for problem in problems if problem.severity is Severity.WARNING]
    if messages:
        count = "1 warning" if len(messages) == 1 else f"{len(messages)} warnings"
        warnings.warn(f"{path} has {count}:\n" + "\n".join(messages), ModelWarning, stacklevel=2)
    return model


def inspect_model(path: str | Path, **kwargs: Unpack[LoadKwargs]) -> tuple[Model | None, list[Problem]]:
    """Model described by a file, None if the file has errors, and all errors and warnings about the file.

    Takes the arguments of `load_model`; never raises because of the content of the file.
    """
    options = LoadOptions(**kwargs)
    try:
        source, root = read(path)
        spec, problems = read_spec(path, source, root, options)
    except ModelError as error:
        return None, abbreviate_problems(error.problems)
    problems = downgrade_tolerated(problems, options.tolerate, str(path))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None, abbreviate_problems(problems)
    model = assemble(merge_fixed_joints(spec)[0] if options.merge else spec)
    origin = ModelSource(str(Path(path).absolute()), _with_absolute_paths(kwargs))
    return replace(model, topology=replace(model.topology, source=origin)), abbreviate_problems(problems)


def _with_absolute_paths(kwargs: LoadKwargs) -> dict[str, Any]:
    """Load options that do not depend on the working directory."""
    options: dict[str, Any] = dict(kwargs)
    if "packages" in options:
        options["packages"] = {name: str(Path(path).absolute()) for name, path in options["packages"].items()}
    if "allowed_folders" in options:
        options["allowed_folders"] = tuple(str(Path(path).absolute()) for path in options["allowed_folders"])
    return options


def read_spec(path: str | Path, source: bytes, root: Element, options: LoadOptions) -> tuple[ModelSpec, list[Problem]]:
    """Description of the mechanism in a parsed file, and all errors and warnings about it.

    Args:
        path: the file.
        source: content of the file; may differ from the content on disk.
        root: root element of `source`.
        options: load options.

    Raises:
        ModelError: the file is not a model file or has errors that prevent reading it.
    """
    if root.tag == "robot":
        return read_urdf(path, root, options)
    if root.tag == "mujoco":
        _reject_urdf_options(path, options)
        imported = import_mjcf(path, allowed_folders=options.allowed_folders, source=source)
        return imported.spec, imported.problems
    if root.tag == "sdf":
        message, fix = "SDF is not supported", "convert the file to URDF, for example with sdf2urdf of pysdf"
    else:
        message = f"unknown model format with root element <{root.tag}>"
        fix = "the root element must be <robot> (URDF) or <mujoco> (MJCF)"
    raise ModelError([Problem(message, fix, str(path), root.line, code="xml.format")])


def abbreviate_problems(problems: Sequence[Problem]) -> list[Problem]:
    """The problems, with those beyond the first `MAX_LISTED` of the same code replaced by their count."""
    total = Counter((problem.code, problem.severity) for problem in problems)
    seen: Counter = Counter()
    listed = []
    for problem in problems:
        kind = (problem.code, problem.severity)
        seen[kind] += 1
        more = total[kind] - MAX_LISTED
        if seen[kind] <= MAX_LISTED or more == 1:
            listed.append(problem)
        elif seen[kind] == MAX_LISTED + 1:
            message = f"and {more} more problems of the same kind"
            listed.append(replace(problem, message=message, fix="fix those listed, then check again", element=""))
    return listed


def _reject_urdf_options(path: str | Path, options: LoadOptions) -> None:
    defaults = LoadOptions()
    fixes = {
        "base": "add <freejoint/> to the root body",
        "inertia": "use <compiler inertiafromgeom='...'/>",
        "packages": "MJCF has no package:// paths; for files in other folders, use allowed_folders=[...] "
        "(--allowed-folders)",
    }
    problems = [
        Problem(f"option {name!r} applies to URDF only; this is an MJCF file", fix, str(path), code=f"option.{name}")
        for name, fix in fixes.items()
        if getattr(options, name) != getattr(defaults, name)
    ]
    if problems:
        raise ModelError(problems)
