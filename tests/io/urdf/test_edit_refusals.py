"""URDF export of unsupported or inconsistent values: reported by name, and nothing invalid is written."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.export import export
from support.arm_files import ARM_URDF, HAND, LEFT
from support.exported_models import assert_same, load, urdf_round_trip, with_entry


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
def test_invalid_values_are_not_written(arm_urdf, where, row, value, code):
    with pytest.raises(ModelError) as caught:
        urdf_round_trip(arm_urdf, with_entry(load(arm_urdf), where, row, value))
    assert caught.value.problems[0].code == code
    assert not arm_urdf.with_name("out.urdf").exists()


def test_model_of_another_file(arm_urdf, tmp_path):
    other = tmp_path / "other.urdf"
    other.write_bytes(ARM_URDF.replace('"hand"', '"paw"').encode())
    with pytest.raises(ModelError, match="the model does not belong to this file"):
        export(arm_urdf, load(other), tmp_path / "out.urdf")


@pytest.mark.parametrize(
    ("field", "part"),
    [
        ("parents", r"the parents of its bodies differ \('world' instead of '\w+'\)"),
        ("masters", r"the joints that its joints mimic differ \(none instead of '\w+'\)"),
    ],
)
def test_model_of_a_file_with_other_connections(arm_urdf, tmp_path, field, part):
    model = load(arm_urdf)
    none = tuple(-1 for _ in model.topology.parents)
    other = replace(model, topology=replace(model.topology, **{field: none}))
    with pytest.raises(ModelError, match=part):
        export(arm_urdf, other, tmp_path / "out.urdf")


def test_file_with_errors(arm_urdf):
    model = load(arm_urdf)
    arm_urdf.write_bytes(ARM_URDF.replace('value="0.5"', 'value="half"').encode())
    with pytest.raises(ModelError, match="half"):
        urdf_round_trip(arm_urdf, model)


def test_changes_that_urdf_does_not_support_are_listed(arm_urdf):
    model = load(arm_urdf)
    model = with_entry(model, lambda m: m.joint.armature, 0, 0.01)
    model = with_entry(model, lambda m: m.gravity, 2, -1.62)
    model = with_entry(model, lambda m: m.joint.mimic_ratio, HAND, 2.0)
    model = with_entry(model, lambda m: m.actuator.gear, 1, 3.0)
    with pytest.warns(ModelWarning, match="changes not written to"):
        _, changes, text = urdf_round_trip(arm_urdf, model)
    assert text == ARM_URDF
    assert {c.note for c in changes} == {"not supported by URDF"}
    assert {(c.element, c.parameter) for c in changes} == {
        ("joint 'wrist'", "mimic ratio"),
        ("joint 'shoulder'", "armature"),
        ("actuator 'wrist'", "gear"),
        ("model 'arm'", "gravity [m/s²]"),
    }


class TestToleratedProblems:
    """An inertia in the file that violates the triangle inequality and is downgraded to a warning on import."""

    INCONSISTENT = ARM_URDF.replace(
        'ixx="0.01" ixy="0" ixz="0" iyy="0.012" iyz="0" izz="0.005"', 'ixx="1" iyy="1" izz="2.5"'
    )

    @pytest.fixture
    def inconsistent_urdf(self, arm_urdf):
        assert self.INCONSISTENT != ARM_URDF
        arm_urdf.write_bytes(self.INCONSISTENT.encode())
        return arm_urdf

    @pytest.mark.parametrize("factor", [1.01, 0.5])
    def test_a_violation_no_larger_than_in_the_file_is_written(self, inconsistent_urdf, factor):
        model = load(inconsistent_urdf, tolerate=["inertia.triangle"])
        model = with_entry(model, lambda m: m.body.mass, HAND, 0.7)
        model = with_entry(model, lambda m: m.body.inertia, HAND, np.asarray(model.body.inertia[HAND]) * factor)
        again, changes, _ = urdf_round_trip(inconsistent_urdf, model, tolerate=["inertia.triangle"])
        assert_same(again, model, rtol=1e-14, atol=1e-15)
        assert len(changes) == 2

    @pytest.mark.parametrize("row", [HAND, LEFT], ids=["worse", "another link"])
    def test_a_larger_violation_is_rejected(self, inconsistent_urdf, row):
        model = load(inconsistent_urdf, tolerate="all")
        model = with_entry(model, lambda m: m.body.inertia, row, (1, 1, 2.6, 0, 0, 0))
        with pytest.raises(ModelError, match=r"principal moments of body .* violate the triangle inequality") as caught:
            urdf_round_trip(inconsistent_urdf, model, tolerate="all")
        assert caught.value.problems[0].code == "export.inertial"

    def test_the_file_is_rejected_if_the_problem_is_not_tolerated(self, inconsistent_urdf):
        with pytest.raises(ModelError, match="I3 ≤ I1"):
            urdf_round_trip(inconsistent_urdf, load(inconsistent_urdf, tolerate="all"))

    def test_codes_are_checked(self, inconsistent_urdf):
        with pytest.raises(ModelError, match=r"did you mean 'inertia\.triangle'"):
            urdf_round_trip(inconsistent_urdf, load(inconsistent_urdf, tolerate="all"), tolerate=["inertia.trinagle"])


def test_relative_meshes_are_warned_about(arm_urdf, tmp_path):
    (tmp_path / "m.stl").write_text("solid")
    mesh = '<link name="base"><visual><geometry><mesh filename="m.stl"/></geometry></visual></link>'
    arm_urdf.write_bytes(ARM_URDF.replace('<link name="base"/>', mesh).encode())
    (tmp_path / "elsewhere").mkdir()
    with pytest.warns(ModelWarning, match="refers to meshes by relative paths"):
        export(arm_urdf, load(arm_urdf), tmp_path / "elsewhere" / "arm.urdf")
