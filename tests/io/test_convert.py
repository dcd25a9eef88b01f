"""The file extension determines the format of a written file, and a failed attempt leaves no file."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import FileError, ModelError
from hybridsim.io.convert import convert
from hybridsim.robots import acrobot, quadruped


@pytest.mark.parametrize(
    ("name", "tag"),
    [("m.urdf", "<robot "), ("m.xml", "<mujoco "), ("m.mjcf", "<mujoco "), ("m.URDF", "<robot ")],
)
def test_the_extension_determines_the_format(name, tag, tmp_path):
    convert(acrobot(), tmp_path / name)
    assert tag in (tmp_path / name).read_text()


@pytest.mark.parametrize("name", ["m.sdf", "m", "m.urdf.txt"])
def test_other_extensions_are_rejected(name, tmp_path):
    with pytest.raises(ModelError, match=r"use one of the extensions \.urdf, \.xml, \.mjcf") as caught:
        convert(acrobot(), tmp_path / name)
    assert caught.value.problems[0].code == "convert.format"
    assert list(tmp_path.iterdir()) == []


def test_missing_folder(tmp_path):
    with pytest.raises(FileError, match="cannot write"):
        convert(acrobot(), tmp_path / "missing" / "m.urdf")


@pytest.mark.parametrize("extension", ["urdf", "xml"])
def test_models_of_jax_arrays_give_the_same_file(extension, tmp_path):
    model = quadruped()
    notes = convert(model, tmp_path / f"a.{extension}")
    assert convert(jax.tree.map(jnp.asarray, model), tmp_path / f"b.{extension}") == notes
    assert (tmp_path / f"a.{extension}").read_bytes() == (tmp_path / f"b.{extension}").read_bytes()


def test_an_existing_file_is_replaced(tmp_path):
    out = tmp_path / "m.urdf"
    out.write_text("old")
    convert(acrobot(), out)
    assert out.read_text().startswith("<?xml")
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("extension", ["urdf", "xml"])
def test_swapped_limits_are_noted(extension, tmp_path):
    model = acrobot()
    swapped = (np.full(2, 1.0), np.full(2, -1.0))
    model = eqx.tree_at(lambda m: (m.joint.lower, m.joint.upper), model, swapped)
    notes = [
        note for note in convert(model, tmp_path / f"m.{extension}") if "lower limits exceed the upper limits" in note
    ]
    assert len(notes) == 1 and all(repr(name) in notes[0] for name in model.topology.joint_names)
