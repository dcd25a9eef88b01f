"""Surface parameters of URDF shapes from <contact>."""

import numpy as np
import pytest

from hybridsim.core.errors import Severity
from hybridsim.model.geometry import DEFAULT_FRICTION, DEFAULT_RECOVERY_TIME
from support.urdf_changes import apply_changes, check_problems, read_urdf, write

BALL = '<collision><geometry><sphere radius="0.1"/></geometry>{}</collision>'
LINE = 2


def base_change(*balls: str, link: str = "") -> list[tuple[str, str]]:
    """Change of the base link, in line 2: balls, each with its contact, and optionally a contact of the link."""
    shapes = "".join(BALL.format(f"<contact>{ball}</contact>" if ball else "") for ball in balls)
    link_contact = f"<contact>{link}</contact>" if link else ""
    return [('<link name="base"/>', f'<link name="base">{link_contact}{shapes}</link>')]


def surfaces(folder, *balls: str, link: str = "") -> list[tuple[float, float, float]]:
    spec, problems = read_urdf(write(folder, apply_changes(base_change(*balls, link=link))))
    assert not problems
    return [(g.friction, g.restitution, g.recovery_time) for g in spec.geoms]


def test_defaults_without_contact(tmp_path):
    assert surfaces(tmp_path, "") == [(DEFAULT_FRICTION, 0.0, DEFAULT_RECOVERY_TIME)]


def test_parameters_of_a_shape_override_those_of_its_link(tmp_path):
    link = '<restitution value="0.5"/><stiffness value="1000"/><damping value="30"/><lateral_friction value="0.7"/>'
    own = '<restitution value="0.2"/>'
    stiff = '<damping value="1"/><stiffness value="100"/>'
    assert surfaces(tmp_path, "", own, stiff, link=link) == [(0.7, 0.5, 0.03), (0.7, 0.2, 0.03), (0.7, 0.5, 0.01)]


def test_springs_and_dampers_are_read_by_shape_and_link(tmp_path):
    link = '<stiffness value="1000"/><damping value="30"/>'
    spec, problems = read_urdf(
        write(tmp_path, apply_changes(base_change("", '<damping value="1"/><stiffness value="100"/>', link=link)))
    )
    assert not problems
    assert [(g.stiffness, g.damping) for g in spec.geoms] == [(1000.0, 30.0), (100.0, 1.0)]


def test_unspecified_friction_is_marked(tmp_path):
    specified = '<lateral_friction value="1.0"/>'
    spec, _ = read_urdf(write(tmp_path, apply_changes(base_change("", specified))))
    assert [(g.friction, g.is_friction_specified) for g in spec.geoms] == [(1.0, False), (1.0, True)]


def test_a_contact_without_damping_has_zero_recovery_time(tmp_path):
    assert surfaces(tmp_path, '<damping value="0"/><stiffness value="100"/>')[0][2] == 0.0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('<stiffness value="10"/>', "has stiffness but no damping"),
        ('<damping value="10"/>', "has damping but no stiffness"),
        ('<stiffness value="0"/><damping value="10"/>', "is zero; stiffness and damping are ignored"),
    ],
)
def test_incomplete_spring_parameters_give_a_warning(tmp_path, text, part):
    for change in (base_change(text), base_change("", link=text)):
        path = write(tmp_path, apply_changes(change))
        spec, problems = read_urdf(path)
        check_problems(problems, [("contact.compliance", LINE, part)], path)
        assert problems[0].severity is Severity.WARNING
        assert spec.geoms[0].recovery_time == DEFAULT_RECOVERY_TIME
        known = np.isfinite([spec.geoms[0].stiffness, spec.geoms[0].damping])
        assert known.tolist() == ["has stiffness" in part, "has damping" in part]


@pytest.mark.parametrize(
    ("tag", "code"),
    [("lateral_friction", "friction"), ("restitution", "restitution"), ("stiffness", "stiffness")],
)
def test_negative_values_are_errors(tmp_path, tag, code):
    path = write(tmp_path, apply_changes(base_change(f'<{tag} value="-1"/>')))
    _, problems = read_urdf(path)
    check_problems(problems, [(f"contact.{code}", LINE, "is -1\nit must be nonnegative")], path)
    assert problems[0].severity is Severity.ERROR


def test_values_that_are_not_numeric_are_errors(tmp_path):
    path = write(tmp_path, apply_changes(base_change('<restitution value="high"/>')))
    check_problems(read_urdf(path)[1], [("number.invalid", LINE, "high")], path)


def test_unsupported_settings_are_reported_once(tmp_path):
    other = '<rolling_friction value="0.1"/><contact_erp value="0"/><spinning_friction value="0"/>'
    path = write(tmp_path, apply_changes(base_change(other, other, link='<inertia_scaling value="3"/>')))
    _, problems = read_urdf(path)
    check_problems(problems, [("urdf.ignored", LINE, "'inertia_scaling', 'rolling_friction', 'contact_erp'")], path)
