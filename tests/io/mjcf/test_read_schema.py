"""Misspelt MJCF files: all unknown names are reported in one pass, and nothing that MuJoCo accepts is reported."""

import mujoco
import pytest

from hybridsim.core.errors import Severity
from hybridsim.io.mjcf.read_mjcf import read_mjcf
from hybridsim.io.mjcf.read_schema import parse_schema, schema
from support.mjcf_files import read_errors, world, write

TWO_ARMS = """<body name="left"><joint name="elbow"/><geom name="skin" size=".1"/><site name="tip"/></body>
<body name="right"><joint name="knee"/><geom name="bone" size=".1"/><site name="toe"/></body>"""
BEFORE = '<asset><mesh name="hull" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
TENDON = '<tendon><fixed name="cord"><joint joint="elbow" coef="1"/></fixed></tendon>'


def test_all_unknown_names_in_one_pass(tmp_path):
    path = write(
        tmp_path,
        """<mujoco>
<compiler angel="radian"/>
<include file="missing.xml"/>
<asset><mesh name="m" file="missing.stl"/></asset>
<worldbody>
<bdy name="a"/>
<body nme="x"><joint type="hige" axis="0 0 0"/><geom size=".1"/></body>
<motor joint="j"/>
</worldbody>
</mujoco>""",
    )
    found = [(p.code, p.line, p.fix) for p in read_errors(path)]
    assert found == [
        ("mjcf.attribute", 2, "did you mean 'angle'?"),
        ("mesh.missing", 3, found[1][2]),
        ("mesh.missing", 4, found[2][2]),
        ("mjcf.element", 6, "did you mean 'body'?"),
        ("mjcf.attribute", 7, "did you mean 'name'?"),
        ("mjcf.keyword", 7, "did you mean 'hinge'?"),
        ("mjcf.element", 8, "it belongs in <actuator>"),
    ]


def test_invalid_values_in_the_same_pass(tmp_path):
    body = '<body name="a" nme="b"><joint axis="0 0 0"/>\n<inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>'
    found = [(p.code, p.line) for p in read_errors(write(tmp_path, world(body)))]
    assert found == [("mjcf.attribute", 4), ("axis.zero", 4), ("mass.negative", 5)]


def test_all_undefined_references_in_one_pass(tmp_path):
    after = """<actuator>
<motor joint="elbw"/>
<motor joint="hip"/>
</actuator>
<contact><exclude body1="left" body2="rigth"/>
<pair geom1="skin" geom2="bones"/></contact>
<equality><weld body1="torso"/></equality>
<sensor><touch site="tap"/></sensor>"""
    problems = read_errors(write(tmp_path, world(TWO_ARMS, BEFORE, after)))
    assert [(p.code, p.line) for p in problems] == [("mjcf.reference", line) for line in (8, 9, 11, 12, 13, 14)]
    fixes = [p.fix for p in problems]
    assert [fixes[k] for k in (0, 2, 3, 5)] == [f"did you mean {name!r}?" for name in ("elbow", "right", "bone", "tip")]
    assert fixes[1] == "known names of this kind: elbow, knee" and "'hip'" in problems[1].message


REFERENCES = {
    "actuator": [
        '<motor joint="?"/>',
        '<motor jointinparent="?"/>',
        '<motor tendon="?"/>',
        '<motor site="?"/>',
        '<motor site="tip" refsite="?"/>',
        '<motor cranksite="?" slidersite="tip" cranklength="1"/>',
        '<motor cranksite="tip" slidersite="?" cranklength="1"/>',
        '<adhesion body="?" ctrlrange="0 1"/>',
        '<motor joint="elbow" class="?"/>',
    ],
    "equality": [
        '<connect body1="?" body2="left" anchor="0 0 0"/>',
        '<weld body1="left" body2="?"/>',
        '<connect site1="tip" site2="?"/>',
        '<joint joint1="elbow" joint2="?"/>',
        '<tendon tendon1="?"/>',
    ],
    "contact": ['<pair geom1="skin" geom2="?"/>', '<exclude body1="?" body2="left"/>'],
    "sensor": [
        '<jointpos joint="?"/>',
        '<actuatorpos actuator="?"/>',
        '<framepos objtype="xbody" objname="?"/>',
        '<framepos objtype="site" objname="tip" reftype="geom" refname="?"/>',
        '<camprojection site="tip" camera="?"/>',
        '<contact subtree1="?"/>',
    ],
    "tendon": [
        '<fixed><joint joint="?" coef="1"/></fixed>',
        '<spatial><site site="tip"/><geom geom="skin" sidesite="?"/><site site="toe"/></spatial>',
    ],
    "custom": ['<tuple name="t"><element objtype="body" objname="?"/></tuple>'],
    "worldbody": [
        '<geom type="mesh" mesh="?"/>',
        '<geom type="hfield" hfield="?"/>',
        '<body childclass="?"/>',
        '<camera mode="targetbody" target="?"/>',
        '<site mesh="?"/>',
        '<attach model="?" prefix="p"/>',
    ],
}


