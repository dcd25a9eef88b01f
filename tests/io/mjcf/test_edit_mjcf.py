"""MJCF export: exactly the change is read back, and everything else in the file is preserved byte for byte."""

import re
import warnings

import equinox as eqx
import numpy as np
import pytest

from hybridsim.core.errors import ModelWarning
from hybridsim.io.mjcf.edit_mjcf import export_mjcf
from support.arm_files import line_of
from support.exported_models import assert_same, body_index, changed_line, load, mjcf_round_trip, with_entry
from support.real_models import bullet_file, suite_file
from support.slow import slow

INERTIAL = (".body.mass", ".body.com", ".body.inertia")


def test_an_unchanged_model_gives_the_same_bytes(arm_mjcf):
    out = arm_mjcf.with_name("out.xml")
    assert export_mjcf(arm_mjcf, load(arm_mjcf), out) == []
    assert out.read_bytes() == arm_mjcf.read_bytes()


def test_mass_in_an_existing_inertial(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.body.mass, body_index(model, "base"), 1 / 3)
    changes, *lines = mjcf_round_trip(arm_mjcf, new)
    before, after = changed_line(*lines)
    assert after == before.replace("2.50", repr(1 / 3))
    assert [(c.element, c.line, c.parameter, c.before, c.after) for c in changes] == [
        ("body 'base'", line_of('<body name="base"'), "mass [kg]", 2.5, 1 / 3)
    ]


def test_centre_of_mass_and_diagonal_inertia(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.body.com, body_index(model, "base"), [0.1, 0.2, 1 / 3])
    new = with_entry(new, lambda m: m.body.inertia, body_index(model, "base"), [1 / 7, 0.2, 0.3, 0, 0, 0])
    before, after = changed_line(*mjcf_round_trip(arm_mjcf, new)[1:])
    text = f'pos="0.1 0.2 {1 / 3!r}" diaginertia="{1 / 7!r} 0.2 0.3"'
    assert after == before.replace('pos="0 0 .1" diaginertia="0.10 0.2 0.25"', text)


def test_full_inertia_replaces_diagonal_and_orientation(arm_mjcf):
    model = load(arm_mjcf)
    entries = [0.1, 0.2, 0.25, 0.01, -0.02, 0.03]
    new = with_entry(model, lambda m: m.body.inertia, body_index(model, "base"), entries)
    _, after = changed_line(*mjcf_round_trip(arm_mjcf, new)[1:])
    assert "diaginertia" not in after and 'fullinertia="0.1 0.2 0.25 0.01 -0.02 0.03"' in after


def test_inertia_from_geometry_becomes_an_inertial(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.body.mass, body_index(model, "upper"), 1.1)
    _, old_lines, new_lines = mjcf_round_trip(arm_mjcf, new)
    added = [line for line in new_lines if line not in old_lines]
    assert len(added) == 1 and added[0].startswith(b'        <inertial pos="') and b'mass="1.1"' in added[0]
    assert [line for line in new_lines if line in old_lines] == old_lines


def test_a_body_absorbs_the_whole_change_of_its_merged_bodies(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.body.mass, body_index(model, "wrist"), 2.0)
    changes, *lines = mjcf_round_trip(arm_mjcf, new, 1e-14, INERTIAL)
    _, after = changed_line(*lines)
    assert 'mass="1.7"' in after and "quat" not in after
    assert [(c.element, c.parameter) for c in changes] == [
        ("body 'wrist'", f"{row}]") for row in ("mass [kg", "com [m", "inertia [kg·m²")
    ]
    assert (changes[0].before, changes[0].after) == (1.0, 1.7)


def test_a_fixed_body_absorbs_a_change_that_its_parent_cannot(arm_mjcf):
    text = arm_mjcf.read_text().replace('mass="1" quat', 'mass=".01" quat').replace('mass=".3"', 'mass="3"')
    arm_mjcf.write_bytes(text.replace("\n", "\r\n").encode())
    model = load(arm_mjcf)
    wrist = body_index(model, "wrist")
    new = with_entry(model, lambda m: m.body.mass, wrist, 0.9 * model.body.mass[wrist])
    changes, *_ = mjcf_round_trip(arm_mjcf, new, 1e-14, INERTIAL)
    assert {c.element for c in changes} == {"body 'tool'"}


