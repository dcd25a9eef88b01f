"""URDF export into real files: one line changes."""

import pytest

from hybridsim.core.errors import ModelWarning
from hybridsim.io.urdf_export import export_urdf
from support.exported_models import assert_same, changed, load
from support.real_models import bullet_file


@pytest.mark.parametrize(("name", "body"), [("a1/a1.urdf", "FL_upper"), ("franka_panda/panda.urdf", "panda_link4")])
def test_one_mass(tmp_path, name, body):
    file = bullet_file(name)
    options = {"packages": {"meshes": file.parent / "meshes"}}
    model = load(file, **options)
    row = model.topology.body_index(body)
    mass = float(model.body.mass[row]) * 1.1
    model = changed(model, lambda m: m.body.mass, row, mass)
    out = tmp_path / file.name
    if "package://" in file.read_text():
        (change,) = export_urdf(file, model, out, **options)
    else:
        with pytest.warns(ModelWarning, match="relative to its folder"):
            (change,) = export_urdf(file, model, out, **options)
    assert (change.element, change.after) == (f"link {body!r}", mass)
    assert_same(load(out, **options), model)
    before, after = file.read_bytes().splitlines(), out.read_bytes().splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_a_body_with_merged_links(tmp_path):
    file = bullet_file("a1/a1.urdf")
    model = load(file, base="free")
    row = model.topology.body_index("FL_lower")
    model = changed(model, lambda m: m.body.mass, row, 0.3)
    with pytest.warns(ModelWarning, match="relative to its folder"):
        export_urdf(file, model, tmp_path / "a1.urdf", base="free")
    again = load(tmp_path / "a1.urdf", base="free")
    assert again.body.mass[row] == 0.3
    assert_same(again, model, atol=1e-16)
