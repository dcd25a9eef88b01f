"""Invalid URDF files that other importers accept, crash on or reject without a reason: each gives a line and a fix.

The cases are those on which MuJoCo, Drake, Pinocchio, yourdfpy and PyBullet were compared.
"""

import json
from dataclasses import dataclass

import pytest

from hybridsim.cli.main import run
from support.urdf_changes import (
    END,
    INERTIAL,
    LINE_OF_END,
    LOWER_INERTIA,
    LOWER_INERTIAL,
    MASS,
    VALID,
    add_collision_mesh,
    apply_changes,
)


@dataclass(frozen=True)
class InvalidFile:
    """Content of a file and the expected problem."""

    text: str
    code: str
    line: int
    part: str
    """Part of the message or of the fix."""
    severity: str = "error"


def valid_with_changes(*changes: tuple[str, str]) -> str:
    return apply_changes(list(changes))


ELBOW_AXIS = '<axis xyz="0 1 0"/>\n  </joint>'
TRIANGLE = 'inertia ixx="0.01" iyy="0.01" izz="0.5"'
LIMIT = '<limit lower="-1" upper="2" effort="10" velocity="5"/>'
ISLAND = f'<link name="island">{INERTIAL}</link>'
LOOP = '<joint name="j3" type="fixed"><parent link="lower"/><child link="upper"/></joint>'
SECOND_PARENT = '<joint name="j3" type="fixed"><parent link="base"/><child link="lower"/></joint>'

BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;">]>\n<robot name="&c;"/>'
)

