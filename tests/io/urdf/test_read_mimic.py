"""URDF mimic joints: chains are resolved to the master joint, and invalid ones are reported."""

import json

import pytest

from hybridsim.cli.main import run
from hybridsim.core.errors import Severity
from hybridsim.io.export import export
from hybridsim.model.assemble import assemble
from support.exported_models import assert_same, load, with_entry
from support.urdf_changes import INERTIAL, read_urdf, write


def chain(*mimics: str, types: str = "continuous continuous continuous", limits: str = "") -> str:
    """Three links in a row, their joints `a`, `b` and `c`, one per line."""
    lines = ['<robot name="r"><link name="l0"/>']
    for k, (name, kind) in enumerate(zip("abc", types.split(), strict=True)):
        mimic = mimics[k] if k < len(mimics) else ""
        lines.append(
            f'<joint name="{name}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/>{limits}{mimic}</joint>'
            f'<link name="l{k + 1}">{INERTIAL}</link>'
        )
    return "\n".join([*lines, "</robot>"])


B_FOLLOWS_A = '<mimic joint="a" multiplier="2" offset="0.5"/>'
C_FOLLOWS_B = '<mimic joint="b" multiplier="-3" offset="0.1"/>'


def test_ratios_and_offsets_multiply_through(tmp_path):
    spec, problems = read_urdf(write(tmp_path, chain("", B_FOLLOWS_A, C_FOLLOWS_B)))
    assert problems == []
    model = assemble(spec)
    assert model.nv == 1
    c = model.topology.joint_index("c")
    assert model.topology.joint_names[model.topology.masters[c]] == "a"
    assert (model.joint.mimic_ratio[c], model.joint.mimic_offset[c]) == (-6.0, -3 * 0.5 + 0.1)


def test_the_order_of_the_file_does_not_matter(tmp_path):
    last_first = chain('<mimic joint="b" multiplier="2"/>', '<mimic joint="c" multiplier="3"/>')
    model = assemble(read_urdf(write(tmp_path, last_first))[0])
    assert [float(r) for r in model.joint.mimic_ratio[1:]] == [6.0, 3.0, 1.0]


@pytest.mark.parametrize(
    ("text", "code", "line", "severity", "part"),
    [
        (
            chain('<mimic joint="c"/>', '<mimic joint="a"/>', '<mimic joint="b"/>'),
            "mimic.cycle",
            2,
            Severity.ERROR,
            "'a' → 'c' → 'b' → 'a'",
        ),
        (
            chain("", '<mimic joint="c"/>', '<mimic joint="b"/>'),
            "mimic.cycle",
            3,
            Severity.ERROR,
            "remove the <mimic> of the actuated joint",
        ),
        (
            chain('<mimic joint="b"/>', '<mimic joint="b"/>'),
            "mimic.self",
            3,
            Severity.ERROR,
            "joint 'b' mimics itself",
        ),
        (
            chain("", '<mimic joint="a"/>', types="continuous fixed continuous"),
            "mimic.fixed",
            3,
            Severity.WARNING,
            "ignored",
        ),
        (
            chain("", '<mimic joint="a"/>', types="fixed continuous continuous"),
            "mimic.kind",
            3,
            Severity.ERROR,
            "joint 'a' is fixed",
        ),
        (
            chain("", '<mimic joint="a"/>', types="continuous spherical continuous"),
            "mimic.kind",
            3,
            Severity.ERROR,
            "joint 'b' is spherical",
        ),
    ],
)
def test_invalid_mimics(tmp_path, text, code, line, severity, part):
    _, (problem,) = read_urdf(write(tmp_path, text))
    assert (problem.code, problem.line, problem.severity) == (code, line, severity)
    assert part in f"{problem.message}\n{problem.fix}"


REVOLUTE = {"types": "revolute revolute revolute", "limits": '<limit lower="-1" upper="1" effort="1"/>'}


@pytest.mark.parametrize(
    ("mimic", "mimic_range"),
    [
        ('multiplier="-2"', "from -2 to 2"),
        ('offset="0.5"', "from -0.5 to 1.5"),
        ('multiplier="0" offset="5"', "from 5 to 5"),
        ('multiplier="1.001"', ""),
        ('multiplier="-0.5" offset="0.2"', ""),
    ],
)
def test_a_master_that_exceeds_the_limits(tmp_path, mimic, mimic_range):
    _, problems = read_urdf(write(tmp_path, chain("", f'<mimic joint="a" {mimic}/>', **REVOLUTE)))
    assert [p.code for p in problems] == (["mimic.range"] if mimic_range else [])
    assert all(mimic_range in p.message and "-1 to 1" in p.message and p.line == 3 for p in problems)


def test_an_unlimited_master_exceeds_any_limits(tmp_path):
    text = chain("", '<mimic joint="a"/>', types="continuous revolute continuous", limits=REVOLUTE["limits"])
    _, problems = read_urdf(write(tmp_path, text))
    assert [p.code for p in problems if p.code.startswith("mimic")] == ["mimic.range"]


def test_chains_are_exported_link_by_link(tmp_path):
    file, out = write(tmp_path, chain("", B_FOLLOWS_A, C_FOLLOWS_B)), tmp_path / "out.urdf"
    model = load(file)
    model = with_entry(model, lambda m: m.joint.mimic_ratio, 1, 4.0)
    model = with_entry(model, lambda m: m.joint.mimic_offset, 1, 0.25)
    changes = export(file, model, out)
    assert_same(load(out), model, rtol=1e-15)
    # b is the master of c, whose ratio to a must not change
    assert {(c.element, c.parameter) for c in changes} == {
        *(("joint 'b'", name) for name in ("mimic ratio", "mimic offset")),
        *(("joint 'c'", name) for name in ("mimic ratio", "mimic offset")),
    }
    assert '<mimic joint="a" multiplier="4.0" offset="0.25"/>' in out.read_text()
    assert '<mimic joint="b" multiplier="-1.5"' in out.read_text()


def test_a_mimic_joint_is_simulated(tmp_path, capsys):
    path = write(tmp_path, chain("", '<mimic joint="a" multiplier="-2"/>', types="continuous continuous fixed"))
    assert run(["check", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["summary"]["degrees_of_freedom"] == 1
    assert [body["type"] for body in report["bodies"]] == ["revolute", "revolute, mimics a"]
