"""URDF export: exactly the change is read back, and everything else in the file is preserved byte for byte."""

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.export import export
from hybridsim.io.urdf.read_elements import roll_pitch_yaw
from hybridsim.model.builder import pose
from support.arm_files import ARM_URDF, HAND, LEFT, RIGHT, UPPER
from support.exported_models import assert_same, load, urdf_round_trip, with_entry


def test_nothing_changed(arm_urdf):
    model = load(arm_urdf)
    assert model.topology.body_names == ("upper", "hand", "left", "right")
    again, changes, text = urdf_round_trip(arm_urdf, model)
    assert changes == () and text == ARM_URDF
    assert_same(again, model)


def test_one_mass(arm_urdf):
    model = with_entry(load(arm_urdf), lambda m: m.body.mass, HAND, 0.7123456789012345)
    again, (change,), text = urdf_round_trip(arm_urdf, model)
    assert_same(again, model)
    assert text == ARM_URDF.replace('"0.5"/>', '"0.7123456789012345"/>')
    line = ARM_URDF[: ARM_URDF.index("<inertial>", ARM_URDF.index('name="hand"'))].count("\n") + 1
    assert (change.element, change.line, change.parameter) == ("link 'hand'", line, "mass [kg]")
    assert (change.before, change.after, change.note) == (0.5, 0.7123456789012345, "")


def test_values_from_jax(arm_urdf):
    model = load(arm_urdf)
    model = eqx.tree_at(lambda m: m.body.mass, model, jax.numpy.asarray(model.body.mass).at[LEFT].set(0.125))
    again, _, text = urdf_round_trip(arm_urdf, model)
    assert again.body.mass[LEFT] == 0.125
    assert text == ARM_URDF.replace('"left"><inertial><mass value="0.1"/>', '"left"><inertial><mass value="0.125"/>')


def test_several_changes(arm_urdf):
    model = with_entry(load(arm_urdf), lambda m: m.body.mass, LEFT, 0.3)
    model = with_entry(model, lambda m: m.body.com, LEFT, (0.01, 0.0, 0.0))
    model = with_entry(model, lambda m: m.joint.damping, 0, 0.75)
    again, changes, text = urdf_round_trip(arm_urdf, model)
    assert_same(again, model)
    assert [c.parameter for c in changes] == ["damping", "mass [kg]", "centre of mass [m]"]
    assert '<origin xyz="0.01 0.0 0.0"/></inertial></link>' in text.replace("\r\n      ", "").replace("\r\n", "")


AFTER_LEFT = '</inertial></link>\r\n  <joint name="finger2"'
MIMIC = '<mimic joint="finger1"'
WRIST_END = '0 0.05"/>'