def test_a_change_that_no_single_body_can_absorb_is_distributed(arm_mjcf):
    model = load(arm_mjcf)
    wrist = body_index(model, "wrist")
    new = with_entry(model, lambda m: m.body.mass, wrist, 0.1)
    new = with_entry(new, lambda m: m.body.inertia, wrist, model.body.inertia[wrist] / 13.0)
    changes, *_ = mjcf_round_trip(arm_mjcf, new, 1e-14, INERTIAL)
    masses = {c.element: (c.before, c.after) for c in changes if c.parameter == "mass [kg]"}
    assert masses == {"body 'wrist'": (1.0, pytest.approx(1 / 13)), "body 'tool'": (0.3, pytest.approx(0.3 / 13))}


def test_friction_keeps_the_other_coefficients(arm_mjcf):
    model = load(arm_mjcf)
    names = [info.name for info in model.geometry.infos]
    new = with_entry(model, lambda m: m.geometry.friction, names.index("shell"), 0.55)
    _, after = changed_line(*mjcf_round_trip(arm_mjcf, new)[1:])
    assert 'friction="0.55"' in after


def test_options_and_home(arm_mjcf):
    model = load(arm_mjcf)
    new = with_entry(model, lambda m: m.gravity, 2, -1.62)
    new = with_entry(new, lambda m: m.home, 0, 0.3)
    changes, _, new_lines = mjcf_round_trip(arm_mjcf, new)
    assert [c.parameter for c in changes] == ["gravity [m/s²]", "home [rad, m]"]
    text = b"\n".join(new_lines).decode()
    assert '<option timestep="0.002" gravity="0.0 0.0 -1.62" />' in text and '<key name="home"' in text
    # a second export finds the keyframe
    again = with_entry(load(arm_mjcf.with_name("out.xml")), lambda m: m.home, 0, 0.4)
    changes = export_mjcf(arm_mjcf.with_name("out.xml"), again, arm_mjcf.with_name("out.xml"))
    assert [c.element for c in changes] == ["key 'home'"]
    assert_same(load(arm_mjcf.with_name("out.xml")), again)


def test_time_step_and_a_missing_option(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text('<mujoco model="m">\n  <worldbody><body><joint/><geom size=".1"/></body></worldbody>\n</mujoco>\n')
    model = load(path)
    new = eqx.tree_at(lambda m: m.gravity, model, np.array([0.0, 0.0, -3.7]))
    object.__setattr__(new, "timestep", 0.004)
    export_mjcf(path, new, tmp_path / "b.xml")
    assert '  <option gravity="0.0 0.0 -3.7" timestep="0.004"/>\n' in (tmp_path / "b.xml").read_text()
    assert_same(load(tmp_path / "b.xml"), new)


def test_without_merging(arm_mjcf):
    model = load(arm_mjcf, merge=False)
    new = with_entry(model, lambda m: m.joint.placement.p, body_index(model, "tool"), [0.0, 0.1, 0.2])
    new = with_entry(new, lambda m: m.body.mass, body_index(model, "wrist"), 1.25)
    out = arm_mjcf.with_name("out.xml")
    export_mjcf(arm_mjcf, new, out)
    assert_same(load(out, merge=False), new)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('inertiafromgeom="true"', 'inertiafromgeom="auto"'),
        ('settotalmass="7"', 'settotalmass="7.5"'),
        ('inertiafromgeom="true" settotalmass="7"', 'inertiafromgeom="auto" settotalmass="7.5"'),
    ],
)
def test_compiler_settings_that_would_override_the_change_are_disabled(tmp_path, settings, expected):
    ignored = '<inertial pos="1 2 3" mass="9" diaginertia="8 8 8"/>' if "geom" in settings else ""
    path = tmp_path / "a.xml"
    path.write_text(
        f"""<mujoco model="m"><compiler angle="radian" {settings}/><worldbody>
<body name="a"><joint name="j" springdamper=".1 1"/><geom type="box" size=".1 .2 .3"/>
<body name="b" pos="1 0 0"><joint name="k"/>{ignored}<geom size=".1"/>
<body name="c"><geom size=".2" pos="0 1 0"/></body></body></body>
</worldbody></mujoco>"""
    )
    model = load(path)
    new = with_entry(model, lambda m: m.body.mass, 0, model.body.mass[0] + 0.5)
    changes = export_mjcf(path, new, tmp_path / "out.xml")
    text = (tmp_path / "out.xml").read_text()
    if "settotalmass" in expected:
        text = re.sub(r'settotalmass="7\.(5|4999)\d*"', 'settotalmass="7.5"', text)
    assert f'<compiler angle="radian" {expected}/>' in text and text.count("<inertial") == 1 + bool(ignored)
    assert_same(load(tmp_path / "out.xml"), new, rtol=1e-14, atol=1e-15)
    assert "compiler" in {c.element for c in changes}


