"""MJCF export: exactly the change comes back, and everything else in the file stays byte for byte."""

import importlib.util
import warnings
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.load import load_model
from hybridsim.io.mjcf_export import export_mjcf
from hybridsim.io.mjcf_write_joints import degrees

TEXT = """<?xml version="1.0" encoding="utf-8"?>
<!-- a hand-written arm: keep me -->
<mujoco model='arm'>
\t<compiler eulerseq="zyx"/>   <!-- angles in degrees, the default -->
  <option timestep="0.002" />
  <default>
    <joint damping="0.5" user="1 2"/>
    <default class="soft"><joint stiffness="3" springref="10"/><geom friction="0.8 0.01 0.001"/></default>
  </default>
  <custom><numeric name="unknown to us" data="1 2 3"/></custom>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1"/>
    <body name="base" pos="0 0 1" euler="30 0 0">
      <joint name="turn" axis="0 0 1" range="-90 90" ref="20"   armature = "0.1"/>
      <inertial mass="2.50" pos="0 0 .1" diaginertia="0.10 0.2 0.25"/>
      <!-- inside -->
      <body name="upper" childclass="soft" pos=".1 0 0">
        <joint name="lift" axis="0 1 0" pos="0 0 -.05" frictionloss=".2" limited="false"/>
        <joint name="push" type="slide" axis="1 0 0" range="-.1 .2"/>
        <geom name="shell" type="box" size=".1 .2 .3" rgba="1 0 0 1"/>
        <frame pos="0 0 .3" euler="0 90 0">
          <body name="wrist" pos=".1 .2 .3" xyaxes="0 1 0 -1 0 0">
            <joint name="ball" type="ball"/>
            <inertial pos="0 0 0" mass="1" quat="1 1 0 0" diaginertia=".01 .02 .025"/>
            <body name="tool" pos="0 0 .1"><geom name="tip" size=".02" mass=".3"/>
              <body name="finger" pos="0 .1 0"><joint name="grip"/><geom size=".02"/></body>
            </body>
          </body>
        </frame>
      </body>
    </body>
    <replicate count="2" offset="1 0 0"><body name="copy" pos="3 0 0"><joint name="spin"/><geom size=".1"/></body></replicate>
  </worldbody>
  <actuator>
    <motor name="motor" joint="turn" gear="50 0 0 0 0 0" ctrlrange="-1 1"/>
    <position name="servo" joint="lift" kp="20" kv="1.5"/>
    <velocity name="drive" joint="push" kv="4" forcerange="-3 3"/>
    <general name="any" joint="push" gainprm="2 0 0" biastype="affine" biasprm="1 -2 -3"/>
  </actuator>
</mujoco>
"""  # noqa: E501


@pytest.fixture
def arm(tmp_path) -> Path:
    path = tmp_path / "arm.xml"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    return path


def load(path: Path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_model(path, **options)


def leaves(model) -> dict:
    flat = jax.tree_util.tree_flatten_with_path(model)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in flat}


# the stops' default stiffness follows from the inertia that a joint carries, which the file does not hold
DERIVED = (".joint.limit_stiffness", ".joint.limit_damping")


def assert_equal(model, expected, rtol=0.0, but=()):
    for (name, got), want in zip(leaves(model).items(), leaves(expected).values(), strict=True):
        if name in DERIVED:
            continue
        tolerance = rtol if name in but else 0.0
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=name)
    assert model.timestep == expected.timestep


def changed(model, where, index, value):
    """The model with one entry of one array replaced."""
    array = np.array(where(model), dtype=float)
    array[index] = value
    return eqx.tree_at(where, model, array)


def round_trip(arm: Path, new, rtol=0.0, but=()):
    """Export, check that exactly the change comes back, and return changes and the differing lines."""
    out = arm.with_name("out.xml")
    changes = export_mjcf(arm, new, out)
    assert_equal(load(out), new, rtol, but)
    old_lines, new_lines = arm.read_bytes().split(b"\r\n"), out.read_bytes().split(b"\r\n")
    return changes, old_lines, new_lines


def only_difference(old_lines, new_lines) -> tuple[str, str]:
    assert len(old_lines) == len(new_lines)
    differing = [(a, b) for a, b in zip(old_lines, new_lines, strict=True) if a != b]
    assert len(differing) == 1
    return differing[0][0].decode(), differing[0][1].decode()


