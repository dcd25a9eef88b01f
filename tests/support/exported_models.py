"""Round trip of changed models through an export into their file."""

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
"""Parameters that are not in files and whose defaults depend on the inertia."""


def load(path: Path, **options) -> Model:
    """Model in a file, ignoring warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_model(path, **options)


def with_entry(model: Model, where: Callable, index: int, value) -> Model:
    """Copy of the model with one entry of an array replaced."""
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
    """Check that all parameters are equal, except for the `DERIVED` ones.

    Args:
        actual: model read back.
        expected: model before the export.
        rtol: relative tolerance of rounded arrays.
        atol: absolute tolerance of rounded arrays.
        rounded: arrays to which the tolerances apply, such as ".body.mass"; None for all.
    """
    assert actual.topology == expected.topology
    assert actual.timestep == expected.timestep
    for (name, actual_array), expected_array in zip(_arrays(actual).items(), _arrays(expected).values(), strict=True):
        if name in DERIVED:
            continue
        exact = rounded is not None and name not in rounded
        tolerances = {"rtol": 0.0 if exact else rtol, "atol": 0.0 if exact else atol}
        np.testing.assert_allclose(actual_array, expected_array, **tolerances, err_msg=name)


def _arrays(model: Model) -> dict[str, np.ndarray]:
    flat = jax.tree_util.tree_flatten_with_path(model)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in flat}


def urdf_round_trip(file: Path, model: Model, **options) -> tuple[Model, Changes, str]:
    """Model after export and import, changes reported by the export, and content of the new file."""
    out = file.with_name("out.urdf")
    changes = export(file, model, out, **options)
    return load(out, **options), changes, out.read_bytes().decode()


def mjcf_round_trip(
    file: Path, model: Model, tolerance: float = 0.0, rounded: Collection[str] = ()
) -> tuple[list[Change], list[bytes], list[bytes]]:
    """Export, check that exactly the change is read back, and return it with the lines before and after."""
    out = file.with_name("out.xml")
    changes = export_mjcf(file, model, out)
    assert_same(load(out), model, rtol=tolerance, atol=tolerance, rounded=rounded)
    return changes, file.read_bytes().split(b"\r\n"), out.read_bytes().split(b"\r\n")


def changed_line(old_lines: list[bytes], new_lines: list[bytes]) -> tuple[str, str]:
    """The only line that differs, before and after."""
    ((before, after),) = [(a, b) for a, b in zip(old_lines, new_lines, strict=True) if a != b]
    return before.decode(), after.decode()


def body_index(model: Model, name: str) -> int:
    """Index of a body by name."""
    return model.topology.body_index(name)


def dof_index(model: Model, joint: str) -> int:
    """Index of the first degree of freedom of a joint."""
    return model.topology.v_slices[model.topology.joint_index(joint)][0]
