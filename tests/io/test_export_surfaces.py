"""Export of changed surface parameters and terrains into the original file."""

import warnings

import equinox as eqx
import numpy as np
import pytest

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.export import export
from support.arm_files import one_link_urdf
from support.exported_models import assert_same, changed_line, load, mjcf_round_trip, urdf_round_trip, with_entry

BALL = '<collision{name}><geometry><sphere radius="0.1"/></geometry>{contact}</collision>'
HFIELD = '<hfield name="h" nrow="2" ncol="2" size="1 1 1 1" elevation="0 1 2 3"/>'


def urdf(folder, *contacts: str, link: str = ""):
    """A file with balls of the same name on one line, and their contacts."""
    balls = "".join(BALL.format(name=' name="ball"', contact=contact) for contact in contacts)
    path = folder / "arm.urdf"
    path.write_text(one_link_urdf().replace('<link name="upper">', f'<link name="upper">{link}{balls}'))
    return path


def mjcf(folder, attributes: str = "", before: str = ""):
    path = folder / "arm.xml"
    lines = (
        '<mujoco model="m">',
        f"{before}<asset>{HFIELD}</asset>",
        '<worldbody><geom name="t" type="hfield" hfield="h"/>',
        f'<body><joint/><geom name="g" size=".1" {attributes}/></body></worldbody></mujoco>',
    )
    path.write_bytes("\r\n".join(lines).encode())
    return path


def with_surface(model, shape: int, **values: float):
    for field, value in values.items():
        model = with_entry(model, lambda m, field=field: getattr(m.geometry, field), shape, value)
    return model


FRICTION, RESTITUTION = '<lateral_friction value="0.70"/>', '<restitution value=".1"/>'


@pytest.mark.parametrize(
    ("contacts", "link", "parts"),
    [
        (
            [f"<contact>{FRICTION}</contact>"],
            "",
            ['<contact><lateral_friction value="0.6"/>', 'restitution value="0.5"'],
        ),
        ([""], f"<contact>{FRICTION}{RESTITUTION}</contact>", ['<contact><lateral_friction value="0.6"/><restitution']),
        (
            ["", ""],
            f"<contact>{FRICTION}{RESTITUTION}</contact>",
            [f"<contact>{FRICTION}{RESTITUTION}</contact><collision"],
        ),
        (["", ""], "", ["<contact>"]),
        (
            [f"<contact>{RESTITUTION}</contact>", f"<contact>{RESTITUTION}</contact>"],
            "",
            [f"<contact>{RESTITUTION}</contact></coll"],
        ),
    ],
    ids=["own", "of the link", "shared with another shape", "none", "one of two alike"],
)
def test_friction_and_restitution_in_urdf(tmp_path, contacts, link, parts):
    path = urdf(tmp_path, *contacts, link=link)
    model = load(path)
    last = len(contacts) - 1
    new = with_surface(model, last, friction=0.6, restitution=0.5)
    read, changes, text = urdf_round_trip(path, new)
    assert_same(read, new)
    assert [(c.parameter, c.after, c.note) for c in changes] == [("friction", 0.6, ""), ("restitution", 0.5, "")]
    assert {c.element for c in changes} == {f"shape {model.geometry.infos[last].name!r}"}
    assert all(part in text for part in parts), text


def test_stiffness_and_damping_in_urdf(tmp_path):
    path = urdf(tmp_path, '<contact><stiffness value="1e4"/><damping value="50"/></contact>')
    read, changes, text = urdf_round_trip(path, with_surface(load(path), 0, stiffness=2e4, damping=60.0))
    assert (read.geometry.stiffness[0], read.geometry.damping[0], read.geometry.recovery_time[0]) == (2e4, 60.0, 0.003)
    assert [c.parameter for c in changes] == ["stiffness", "damping"] and 'stiffness value="20000.0"' in text
    with pytest.warns(ModelWarning, match=r"stiffness 10000 → inf \(infinite values are not supported by URDF\)"):
        export(path, with_surface(load(path), 0, stiffness=np.inf), tmp_path / "out.urdf")


def test_a_shape_whose_collision_cannot_be_identified(tmp_path):
    """An unsupported shape is on the same line, so the line does not identify the <collision>."""
    path = urdf(tmp_path, "", link="<collision><geometry><cone/></geometry></collision>")
    new = with_surface(load(path), 0, friction=0.5)
    with pytest.warns(ModelWarning, match="the <collision> of this shape cannot be identified in the file"):
        export(path, new, tmp_path / "out.urdf")


def test_an_unchanged_surface_does_not_change_the_file(tmp_path):
    path = urdf(tmp_path, f"<contact>{FRICTION}</contact>")
    assert urdf_round_trip(path, load(path))[2].encode() == path.read_bytes()


def test_negative_friction_is_rejected(tmp_path):
    path = urdf(tmp_path, "")
    with pytest.raises(
        ModelError, match=r"<lateral_friction> of collision 'ball' is -0\.6\n    fix: it must be nonnegative"
    ):
        export(path, with_surface(load(path), 0, friction=-0.6), tmp_path / "out.urdf")


