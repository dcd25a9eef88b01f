"""Loading a model file, whatever its format."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from hybridsim.core.errors import ModelError, ModelWarning, Problem, Severity
from hybridsim.io.lenience import judged
from hybridsim.io.load_options import Options, Reading
from hybridsim.io.mjcf.read_mjcf import import_mjcf
from hybridsim.io.urdf.read_urdf import read_urdf
from hybridsim.io.xml import Element, read
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec

MOST_ALIKE = 20
"""Problems with the same code that are told one by one; the others are only counted."""


def load_model(path: str | Path, **reading: Unpack[Reading]) -> Model:
    """Load a URDF or MJCF file; the root element tells which it is.

    Args:
        path: the file.
        **reading: how to read it: `base`, `inertia`, `packages`, `allowed`, `merge`, `lenient`; see `Reading`.

    Returns:
        The model. All doubts about it are in one `ModelWarning`.

    Raises:
        ModelError: the model cannot be used; carries every problem found.
    """
    model, problems = inspect_model(path, **reading)
    if model is None:
        raise ModelError([problem for problem in problems if problem.severity is Severity.ERROR])
    doubts = [str(problem) for problem in problems if problem.severity is Severity.WARNING]
    if doubts:
        count = "1 warning" if len(doubts) == 1 else f"{len(doubts)} warnings"
        warnings.warn(f"{path} has {count}:\n" + "\n".join(doubts), ModelWarning, stacklevel=2)
    return model


def inspect_model(path: str | Path, **reading: Unpack[Reading]) -> tuple[Model | None, list[Problem]]:
    """Everything that is wrong or doubtful about a model file, and the model if it can be used.

    Takes the arguments of `load_model`, and does not raise because of anything that is in the file.
    """
    options = Options(**reading)
    try:
        source, root = read(path)
        spec, problems = read_spec(path, source, root, options)
    except ModelError as error:
        return None, grouped(error.problems)
    problems = judged(problems, options.lenient, str(path))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None, grouped(problems)
    return assemble(merge_fixed_joints(spec)[0] if options.merge else spec), grouped(problems)


def read_spec(path: str | Path, source: bytes, root: Element, options: Options) -> tuple[ModelSpec, list[Problem]]:
    """Description of a mechanism in a file that has been read, and everything that is wrong or doubtful about it.

    Args:
        path: the file.
        source: its bytes; they need not be what is on the disk.
        root: the same, parsed.
        options: how to read it.

    Raises:
        ModelError: this is no model file, or one that leaves nothing to describe.
    """
    if root.tag == "robot":
        return read_urdf(path, root, options)
    if root.tag == "mujoco":
        _refuse_urdf_options(path, options)
        imported = import_mjcf(path, allowed=options.allowed, source=source)
        return imported.spec, imported.problems
    if root.tag == "sdf":
        message, fix = "SDF is not supported", "convert it to URDF, for example with sdf2urdf of pysdf"
    else:
        message = f"this is neither URDF nor MJCF: its root element is <{root.tag}>"
        fix = "the root element must be <robot> (URDF) or <mujoco> (MJCF)"
    raise ModelError([Problem(message, fix, str(path), root.line, code="xml.format")])


def grouped(problems: Sequence[Problem]) -> list[Problem]:
    """The problems, of many alike only the first ones and how many more there are."""
    total = Counter((problem.code, problem.severity) for problem in problems)
    told: Counter = Counter()
    shown = []
    for problem in problems:
        kind = (problem.code, problem.severity)
        told[kind] += 1
        more = total[kind] - MOST_ALIKE
        if told[kind] <= MOST_ALIKE or more == 1:
            shown.append(problem)
        elif told[kind] == MOST_ALIKE + 1:
            message = f"and {more} more problems like the {MOST_ALIKE} before"
            shown.append(replace(problem, message=message, fix="mend those, then check again", element=""))
    return shown


def _refuse_urdf_options(path: str | Path, options: Options) -> None:
    usual = Options()
    fixes = {
        "base": "write <freejoint/> into the root body",
        "inertia": "MJCF has <compiler inertiafromgeom='...'/>",
        "packages": "MJCF has no package:// paths; use allowed=[...] (--allowed) for folders elsewhere",
    }
    problems = [
        Problem(f"option {name!r} applies to URDF, and this is MJCF", fix, str(path), code=f"option.{name}")
        for name, fix in fixes.items()
        if getattr(options, name) != getattr(usual, name)
    ]
    if problems:
        raise ModelError(problems)
