"""MJCF export of joint and actuator parameters, in the units of the file."""

import numpy as np
import pytest

from hybridsim.core.errors import ModelError
from hybridsim.io.mjcf.edit_joints import degrees
from hybridsim.io.mjcf.edit_mjcf import export_mjcf
from support.arm_files import line_of
from support.exported_models import assert_same, body_index, changed_line, dof_index, load, mjcf_round_trip, with_entry


@pytest.mark.parametrize(
    ("field", "attribute", "joint", "value"),
    [
        ("damping", "damping", "turn", 1 / 3),
        ("damping", "damping", "lift", 0.0),
        ("armature", "armature", "turn", 0.7),
        ("friction", "frictionloss", "lift", 0.9),
        ("friction", "frictionloss", "turn", 0.9),
        ("stiffness", "stiffness", "push", 1 / 7),
    ],
)
def test_scalar_joint_parameters(arm_mjcf, field, attribute, joint, value):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: getattr(m.joint, field), dof_index(model, joint), value)
    changes, *lines = mjcf_round_trip(arm_mjcf, new)
    _, after = changed_line(*lines)
    assert f'name="{joint}"' in after and repr(value) in after
    assert [c.parameter.split()[0] for c in changes] == [attribute]


def test_angles_are_written_in_degrees(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.joint.lower, dof_index(model, "turn"), -1.0)
    new = with_entry(new, lambda m: m.joint.rest, model.topology.q_slices[body_index(model, "upper")][0] - 1, 0.25)
    _, old_lines, new_lines = mjcf_round_trip(arm_mjcf, new, 1e-15, (".joint.lower", ".joint.upper", ".joint.rest"))
    text = b"\n".join(new_lines).decode()
    assert f'range="{degrees(-1.0)!r} ' in text and f'springref="{degrees(0.25)!r}"' in text
    assert len(old_lines) == len(new_lines)


def test_degrees_convert_back_to_the_same_radians_where_possible():
    values = np.random.default_rng(0).normal(size=500)
    errors = [abs(degrees(v) * (np.pi / 180.0) - v) / abs(v) for v in values]
    assert max(errors) < 2e-16 and np.mean(np.equal(errors, 0.0)) > 0.7


def test_limits_can_be_added_and_removed(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.joint.lower, dof_index(model, "push"), -np.inf)
    one_sided = new
    new = with_entry(new, lambda m: m.joint.upper, dof_index(model, "push"), np.inf)
    new = with_entry(new, lambda m: m.joint.lower, dof_index(model, "lift"), -0.5)
    new = with_entry(new, lambda m: m.joint.upper, dof_index(model, "lift"), 0.5)
    new = with_entry(new, lambda m: m.joint.effort_limit, dof_index(model, "turn"), 12.5)
    mjcf_round_trip(arm_mjcf, new, 1e-15, (".joint.lower", ".joint.upper"))
    with pytest.raises(ModelError, match="one-sided"):
        export_mjcf(arm_mjcf, one_sided, arm_mjcf.with_name("no.xml"))


def test_axis_anchor_and_placement(arm_mjcf):
    model = load(arm_mjcf)
    i = body_index(model, "upper:lift")
    new = with_entry(model, lambda m: m.joint.anchor, i, [0.1, 0.2, 0.3])
    new = with_entry(new, lambda m: m.joint.axis, i, [0.0, 0.6, 0.8])
    new = with_entry(new, lambda m: m.joint.placement.p, i, [0.3, 0.2, 0.1])
    changes, *_ = mjcf_round_trip(arm_mjcf, new, 1e-15, (".joint.axis",))
    assert sorted(c.parameter for c in changes) == ["axis", "pos [m]", "pos [m]"]


def test_placement_with_ref_frames_and_other_orientations(arm_mjcf):
    model = load(arm_mjcf)
    rotation = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
    new = with_entry(model, lambda m: m.joint.placement.R, body_index(model, "wrist"), rotation)
    new = with_entry(new, lambda m: m.joint.placement.p, body_index(model, "wrist"), [0.5, 0.6, 0.7])
    new = with_entry(new, lambda m: m.joint.placement.R, body_index(model, "base"), rotation)
    new = with_entry(new, lambda m: m.joint.placement.p, body_index(model, "finger"), [0.5, 0.6, 0.7])
    rounded = (".joint.placement.R", ".joint.placement.p")
    _, _, new_lines = mjcf_round_trip(arm_mjcf, new, 1e-14, rounded)
    text = b"\n".join(new_lines).decode()
    assert "xyaxes" not in text and 'euler="30 0 0"' not in text
    # the file places a finger in the tool, which was merged into the wrist
    assert 'name="finger" pos="0.5 0.6 0.6' in text
    # a new axis of a joint with `ref` changes the pose in the file
    new = with_entry(model, lambda m: m.joint.axis, body_index(model, "base"), [0.0, 0.6, 0.8])
    mjcf_round_trip(arm_mjcf, new, 1e-14, (*rounded, ".joint.axis"))


