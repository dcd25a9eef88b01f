"""MJCF export of changes that cannot be written: reported by name, and nothing is written."""

import pytest

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.mjcf.edit_mjcf import export_mjcf
from support.arm_files import line_of
from support.exported_models import body_index, dof_index, load, with_entry


def test_unsupported_parameters_are_reported(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.joint.stribeck_friction, dof_index(model, "turn"), 0.5)
    with pytest.warns(ModelWarning, match="stribeck_friction"):
        changes = export_mjcf(arm_mjcf, new, arm_mjcf.with_name("out.xml"))
    assert [(c.element, c.note) for c in changes] == [("joint 'turn'", "not supported by MJCF")]
    assert arm_mjcf.with_name("out.xml").read_bytes() == arm_mjcf.read_bytes()


def test_changes_in_copies_and_other_files_are_rejected(tmp_path, arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.body.mass, body_index(model, "copy1"), 1.0)
    new = with_entry(new, lambda m: m.joint.damping, dof_index(model, "spin0"), 1.0)
    with pytest.raises(ModelError) as caught:
        export_mjcf(arm_mjcf, new, tmp_path / "no.xml")
    assert [p.line for p in caught.value.problems] == [line_of("<replicate")] * 2
    assert "'copy1'" in str(caught.value) and "'spin0'" in str(caught.value)
    (tmp_path / "part.xml").write_text('<mujoco>\n<body name="b"><joint/><geom size=".1"/></body></mujoco>')
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    model = load(main)
    with pytest.raises(
        ModelError,
        match=r"part.xml:2: error: cannot write the change to the inertia of body 'b': it is defined in another file",
    ):
        export_mjcf(main, with_entry(model, lambda m: m.body.mass, 0, 9.0), tmp_path / "no.xml")


def test_a_change_to_an_actuator_in_another_file_is_rejected(tmp_path):
    (tmp_path / "part.xml").write_text('<mujoco><actuator><motor name="m" joint="j"/></actuator></mujoco>')
    main = tmp_path / "main.xml"
    body = '<body><joint name="j"/><geom size=".1"/></body>'
    main.write_text(f'<mujoco><worldbody>{body}</worldbody><include file="part.xml"/></mujoco>')
    new = with_entry(load(main), lambda m: m.actuator.gear, 0, 2.0)
    with pytest.raises(ModelError, match="cannot write the change to the parameters of actuator 'm': it is defined in"):
        export_mjcf(main, new, tmp_path / "no.xml")


def test_a_compiler_setting_that_overrides_the_change_is_detected(tmp_path):
    path = tmp_path / "a.xml"
    body = '<body><joint/><geom size=".1"/></body>'
    path.write_text(f'<mujoco><compiler boundmass="5"/><worldbody>{body}</worldbody></mujoco>')
    model = load(path)
    with pytest.raises(ModelError, match="would read back as 5"):
        export_mjcf(path, with_entry(model, lambda m: m.body.mass, 0, 1.0), tmp_path / "no.xml")
    assert not (tmp_path / "no.xml").exists()


def test_a_change_for_which_there_is_no_attribute_is_rejected(tmp_path):
    """The placement of a free joint is the identity, and nothing else has changed."""
    path = tmp_path / "a.xml"
    path.write_text('<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>')
    model = load(path)
    with pytest.raises(ModelError, match=r"placement\.p"):
        export_mjcf(path, with_entry(model, lambda m: m.joint.placement.p, 0, [0.0, 0.0, 1.0]), tmp_path / "no.xml")
    assert not (tmp_path / "no.xml").exists()


def test_an_inertial_in_another_file_that_would_take_effect(tmp_path):
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    (tmp_path / "part.xml").write_text(f'<mujoco><body name="b"><joint/>{inertial}<geom size=".1"/></body></mujoco>')
    path = tmp_path / "a.xml"
    body = '<body name="a"><joint/><geom size=".1"/></body><include file="part.xml"/>'
    path.write_text(f'<mujoco><compiler inertiafromgeom="true"/><worldbody>{body}</worldbody></mujoco>')
    new = with_entry(load(path), lambda m: m.body.mass, 0, 1.0)
    with pytest.raises(ModelError, match=r"part.xml:1: .*<inertial> of body 'b' in another file would take effect"):
        export_mjcf(path, new, tmp_path / "no.xml")


def test_inconsistent_mass_properties(arm_mjcf, tmp_path):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.body.mass, body_index(model, "wrist"), -0.1)
    with pytest.raises(ModelError, match=r"mass of body 'wrist' is -0\.1 kg") as caught:
        export_mjcf(arm_mjcf, new, tmp_path / "no.xml")
    assert caught.value.problems[0].line == line_of('<body name="wrist"')


def test_a_change_that_cannot_be_distributed(arm_mjcf, tmp_path):
    text = arm_mjcf.read_text().replace('diaginertia=".01 .02 .025"', 'diaginertia=".01 .01 .0199"')
    arm_mjcf.write_text(text.replace('<body name="tool" pos="0 0 .1">', '<body name="tool">'))
    model = load(arm_mjcf)
    flat = with_entry(model, lambda m: m.body.inertia, body_index(model, "wrist"), [1, 1, 2 + 1e-7, 0, 0, 0])
    with pytest.raises(
        ModelError, match=r"'wrist' cannot be distributed over it and the bodies fixed to it \('tool'\)"
    ):
        export_mjcf(arm_mjcf, flat, tmp_path / "no.xml")


def test_a_flag_that_overrides_the_change_is_detected(tmp_path):
    path = tmp_path / "a.xml"
    flag = '<option><flag damper="disable"/></option>'
    body = '<body><joint name="j"/><geom size=".1"/></body>'
    path.write_text(f"<mujoco>{flag}<worldbody>{body}</worldbody></mujoco>")
    model = load(path)
    with pytest.raises(ModelError, match="damping of joint 'j' would read back"):
        export_mjcf(path, with_entry(model, lambda m: m.joint.damping, 0, 1.0), tmp_path / "no.xml")


def test_another_model_is_rejected(arm_mjcf, tmp_path):
    path = tmp_path / "a.xml"
    path.write_text('<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>')
    with pytest.raises(ModelError, match="the model does not belong to this file: its body names differ"):
        export_mjcf(arm_mjcf, load(path), tmp_path / "no.xml")


def test_relative_paths_are_pointed_out_when_the_file_moves(tmp_path):
    (tmp_path / "part.xml").write_text('<mujoco><body name="b"><joint/><geom size=".1"/></body></mujoco>')
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    (tmp_path / "elsewhere").mkdir()
    with pytest.warns(ModelWarning, match="copy these files as well"):
        export_mjcf(main, load(main), tmp_path / "elsewhere" / "main.xml")
