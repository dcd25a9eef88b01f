"""Export to URDF and MJCF through one function, which reads the new file back before it is written to disk."""

import equinox as eqx
import jax
import pytest

from hybridsim.core.errors import ModelError, SpecificationError
from hybridsim.io.compare import PARAMETERS
from hybridsim.io.edit_xml import Changes
from hybridsim.io.export import export
from hybridsim.io.urdf.edit_text import UrdfEdits
from hybridsim.model.geometry import empty_geometry
from hybridsim.robots import quadruped
from support.arm_files import ARM_URDF
from support.exported_models import assert_same, load, with_entry


@pytest.mark.parametrize("file", ["arm_urdf", "arm_mjcf"])
def test_either_format(file, request):
    path = request.getfixturevalue(file)
    out = path.with_name(f"out{path.suffix}")
    model = load(path)
    assert export(path, model, out) == () and out.read_bytes() == path.read_bytes()
    model = with_entry(model, lambda m: m.joint.damping, 0, 0.75)
    changes = export(path, model, out)
    assert isinstance(changes, Changes) and changes[0].after == 0.75
    assert "element" in str(changes) and "0.75" in str(changes)
    assert_same(load(out), model)


def test_options_must_suit_the_format(arm_mjcf, arm_urdf):
    with pytest.raises(ModelError, match="option 'base' applies to URDF"):
        export(arm_mjcf, load(arm_mjcf), arm_mjcf, base="free")
    with pytest.raises(SpecificationError, match="has no argument 'bse'"):
        export(arm_urdf, load(arm_urdf), arm_urdf, bse="free")  # type: ignore[call-arg]


def test_options_must_be_those_used_for_loading(arm_urdf):
    with pytest.raises(ModelError, match=r"its body names differ \('upper' instead of 'base'\)") as caught:
        export(arm_urdf, load(arm_urdf), arm_urdf, merge=False)
    assert caught.value.problems[0].code == "export.structure"


def test_shapes_are_part_of_the_structure(arm_urdf):
    box = '<link name="base"><collision><geometry><box size="1 1 1"/></geometry></collision></link>'
    arm_urdf.write_bytes(ARM_URDF.replace('<link name="base"/>', box).encode())
    model = eqx.tree_at(lambda m: m.geometry, load(arm_urdf), empty_geometry())
    with pytest.raises(ModelError, match=r"its shapes differ \(0 instead of 1\)"):
        export(arm_urdf, model, arm_urdf)


def test_a_file_that_reads_back_differently_is_not_written(arm_urdf, monkeypatch):
    monkeypatch.setattr(UrdfEdits, "set_numbers", lambda *_: None)  # an editor that does nothing
    before = arm_urdf.read_bytes()
    with pytest.raises(ModelError, match=r"damping of joint 'shoulder' would read back as 0\.5, not 0\.75") as caught:
        export(arm_urdf, with_entry(load(arm_urdf), lambda m: m.joint.damping, 0, 0.75), arm_urdf)
    assert caught.value.problems[0].code == "export.verify"
    assert arm_urdf.read_bytes() == before


def test_every_parameter_of_a_model_is_compared():
    model = quadruped()
    leaves = {jax.tree_util.keystr(path)[1:] for path, _ in jax.tree_util.tree_flatten_with_path(model)[0]}
    assert {parameter.path for parameter in PARAMETERS} == leaves | {"timestep"}
    for parameter in PARAMETERS:
        assert len(parameter.names(model)) == len(parameter.values(model)), parameter