def test_an_unchanged_model_gives_the_same_bytes(arm):
    out = arm.with_name("out.xml")
    assert export_mjcf(arm, load(arm), out) == []
    assert out.read_bytes() == arm.read_bytes()


def line_of(fragment: str) -> int:
    return next(k for k, line in enumerate(TEXT.splitlines(), 1) if fragment in line)


def index(model, body: str) -> int:
    return model.topology.body_index(body)


def dof(model, joint: str) -> int:
    return model.topology.v_slices[model.topology.joint_index(joint)][0]


def test_mass_in_an_existing_inertial(arm):
    model = load(arm)
    new = changed(model, lambda m: m.body.mass, index(model, "base"), 1 / 3)
    changes, *lines = round_trip(arm, new)
    before, after = only_difference(*lines)
    assert after == before.replace("2.50", repr(1 / 3))
    assert [(c.element, c.line, c.parameter, c.before, c.after) for c in changes] == [
        ("body 'base'", line_of('<body name="base"'), "mass [kg]", 2.5, 1 / 3)
    ]


def test_centre_of_mass_and_diagonal_inertia(arm):
    model = load(arm)
    new = changed(model, lambda m: m.body.com, index(model, "base"), [0.1, 0.2, 1 / 3])
    new = changed(new, lambda m: m.body.inertia, index(model, "base"), [1 / 7, 0.2, 0.3, 0, 0, 0])
    before, after = only_difference(*round_trip(arm, new)[1:])
    text = f'pos="0.1 0.2 {1 / 3!r}" diaginertia="{1 / 7!r} 0.2 0.3"'
    assert after == before.replace('pos="0 0 .1" diaginertia="0.10 0.2 0.25"', text)


def test_full_inertia_replaces_diagonal_and_orientation(arm):
    model = load(arm)
    entries = [0.1, 0.2, 0.25, 0.01, -0.02, 0.03]
    new = changed(model, lambda m: m.body.inertia, index(model, "base"), entries)
    _, after = only_difference(*round_trip(arm, new)[1:])
    assert "diaginertia" not in after and 'fullinertia="0.1 0.2 0.25 0.01 -0.02 0.03"' in after


def test_inertia_from_geometry_becomes_an_inertial(arm):
    model = load(arm)
    new = changed(model, lambda m: m.body.mass, index(model, "upper"), 1.1)
    _, old_lines, new_lines = round_trip(arm, new)
    added = [line for line in new_lines if line not in old_lines]
    assert len(added) == 1 and added[0].startswith(b'        <inertial pos="') and b'mass="1.1"' in added[0]
    assert [line for line in new_lines if line in old_lines] == old_lines


def test_a_body_takes_the_whole_change_of_what_was_merged_into_it(arm):
    model = load(arm)
    new = changed(model, lambda m: m.body.mass, index(model, "wrist"), 2.0)
    changes, *lines = round_trip(arm, new, 1e-14, (".body.mass", ".body.com", ".body.inertia"))
    _, after = only_difference(*lines)
    assert 'mass="1.7"' in after and "quat" not in after
    assert [c.parameter for c in changes] == ["mass [kg]"]
    with pytest.raises(ModelError, match=r"mass of body 'wrist' is -0\.2 kg"):
        export_mjcf(arm, changed(model, lambda m: m.body.mass, index(model, "wrist"), 0.1), arm.with_name("no.xml"))
    assert not arm.with_name("no.xml").exists()


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
def test_plain_joint_parameters(arm, field, attribute, joint, value):
    model = load(arm)
    new = changed(model, lambda m: getattr(m.joint, field), dof(model, joint), value)
    changes, *lines = round_trip(arm, new)
    _, after = only_difference(*lines)
    assert f'name="{joint}"' in after and repr(value) in after
    assert [c.parameter.split()[0] for c in changes] == [attribute]


def test_angles_are_written_in_degrees(arm):
    model = load(arm)
    new = changed(model, lambda m: m.joint.lower, dof(model, "turn"), -1.0)
    new = changed(new, lambda m: m.joint.rest, model.topology.q_slices[index(model, "upper")][0] - 1, 0.25)
    _, old_lines, new_lines = round_trip(arm, new, 1e-15, (".joint.lower", ".joint.upper", ".joint.rest"))
    text = b"\n".join(new_lines).decode()
    assert f'range="{degrees(-1.0)!r} ' in text and f'springref="{degrees(0.25)!r}"' in text
    assert len(old_lines) == len(new_lines)