# what to change, in which row, to what; and the text before and after it
PARAMETERS = {
    "centre of mass": (
        (lambda m: m.body.com, HAND, (0.0, 0.01, 0.1)),
        ('xyz="0 0 .1" rpy="0 0.5', 'xyz="0 0.01 .1" rpy="0 0.5'),
    ),
    "inertia entry": (
        (lambda m: m.body.inertia, LEFT, (1.5e-4, 1e-4, 1e-4, 0, 0, 0)),
        (
            f'ixx="1e-4" iyy="1e-4" izz="1e-4"/>{AFTER_LEFT}',
            f'ixx="0.00015" iyy="1e-4" izz="1e-4"/>{AFTER_LEFT}',
        ),
    ),
    "off-diagonal inertia": (
        (lambda m: m.body.inertia, LEFT, (1e-4, 1e-4, 1e-4, 0, 0, 2e-5)),
        (f'izz="1e-4"/>{AFTER_LEFT}', f'izz="1e-4" iyz="2e-05"/>{AFTER_LEFT}'),
    ),
    "origin": ((lambda m: m.joint.placement.p, UPPER, (0, 0, 0.75)), ("'0  0.00 +.5'", "'0  0.00 0.75'")),
    "damping": ((lambda m: m.joint.damping, 0, 0.3), ('damping="5e-1"', 'damping="0.3"')),
    "friction": ((lambda m: m.joint.friction, 0, 0.1), ('friction="0.25"', 'friction="0.1"')),
    "lower": ((lambda m: m.joint.lower, 0, -1.25), ('lower="-1.0"', 'lower="-1.25"')),
    "upper": ((lambda m: m.joint.upper, 0, 2.5), ('upper="2"', 'upper="2.5"')),
    "effort": ((lambda m: m.joint.effort_limit, 0, 11.0), ('effort="10"', 'effort="11.0"')),
    "axis": ((lambda m: m.joint.axis, UPPER, (0.6, 0.8, 0)), ('xyz="0 2.0 0"', 'xyz="0.6 0.8 0"')),
    "mimic ratio": ((lambda m: m.joint.mimic_ratio, RIGHT, -2.0), (MIMIC, f'{MIMIC} multiplier="-2.0"')),
    "mimic offset": ((lambda m: m.joint.mimic_offset, RIGHT, 0.01), (MIMIC, f'{MIMIC} offset="0.01"')),
    "new dynamics": (
        (lambda m: m.joint.damping, 1, 0.2),
        (WRIST_END, f'{WRIST_END}\r\n    <dynamics damping="0.2"/>'),
    ),
    "new limit": (
        (lambda m: m.joint.effort_limit, 1, 5.0),
        (WRIST_END, f'{WRIST_END}\r\n    <limit effort="5.0"/>'),
    ),
    "new effort in a limit": (
        (lambda m: m.joint.effort_limit, 3, 5.0),
        ('upper="0.04"/><mimic', 'upper="0.04" effort="5.0"/><mimic'),
    ),
    "new origin": (
        (lambda m: m.joint.placement.p, LEFT, (0.0, 0.0, 0.02)),
        ('velocity="0.2"/>', 'velocity="0.2"/>\r\n    <origin xyz="0.0 0.0 0.02"/>'),
    ),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter(arm_urdf, name):
    (where, row, value), (old, new) = PARAMETERS[name]
    model = with_entry(load(arm_urdf), where, row, value)
    again, changes, text = urdf_round_trip(arm_urdf, model)
    assert_same(again, model)
    assert len(changes) == 1 and not changes[0].note
    assert ARM_URDF.count(old) == 1
    assert text == ARM_URDF.replace(old, new)


def test_orientation_of_a_joint(arm_urdf):
    model = load(arm_urdf)
    model = with_entry(model, lambda m: m.joint.placement.R, UPPER, pose(np.zeros(3), (0.1, 0.2, 0.0)).R)
    again, (change,), text = urdf_round_trip(arm_urdf, model)
    assert_same(again, model, atol=1e-15)
    assert change.parameter == "origin rpy [rad]"
    assert "xyz = '0  0.00 +.5'" in text


def test_a_rotated_inertial_frame_is_preserved(arm_urdf):
    model = load(arm_urdf)
    model = with_entry(model, lambda m: m.body.inertia, HAND, np.array(model.body.inertia[HAND]) * 1.5)
    again, (change,), text = urdf_round_trip(arm_urdf, model)
    assert_same(again, model, atol=1e-16)
    assert change.parameter.startswith("inertia") and 'rpy="0 0.5 0"' in text


def test_limits_of_a_continuous_joint_make_it_revolute(arm_urdf):
    model = with_entry(load(arm_urdf), lambda m: m.joint.lower, 1, -0.5)
    again, _, text = urdf_round_trip(arm_urdf, model)
    assert_same(again, model)
    assert '<joint name="wrist" type="revolute">' in text


def test_a_revolute_joint_without_limits_becomes_continuous(arm_urdf):
    model = with_entry(load(arm_urdf), lambda m: m.joint.lower, 0, -np.inf)
    model = with_entry(model, lambda m: m.joint.upper, 0, np.inf)
    again, changes, text = urdf_round_trip(arm_urdf, model)
    assert_same(again, model)
    assert '<joint name="shoulder" type="continuous">' in text and len(changes) == 2


def test_an_infinite_limit_is_written_as_a_large_finite_value(arm_urdf):
    model = with_entry(load(arm_urdf), lambda m: m.joint.upper, 0, np.inf)
    model = with_entry(model, lambda m: m.joint.effort_limit, 0, np.inf)
    again, changes, text = urdf_round_trip(arm_urdf, model)
    assert_same(again, model)
    assert text == ARM_URDF.replace('upper="2"', 'upper="1e+30"').replace('effort="10"', 'effort="1e+30"')
    assert [c.after for c in changes] == [np.inf, np.inf]


def test_overwriting_the_original(arm_urdf):
    model = with_entry(load(arm_urdf), lambda m: m.body.mass, HAND, 0.75)
    export(arm_urdf, model, arm_urdf)
    assert arm_urdf.read_bytes().decode() == ARM_URDF.replace('"0.5"/>', '"0.75"/>')


def test_an_inertia_from_geometry_is_written_in_full(tmp_path):
    file = tmp_path / "box.urdf"
    shape = '<collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'
    text = (
        '<robot name="r">\n  <link name="base"/>\n  <joint name="j" type="continuous"><parent link="base"/>'
        f'<child link="box"/></joint>\n  <link name="box">\n    {shape}\n  </link>\n</robot>\n'
    )
    file.write_text(text)
    model = load(file, inertia="from_geometry")
    again, changes, written = urdf_round_trip(file, model, inertia="from_geometry")
    assert changes == () and written == text
    model = with_entry(model, lambda m: m.body.mass, 0, 7.0)
    again, (change,), written = urdf_round_trip(file, model, inertia="from_geometry")
    assert_same(again, model)
    assert change.parameter == "mass [kg]"
    assert written.startswith(text[: text.index("  </link>\n</robot>")])
    assert '    <inertial>\n      <origin xyz="0.0 0.0 0.0"/>\n      <mass value="7.0"/>\n' in written


def test_compound_joints(tmp_path):
    file = tmp_path / "compound.urdf"
    inertial = '<inertial><mass value="2"/><inertia ixx="0.3" iyy="0.2" izz="0.2"/></inertial>'
    joints = "".join(
        f'<joint name="{name}" type="{name}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0 0 1"/><axis xyz="0 0 1"/></joint>\n<link name="{child}">{inertial}</link>\n'
        for name, parent, child in (
            ("planar", "world", "a"),
            ("universal", "a", "b"),
            ("spherical", "b", "c"),
        )
    )
    file.write_text(f'<robot name="r">\n{joints}</robot>')
    model = load(file)
    damping = np.array(model.joint.damping)
    damping[:3], damping[3:5], damping[5:] = 0.5, (0.1, 0.2), 0.7
    model = eqx.tree_at(lambda m: m.joint.damping, model, damping)
    model = with_entry(model, lambda m: m.body.mass, 2, 2.5)
    model = with_entry(model, lambda m: m.joint.axis, 4, (0.0, 0.6, 0.8))
    with pytest.warns(ModelWarning, match="universal"):
        again, changes, _ = urdf_round_trip(file, model)
    assert {(c.element, c.parameter, bool(c.note)) for c in changes} == {
        ("link 'a'", "mass [kg]", False),
        ("joint 'planar'", "damping", False),
        ("joint 'universal'", "damping", True),
        ("joint 'universal'", "axis", False),
        ("joint 'spherical'", "damping", False),
    }
    damping[3:5] = 0.0
    assert_same(again, eqx.tree_at(lambda m: m.joint.damping, model, damping))


class TestMergedLinks:
    def test_change_goes_to_the_main_link(self, arm_urdf):
        model = with_entry(load(arm_urdf), lambda m: m.body.mass, UPPER, 2.0)
        again, changes, text = urdf_round_trip(arm_urdf, model)
        assert again.body.mass[UPPER] == 2.0
        assert_same(again, model, atol=1e-15)
        assert {c.element for c in changes} == {"link 'upper'"}
        tool = ARM_URDF[ARM_URDF.index('<link name="tool">') : ARM_URDF.index('<joint name="wrist"')]
        assert tool in text

    def test_joint_below_a_merged_link(self, arm_urdf):
        model = load(arm_urdf)
        new_position = np.add(model.joint.placement.p[HAND], (0.01, 0.02, 0.03))
        model = with_entry(model, lambda m: m.joint.placement.p, HAND, new_position)
        model = with_entry(model, lambda m: m.joint.placement.R, HAND, pose(np.zeros(3), (0.5, -0.3, 0.2)).R)
        again, changes, text = urdf_round_trip(arm_urdf, model)
        assert_same(again, model, atol=1e-15)
        assert {c.element for c in changes} == {"joint 'wrist'"}
        assert ARM_URDF[: ARM_URDF.index('<joint name="wrist"')] in text

    def test_all_links_are_scaled_if_none_can_absorb_the_change(self, arm_urdf):
        model = with_entry(load(arm_urdf), lambda m: m.body.mass, UPPER, 0.1)
        model = with_entry(model, lambda m: m.body.inertia, UPPER, np.asarray(model.body.inertia[UPPER]) * (0.1 / 1.7))
        again, changes, _ = urdf_round_trip(arm_urdf, model)
        assert_same(again, model, rtol=1e-13, atol=1e-15)
        assert {(c.element, c.parameter.split()[0]) for c in changes} == {
            (f"link {name!r}", parameter) for name in ("upper", "tool") for parameter in ("mass", "inertia")
        }
        mass, inertia = next(c.after for c in changes if c.element == "link 'tool'"), changes[-1].after
        np.testing.assert_allclose(mass, 0.2 * 0.1 / 1.7)
        np.testing.assert_allclose(inertia, np.array([1, 1, 1, 0, 0, 0]) * 1e-3 * 0.1 / 1.7, atol=1e-18)

    def test_inconsistent_mass_properties_of_a_merged_body(self, arm_urdf):
        model = with_entry(load(arm_urdf), lambda m: m.body.inertia, UPPER, (1, 1, 5, 0, 0, 0))
        with pytest.raises(
            ModelError, match="principal moments of body 'upper', 1, 1, 5 kg·m², violate the triangle inequality"
        ) as caught:
            urdf_round_trip(arm_urdf, model)
        assert (caught.value.problems[0].code, caught.value.problems[0].line) == ("export.inertial", 13)
        assert not arm_urdf.with_name("out.urdf").exists()

    def test_unmerged_model(self, arm_urdf):
        model = load(arm_urdf, merge=False)
        tool = model.topology.body_index("tool")
        model = with_entry(model, lambda m: m.body.mass, tool, 0.25)
        out = arm_urdf.with_name("out.urdf")
        changes = export(arm_urdf, model, out, merge=False)
        assert [str(c) for c in changes] == ["link 'tool': mass [kg] 0.2 → 0.25"]
        assert_same(load(out, merge=False), model)


@pytest.mark.parametrize("angles", [(0.1, 0.2, 0.3), (-3.0, 1.2, 2.5), (0.4, np.pi / 2, 0.0), (0.4, -np.pi / 2, 1.0)])
def test_roll_pitch_yaw(angles):
    R = pose(np.zeros(3), angles).R
    np.testing.assert_allclose(pose(np.zeros(3), roll_pitch_yaw(R)).R, R, rtol=0, atol=1e-12)
