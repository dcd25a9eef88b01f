"""URDF settings that the simulation ignores: one warning per kind, with the names of the elements."""

import pytest

from hybridsim.core.errors import ModelError, Severity
from hybridsim.io.load import inspect_model
from support.urdf_changes import END, LINE_OF_END, MASS, add_collision_mesh, apply_changes, read_urdf, write

LIMIT = '<limit lower="-1" upper="2" effort="10" velocity="5"/>'
ELBOW_AXIS = '<axis xyz="0 1 0"/>\n  </joint>'
TRANSMISSION = (
    '<transmission name="drive"><joint name="elbow"/><actuator name="m">\n'
    "<mechanicalReduction> 50 </mechanicalReduction></actuator></transmission>"
)


def elbow_change(text: str) -> tuple[str, str]:
    """Change that adds something to the elbow, in line 21."""
    return ELBOW_AXIS, f'<axis xyz="0 1 0"/>{text}\n  </joint>'


CASES = {
    "limits of a continuous joint": (
        [elbow_change('<limit lower="-1" upper="1"/>')],
        ("urdf.ignored", 21, Severity.WARNING, "'elbow'"),
    ),
    "limits of a planar joint": (
        [elbow_change('<limit lower="-1" upper="1"/>'), ('type="continuous"', 'type="planar"')],
        ("urdf.ignored", 21, Severity.WARNING, "'elbow'"),
    ),
    "no effort": ([('effort="10"', 'effort="0"')], ("limit.effort", 8, Severity.WARNING, "'shoulder'")),
    "velocity limit": (
        [],
        ("urdf.ignored", 8, Severity.NOTE, "velocity limits of joints are not simulated: 'shoulder'"),
    ),
    "safety controller": (
        [elbow_change('<safety_controller soft_lower_limit="-0.5" soft_upper_limit="0.5" k_velocity="1"/>')],
        ("urdf.ignored", 21, Severity.NOTE, "<safety_controller> of joints is not simulated: 'elbow'"),
    ),
    "reduction": (
        [(END, TRANSMISSION + END)],
        (
            "urdf.ignored",
            LINE_OF_END + 1,
            Severity.WARNING,
            "<mechanicalReduction> of transmissions is ignored: 'drive'",
        ),
    ),
    "Gazebo's friction": (
        [(END, '<gazebo reference="lower"><material>Red</material><mu1>0.2</mu1><kp>1e6</kp></gazebo>' + END)],
        ("urdf.ignored", LINE_OF_END, Severity.WARNING, "Gazebo physics settings are ignored: 'lower'"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_ignored_settings_are_reported(tmp_path, name):
    changes, (code, line, severity, part) = CASES[name]
    model, problems = inspect_model(write(tmp_path, apply_changes(changes)))
    assert model is not None
    if name != "velocity limit":
        problems = [problem for problem in problems if "velocity" not in problem.message]
    (problem,) = problems
    assert (problem.code, problem.line, problem.severity) == (code, line, severity)
    assert part in problem.message and problem.fix


@pytest.mark.parametrize(
    "changes",
    [
        [elbow_change('<limit lower="0" upper="0" velocity="0"/>')],
        [(END, TRANSMISSION.replace("50", "1") + END)],
        [(END, TRANSMISSION.replace("50", "reduction") + END)],
        [(END, '<gazebo><plugin name="p"/></gazebo><gazebo reference="lower"><material>Red</material></gazebo>' + END)],
        [elbow_change('<limit effort="0"/><mimic joint="shoulder"/>')],
    ],
    ids=["zeros", "no reduction", "unreadable reduction", "appearance", "mimic joint without effort"],
)
def test_neutral_settings_are_not_reported(tmp_path, changes):
    assert read_urdf(write(tmp_path, apply_changes(changes)))[1] == []


def test_one_report_for_many_joints(tmp_path):
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="lower"/><child link="l{i}"/>'
        f'<limit lower="-1" upper="1" effort="0" velocity="1"/></joint><link name="l{i}"><inertial><mass value="1"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>'
        for i in range(30)
    )
    _, problems = inspect_model(write(tmp_path, apply_changes([(LIMIT, ""), (END, joints + END)])))
    assert [p.code for p in problems] == ["limit.missing", "urdf.ignored", "limit.effort", "urdf.ignored"]
    assert problems[1].message.endswith("'j6', 'j7' and 22 more")


@pytest.mark.parametrize(
    ("change", "line", "part"),
    [
        (
            (MASS, 'mass value="${m}"'),
            13,
            "attribute 'value' of <mass> of link 'upper' is '${m}', an unexpanded xacro expression",
        ),
        ((END, "<xacro:leg/>" + END), LINE_OF_END, "<xacro:leg> is an unexpanded xacro element"),
        (('<link name="base"/>', '<link name="base"><xacro:box_inertial m="1"/></link>'), 2, "<xacro:box_inertial>"),
        (('name="elbow"', 'name="${side}_elbow"'), 17, "'${side}_elbow'"),
        (add_collision_mesh("$(find arm)/base.stl"), 2, "$(find arm)"),
    ],
)
def test_xacro_must_be_expanded_first(tmp_path, change, line, part):
    path = write(tmp_path, apply_changes([change]))
    with pytest.raises(ModelError) as caught:
        read_urdf(path)
    (problem,) = caught.value.problems
    assert (problem.code, problem.file, problem.line) == ("urdf.xacro", str(path), line)
    assert part in problem.message and "xacro robot.xacro > robot.urdf" in problem.fix


def test_an_unexpanded_file_gives_one_error(tmp_path):
    path = write(tmp_path, apply_changes([(MASS, 'mass value="${m}"'), (END, "<xacro:leg/><xacro:leg/>" + END)]))
    with pytest.raises(ModelError, match=r"and 2 more occurrences\)") as caught:
        read_urdf(path)
    assert len(caught.value.problems) == 1