def test_degrees_turn_back_into_the_same_radians_where_possible():
    values = np.random.default_rng(0).normal(size=500)
    errors = [abs(degrees(v) * (np.pi / 180.0) - v) / abs(v) for v in values]
    assert max(errors) < 2e-16 and np.mean(np.equal(errors, 0.0)) > 0.7


def test_limits_can_be_added_and_removed(arm):
    model = load(arm)
    new = changed(model, lambda m: m.joint.lower, dof(model, "push"), -np.inf)
    one_sided = new
    new = changed(new, lambda m: m.joint.upper, dof(model, "push"), np.inf)
    new = changed(new, lambda m: m.joint.lower, dof(model, "lift"), -0.5)
    new = changed(new, lambda m: m.joint.upper, dof(model, "lift"), 0.5)
    new = changed(new, lambda m: m.joint.effort_limit, dof(model, "turn"), 12.5)
    round_trip(arm, new, 1e-15, (".joint.lower", ".joint.upper"))
    with pytest.raises(ModelError, match="one-sided"):
        export_mjcf(arm, one_sided, arm.with_name("no.xml"))


def test_axis_anchor_and_placement(arm):
    model = load(arm)
    i = index(model, "upper:lift")
    new = changed(model, lambda m: m.joint.anchor, i, [0.1, 0.2, 0.3])
    new = changed(new, lambda m: m.joint.axis, i, [0.0, 0.6, 0.8])
    new = changed(new, lambda m: m.joint.placement.p, i, [0.3, 0.2, 0.1])
    changes, *_ = round_trip(arm, new, 1e-15, (".joint.axis",))
    assert sorted(c.parameter for c in changes) == ["axis", "pos [m]", "pos [m]"]


def test_placement_with_ref_frames_and_other_orientations(arm):
    model = load(arm)
    turn = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
    new = changed(model, lambda m: m.joint.placement.R, index(model, "wrist"), turn)
    new = changed(new, lambda m: m.joint.placement.p, index(model, "wrist"), [0.5, 0.6, 0.7])
    new = changed(new, lambda m: m.joint.placement.R, index(model, "base"), turn)
    new = changed(new, lambda m: m.joint.placement.p, index(model, "finger"), [0.5, 0.6, 0.7])
    but = (".joint.placement.R", ".joint.placement.p")
    _, _, new_lines = round_trip(arm, new, 1e-14, but)
    text = b"\n".join(new_lines).decode()
    assert "xyaxes" not in text and 'euler="30 0 0"' not in text
    # the file places a finger in the tool, which was merged into the wrist
    assert 'name="finger" pos="0.5 0.6 0.6' in text
    # a new axis of a joint with `ref` moves the pose that the file draws
    new = changed(model, lambda m: m.joint.axis, index(model, "base"), [0.0, 0.6, 0.8])
    round_trip(arm, new, 1e-14, (*but, ".joint.axis"))


def actuator(model, name: str) -> int:
    return model.actuator.names.index(name)


def test_gear_keeps_its_other_numbers(arm):
    model = load(arm)
    new = changed(model, lambda m: m.actuator.gear, actuator(model, "motor"), 1 / 3)
    before, after = only_difference(*round_trip(arm, new)[1:])
    assert after == before.replace("50 0", f"{1 / 3!r} 0")


def test_gains_of_every_kind_of_actuator(arm):
    model = load(arm)
    new = changed(model, lambda m: m.actuator.gain, actuator(model, "servo"), 25.5)
    new = changed(new, lambda m: m.actuator.bias, actuator(model, "servo"), [0, -25.5, -1 / 3])
    new = changed(new, lambda m: m.actuator.gain, actuator(model, "drive"), 5.5)
    new = changed(new, lambda m: m.actuator.bias, actuator(model, "drive"), [0, 0, -5.5])
    new = changed(new, lambda m: m.actuator.gain, actuator(model, "any"), 6.5)
    new = changed(new, lambda m: m.actuator.bias, actuator(model, "any"), [1, 1 / 7, 3])
    changes, _, new_lines = round_trip(arm, new)
    text = b"\n".join(new_lines).decode()
    assert f'kp="25.5" kv="{1 / 3!r}"' in text
    assert 'kv="5.5"' in text and 'gainprm="6.5 0 0"' in text and f'biasprm="1.0 {1 / 7!r} 3.0"' in text
    assert [c.parameter for c in changes] == ["kp", "kv", "kv", "gainprm", "biasprm"]