def actuator_index(model, name: str) -> int:
    return model.actuator.names.index(name)


def test_other_values_of_gear_are_preserved(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.actuator.gear, actuator_index(model, "motor"), 1 / 3)
    before, after = changed_line(*mjcf_round_trip(arm_mjcf, new)[1:])
    assert after == before.replace("50 0", f"{1 / 3!r} 0")


def test_gains_of_every_actuator_type(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.actuator.gain, actuator_index(model, "servo"), 25.5)
    new = with_entry(new, lambda m: m.actuator.bias, actuator_index(model, "servo"), [0, -25.5, -1 / 3])
    new = with_entry(new, lambda m: m.actuator.gain, actuator_index(model, "drive"), 5.5)
    new = with_entry(new, lambda m: m.actuator.bias, actuator_index(model, "drive"), [0, 0, -5.5])
    new = with_entry(new, lambda m: m.actuator.gain, actuator_index(model, "any"), 6.5)
    new = with_entry(new, lambda m: m.actuator.bias, actuator_index(model, "any"), [1, 1 / 7, 3])
    changes, _, new_lines = mjcf_round_trip(arm_mjcf, new)
    text = b"\n".join(new_lines).decode()
    assert f'kp="25.5" kv="{1 / 3!r}"' in text
    assert 'kv="5.5"' in text and 'gainprm="6.5 0 0"' in text and f'biasprm="1.0 {1 / 7!r} 3.0"' in text
    assert [c.parameter for c in changes] == ["kp", "kv", "kv", "gainprm", "biasprm"]


def test_a_motor_has_no_gain(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.actuator.gain, actuator_index(model, "motor"), 2.0)
    with pytest.raises(ModelError, match=r"<motor> does not support gain .* of actuator 'motor'") as caught:
        export_mjcf(arm_mjcf, new, arm_mjcf.with_name("no.xml"))
    assert (
        caught.value.problems[0].line == line_of('<motor name="motor"') and "<general>" in caught.value.problems[0].fix
    )


def test_actuator_ranges(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.actuator.command_upper, actuator_index(model, "motor"), 1.5)
    for field, value in (("force_lower", -np.inf), ("force_upper", np.inf)):
        new = with_entry(new, lambda m, f=field: getattr(m.actuator, f), actuator_index(model, "drive"), value)
    for field, value in (("force_lower", -2.0), ("force_upper", 2.5)):
        new = with_entry(new, lambda m, f=field: getattr(m.actuator, f), actuator_index(model, "any"), value)
    changes, *_ = mjcf_round_trip(arm_mjcf, new)
    assert [c.parameter for c in changes] == ["ctrlrange", "forcerange", "forcerange"]


def test_damping_ratios_become_values_when_the_inertia_changes(tmp_path):
    path, out = tmp_path / "a.xml", tmp_path / "b.xml"
    body = '<body name="b"><joint name="j" springdamper="1 .5"/><geom size=".1" pos="1 0 0"/></body>'
    servo = '<actuator><position name="p" joint="j" kp="7" dampratio="1"/></actuator>'
    path.write_text(f'<mujoco model="m"><worldbody>{body}</worldbody>{servo}</mujoco>')
    model = load(path)
    new = with_entry(model, lambda m: m.body.mass, 0, 1.5)
    changes = export_mjcf(path, new, out)
    assert [c.parameter for c in changes] == [
        "mass [kg]",
        "stiffness and damping instead of springdamper",
        "kv instead of dampratio",
    ]
    assert_same(load(out), new)
    new = with_entry(model, lambda m: m.joint.damping, 0, 0.25)
    export_mjcf(path, new, out)
    assert_same(load(out), new)
    assert 'damping="0.25"' in out.read_text() and "dampratio" in out.read_text()


def test_damping_ratios_of_a_default_class_become_values(tmp_path):
    path, out = tmp_path / "a.xml", tmp_path / "b.xml"
    default = '<default><joint springdamper="1 .5"/><position kp="7" dampratio="1"/></default>'
    body = '<body name="b"><joint name="j"/><geom size=".1" pos="1 0 0"/></body>'
    servo = '<actuator><position name="p" joint="j"/></actuator>'
    path.write_text(f'<mujoco model="m">{default}<worldbody>{body}</worldbody>{servo}</mujoco>')
    model = load(path)
    new = with_entry(with_entry(model, lambda m: m.body.mass, 0, 1.5), lambda m: m.joint.damping, 0, 0.25)
    export_mjcf(path, new, out)
    assert_same(load(out), new)
