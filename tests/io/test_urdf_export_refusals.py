"""URDF export of what the file cannot take: said by name, and nothing impossible is written."""

import numpy as np
import pytest

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.urdf_export import export_urdf
from support.arm_files import ARM_URDF, HAND
from support.exported_models import changed, load, through_urdf


@pytest.mark.parametrize(
    ("where", "row", "value", "code"),
    [
        (lambda m: m.body.mass, HAND, -1.0, "export.inertial"),
        (lambda m: m.body.mass, HAND, 0.0, "export.inertial"),
        (lambda m: m.body.mass, HAND, np.nan, "export.inertial"),
        (lambda m: m.body.inertia, HAND, (1, 1, 5, 0, 0, 0), "export.inertial"),
        (lambda m: m.joint.damping, 0, -1.0, "damping.invalid"),
        (lambda m: m.joint.damping, 0, np.nan, "number.nonfinite"),
        (lambda m: m.joint.lower, 0, 5.0, "limit.order"),
        (lambda m: m.joint.placement.R, HAND, 2 * np.eye(3), "export.rotation"),
    ],
)
def test_impossible_values_are_not_written(arm_urdf, where, row, value, code):
    with pytest.raises(ModelError) as caught:
        through_urdf(arm_urdf, changed(load(arm_urdf), where, row, value))
    assert caught.value.problems[0].code == code
    assert not arm_urdf.with_name("out.urdf").exists()


def test_model_of_another_file(arm_urdf, tmp_path):
    other = tmp_path / "other.urdf"
    other.write_bytes(ARM_URDF.replace('"hand"', '"paw"').encode())
    with pytest.raises(ModelError, match="not this file's"):
        export_urdf(arm_urdf, load(other), tmp_path / "out.urdf")


def test_file_with_errors(arm_urdf):
    model = load(arm_urdf)
    arm_urdf.write_bytes(ARM_URDF.replace('value="0.5"', 'value="half"').encode())
    with pytest.raises(ModelError, match="half"):
        through_urdf(arm_urdf, model)


def test_what_urdf_cannot_hold_is_listed(arm_urdf):
    model = load(arm_urdf)
    model = changed(model, lambda m: m.joint.armature, 0, 0.01)
    model = changed(model, lambda m: m.gravity, 2, -1.62)
    model = changed(model, lambda m: m.joint.mimic_ratio, HAND, 2.0)
    model = changed(model, lambda m: m.actuator.gear, 1, 3.0)
    with pytest.warns(ModelWarning, match="does not hold these changes"):
        _, changes, text = through_urdf(arm_urdf, model)
    assert text == ARM_URDF
    assert {c.note for c in changes} == {"not expressible in URDF"}
    assert {(c.element, c.parameter) for c in changes} == {
        ("joint 'wrist'", "mimic ratio"),
        ("joint 'shoulder'", "armature"),
        ("actuator 'wrist'", "gear"),
        ("model 'z'", "gravity"),
    }


def test_relative_meshes_are_warned_about(arm_urdf, tmp_path):
    (tmp_path / "m.stl").write_text("solid")
    mesh = '<link name="base"><visual><geometry><mesh filename="m.stl"/></geometry></visual></link>'
    arm_urdf.write_bytes(ARM_URDF.replace('<link name="base"/>', mesh).encode())
    (tmp_path / "elsewhere").mkdir()
    with pytest.warns(ModelWarning, match="relative to its folder"):
        export_urdf(arm_urdf, load(arm_urdf), tmp_path / "elsewhere" / "arm.urdf")