def test_changes_that_urdf_does_not_support_are_listed(tmp_path):
    path = urdf(tmp_path, "")
    new = with_surface(load(path), 0, recovery_time=0.5, softness=0.3)
    with pytest.warns(ModelWarning, match=r"(?s)recovery_time \[s\] 0.02 → 0.5 .*softness 0.2 → 0.3 "):
        changes = export(path, new, tmp_path / "out.urdf")
    assert [bool(change.note) for change in changes] == [True, True]


def test_changes_of_a_shape_that_cannot_be_located_are_listed(tmp_path):
    """An unsupported shape on the same line makes the assignment ambiguous."""
    path = urdf(tmp_path, "")
    path.write_text(
        path.read_text().replace("</collision>", "</collision><collision><geometry><cone/></geometry></collision>")
    )
    with pytest.warns(ModelWarning, match="friction 1 → 0.5"):
        export(path, with_surface(load(path), 0, friction=0.5), tmp_path / "out.urdf")


@pytest.mark.parametrize(
    ("attributes", "before", "part"),
    [
        ("", "", 'solref="0.05"'),
        ('solref=".10 1.0"', "", 'solref="0.05 1.0"'),
        ("", '<default><geom solref=".1 1"/></default>', 'solref="0.05"'),
        ('solref="-100 -2"', "", 'solref="-100.0 -10.0"'),
        ("", '<default><geom solref="-100 -2"/></default>', 'solref="-100.0 -10.0"'),
        ('solref="0 0"', "", 'solref="0.05 1.0"'),
    ],
)
def test_recovery_time_in_mjcf(tmp_path, attributes, before, part):
    path = mjcf(tmp_path, attributes, before)
    changes, *lines = mjcf_round_trip(
        path, with_surface(load(path), 1, recovery_time=0.05), 1e-15, [".geometry.recovery_time"]
    )
    assert part in changed_line(*lines)[1]
    assert [(c.element, c.parameter, c.after, c.note) for c in changes] == [("geom 'g'", "recovery time [s]", 0.05, "")]


@pytest.mark.parametrize(
    ("attributes", "before"),
    [('condim="1" friction=".7 .1"', ""), ('friction=".7 .1"', '<default><geom condim="1"/></default>')],
)
def test_friction_of_a_shape_without_it_in_mjcf(tmp_path, attributes, before):
    path = mjcf(tmp_path, attributes, before)
    assert load(path).geometry.friction[1] == 0.0
    _, *lines = mjcf_round_trip(path, with_surface(load(path), 1, friction=0.4), 0.0)
    _, after = changed_line(*lines)
    assert 'condim="3"' in after and 'friction="0.4 .1"' in after


def test_friction_that_becomes_zero_in_mjcf(tmp_path):
    path = mjcf(tmp_path, 'friction=".7"')
    _, *lines = mjcf_round_trip(path, with_surface(load(path), 1, friction=0.0), 0.0)
    assert 'friction="0.0"' in changed_line(*lines)[1] and "condim" not in changed_line(*lines)[1]


@pytest.mark.parametrize(
    ("attributes", "before", "end"),
    [
        ("", "", '"'),
        ('solimp=".8 .8 .010"', "", ' .010"'),
        ("", '<default><geom solimp=".95 .9 .01"/></default>', '"'),
    ],
)
@pytest.mark.parametrize("softness", [0.001, 0.5, 2.4])
def test_softness_in_mjcf(tmp_path, attributes, before, end, softness):
    path = mjcf(tmp_path, attributes, before)
    _, *lines = mjcf_round_trip(path, with_surface(load(path), 1, softness=softness), 1e-12, [".geometry.softness"])
    _, after = changed_line(*lines)
    written = after.split('solimp="')[1].split('"')[0]
    assert f'{written}"'.endswith(end) and len(written.split()) == (3 if end != '"' else 2)


@pytest.mark.parametrize(
    ("surface", "part"),
    [
        ({"softness": 5.0}, "solimp cannot represent softness 5 of geom 'g'"),
        ({"recovery_time": 0.0}, r"solref cannot represent recovery time \[s\] 0 of geom 'g'"),
    ],
)
def test_values_that_mjcf_cannot_represent_are_rejected(tmp_path, surface, part):
    path = mjcf(tmp_path)
    with pytest.raises(ModelError, match=part):
        export(path, with_surface(load(path), 1, **surface), tmp_path / "out.xml")
    assert not (tmp_path / "out.xml").exists()


def test_changes_that_mjcf_does_not_support_are_listed(tmp_path):
    path = mjcf(tmp_path)
    model = load(path)
    new = eqx.tree_at(lambda m: m.geometry.data[0], model, model.geometry.data[0] + np.eye(2))
    new = with_surface(new, 1, restitution=0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        changes = export(path, new, tmp_path / "out.xml")
    assert [c.parameter for c in changes] == ["restitution", "vertices or heights, largest change [m]"]
    assert changes[0].note == "not supported by MJCF" and "vertices and heights of shapes" in changes[1].note
    assert "'t'" in str(caught[0].message) and changes[1].after == 1.0
