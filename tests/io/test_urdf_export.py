from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.urdf import read_urdf
from hybridsim.io.urdf_export import export_urdf, rpy
from hybridsim.model.assemble import assemble
from hybridsim.model.builder import pose
from hybridsim.model.merge import merge_fixed
from hybridsim.model.model import Model

TEXT = """<?xml version='1.0' encoding="utf-8"?>\r
<!-- Übersicht: comments, CRLF and odd spacing must survive -->\r
<robot  name='arm'>\r
  <my_company:note xmlns:my_company="urn:x">&amp; more</my_company:note>\r
  <link name="base"/>\r
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>\r
    <origin   rpy="0.10 0 -0"  xyz = '0  0.00 +.5'/> <!-- here -->\r
    <axis xyz="0 2.0 0"/>\r
    <limit upper="2" lower="-1.0" velocity="5" effort="10"/>\r
    <dynamics friction="0.25" damping="5e-1"/>\r
  </joint>\r
  <link name="upper">\r
    <inertial>\r
      <mass value="1.50"/>\r
      <origin xyz="0 0 .2" rpy="0 0 0"/>\r
      <inertia iyy="0.02" ixx="2e-2" izz="0.002" ixy="0" ixz="0" iyz="0"/>\r
    </inertial>\r
  </link>\r
  <joint name="flange" type="fixed"><parent link="upper"/><child link="tool"/>\r
    <origin xyz="0 0.1 0.4" rpy="0.3 0.2 0.1"/></joint>\r
  <link name="tool">\r
    <inertial><origin rpy="1 0 0" xyz="0 0 .1"/><mass value="0.2"/>\r
      <inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>\r
  <joint name="wrist" type="continuous"><parent link="tool"/><child link="hand"/>\r
    <origin xyz="0 0 0.05"/></joint>\r
  <link name="hand">\r
    <inertial>\r
      <origin xyz="0 0 .1" rpy="0 0.5 0"/>\r
      <mass value="0.5"/>\r
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.012" iyz="0" izz="0.005"/>\r
    </inertial>\r
  </link>\r
  <joint name="finger1" type="prismatic"><parent link="hand"/><child link="left"/>\r
    <limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint>\r
  <link name="left"><inertial><mass value="0.1"/>\r
      <inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>\r
  <joint name="finger2" type="prismatic"><parent link="hand"/><child link="right"/>\r
    <axis xyz="-1 0 0"/><limit lower="0" upper="0.04"/><mimic joint="finger1"/></joint>\r
  <link name="right"><inertial><mass value="0.1"/>\r
      <inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>\r
  <unknown/>\r
</robot>\r
"""
BODIES = ("upper", "hand", "left", "right")
UPPER, HAND, LEFT, RIGHT = range(4)


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_bytes(TEXT.encode())
    return path


def load(path, **options) -> Model:
    spec, _ = read_urdf(path, **options)
    return assemble(merge_fixed(spec)[0])


def with_row(model: Model, where, row: int, value) -> Model:
    array = np.array(where(model), dtype=float)
    array[row] = value
    return eqx.tree_at(where, model, array)


