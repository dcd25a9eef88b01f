"""Golden tests: one bad file each, and exactly the problems that it must give."""

import random
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from hybridsim.core.errors import ModelError, Severity
from hybridsim.io.urdf import MAX_LINKS, read_urdf
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed

GOOD = """<robot name="arm">
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
LINE_OF_END = GOOD.count("\n")
INERTIAL = """<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>"""


def collision(uri: str) -> tuple[str, str]:
    """Change that gives the base a collision mesh, in line 2."""
    mesh = f'<collision><geometry><mesh filename="{uri}"/></geometry></collision>'
    return '<link name="base"/>', f'<link name="base">{mesh}</link>'


@dataclass
class Case:
    """Changes of the good file, and code, line and part of the text of each problem that they cause."""

    changes: list[tuple[str, str]]
    expected: list[tuple[str, int, str]] = field(default_factory=list)
    options: dict = field(default_factory=dict)


TWO_INERTIALS = "".join(GOOD.splitlines(keepends=True)[i] for i in range(23, 28))

ERRORS = {
    # mass properties
    "zero mass at a leaf": Case(
        [('mass value="0.5"', 'mass value="0"'), (LOWER_INERTIA, 'inertia ixx="0" iyy="0" izz="0"')],
        [("mass.nothing_carried", 23, "inertia='from_geometry'")],
    ),
    "no inertial at a leaf": Case([(TWO_INERTIALS, "")], [("inertial.missing", 23, "link 'lower' has no <inertial>")]),
    "inertia without mass": Case(
        [('mass value="0.5"', 'mass value="0"')], [("mass.zero_with_inertia", 24, "give it a mass")]
    ),
    "mass on the axis without inertia": Case(
        [(LOWER_INERTIA, 'inertia ixx="0" iyy="0" izz="0"'), ('xyz="0 0 0.1"', 'xyz="0 2 0"')],
        [("joint.singular", 23, "elbow")],
    ),
    "negative mass": Case([(MASS, 'mass value="-1.5"')], [("mass.negative", 11, "'upper' is -1.5 kg")]),
    "inertia not positive definite": Case(
        [(LOWER_INERTIA, 'inertia ixx="-0.01" iyy="0.01" izz="0.001"')],
        [("inertia.indefinite", 24, "'lower' is not positive definite")],
    ),
    "off-diagonal inertia too large": Case(
        [('izz="0.001" ixy="0"', 'izz="0.001" ixy="0.05"')], [("inertia.indefinite", 24, "off-diagonal")]
    ),
    "triangle inequality broken": Case(
        [(LOWER_INERTIA, 'inertia ixx="0.01" iyy="0.01" izz="0.5"')],
        [("inertia.triangle", 24, "I3 ≤ I1 + I2")],
    ),
    "mass nan": Case([(MASS, 'mass value="nan"')], [("number.nonfinite", 13, "'value' of <mass> of link 'upper'")]),
    "mass inf": Case([(MASS, 'mass value="inf"')], [("number.nonfinite", 13, "finite")]),
    "mass in words": Case([(MASS, 'mass value="heavy"')], [("number.invalid", 13, "'heavy'")]),
    "decimal comma": Case([(MASS, 'mass value="1,5"')], [("number.invalid", 13, "write 1.5 with a decimal point")]),
    "mass with unit": Case([(MASS, 'mass value="1.5 kg"')], [("number.invalid", 13, "1.5")]),
    "mass without value": Case([(MASS, 'mass valeu="1.5"')], [("attribute.missing", 13, "'value'")]),
    "inertia entry missing": Case(
        [(LOWER_INERTIA, 'inertia ixx="0.01" iyy="0.01"')], [("attribute.missing", 27, "'izz'")]
    ),
    "nan in an inertia": Case([('izz="0.001" ixy="0"', 'izz="0.001" ixy="nan"')], [("number.nonfinite", 27, "ixy")]),
    "missing inertia under the strict policy": Case(
        [(LOWER_INERTIA, 'inertia ixx="0" iyy="0" izz="0"')],
        [("inertial.missing", 24, "'lower' has zero inertia")],
        {"inertia": "error"},
    ),
    "no shape to compute an inertia from": Case(
        [(TWO_INERTIALS, "")],
        [("inertial.no_geometry", 23, "no collision shape")],
        {"inertia": "from_geometry"},
    ),
    # meshes
    "missing mesh": Case([collision("meshes/base.stl")], [("mesh.missing", 2, "meshes/base.stl")]),
    "unknown package": Case([collision("package://no_such/base.stl")], [("mesh.package", 2, "'no_such'")]),
    "mesh climbing out": Case([collision("../../etc/passwd")], [("mesh.outside", 2, "allowed=")]),
    "mesh at an absolute path": Case([collision("/etc/passwd")], [("mesh.outside", 2, "'/etc/passwd'")]),
    "mesh from the network": Case([collision("http://example.org/a.stl")], [("mesh.scheme", 2, "local file")]),
    "mesh without a name": Case([collision("")], [("attribute.missing", 2, "'filename'")]),
    "mesh with a short scale": Case(
        [('<link name="base"/>', collision("x.stl")[1].replace("/></g", ' scale="1 1"/></g'))],
        [("number.count", 2, "'scale'"), ("mesh.missing", 2, "x.stl")],
    ),
    "shape without geometry": Case(
        [('<link name="base"/>', '<link name="base"><collision/></link>')],
        [("geometry.missing", 2, "no shape")],
    ),
    "negative size": Case(
        [('<link name="base"/>', collision("")[1].replace('<mesh filename=""/>', '<box size="1 -1 1"/>'))],
        [("geom.size", 2, "positive")],
    ),
    # mimic
    "mimic of an unknown joint": Case(
        [('<axis xyz="0 1 0"/>\n  </joint>', '<mimic joint="sholder"/>\n  </joint>')],
        [("mimic.unknown", 21, "did you mean 'shoulder'?")],
    ),
    "mimic of itself": Case(
        [('<axis xyz="0 1 0"/>\n  </joint>', '<mimic joint="elbow"/>\n  </joint>')],
        [("mimic.self", 17, "mimics itself")],
    ),
    "mimics in a circle": Case(
        [
            ('<axis xyz="0 1 0"/>\n  </joint>', '<mimic joint="shoulder"/>\n  </joint>'),
            ('velocity="5"/>', 'velocity="5"/><mimic joint="elbow"/>'),
        ],
        [("mimic.chain", 3, "itself a mimic"), ("mimic.chain", 17, "itself a mimic")],
    ),
    "mimic without a joint": Case(
        [('<axis xyz="0 1 0"/>\n  </joint>', "<mimic/>\n  </joint>")], [("attribute.missing", 21, "'joint'")]
    ),
    # the tree
    "loop closed by a joint": Case(
        [(END, '<joint name="j3" type="fixed"><parent link="lower"/><child link="upper"/></joint>' + END)],
        [("tree.loop", LINE_OF_END, "'upper' → 'lower' → 'upper'")],
    ),
    "loop without a root": Case(
        [(END, '<joint name="j3" type="fixed"><parent link="lower"/><child link="base"/></joint>' + END)],
        [("tree.loop", 3, "'base' → 'upper' → 'lower' → 'base'")],
    ),
    "two parents": Case(
        [(END, '<joint name="j3" type="fixed"><parent link="base"/><child link="lower"/></joint>' + END)],
        [("tree.two_parents", LINE_OF_END, "by joint 'elbow' (line 17) and on 'base' by joint 'j3'")],
    ),
    "two roots": Case(
        [
            (
                END,
                f'<link name="island">{INERTIAL}</link><link name="hut">{INERTIAL}</link>'
                '<joint name="j3" type="continuous"><parent link="island"/><child link="hut"/></joint>' + END,
            )
        ],
        [("tree.roots", LINE_OF_END, "link 'island' with the 1 links below it is not connected")],
    ),
    "disconnected link": Case([(END, '<link name="alone"/>' + END)], [("tree.roots", LINE_OF_END, "'alone'")]),
    "joint from a link to itself": Case(
        [('<parent link="upper"/>', '<parent link="lower"/>')], [("tree.loop", 17, "'lower' with itself")]
    ),
    "unknown parent": Case(
        [('<parent link="upper"/>', '<parent link="uper"/>')], [("joint.link", 18, "did you mean 'upper'?")]
    ),
    "unknown child": Case(
        [('<child link="lower"/>', '<child link="hand"/>')],
        [("joint.link", 19, "'hand'"), ("tree.roots", 23, "'lower' is not connected")],
    ),
    "joint without parent": Case([('<parent link="upper"/>', "")], [("joint.ends", 17, "no <parent>")]),
    "joint without child name": Case(
        [('<child link="lower"/>', "<child/>")],
        [("attribute.missing", 19, "'link'"), ("tree.roots", 23, "'lower'")],
    ),
    "duplicate link": Case(
        [(END, f'<link name="lower">{INERTIAL}</link>' + END)],
        [("name.duplicate", LINE_OF_END, "two links are named 'lower' (first at line 23)")],
    ),
    "duplicate joint": Case(
        [('name="elbow"', 'name="shoulder"')], [("name.duplicate", 17, "two joints are named 'shoulder'")]
    ),
    "link without name": Case(
        [('<link name="base"/>', '<link name="base"/><link/>')],
        [("attribute.missing", 2, "'name'"), ("tree.roots", 2, "not connected")],
    ),
    "world as a child": Case(
        [('name="lower"', 'name="world"'), ('link="lower"', 'link="world"')],
        [("name.world", 23, "stands for the ground")],
    ),
    "free base of a file rooted in the world": Case(
        [('name="base"', 'name="world"'), ('link="base"', 'link="world"')],
        [("base.world", 2, "base='fixed'")],
        {"base": "free"},
    ),
    "floating joint inside the tree": Case(
        [('type="continuous"', 'type="floating"')], [("joint.free_inside", 17, "must hang on the world")]
    ),
    "no links": Case([(GOOD, '<robot name="r"/>')], [("tree.empty", 1, "add a <link>")]),
    # joints
    "unknown joint type": Case(
        [('type="continuous"', 'type="revolut"')], [("joint.type", 17, "did you mean 'revolute'?")]
    ),
    "joint without type": Case([(' type="continuous"', "")], [("attribute.missing", 17, "'type'")]),
    "zero axis": Case(
        [('<axis xyz="0 1 0"/>\n  </joint>', '<axis xyz="0 0 0"/>\n  </joint>')], [("axis.zero", 17, "0 0 1")]
    ),
    "lower above upper": Case([('upper="2"', 'upper="-2"')], [("limit.order", 3, "exchange")]),
    "short vector": Case([('xyz="0 0 0.5"', 'xyz="0 0.5"')], [("number.count", 6, "3 numbers")]),
    "long vector": Case([('xyz="0 0 0.5"', 'xyz="0 0 0.5 0"')], [("number.count", 6, "3 numbers")]),
    "nan in an origin": Case([('xyz="0 0 0.5"', 'xyz="0 0 nan"')], [("number.nonfinite", 6, "'xyz'")]),
    "commas in a vector": Case([('xyz="0 0 0.5"', 'xyz="0, 0, 0.5"')], [("number.invalid", 6, "blanks")]),
    "nan limit": Case([('upper="2"', 'upper="nan"')], [("number.nonfinite", 8, "'upper'")]),
    "negative damping": Case(
        [('velocity="5"/>', 'velocity="5"/><dynamics damping="-1"/>')], [("damping.invalid", 3, "-1")]
    ),
    "negative effort": Case([('effort="10"', 'effort="-10"')], [("effort_limit.invalid", 3, "-10")]),
    "negative velocity": Case([('velocity="5"', 'velocity="-5"')], [("limit.velocity", 8, "negative")]),
    "xacro expression": Case([(MASS, 'mass value="${m}"')], [("number.invalid", 13, "xacro")]),
    "xacro command": Case([(END, "<xacro:leg/>" + END)], [("urdf.xacro", LINE_OF_END, "expand")]),
    # several at once, in the order of the file
    "everything in one pass": Case(
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
    ),
}

WARNINGS = {
    "lengths in millimetres": Case(
        [('xyz="0 0 0.5"', 'xyz="0 0 500"')],
        [
            ("units.length", 10, "millimetres"),
        ],
    ),
    "mass in grams": Case(
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
    "inertia in other units": Case(
        [(LOWER_INERTIA, 'inertia ixx="2000" iyy="2000" izz="2000"')],
        [("units.inertia", 24, "check both units")],
    ),
    "revolute without limit": Case(
        [('<limit lower="-1" upper="2" effort="10" velocity="5"/>', "")],
        [("limit.missing", 3, 'type="continuous"')],
    ),
    "limit without range": Case([('lower="-1" upper="2" ', "")], [("limit.missing", 8, "moves freely")]),
    "limits that lock the joint": Case(
        [('lower="-1" upper="2"', 'lower="0" upper="0"')], [("limit.locked", 8, "fixed")]
    ),
    "misspelt tag in a link": Case(
        [("</link>\n  <joint", "<colision/></link>\n  <joint")],
        [("element.unknown", 16, "did you mean 'collision'?")],
    ),
    "misspelt tag in a joint": Case(
        [('<axis xyz="0 1 0"/>\n  </joint>', '<axis xyz="0 1 0"/><dynamic damping="1"/>\n  </joint>')],
        [("element.unknown", 21, "did you mean 'dynamics'?")],
    ),
    "misspelt tag in the robot": Case([(END, "<jont/>" + END)], [("element.unknown", LINE_OF_END, "'joint'")]),
    "misspelt attribute": Case(
        [('velocity="5"/>', 'velocity="5"/><dynamics dampng="1"/>')],
        [("attribute.unknown", 8, "did you mean 'damping'?")],
    ),
    "two inertials": Case(
        [("</inertial>\n  </link>\n  <joint", f"</inertial>{INERTIAL}\n  </link>\n  <joint")],
        [("element.repeated", 15, "only the one of line 11 counts")],
    ),
    "missing visual mesh": Case(
        [('<link name="base"/>', collision("a.obj")[1].replace("collision", "visual"))],
        [("mesh.missing", 2, "a.obj")],
    ),
    "point mass": Case([(LOWER_INERTIA, 'inertia ixx="0" iyy="0" izz="0"')], [("inertia.zero", 24, "point mass")]),
    "massless tool frame with inertia": Case(
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
    "unknown shape": Case(
        [('<link name="base"/>', collision("")[1].replace('<mesh filename=""/>', "<cone/>"))],
        [("geometry.unknown", 2, "left out")],
    ),
    "robot without name": Case([('<robot name="arm">', "<robot>")], [("name.missing", 1, "no name")]),
}


def write(tmp_path, text: str | bytes):
    path = tmp_path / "arm.urdf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def changed(changes: list[tuple[str, str]]) -> str:
    text = GOOD
    for old, new in changes:
        assert old in text, f"{old!r} is not in the file"
        text = text.replace(old, new, 1) if old != END else new.join(text.rsplit(old, 1))
    return text


def check(problems, expected, path):
    assert [(p.code, p.line) for p in problems] == [(code, line) for code, line, _ in expected]
    for problem, (_, _, part) in zip(problems, expected, strict=True):
        assert part in f"{problem.message}\n{problem.fix}", problem
        assert problem.file == str(path)
        assert problem.fix


def test_the_good_file_is_good(tmp_path):
    spec, problems = read_urdf(write(tmp_path, GOOD))
    assert problems == []
    assert [body.name for body in spec.bodies] == ["base", "upper", "lower"]


@pytest.mark.parametrize("name", ERRORS)
def test_errors(tmp_path, name):
    case = ERRORS[name]
    path = write(tmp_path, changed(case.changes))
    _, problems = read_urdf(path, **case.options)
    check([p for p in problems if p.severity is Severity.ERROR], case.expected, path)


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings(tmp_path, name):
    case = WARNINGS[name]
    path = write(tmp_path, changed(case.changes))
    spec, problems = read_urdf(path, **case.options)
    assert not [p for p in problems if p.severity is Severity.ERROR]
    check(problems, case.expected, path)
    assert assemble(merge_fixed(spec)[0]).nv == 2


UNREADABLE = {
    "truncated": (GOOD[: GOOD.index("</inertial>")], "xml.syntax", 14, "cut off"),
    "wrong end tag": (
        GOOD.replace("</inertial>", "</inertail>", 1),
        "xml.syntax",
        15,
        "<inertial> of line 11",
    ),
    "entity bomb": (
        '<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
        '<!ENTITY c "&b;&b;&b;&b;&b;&b;">]>\n<robot name="&c;"/>',
        "xml.doctype",
        2,
        "DOCTYPE",
    ),
    "external entity": (
        '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r">&x;</robot>',
        "xml.doctype",
        1,
        "DOCTYPE",
    ),
    "external document type": (
        '<!DOCTYPE robot SYSTEM "http://example.org/r.dtd"><robot/>',
        "xml.doctype",
        1,
        "",
    ),
    "internal entity in an attribute": (
        '<!DOCTYPE r [<!ENTITY m "1.5">]>' + GOOD.replace('"1.5"', '"&m;"'),
        "xml.doctype",
        1,
        "values in place of entities",
    ),
    "undeclared entity": (GOOD.replace('"1.5"', '"&m;"'), "xml.syntax", 13, "entities"),
    "deep nesting": ("<robot>" + "<link>" * 20_000, "xml.size", 1, "200 deep"),
    "empty": ("", "xml.empty", 0, "empty"),
    "binary": (bytes(range(256)) * 10, "xml.encoding", 1, "UTF-8"),
    "not XML": ("robot: arm", "xml.syntax", 1, "<robot ...>"),
    "another format": ("<mujoco/>", "urdf.root", 1, "<mujoco>"),
    "too many links": (f"<robot>{'<link/>' * (MAX_LINKS + 1)}</robot>", "urdf.size", 1, str(MAX_LINKS)),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_files_that_cannot_be_read_at_all(tmp_path, name):
    text, code, line, part = UNREADABLE[name]
    path = write(tmp_path, text)
    start = time.perf_counter()
    with pytest.raises(ModelError) as caught:
        read_urdf(path)
    assert time.perf_counter() - start < 2.0
    check(caught.value.problems, [(code, line, part)], path)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.stl").write_text("solid")
    (folder / "base.stl").symlink_to(tmp_path / "secret.stl")
    path = write(folder, changed([collision("base.stl")]))
    _, problems = read_urdf(path)
    assert [p.code for p in problems] == ["mesh.outside"]
    _, problems = read_urdf(path, allowed=[tmp_path])
    assert problems == []


def test_wrong_options_are_refused(tmp_path):
    with pytest.raises((ValueError, TypeError)):
        read_urdf(write(tmp_path, GOOD), base="floating")  # type: ignore[arg-type]


def test_a_long_chain_does_not_hang(tmp_path):
    links = "".join(f'<link name="l{i}">{INERTIAL}</link>' for i in range(1000))
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i - 1}"/><child link="l{i}"/></joint>'
        for i in range(1, 1000)
    )
    start = time.perf_counter()
    spec, problems = read_urdf(write(tmp_path, f'<robot name="chain">{joints}{links}</robot>'))
    assert time.perf_counter() - start < 10.0
    assert not problems and len(spec.bodies) == 1000


def test_many_problems_do_not_hang(tmp_path):
    joints = "".join(
        f'<joint name="joint{i}" type="revolut"><parent link="lunk{i}"/><child link="lnik{i}"/>'
        f'<mimic joint="jiont{i}"/></joint>'
        for i in range(200)
    )
    links = "".join(f'<link name="link{i}"/>' for i in range(200))
    start = time.perf_counter()
    _, problems = read_urdf(write(tmp_path, f'<robot name="mess">{links}{joints}</robot>'))
    assert time.perf_counter() - start < 30.0
    assert len(problems) > 600


FUZZ_SNIPPETS = [
    *(
        "nan",
        "-1",
        "1e308",
        "1e-320",
        "0",
        "inf",
        "",
        " ",
        "<",
        ">",
        "/>",
        '"',
        "'",
        "&",
        "&#0;",
        "é",
        "\0",
        "world",
    ),
    *(
        "base",
        "upper",
        "lower",
        "fixed",
        "planar",
        "floating",
        "spherical",
        "universal",
        "prismatic",
        "revolute",
    ),
    *(
        '<mimic joint="shoulder"/>',
        '<limit lower="3"/>',
        '<link name="upper"/>',
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
    ),
    *(
        "<collision><geometry><mesh filename='../x'/></geometry></collision>",
        "<?pi?>",
        "<!DOCTYPE x>",
        "\r\n",
    ),
    "<collision><geometry><capsule radius='1' length='2'/></geometry></collision>",
]


def mutated(text: str, generator: random.Random) -> str:
    """The text with a piece cut out, repeated or replaced, or with another value in some attribute."""
    a = generator.randrange(len(text))
    b = min(len(text), a + generator.choice([0, 1, 3, 10, 40, 200]))
    match generator.randrange(8):
        case 0:
            return text[:a] + text[b:]
        case 1:
            return text[:b] + text[a:]
        case 2:
            return text[:a] + generator.choice(FUZZ_SNIPPETS) + text[b:]
        case _:
            words = text.split('"')
            k = generator.randrange(1, len(words), 2) if len(words) > 1 else 0
            words[k] = generator.choice([*FUZZ_SNIPPETS, generator.choice(words)])
            return '"'.join(words)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mutated_files_never_crash(tmp_path, seed):
    generator = random.Random(seed)
    start, usable = time.perf_counter(), 0
    for _ in range(300):
        text = GOOD
        for _ in range(generator.randint(1, 3)):
            text = mutated(text, generator) or GOOD
        path = write(tmp_path, text)
        base, inertia = (
            generator.choice(["fixed", "free"]),
            generator.choice(["file", "from_geometry", "error"]),
        )
        try:
            spec, problems = read_urdf(path, base=base, inertia=inertia)
        except ModelError as error:
            assert all(p.code and p.file for p in error.problems)
            continue
        assert all(p.code for p in problems)
        if not any(p.severity is Severity.ERROR for p in problems):
            usable += 1
            model = assemble(merge_fixed(spec)[0])
            numbers = (model.body.mass, model.body.com, model.body.inertia, model.joint.axis)
            assert all(np.isfinite(x).all() for x in numbers)
    assert usable >= 5
    assert time.perf_counter() - start < 60.0