CASES = {
    "zero-mass leaf": InvalidFile(
        valid_with_changes(('mass value="0.5"', 'mass value="0"'), (LOWER_INERTIA, 'inertia ixx="0" iyy="0" izz="0"')),
        "mass.massless_subtree",
        23,
        "inertia='from_geometry' (--inertia from_geometry)",
    ),
    "no inertial": InvalidFile(
        valid_with_changes((LOWER_INERTIAL, "")), "inertial.missing", 23, "link 'lower' has no <inertial>"
    ),
    "negative mass": InvalidFile(
        valid_with_changes((MASS, 'mass value="-1.5"')), "mass.negative", 11, "'upper' is -1.5 kg"
    ),
    "negative principal moment": InvalidFile(
        valid_with_changes((LOWER_INERTIA, 'inertia ixx="-0.01" iyy="0.01" izz="0.001"')),
        "inertia.indefinite",
        24,
        "'lower' has a negative principal moment",
    ),
    "triangle inequality broken": InvalidFile(
        valid_with_changes((LOWER_INERTIA, TRIANGLE)), "inertia.triangle", 24, "I3 ≤ I1 + I2"
    ),
    "mass nan": InvalidFile(
        valid_with_changes((MASS, 'mass value="nan"')), "number.nonfinite", 13, "'value' of <mass> of link 'upper'"
    ),
    "mass inf": InvalidFile(valid_with_changes((MASS, 'mass value="inf"')), "number.nonfinite", 13, "finite"),
    "mass in words": InvalidFile(valid_with_changes((MASS, 'mass value="heavy"')), "number.invalid", 13, "'heavy'"),
    "decimal comma": InvalidFile(
        valid_with_changes((MASS, 'mass value="1,5"')), "number.invalid", 13, "write 1.5 with a decimal point"
    ),
    "missing mesh": InvalidFile(
        valid_with_changes(add_collision_mesh("meshes/base.stl")), "mesh.missing", 2, "meshes/base.stl"
    ),
    "unknown package": InvalidFile(
        valid_with_changes(add_collision_mesh("package://no_such/base.stl")),
        "mesh.package",
        2,
        "packages={'no_such': 'path/to/no_such'} (--packages no_such path/to/no_such)",
    ),
    "mesh climbing out": InvalidFile(
        valid_with_changes(add_collision_mesh("../../../etc/passwd")), "mesh.outside", 2, "copy the file"
    ),
    "mesh at an absolute path": InvalidFile(
        valid_with_changes(add_collision_mesh("/etc/passwd")), "mesh.outside", 2, "'/etc/passwd'"
    ),
    "mimic of an unknown joint": InvalidFile(
        valid_with_changes((ELBOW_AXIS, '<mimic joint="sholder"/>\n  </joint>')),
        "mimic.unknown",
        21,
        "did you mean 'shoulder'?",
    ),
    "mimic of itself": InvalidFile(
        valid_with_changes((ELBOW_AXIS, '<mimic joint="elbow"/>\n  </joint>')),
        "mimic.self",
        21,
        "joint 'elbow' mimics itself",
    ),
    "loop": InvalidFile(valid_with_changes((END, LOOP + END)), "tree.loop", LINE_OF_END, "'upper' → 'lower' → 'upper'"),
    "two parents": InvalidFile(
        valid_with_changes((END, SECOND_PARENT + END)),
        "tree.two_parents",
        LINE_OF_END,
        "'upper' by joint 'elbow' (line 17) and 'base' by joint 'j3'",
    ),
    "two roots": InvalidFile(
        valid_with_changes((END, ISLAND + END)), "tree.roots", LINE_OF_END, "link 'island' is not connected"
    ),
    "duplicate link": InvalidFile(
        valid_with_changes((END, f'<link name="lower">{INERTIAL}</link>' + END)),
        "name.duplicate",
        LINE_OF_END,
        "two links are named 'lower' (first at line 23)",
    ),
    "duplicate joint": InvalidFile(
        valid_with_changes(('name="elbow"', 'name="shoulder"')), "name.duplicate", 17, "two joints are named 'shoulder'"
    ),
    "zero axis": InvalidFile(
        valid_with_changes((ELBOW_AXIS, '<axis xyz="0 0 0"/>\n  </joint>')), "axis.zero", 21, "such as 0 0 1"
    ),
    "lower above upper": InvalidFile(
        valid_with_changes(('upper="2"', 'upper="-2"')),
        "limit.order",
        8,
        'for a joint without limits use type="continuous"',
    ),
    "revolute without limit": InvalidFile(
        valid_with_changes((LIMIT, "")), "limit.missing", 3, 'type="continuous"', "warning"
    ),
    "lengths in millimetres": InvalidFile(
        valid_with_changes(('xyz="0 0 0.5"', 'xyz="0 0 500"')),
        "units.length",
        6,
        "up to 500 m from their parents, which looks like millimetres: 'shoulder'",
        "warning",
    ),
    "short vector": InvalidFile(
        valid_with_changes(('xyz="0 0 0.5"', 'xyz="0 0.5"')), "number.count", 6, "3 numeric values"
    ),
    "truncated file": InvalidFile(
        VALID[: VALID.index("</inertial>")], "xml.syntax", 14, "the file ends inside <inertial>"
    ),
    "deep nesting": InvalidFile("<robot>" + "<link>" * 20_000, "xml.size", 1, "200 levels deep"),
    "external entity": InvalidFile(
        '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r">&x;</robot>', "xml.doctype", 1, "DOCTYPE"
    ),
    "internal entity": InvalidFile(
        '<!DOCTYPE r [<!ENTITY m "1.5">]>' + VALID.replace('"1.5"', '"&m;"'),
        "xml.doctype",
        1,
        "replace entities with their values",
    ),
    "billion laughs": InvalidFile(BOMB, "xml.doctype", 2, "DOCTYPE"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_command_line_reports_line_and_fix(tmp_path, capsys, name):
    case, path = CASES[name], tmp_path / "robot.urdf"
    path.write_text(case.text)
    usable = case.severity != "error"
    assert run(["check", str(path)]) == (0 if usable else 1)
    out, err = capsys.readouterr()
    assert err == "" and "Traceback" not in out
    begin = f"{path}:{case.line}: {case.severity}: "
    problem, _, rest = out[out.index(begin) :].partition("\n")
    fix = rest.splitlines()[0]
    assert fix.startswith("    fix: ")
    assert case.part in f"{problem}\n{fix}"
    assert out.count(": error: ") == (0 if usable else 1)

    assert run(["check", str(path), "--json"]) == (0 if usable else 1)
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert err == "" and report["usable"] is usable
    found = [p for p in report["problems"] if p["severity"] != "note"]
    assert [(p["code"], p["severity"], p["file"], p["line"]) for p in found] == [
        (case.code, case.severity, str(path), case.line)
    ]
    assert found[0]["fix"]