def test_compiler_settings_in_another_file_are_overridden(tmp_path):
    (tmp_path / "settings.xml").write_text('<mujoco><compiler inertiafromgeom="true"/></mujoco>')
    path = tmp_path / "a.xml"
    body = '<body name="a"><joint/><geom size=".1"/></body>'
    path.write_text(f'<mujoco model="m"><include file="settings.xml"/><worldbody>{body}</worldbody></mujoco>')
    new = with_entry(load(path), lambda m: m.body.mass, 0, 2.0)
    export_mjcf(path, new, tmp_path / "out.xml")
    assert '<compiler inertiafromgeom="auto"/>' in (tmp_path / "out.xml").read_text()
    assert_same(load(tmp_path / "out.xml"), new)


GYM = ["ant", "humanoid", "inverted_double_pendulum", "pusher", "reacher", "striker", "thrower"]


BY_SHAPE = [f"bullet/{name}" for name in GYM] + ["suite/cheetah", slow("suite/dog")]


@pytest.mark.parametrize("file", BY_SHAPE)
def test_models_with_inertias_from_shapes_or_a_total_mass(file, tmp_path):
    name = file.partition("/")[2]
    path = bullet_file(f"mjcf/{name}.xml") if file.startswith("bullet") else suite_file(name)
    model = load(path)
    new = model
    for i in (i for i in (1, model.nb // 2, model.nb - 1) if model.body.mass[i] > 0.0):
        new = with_entry(new, lambda m: m.body.mass, i, model.body.mass[i] * 0.3)
    out = tmp_path / path.name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        changes = export_mjcf(path, new, out)
    assert changes
    for part in ("common", "dog_assets", "skins"):
        if path.with_name(part).exists():
            (tmp_path / part).symlink_to(path.with_name(part))
    assert_same(load(out, allowed_folders=[path.parent]), new, rtol=1e-11, atol=1e-14, rounded=None)


@pytest.mark.parametrize("name", ["humanoid", "walker", "quadruped", "stacker"])
def test_real_models(name, tmp_path):
    path = suite_file(name)
    model = load(path)
    out = tmp_path / f"{name}.xml"
    last = model.nb - 1
    dof = next(i for i in reversed(range(model.nv)) if "ball_root" not in model.topology.dof_names[i])
    new = with_entry(model, lambda m: m.body.mass, last, model.body.mass[last] * 1.05)
    new = with_entry(new, lambda m: m.joint.damping, dof, 1 / 7)
    with pytest.warns(ModelWarning, match="copy these files as well"):
        changes = export_mjcf(path, new, out)
    assert len({change.element for change in changes}) == 2
    (tmp_path / "common").symlink_to(path.with_name("common"))
    again = load(out, allowed_folders=[path.parent])
    assert_same(again, new, rtol=1e-14, atol=1e-14, rounded=INERTIAL)
    kept = set(out.read_bytes().splitlines())
    assert sum(line not in kept for line in path.read_bytes().splitlines()) == 1