@pytest.mark.parametrize(("section", "element"), [(s, e) for s, elements in REFERENCES.items() for e in elements])
def test_undefined_references_are_errors_in_mujoco_too(tmp_path, section, element):
    text = world(TWO_ARMS, BEFORE, f"{TENDON}<{section}>{element.replace('?', 'nowhere')}</{section}>")
    with pytest.raises(ValueError, match=r"nowhere|unknown"):
        mujoco.MjSpec.from_string(text).compile()
    assert [p.code for p in read_errors(write(tmp_path, text))] == ["mjcf.reference"]


@pytest.mark.parametrize(
    "content",
    [
        '<replicate count="2"><body name="c"><joint name="k"/><geom size=".1"/></body></replicate>',
        '<composite prefix="k" type="cable" count="5 1 1" size=".2" curve="s">'
        '<geom type="capsule" size=".01"/></composite>',
        '<frame name="f" anything="goes"><body name="c"><joint name="k1"/><geom size=".1"/></body></frame>',
    ],
    ids=["replicate", "composite", "frame"],
)
def test_names_generated_by_copies_are_left_to_mujoco(tmp_path, content):
    joint = "kJ_1" if "composite" in content else "k1"
    path = write(tmp_path, world(content, after=f'<actuator><motor joint="{joint}"/></actuator>'))
    assert mujoco.MjSpec.from_file(str(path)).compile().nu == 1
    read_mjcf(path)


def test_attributes_that_mujoco_ignores_are_a_warning(tmp_path):
    """MuJoCo does not check attributes inside a `<frame>`."""
    content = '<frame>\n<body name="a" psi="1"><joint/><geom size=".1"/></body></frame>'
    _, problems = read_mjcf(write(tmp_path, world(content)))
    assert [(p.code, p.line, p.severity) for p in problems] == [("unsupported.body.psi", 5, Severity.WARNING)]
    content = content.replace("<joint/>", '<joint type="hige"/>\n<jont/>')
    assert [(p.code, p.line) for p in read_errors(write(tmp_path, world(content)))] == [
        ("mjcf.keyword", 5),
        ("mjcf.element", 6),
    ]


def test_the_name_of_a_misspelt_element_is_not_reported_as_undefined(tmp_path):
    text = world('<body><jont name="j"/><geom size=".1"/></body>', after='<actuator><motor joint="j"/></actuator>')
    assert [p.code for p in read_errors(write(tmp_path, text))] == ["mjcf.element"]


def test_a_repeated_element_that_must_be_unique(tmp_path):
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    problems = read_errors(write(tmp_path, world(f'<body name="a"><joint/>\n{inertial}\n{inertial}</body>')))
    assert [(p.code, p.line) for p in problems] == [("mjcf.element", 6)]


def test_the_schema_is_that_of_mujoco():
    kinds = schema().children
    assert {"compiler", "option", "worldbody", "actuator", "sensor", "keyframe"} < set(kinds)
    body = kinds["worldbody"].children["body"]
    assert body.children["frame"].children is body.children and body.children["body"] is body
    assert {"name", "pos", "mocap"} < body.attributes and not kinds["worldbody"].attributes
    assert kinds["default"].children["default"] is kinds["default"]
    assert body.children["inertial"].is_single and not body.children["geom"].is_single
    assert "springdamper" in body.children["joint"].attributes  # on a continued line
    tiny = parse_schema("mujoco (!)   model\n   a (?)   b c\n           d\n      e (*)\n")
    assert tiny.children["a"].attributes == {"b", "c", "d"} and list(tiny.children["a"].children) == ["e"]