def test_a_motor_has_no_gain(arm):
    model = load(arm)
    new = changed(model, lambda m: m.actuator.gain, actuator(model, "motor"), 2.0)
    with pytest.raises(ModelError, match="do not fit a <motor>") as caught:
        export_mjcf(arm, new, arm.with_name("no.xml"))
    assert (
        caught.value.problems[0].line == line_of('<motor name="motor"') and "<general>" in caught.value.problems[0].fix
    )


def test_actuator_ranges(arm):
    model = load(arm)
    new = changed(model, lambda m: m.actuator.control_upper, actuator(model, "motor"), 1.5)
    for field, value in (("force_lower", -np.inf), ("force_upper", np.inf)):
        new = changed(new, lambda m, f=field: getattr(m.actuator, f), actuator(model, "drive"), value)
    for field, value in (("force_lower", -2.0), ("force_upper", 2.5)):
        new = changed(new, lambda m, f=field: getattr(m.actuator, f), actuator(model, "any"), value)
    changes, *_ = round_trip(arm, new)
    assert [c.parameter for c in changes] == ["ctrlrange", "forcerange", "forcerange"]


def test_friction_keeps_the_other_coefficients(arm):
    model = load(arm)
    names = [info.name for info in model.geometry.infos]
    new = changed(model, lambda m: m.geometry.friction, names.index("shell"), 0.55)
    _, after = only_difference(*round_trip(arm, new)[1:])
    assert 'friction="0.55"' in after


def test_options_and_home(arm):
    model = load(arm)
    new = changed(model, lambda m: m.gravity, 2, -1.62)
    new = changed(new, lambda m: m.home, 0, 0.3)
    changes, _, new_lines = round_trip(arm, new)
    assert [c.parameter for c in changes] == ["gravity [m/s²]", "home [rad, m]"]
    text = b"\n".join(new_lines).decode()
    assert '<option timestep="0.002" gravity="0.0 0.0 -1.62" />' in text and '<key name="home"' in text
    # a second export finds the keyframe
    again = changed(load(arm.with_name("out.xml")), lambda m: m.home, 0, 0.4)
    changes = export_mjcf(arm.with_name("out.xml"), again, arm.with_name("out.xml"))
    assert [c.element for c in changes] == ["key 'home'"]
    assert_equal(load(arm.with_name("out.xml")), again)


