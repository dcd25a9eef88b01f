"""MJCF export of what the file cannot take: said by name, and nothing is written."""

import pytest

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.mjcf.edit_mjcf import export_mjcf
from support.arm_files import line_of
from support.exported_models import body_index, changed, dof, load


def test_what_mjcf_cannot_hold_is_reported(arm_mjcf):
    model = load(arm_mjcf)
    new = changed(model, lambda m: m.joint.breakaway, dof(model, "turn"), 0.5)
    with pytest.warns(ModelWarning, match="breakaway"):
        changes = export_mjcf(arm_mjcf, new, arm_mjcf.with_name("out.xml"))
    assert [(c.element, c.note) for c in changes] == [("joint 'turn'", "MJCF has no place for it")]
    assert arm_mjcf.with_name("out.xml").read_bytes() == arm_mjcf.read_bytes()


def test_copies_and_other_files_are_refused_by_name(tmp_path, arm_mjcf):
    model = load(arm_mjcf)
    new = changed(model, lambda m: m.body.mass, body_index(model, "copy1"), 1.0)
    new = changed(new, lambda m: m.joint.damping, dof(model, "spin0"), 1.0)
    with pytest.raises(ModelError) as caught:
        export_mjcf(arm_mjcf, new, tmp_path / "no.xml")
    assert [p.line for p in caught.value.problems] == [line_of("<replicate")] * 2
    assert "'copy1'" in str(caught.value) and "'spin0'" in str(caught.value)
    (tmp_path / "part.xml").write_text('<mujoco>\n<body name="b"><joint/><geom size=".1"/></body></mujoco>')
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    model = load(main)
    with pytest.raises(ModelError, match=r"part.xml:2: .*'b' has changed, but it stands in another file"):
        export_mjcf(main, changed(model, lambda m: m.body.mass, 0, 9.0), tmp_path / "no.xml")


def test_a_compiler_setting_that_overrides_the_change_is_found_by_reading_back(tmp_path):
    path = tmp_path / "a.xml"
    body = '<body><joint/><geom size=".1"/></body>'
    path.write_text(f'<mujoco><compiler boundmass="5"/><worldbody>{body}</worldbody></mujoco>')
    model = load(path)
    with pytest.raises(ModelError, match="would be read back as 5"):
        export_mjcf(path, changed(model, lambda m: m.body.mass, 0, 1.0), tmp_path / "no.xml")
    assert not (tmp_path / "no.xml").exists()


def test_an_inertial_in_another_file_that_would_begin_to_count(tmp_path):
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    (tmp_path / "part.xml").write_text(f'<mujoco><body name="b"><joint/>{inertial}<geom size=".1"/></body></mujoco>')
    path = tmp_path / "a.xml"
    body = '<body name="a"><joint/><geom size=".1"/></body><include file="part.xml"/>'
    path.write_text(f'<mujoco><compiler inertiafromgeom="true"/><worldbody>{body}</worldbody></mujoco>')
    new = changed(load(path), lambda m: m.body.mass, 0, 1.0)
    with pytest.raises(ModelError, match=r"part.xml:1: .*<inertial> of body 'b' in another file would count"):
        export_mjcf(path, new, tmp_path / "no.xml")


def test_impossible_mass_properties(arm_mjcf, tmp_path):
    model = load(arm_mjcf)
    new = changed(model, lambda m: m.body.mass, body_index(model, "wrist"), -0.1)
    with pytest.raises(ModelError, match=r"mass of body 'wrist' is -0\.1 kg") as caught:
        export_mjcf(arm_mjcf, new, tmp_path / "no.xml")
    assert caught.value.problems[0].line == line_of('<body name="wrist"')


def test_bodies_that_cannot_share_a_change(arm_mjcf, tmp_path):
    text = arm_mjcf.read_text().replace('diaginertia=".01 .02 .025"', 'diaginertia=".01 .01 .0199"')
    arm_mjcf.write_text(text.replace('<body name="tool" pos="0 0 .1">', '<body name="tool">'))
    model = load(arm_mjcf)
    flat = changed(model, lambda m: m.body.inertia, body_index(model, "wrist"), [1, 1, 2 + 1e-7, 0, 0, 0])
    with pytest.raises(ModelError, match=r"'wrist' has changed, and neither it nor those fixed to it, 'tool', can"):
        export_mjcf(arm_mjcf, flat, tmp_path / "no.xml")


def test_a_switch_that_wins_is_found_by_reading_back(tmp_path):
    path = tmp_path / "a.xml"
    flag = '<option><flag damper="disable"/></option>'
    body = '<body><joint name="j"/><geom size=".1"/></body>'
    path.write_text(f"<mujoco>{flag}<worldbody>{body}</worldbody></mujoco>")
    model = load(path)
    with pytest.raises(ModelError, match="damping of joint 'j' would be read back"):
        export_mjcf(path, changed(model, lambda m: m.joint.damping, 0, 1.0), tmp_path / "no.xml")


def test_another_model_is_refused(arm_mjcf, tmp_path):
    path = tmp_path / "a.xml"
    path.write_text('<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>')
    with pytest.raises(ModelError, match="the model is not this file's: its body names differ"):
        export_mjcf(arm_mjcf, load(path), tmp_path / "no.xml")


def test_relative_paths_are_pointed_out_when_the_file_moves(tmp_path):
    (tmp_path / "part.xml").write_text('<mujoco><body name="b"><joint/><geom size=".1"/></body></mujoco>')
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    (tmp_path / "elsewhere").mkdir()
    with pytest.warns(ModelWarning, match="copy them along"):
        export_mjcf(main, load(main), tmp_path / "elsewhere" / "main.xml")
