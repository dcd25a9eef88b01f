"""Golden tests: usable URDF files with suspicious content, and exactly the expected warnings."""

import pytest

from hybridsim.core.errors import Severity, SpecificationError
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed_joints
from support.urdf_changes import (
    END,
    INERTIAL,
    LINE_OF_END,
    LOWER_INERTIA,
    VALID,
    UrdfCase,
    add_collision_mesh,
    apply_changes,
    check_problems,
    read_urdf,
    write,
)

WARNINGS = {
    "mass in grams": UrdfCase(
        [
            (
                '<link name="lower">',
                '<link name="lower"><collision><geometry><box size="0.1 0.1 0.2"/></geometry></collision>',
            ),
            ('mass value="0.5"', 'mass value="500"'),
            (LOWER_INERTIA, 'inertia ixx="2" iyy="2" izz="1"'),
        ],
        [("units.density", 24, "grams or millimetres")],
    ),
    "inertia in other units": UrdfCase(
        [(LOWER_INERTIA, 'inertia ixx="2000" iyy="2000" izz="2000"')],
        [("units.inertia", 24, "check both units")],
    ),
    "limit without range": UrdfCase([('lower="-1" upper="2" ', "")], [("limit.missing", 8, "is treated as unlimited")]),
    "limits that lock the joint": UrdfCase(
        [('lower="-1" upper="2"', 'lower="0" upper="0"')], [("limit.locked", 8, "fixed")]
    ),
    "misspelt tag in a link": UrdfCase(
        [("</link>\n  <joint", "<colision/></link>\n  <joint")],
        [("element.unknown", 16, "did you mean 'collision'?")],
    ),
    "misspelt tag in a joint": UrdfCase(
        [('<axis xyz="0 1 0"/>\n  </joint>', '<axis xyz="0 1 0"/><dynamic damping="1"/>\n  </joint>')],
        [("element.unknown", 21, "did you mean 'dynamics'?")],
    ),
    "misspelt tag in the robot": UrdfCase([(END, "<jont/>" + END)], [("element.unknown", LINE_OF_END, "'joint'")]),
    "misspelt attribute": UrdfCase(
        [('velocity="5"/>', 'velocity="5"/><dynamics dampng="1"/>')],
        [("attribute.unknown", 8, "did you mean 'damping'?")],
    ),
    "two inertials": UrdfCase(
        [("</inertial>\n  </link>\n  <joint", f"</inertial>{INERTIAL}\n  </link>\n  <joint")],
        [("element.repeated", 15, "the first one (line 11) is used")],
    ),
    "missing visual mesh": UrdfCase(
        [('<link name="base"/>', add_collision_mesh("a.obj")[1].replace("collision", "visual"))],
        [("mesh.missing", 2, "a.obj")],
    ),
    "point mass": UrdfCase([(LOWER_INERTIA, 'inertia ixx="0" iyy="0" izz="0"')], [("inertia.zero", 24, "point mass")]),
    "massless tool frame with inertia": UrdfCase(
        [
            (
                END,
                '<link name="tool"><inertial><mass value="0"/>'
                '<inertia ixx="0.001" iyy="0.001" izz="0.001"/></inertial></link>'
                '<joint name="t" type="fixed"><parent link="lower"/><child link="tool"/></joint>' + END,
            )
        ],
        [("mass.zero_with_inertia", LINE_OF_END, "fixed to")],
    ),
    "unknown shape": UrdfCase(
        [('<link name="base"/>', add_collision_mesh("")[1].replace('<mesh filename=""/>', "<cone/>"))],
        [("geometry.unknown", 2, "is omitted")],
    ),
    "robot without name": UrdfCase([('<robot name="arm">', "<robot>")], [("name.missing", 1, "no name")]),
}


def test_the_valid_file_has_no_problems(tmp_path):
    spec, problems = read_urdf(write(tmp_path, VALID))
    assert problems == []
    assert [body.name for body in spec.bodies] == ["base", "upper", "lower"]


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings(tmp_path, name):
    case = WARNINGS[name]
    path = write(tmp_path, apply_changes(case.changes))
    spec, problems = read_urdf(path, **case.options)
    assert not [p for p in problems if p.severity is Severity.ERROR]
    check_problems(problems, case.expected, path)
    assert assemble(merge_fixed_joints(spec)[0]).nv == 2


def test_invalid_options_are_rejected(tmp_path):
    with pytest.raises((SpecificationError, TypeError)):
        read_urdf(write(tmp_path, VALID), base="floating")  # type: ignore[arg-type]
