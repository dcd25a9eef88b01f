"""A valid URDF file, and the expected problems after changes of its text."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from hybridsim.core.errors import Problem, Severity
from hybridsim.io import xml
from hybridsim.io.load_options import LoadKwargs, LoadOptions
from hybridsim.io.urdf.read_urdf import read_urdf as read_parsed_urdf
from hybridsim.model.specs import ModelSpec

VALID = """<robot name="arm">
  <link name="base"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/>
    <child link="upper"/>
    <origin xyz="0 0 0.5"/>
    <axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="10" velocity="5"/>
  </joint>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 0.2"/>
      <mass value="1.5"/>
      <inertia ixx="0.02" iyy="0.02" izz="0.002" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="elbow" type="continuous">
    <parent link="upper"/>
    <child link="lower"/>
    <origin xyz="0 0 0.4"/>
    <axis xyz="0 1 0"/>
  </joint>
  <link name="lower">
    <inertial>
      <origin xyz="0 0 0.1"/>
      <mass value="0.5"/>
      <inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
</robot>
"""
MASS, LOWER_INERTIA = 'mass value="1.5"', 'inertia ixx="0.01" iyy="0.01" izz="0.001"'
END = "</robot>"
LINE_OF_END = VALID.count("\n")
INERTIAL = """<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>"""
LOWER_INERTIAL = "".join(VALID.splitlines(keepends=True)[i] for i in range(23, 28))


@dataclass
class UrdfCase:
    """Changes of the valid file, and code, line and part of the text of each resulting problem."""

    changes: list[tuple[str, str]]
    expected: list[tuple[str, int, str]] = field(default_factory=list)
    options: dict = field(default_factory=dict)


def add_collision_mesh(uri: str) -> tuple[str, str]:
    """Change that gives the base a collision mesh, in line 2."""
    mesh = f'<collision><geometry><mesh filename="{uri}"/></geometry></collision>'
    return '<link name="base"/>', f'<link name="base">{mesh}</link>'


def write(folder: Path, text: str | bytes) -> Path:
    """Write a file and return its path."""
    path = folder / "arm.urdf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def apply_changes(changes: list[tuple[str, str]]) -> str:
    """The valid file after the changes, each applied exactly once."""
    text = VALID
    for old, new in changes:
        assert old in text, f"{old!r} is not in the file"
        text = text.replace(old, new, 1) if old != END else new.join(text.rsplit(old, 1))
    return text


def read_urdf(path: Path, **options: Unpack[LoadKwargs]) -> tuple[ModelSpec, list[Problem]]:
    """Description in a file, and its errors and warnings."""
    spec, problems = read_parsed_urdf(path, xml.read(path)[1], LoadOptions(**options))
    return spec, [problem for problem in problems if problem.severity is not Severity.NOTE]


def check_problems(problems: list[Problem], expected: list[tuple[str, int, str]], path: Path) -> None:
    """Check for exactly the expected problems, in order, each with file, line and fix."""
    assert [(p.code, p.line) for p in problems] == [(code, line) for code, line, _ in expected]
    for problem, (_, _, part) in zip(problems, expected, strict=True):
        assert part in f"{problem.message}\n{problem.fix}", problem
        assert problem.file == str(path)
        assert problem.fix


def assert_errors(folder: Path, case: UrdfCase) -> None:
    """Check that the expected problems of the case are all errors of the changed file."""
    path = write(folder, apply_changes(case.changes))
    _, problems = read_urdf(path, **case.options)
    check_problems([p for p in problems if p.severity is Severity.ERROR], case.expected, path)
