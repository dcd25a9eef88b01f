"""Damaged, huge or malicious URDF files are rejected quickly and never cause a crash."""

import random
import time

import numpy as np
import pytest

from hybridsim.core.errors import ModelError, Severity
from hybridsim.io.urdf.read_urdf import MAX_LINKS
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed_joints
from support.urdf_changes import INERTIAL, VALID, check_problems, read_urdf, write

UNREADABLE = {
    "wrong end tag": (
        VALID.replace("</inertial>", "</inertail>", 1),
        "xml.syntax",
        15,
        "<inertial> of line 11",
    ),
    "external document type": (
        '<!DOCTYPE robot SYSTEM "http://example.org/r.dtd"><robot/>',
        "xml.doctype",
        1,
        "",
    ),
    "undeclared entity": (VALID.replace('"1.5"', '"&m;"'), "xml.syntax", 13, "entities"),
    "empty": ("", "xml.empty", 0, "empty"),
    "binary": (bytes(range(256)) * 10, "xml.encoding", 1, "UTF-8"),
    "not XML": ("robot: arm", "xml.syntax", 1, "<robot ...>"),
    "too many links": (f"<robot>{'<link/>' * (MAX_LINKS + 1)}</robot>", "urdf.size", 1, str(MAX_LINKS)),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_files(tmp_path, name):
    text, code, line, part = UNREADABLE[name]
    path = write(tmp_path, text)
    start = time.perf_counter()
    with pytest.raises(ModelError) as caught:
        read_urdf(path)
    assert time.perf_counter() - start < 2.0
    check_problems(caught.value.problems, [(code, line, part)], path)


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


def mutate(text: str, generator: random.Random) -> str:
    """The text with a section removed, repeated or replaced, or with another attribute value."""
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
        text = VALID
        for _ in range(generator.randint(1, 3)):
            text = mutate(text, generator) or VALID
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
            model = assemble(merge_fixed_joints(spec)[0])
            numbers = (model.body.mass, model.body.com, model.body.inertia, model.joint.axis)
            assert all(np.isfinite(x).all() for x in numbers)
    assert usable >= 5
    assert time.perf_counter() - start < 60.0
