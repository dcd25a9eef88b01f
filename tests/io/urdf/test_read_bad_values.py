"""Golden tests: URDF files with invalid values, and exactly the expected problems."""

import pytest

from support.urdf_changes import (
    END,
    LINE_OF_END,
    LOWER_INERTIA,
    LOWER_INERTIAL,
    MASS,
    UrdfCase,
    apply_changes,
    assert_errors,
    read_urdf,
    write,
)

MASS_PROPERTIES = {
    "inertia without mass": UrdfCase(
        [('mass value="0.5"', 'mass value="0"')], [("mass.zero_with_inertia", 24, "give it a mass")]
    ),
    "mass on the axis without inertia": UrdfCase(
        [(LOWER_INERTIA, 'inertia ixx="0" iyy="0" izz="0"'), ('xyz="0 0 0.1"', 'xyz="0 2 0"')],
        [("joint.singular", 23, "elbow")],
    ),
    "off-diagonal inertia too large": UrdfCase(
        [('izz="0.001" ixy="0"', 'izz="0.001" ixy="0.05"')], [("inertia.indefinite", 24, "off-diagonal")]
    ),
    "mass with unit": UrdfCase([(MASS, 'mass value="1.5 kg"')], [("number.invalid", 13, "1.5")]),
    "mass without value": UrdfCase([(MASS, 'mass valeu="1.5"')], [("attribute.missing", 13, "'value'")]),
    "inertia entry missing": UrdfCase(
        [(LOWER_INERTIA, 'inertia ixx="0.01" iyy="0.01"')], [("attribute.missing", 27, "'izz'")]
    ),
    "nan in an inertia": UrdfCase(
        [('izz="0.001" ixy="0"', 'izz="0.001" ixy="nan"')], [("number.nonfinite", 27, "ixy")]
    ),
    "missing inertia under the strict policy": UrdfCase(
        [(LOWER_INERTIA, 'inertia ixx="0" iyy="0" izz="0"')],
        [("inertial.missing", 24, "'lower' has zero inertia")],
        {"inertia": "error"},
    ),
    "no shape to compute an inertia from": UrdfCase(
        [(LOWER_INERTIAL, "")],
        [("inertial.no_geometry", 23, "no collision shape")],
        {"inertia": "from_geometry"},
    ),
}

JOINTS = {
    "unknown joint type": UrdfCase(
        [('type="continuous"', 'type="revolut"')], [("joint.type", 17, "did you mean 'revolute'?")]
    ),
    "joint without type": UrdfCase([(' type="continuous"', "")], [("attribute.missing", 17, "'type'")]),
    "long vector": UrdfCase([('xyz="0 0 0.5"', 'xyz="0 0 0.5 0"')], [("number.count", 6, "3 numeric values")]),
    "nan in an origin": UrdfCase([('xyz="0 0 0.5"', 'xyz="0 0 nan"')], [("number.nonfinite", 6, "'xyz'")]),
    "commas in a vector": UrdfCase(
        [('xyz="0 0 0.5"', 'xyz="0, 0, 0.5"')],
        [("number.invalid", 6, "use decimal points, and spaces between values")],
    ),
    "nan limit": UrdfCase([('upper="2"', 'upper="nan"')], [("number.nonfinite", 8, "'upper'")]),
    "negative damping": UrdfCase(
        [('velocity="5"/>', 'velocity="5"/><dynamics damping="-1"/>')], [("damping.invalid", 8, "-1")]
    ),
    "negative effort": UrdfCase([('effort="10"', 'effort="-10"')], [("effort_limit.invalid", 8, "-10")]),
    "negative velocity": UrdfCase([('velocity="5"', 'velocity="-5"')], [("limit.velocity", 8, "negative")]),
}

EVERYTHING = UrdfCase(
    [
        ('xyz="0 0 0.5"', 'xyz="0 0"'),
        (MASS, 'mass value="1,5"'),
        ('link="upper"/>\n    <child', 'link="uper"/>\n    <child'),
        (LOWER_INERTIA, 'inertia ixx="-0.01" iyy="0.01" izz="0.001"'),
        (END, '<link name="lower"/>' + END),
    ],
    [
        ("number.count", 6, ""),
        ("number.invalid", 13, ""),
        ("joint.link", 18, ""),
        ("inertia.indefinite", 24, ""),
        ("name.duplicate", LINE_OF_END, ""),
    ],
)


@pytest.mark.parametrize("name", MASS_PROPERTIES)
def test_bad_mass_properties(tmp_path, name):
    assert_errors(tmp_path, MASS_PROPERTIES[name])


@pytest.mark.parametrize("name", JOINTS)
def test_bad_joints(tmp_path, name):
    assert_errors(tmp_path, JOINTS[name])


def test_all_problems_in_one_pass_in_file_order(tmp_path):
    assert_errors(tmp_path, EVERYTHING)


def test_problems_name_their_element(tmp_path):
    path = write(
        tmp_path, apply_changes([('velocity="5"/>', 'velocity="5"/><dynamics damping="-1"/>'), (MASS, "mass")])
    )
    assert [(p.code, p.element) for p in read_urdf(path)[1]] == [
        ("damping.invalid", "shoulder"),
        ("attribute.missing", "upper"),
    ]
