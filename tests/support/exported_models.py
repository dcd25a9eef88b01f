"""Changed models exported into a copy of their file, and what must come back."""

import warnings
from collections.abc import Callable, Collection
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from hybridsim.core.errors import ModelWarning
from hybridsim.io.edit_xml import Change, Changes
from hybridsim.io.export import export
from hybridsim.io.load import load_model
from hybridsim.io.mjcf.edit_mjcf import export_mjcf
from hybridsim.model.model import Model

DERIVED = (".joint.friction_width", ".joint.limit_stiffness", ".joint.limit_damping")
"""The stops' default stiffness follows from the inertia that a joint carries, which files do not hold."""


def load(path: Path, **options) -> Model:
    """The model in a file, whatever doubts there are about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_model(path, **options)


def changed(model: Model, where: Callable, index: int, value) -> Model:
    """The model with one entry of one array replaced."""
    array = np.array(where(model), dtype=float)
    array[index] = value
    return eqx.tree_at(where, model, array)


def assert_same(
    actual: Model,
    expected: Model,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    rounded: Collection[str] | None = None,
) -> None:
    """All numbers are equal, apart from `DERIVED` ones.

    Args:
        actual: the model that was read back.
        expected: the model that was written.
        rtol: relative tolerance of the rounded numbers.
        atol: absolute tolerance of the rounded numbers.
        rounded: the arrays, such as ".body.mass", that the tolerances hold for; None stands for all.
    """
    assert actual.topology == expected.topology
    assert actual.timestep == expected.timestep
    for (name, got), want in zip(_arrays(actual).items(), _arrays(expected).values(), strict=True):
        if name in DERIVED:
            continue
        exact = rounded is not None and name not in rounded
        np.testing.assert_allclose(got, want, rtol=0.0 if exact else rtol, atol=0.0 if exact else atol, err_msg=name)


def _arrays(model: Model) -> dict[str, np.ndarray]:
    flat = jax.tree_util.tree_flatten_with_path(model)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in flat}


def through_urdf(file: Path, model: Model, **options) -> tuple[Model, Changes, str]:
    """The model after export and import, the changes that the export tells of, and the new text."""
    out = file.with_name("out.urdf")
    changes = export(file, model, out, **options)
    return load(out, **options), changes, out.read_bytes().decode()


def through_mjcf(
    file: Path, model: Model, tolerance: float = 0.0, rounded: Collection[str] = ()
) -> tuple[list[Change], list[bytes], list[bytes]]:
    """Export, check that exactly the change comes back, and return it with the lines before and after."""
    out = file.with_name("out.xml")
    changes = export_mjcf(file, model, out)
    assert_same(load(out), model, rtol=tolerance, atol=tolerance, rounded=rounded)
    return changes, file.read_bytes().split(b"\r\n"), out.read_bytes().split(b"\r\n")


def only_difference(old_lines: list[bytes], new_lines: list[bytes]) -> tuple[str, str]:
    """The one line that differs, before and after."""
    ((before, after),) = [(a, b) for a, b in zip(old_lines, new_lines, strict=True) if a != b]
    return before.decode(), after.decode()


def body_index(model: Model, name: str) -> int:
    """Index of a body."""
    return model.topology.body_index(name)


def dof(model: Model, joint: str) -> int:
    """Index of a joint's first degree of freedom."""
    return model.topology.v_slices[model.topology.joint_index(joint)][0]