def assert_same(actual: Model, expected: Model, atol: float = 0.0) -> None:
    """All numbers agree, apart from the default stops, which follow from the masses."""
    assert actual.topology == expected.topology

    def without_stops(model: Model):
        stops = lambda m: (m.joint.limit_stiffness, m.joint.limit_damping)  # noqa: E731
        return jax.tree.leaves(eqx.tree_at(stops, model, (0.0, 0.0)))

    for a, b in zip(without_stops(actual), without_stops(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=atol)


def export(file: Path, model: Model, **options) -> tuple[Model, list, str]:
    out = file.with_name("out.urdf")
    changes = export_urdf(file, model, out, **options)
    return load(out, **options), changes, out.read_bytes().decode()


def test_nothing_changed(file):
    model = load(file)
    assert model.topology.body_names == BODIES
    again, changes, text = export(file, model)
    assert changes == [] and text == TEXT
    assert_same(again, model)


def test_one_mass(file):
    model = with_row(load(file), lambda m: m.body.mass, HAND, 0.7123456789012345)
    again, (change,), text = export(file, model)
    assert_same(again, model)
    assert text == TEXT.replace('"0.5"/>', '"0.7123456789012345"/>')
    line = TEXT[: TEXT.index("<inertial>", TEXT.index('name="hand"'))].count("\n") + 1
    assert (change.element, change.line, change.parameter) == ("link 'hand'", line, "mass [kg]")
    assert (change.before, change.after, change.note) == (0.5, 0.7123456789012345, "")


def test_values_from_jax(file):
    model = load(file)
    model = eqx.tree_at(lambda m: m.body.mass, model, jax.numpy.asarray(model.body.mass).at[LEFT].set(0.125))
    again, _, text = export(file, model)
    assert again.body.mass[LEFT] == 0.125
    assert text == TEXT.replace('"left"><inertial><mass value="0.1"/>', '"left"><inertial><mass value="0.125"/>')


def test_several_at_once(file):
    model = with_row(load(file), lambda m: m.body.mass, LEFT, 0.3)
    model = with_row(model, lambda m: m.body.com, LEFT, (0.01, 0.0, 0.0))
    model = with_row(model, lambda m: m.joint.damping, 0, 0.75)
    again, changes, text = export(file, model)
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
def test_every_parameter(file, name):
    (where, row, value), (old, new) = PARAMETERS[name]
    model = with_row(load(file), where, row, value)
    again, changes, text = export(file, model)
    assert_same(again, model)
    assert len(changes) == 1 and not changes[0].note
    assert TEXT.count(old) == 1
    assert text == TEXT.replace(old, new)


def test_orientation_of_a_joint(file):
    model = load(file)
    model = with_row(model, lambda m: m.joint.placement.R, UPPER, pose(np.zeros(3), (0.1, 0.2, 0.0)).R)
    again, (change,), text = export(file, model)
    assert_same(again, model, atol=1e-15)
    assert change.parameter == "origin rpy [rad]"
    assert "xyz = '0  0.00 +.5'" in text


def test_turned_inertial_frame(file):
    model = load(file)
    model = with_row(model, lambda m: m.body.inertia, HAND, np.array(model.body.inertia[HAND]) * 1.5)
    again, (change,), text = export(file, model)
    assert_same(again, model, atol=1e-16)
    assert change.parameter.startswith("inertia") and 'rpy="0 0.5 0"' in text


def test_bounds_of_a_continuous_joint_make_it_revolute(file):
    model = with_row(load(file), lambda m: m.joint.lower, 1, -0.5)
    again, _, text = export(file, model)
    assert_same(again, model)
    assert '<joint name="wrist" type="revolute">' in text


def test_a_revolute_joint_without_bounds_becomes_continuous(file):
    model = with_row(load(file), lambda m: m.joint.lower, 0, -np.inf)
    model = with_row(model, lambda m: m.joint.upper, 0, np.inf)
    again, changes, text = export(file, model)
    assert_same(again, model)
    assert '<joint name="shoulder" type="continuous">' in text and len(changes) == 2


class TestMergedLinks:
    def test_change_goes_to_the_main_link(self, file):
        model = with_row(load(file), lambda m: m.body.mass, UPPER, 2.0)
        again, changes, text = export(file, model)
        assert again.body.mass[UPPER] == 2.0
        assert_same(again, model, atol=1e-15)
        assert {c.element for c in changes} == {"link 'upper'"}
        tool = TEXT[TEXT.index('<link name="tool">') : TEXT.index('<joint name="wrist"')]
        assert tool in text

    def test_joint_below_a_merged_link(self, file):
        model = load(file)
        moved = np.add(model.joint.placement.p[HAND], (0.01, 0.02, 0.03))
        model = with_row(model, lambda m: m.joint.placement.p, HAND, moved)
        model = with_row(model, lambda m: m.joint.placement.R, HAND, pose(np.zeros(3), (0.5, -0.3, 0.2)).R)
        again, changes, text = export(file, model)
        assert_same(again, model, atol=1e-15)
        assert {c.element for c in changes} == {"joint 'wrist'"}
        assert TEXT[: TEXT.index('<joint name="wrist"')] in text

    def test_impossible_remainder(self, file):
        model = with_row(load(file), lambda m: m.body.mass, UPPER, 0.1)
        with pytest.raises(ModelError, match=r"0\.2 kg belong to links fixed to it \(tool\)") as caught:
            export(file, model)
        assert caught.value.problems[0].line == 13
        assert not file.with_name("out.urdf").exists()

    def test_unmerged_model(self, file):
        model = assemble(read_urdf(file)[0])
        tool = model.topology.body_index("tool")
        model = with_row(model, lambda m: m.body.mass, tool, 0.25)
        out = file.with_name("out.urdf")
        changes = export_urdf(file, model, out, merge=False)
        assert [str(c) for c in changes] == ["link 'tool': mass [kg] 0.2 → 0.25"]
        assert_same(assemble(read_urdf(out)[0]), model)


class TestRefusals:
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
    def test_impossible_values_are_not_written(self, file, where, row, value, code):
        with pytest.raises(ModelError) as caught:
            export(file, with_row(load(file), where, row, value))
        assert caught.value.problems[0].code == code
        assert not file.with_name("out.urdf").exists()

    def test_model_of_another_file(self, file, tmp_path):
        other = tmp_path / "other.urdf"
        other.write_bytes(TEXT.replace('"hand"', '"paw"').encode())
        with pytest.raises(ModelError, match="not this file's"):
            export_urdf(file, load(other), tmp_path / "out.urdf")

    def test_file_with_errors(self, file):
        model = load(file)
        file.write_bytes(TEXT.replace('value="0.5"', 'value="half"').encode())
        with pytest.raises(ModelError, match="half"):
            export(file, model)


def test_what_urdf_cannot_hold_is_listed(file):
    model = load(file)
    model = with_row(model, lambda m: m.joint.armature, 0, 0.01)
    model = with_row(model, lambda m: m.gravity, 2, -1.62)
    model = with_row(model, lambda m: m.joint.mimic_ratio, HAND, 2.0)
    model = with_row(model, lambda m: m.actuator.gear, 1, 3.0)
    with pytest.warns(ModelWarning, match="does not hold these changes"):
        _, changes, text = export(file, model)
    assert text == TEXT
    assert {c.note for c in changes} == {"not expressible in URDF"}
    assert {(c.element, c.parameter) for c in changes} == {
        ("joint 'wrist'", "mimic ratio"),
        ("joint 'shoulder'", "armature"),
        ("actuator 'wrist'", "gear"),
        ("model 'z'", "gravity"),
    }


def test_overwriting_the_original(file):
    model = with_row(load(file), lambda m: m.body.mass, HAND, 0.75)
    export_urdf(file, model, file)
    assert file.read_bytes().decode() == TEXT.replace('"0.5"/>', '"0.75"/>')


def test_an_inertia_from_geometry_is_written_whole(tmp_path):
    file = tmp_path / "box.urdf"
    shape = '<collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'
    text = (
        '<robot name="r">\n  <link name="base"/>\n  <joint name="j" type="continuous"><parent link="base"/>'
        f'<child link="box"/></joint>\n  <link name="box">\n    {shape}\n  </link>\n</robot>\n'
    )
    file.write_text(text)
    model = load(file, inertia="from_geometry")
    again, changes, written = export(file, model, inertia="from_geometry")
    assert changes == [] and written == text
    model = with_row(model, lambda m: m.body.mass, 0, 7.0)
    again, (change,), written = export(file, model, inertia="from_geometry")
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
    model = with_row(model, lambda m: m.body.mass, 2, 2.5)
    model = with_row(model, lambda m: m.joint.axis, 4, (0.0, 0.6, 0.8))
    with pytest.warns(ModelWarning, match="universal"):
        again, changes, _ = export(file, model)
    assert {(c.element, c.parameter, bool(c.note)) for c in changes} == {
        ("link 'a'", "mass [kg]", False),
        ("joint 'planar'", "damping", False),
        ("joint 'universal'", "damping", True),
        ("joint 'universal'", "axis", False),
        ("joint 'spherical'", "damping", False),
    }
    damping[3:5] = 0.0
    assert_same(again, eqx.tree_at(lambda m: m.joint.damping, model, damping))


def test_relative_meshes_are_warned_about(file, tmp_path):
    (tmp_path / "m.stl").write_text("solid")
    mesh = '<link name="base"><visual><geometry><mesh filename="m.stl"/></geometry></visual></link>'
    file.write_bytes(TEXT.replace('<link name="base"/>', mesh).encode())
    (tmp_path / "elsewhere").mkdir()
    with pytest.warns(ModelWarning, match="relative to its folder"):
        export_urdf(file, load(file), tmp_path / "elsewhere" / "arm.urdf")


@pytest.mark.parametrize("angles", [(0.1, 0.2, 0.3), (-3.0, 1.2, 2.5), (0.4, np.pi / 2, 0.0), (0.4, -np.pi / 2, 1.0)])
def test_roll_pitch_yaw(angles):
    R = pose(np.zeros(3), angles).R
    np.testing.assert_allclose(pose(np.zeros(3), rpy(R)).R, R, rtol=0, atol=1e-12)


class TestRealFiles:
    @pytest.mark.parametrize(("name", "body"), [("a1/a1.urdf", "FL_upper"), ("franka_panda/panda.urdf", "panda_link4")])
    def test_one_mass(self, tmp_path, name, body):
        data = pytest.importorskip("pybullet_data", reason="pybullet has no wheel for this Python")
        file = Path(data.getDataPath()) / name
        options = {"packages": {"meshes": file.parent / "meshes"}}
        model = load(file, **options)
        row = model.topology.body_index(body)
        mass = float(model.body.mass[row]) * 1.1
        model = with_row(model, lambda m: m.body.mass, row, mass)
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

    def test_a_body_with_merged_links(self, tmp_path):
        data = pytest.importorskip("pybullet_data", reason="pybullet has no wheel for this Python")
        file = Path(data.getDataPath()) / "a1/a1.urdf"
        model = load(file, base="free")
        row = model.topology.body_index("FL_lower")
        model = with_row(model, lambda m: m.body.mass, row, 0.3)
        with pytest.warns(ModelWarning, match="relative to its folder"):
            export_urdf(file, model, tmp_path / "a1.urdf", base="free")
        again = load(tmp_path / "a1.urdf", base="free")
        assert again.body.mass[row] == 0.3
        assert_same(again, model, atol=1e-16)
