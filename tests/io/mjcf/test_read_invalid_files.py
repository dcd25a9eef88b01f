"""Invalid and malicious MJCF files are rejected with line, element and fix, and never cause a crash."""

import numpy as np
import pytest

from hybridsim.core.errors import ModelError, Severity
from hybridsim.io.mjcf.read_mjcf import read_mjcf
from support.mjcf_files import UNSUPPORTED, read_errors, world, write


def inertial(attributes: str) -> str:
    return f'<body name="x"><joint/>\n<inertial pos="0 0 0" {attributes}/></body>'


REPLICATE = '<replicate count="1000">'
BAD = {
    "unknown element": ('<body>\n<jont/><geom size=".1"/></body>', "mjcf.element", 5, "<jont>"),
    "unknown joint type": ('<body>\n<joint type="foo"/><geom size=".1"/></body>', "mjcf.keyword", 5, "foo"),
    "zero axis": ('<body>\n<joint name="j" axis="0 0 0"/><geom size=".1"/></body>', "axis.zero", 5, "'j'"),
    "massless": ('<body name="x">\n<joint/></body>', "mjcf.refused", 4, "'x'"),
    "negative mass": (inertial('mass="-1" diaginertia="1 1 1"'), "mass.negative", 5, "'x'"),
    "triangle": (inertial('mass="1" diaginertia="1 1 3"'), "inertia.triangle", 5, "'x'"),
    "indefinite": (inertial('mass="1" fullinertia="1 1 1 2 2 2"'), "inertia.indefinite", 5, "'x'"),
    "decimal comma": (inertial('mass="1,5" diaginertia="1 1 1"'), "number.invalid", 5, "1,5"),
    "infinite mass": (inertial('mass="inf" diaginertia="1 1 1"'), "number.nonfinite", 5, "mass"),
    "nan": ('<body pos="0 nan 0">\n<joint/><geom size=".1"/></body>', "number.nonfinite", 4, "pos"),
    "duplicate body": ('<body name="x"/>\n<body name="x"/>', "name.duplicate", 5, "'x' (first at line 4)"),
    "free inside": (
        '<body><body>\n<freejoint/><geom size="1"/></body></body>',
        "mjcf.refused",
        4,
        "top level",
    ),
    "plugin": ('<body><joint/><geom size="1"/>\n<plugin plugin="x"/></body>', "mjcf.plugin", 5, "plugin"),
    "bomb": (f"{REPLICATE * 2}\n{REPLICATE}<geom/>{'</replicate>' * 3}", "mjcf.too_large", 4, "50000 elements"),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_bad_files_name_line_element_and_fix(tmp_path, case):
    content, code, line, fragment = BAD[case]
    path = write(tmp_path, world(content))
    problems = read_errors(path)
    assert [(p.code, p.file, p.line) for p in problems] == [(code, str(path), line)]
    assert fragment in problems[0].message and problems[0].fix


def test_swapped_ranges_are_errors(tmp_path):
    body = '<body>\n<joint name="j" range="2 1"/><geom size=".1"/></body>'
    motor = '<actuator>\n<motor joint="j" ctrlrange="1 -1"/></actuator>'
    _, problems = read_mjcf(write(tmp_path, world(body, after=motor)))
    assert [(p.code, p.line, p.severity) for p in problems] == [
        ("limit.order", 8, Severity.ERROR),
        ("limit.order", 5, Severity.ERROR),
    ]


def test_all_problems_in_one_pass(tmp_path):
    path = write(
        tmp_path,
        world(
            """<body name="a"><joint name="j" axis="0 0 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>
<body name="b"><joint name="k" range="2 1"/>
<inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>"""
        ),
    )
    found = [(p.code, p.line) for p in read_errors(path)]
    assert found == [("axis.zero", 4), ("inertia.triangle", 5), ("limit.order", 6), ("mass.negative", 7)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('<!DOCTYPE mujoco [<!ENTITY a "b">]><mujoco/>', "xml.doctype"),
        ("<mujoco><worldbody></mujoco>", "xml.syntax"),
        ("<mujoco>" + "<a>" * 300 + "</a>" * 300 + "</mujoco>", "xml.size"),
        ('<mujoco><extension><plugin plugin="mujoco.pid"/></extension></mujoco>', "mjcf.plugin"),
    ],
)
def test_malicious_files_are_rejected(tmp_path, text, code):
    assert code in {p.code for p in read_errors(write(tmp_path, text))}


def test_a_plugin_is_reported_once(tmp_path):
    path = write(tmp_path, '<mujoco><extension><plugin plugin="mujoco.pid"/></extension></mujoco>')
    assert [(p.code, "<extension>" in p.message) for p in read_errors(path)] == [("mjcf.plugin", True)]


def test_unnamed_joints_and_bodies_are_identified_by_their_elements(tmp_path):
    text = world('<body name="a"><joint axis="0 0 0"/><geom size=".1"/></body>')
    assert read_errors(write(tmp_path, text))[0].message.startswith("axis of <joint> of body 'a' is (0, 0, 0)")
    text = world('<body><joint/><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>')
    assert read_errors(write(tmp_path, text))[0].message.startswith("mass of the unnamed body of <inertial> is -1 kg")


def test_values_that_mujoco_corrects_are_not_reported(tmp_path):
    """With a misspelt attribute, an inertia that `balanceinertia` corrects is not reported."""
    body = '<body name="a" nme="b"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>'
    path = write(tmp_path, world(body, '<compiler balanceinertia="true"/>'))
    assert [p.code for p in read_errors(path)] == ["mjcf.attribute"]


def test_compiler_errors_are_one_line_with_a_fix(tmp_path):
    path = write(
        tmp_path, world('<body><joint range="-1 1"/><geom size=".1"/></body>', '<compiler autolimits="false"/>')
    )
    (problem,) = read_errors(path)
    assert (problem.code, problem.line) == ("mjcf.refused", 4)
    assert "\n" not in problem.message and problem.fix.startswith("add limited=")


def test_compiler_warnings_have_a_fix(tmp_path):
    path = write(tmp_path, world('<body><joint/><geom size=".1"/></body>', '<compiler settotalmass="3"/>'))
    _, (problem,) = read_mjcf(path)
    assert (problem.code, problem.line) == ("mjcf.warning", 2)
    assert problem.message.endswith("will be removed in a future release") and problem.fix.startswith(
        "scale the masses"
    )


def test_nan_in_any_attribute_is_rejected_without_a_log_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, world('<body name="nan"><joint/>\n<geom size=".1" rgba="1 NaN 0 1"/></body>'))
    assert [(p.code, p.line) for p in read_errors(path)] == [("number.nonfinite", 5)]
    assert [file.name for file in tmp_path.iterdir()] == ["model.xml"]


def test_mutated_files_only_ever_raise_model_errors(tmp_path):
    rng = np.random.default_rng(0)
    source = bytearray(UNSUPPORTED.encode())
    words = [b'"', b"<", b">", b"/", b"nan", b"1e999", b"-1", b"body", b"joint", b"", b"&x;", b"0 0"]
    for _ in range(300):
        mutant = bytes(source)
        for _ in range(rng.integers(1, 4)):
            at, length = rng.integers(len(mutant)), rng.integers(0, 6)
            mutant = mutant[:at] + words[rng.integers(len(words))] + mutant[at + length :]
        path = tmp_path / "mutant.xml"
        path.write_bytes(mutant)
        try:
            read_mjcf(path)
        except ModelError as error:
            assert error.problems