def test_time_step_and_a_missing_option(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text('<mujoco>\n  <worldbody><body><joint/><geom size=".1"/></body></worldbody>\n</mujoco>\n')
    model = load(path)
    new = eqx.tree_at(lambda m: m.gravity, model, np.array([0.0, 0.0, -3.7]))
    object.__setattr__(new, "timestep", 0.004)
    export_mjcf(path, new, tmp_path / "b.xml")
    assert '  <option gravity="0.0 0.0 -3.7" timestep="0.004"/>\n' in (tmp_path / "b.xml").read_text()
    assert_equal(load(tmp_path / "b.xml"), new)


def test_without_merging(arm):
    model = load(arm, merge=False)
    new = changed(model, lambda m: m.joint.placement.p, index(model, "tool"), [0.0, 0.1, 0.2])
    new = changed(new, lambda m: m.body.mass, index(model, "wrist"), 1.25)
    out = arm.with_name("out.xml")
    export_mjcf(arm, new, out)
    assert_equal(load(out, merge=False), new)


def test_what_mjcf_cannot_hold_is_reported(arm):
    model = load(arm)
    new = changed(model, lambda m: m.joint.breakaway, dof(model, "turn"), 0.5)
    with pytest.warns(ModelWarning, match="breakaway"):
        changes = export_mjcf(arm, new, arm.with_name("out.xml"))
    assert [(c.element, c.note) for c in changes] == [("joint 'turn'", "MJCF has no place for it")]
    assert arm.with_name("out.xml").read_bytes() == arm.read_bytes()


def test_copies_and_other_files_are_refused_by_name(tmp_path, arm):
    model = load(arm)
    new = changed(model, lambda m: m.body.mass, index(model, "copy1"), 1.0)
    new = changed(new, lambda m: m.joint.damping, dof(model, "spin0"), 1.0)
    with pytest.raises(ModelError) as caught:
        export_mjcf(arm, new, tmp_path / "no.xml")
    assert [p.line for p in caught.value.problems] == [line_of("<replicate")] * 2
    assert "'copy1'" in str(caught.value) and "'spin0'" in str(caught.value)
    (tmp_path / "part.xml").write_text('<mujoco>\n<body name="b"><joint/><geom size=".1"/></body></mujoco>')
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    model = load(main)
    with pytest.raises(ModelError, match=r"part.xml:2: .*'b' has changed, but it stands in another file"):
        export_mjcf(main, changed(model, lambda m: m.body.mass, 0, 9.0), tmp_path / "no.xml")


@pytest.mark.parametrize("setting", ['inertiafromgeom="true"', 'settotalmass="7"', 'boundmass="5"'])
def test_compiler_settings_that_override_the_change_are_refused(tmp_path, setting):
    path = tmp_path / "a.xml"
    path.write_text(
        f'<mujoco><compiler {setting}/><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>'
    )
    model = load(path)
    with pytest.raises(ModelError, match=r"overrides|rescales|would be read back"):
        export_mjcf(path, changed(model, lambda m: m.body.mass, 0, 1.0), tmp_path / "no.xml")
    assert not (tmp_path / "no.xml").exists()


def test_a_default_that_wins_is_found_by_reading_back(tmp_path):
    path = tmp_path / "a.xml"
    default = '<default><joint springdamper="1 1"/></default>'
    body = '<body><joint name="j"/><geom size=".1"/></body>'
    path.write_text(f"<mujoco>{default}<worldbody>{body}</worldbody></mujoco>")
    model = load(path)
    with pytest.raises(ModelError, match="damping of 'j' would be read back"):
        export_mjcf(path, changed(model, lambda m: m.joint.damping, 0, 1.0), tmp_path / "no.xml")


def test_damping_ratios_become_numbers_when_the_inertia_changes(tmp_path):
    path, out = tmp_path / "a.xml", tmp_path / "b.xml"
    body = '<body name="b"><joint name="j" springdamper="1 .5"/><geom size=".1" pos="1 0 0"/></body>'
    servo = '<actuator><position name="p" joint="j" kp="7" dampratio="1"/></actuator>'
    path.write_text(f"<mujoco><worldbody>{body}</worldbody>{servo}</mujoco>")
    model = load(path)
    new = changed(model, lambda m: m.body.mass, 0, 1.5)
    changes = export_mjcf(path, new, out)
    assert [c.parameter for c in changes] == ["mass [kg]", "kv in place of dampratio"]
    assert_equal(load(out), new)
    new = changed(model, lambda m: m.joint.damping, 0, 0.25)
    export_mjcf(path, new, out)
    assert_equal(load(out), new)
    assert 'damping="0.25"' in out.read_text() and "dampratio" in out.read_text()


def test_another_model_is_refused(arm, tmp_path):
    path = tmp_path / "a.xml"
    path.write_text('<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>')
    with pytest.raises(ModelError, match="does not have the bodies"):
        export_mjcf(arm, load(path), tmp_path / "no.xml")


def test_relative_paths_are_pointed_out_when_the_file_moves(tmp_path):
    (tmp_path / "part.xml").write_text('<mujoco><body name="b"><joint/><geom size=".1"/></body></mujoco>')
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    (tmp_path / "elsewhere").mkdir()
    with pytest.warns(ModelWarning, match="copy them along"):
        export_mjcf(main, load(main), tmp_path / "elsewhere" / "main.xml")


@pytest.mark.parametrize("name", ["humanoid", "walker", "quadruped", "stacker"])
def test_real_models(name, tmp_path):
    found = importlib.util.find_spec("dm_control")
    assert found is not None and found.origin is not None
    suite = Path(found.origin).parent / "suite"
    path = suite / f"{name}.xml"
    model = load(path)
    out = tmp_path / f"{name}.xml"
    last = model.nb - 1
    driven = next(i for i in reversed(range(model.nv)) if "ball_root" not in model.topology.dof_names[i])
    new = changed(model, lambda m: m.body.mass, last, model.body.mass[last] * 1.05)
    new = changed(new, lambda m: m.joint.damping, driven, 1 / 7)
    with pytest.warns(ModelWarning, match="copy them along"):
        changes = export_mjcf(path, new, out)
    assert len(changes) == 2
    (tmp_path / "common").symlink_to(suite / "common")
    again = load(out, allowed=[suite])
    but = (".body.mass", ".body.com", ".body.inertia")
    assert_equal(again, new, 1e-14, but)
    kept = set(out.read_bytes().splitlines())
    assert sum(line not in kept for line in path.read_bytes().splitlines()) == 1
