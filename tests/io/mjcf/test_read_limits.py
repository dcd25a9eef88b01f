"""MJCF files that would block MuJoCo for minutes or exhaust the memory are rejected quickly, with element and limit."""

import struct

import pytest

from hybridsim.io.mjcf import read_document
from hybridsim.io.mjcf.read_document import open_document
from hybridsim.io.mjcf.read_mjcf import read_mjcf
from support.mjcf_files import load, read_errors, world, write

BODY = '<body name="a"><joint name="j"/><geom size=".1"/></body>'
CABLE = '<composite type="cable" count="{} 1 1" curve="s" size="1"><geom type="capsule" size=".001"/></composite>'
FLEX = '<flexcomp name="f" type="grid" dim="3" spacing=".1 .1 .1" {}/>'
LONG = "x" * 2000
BOMBS = {
    "copies with a sign": ('<replicate count="+999999"><geom size=".1"/></replicate>', "50000 elements"),
    "bodies": ('<replicate count="6000"><body/></replicate>', "5000 bodies"),
    "chain": (CABLE.format(5000), "nested more than 200 bodies deep"),
    "many chains": (f'<replicate count="20">{CABLE.format(190)}</replicate>', "the tree has 3800 bodies"),
    "flexible body": (FLEX.format('count="30 30 30"'), "5000 bodies"),
    "cells": (FLEX.format('count="9 9 9" dof="trilinear" cellcount="90 90 90"'), "50000 elements"),
    "long names": (f'<geom size=".1" name="{LONG}"/>', "2000 characters"),
    "copied text": (
        f'<replicate count="4000"><body user="{"1 " * 20_000}"/></replicate>',
        "100000000 characters",
    ),
}


@pytest.mark.parametrize("case", BOMBS, ids=str)
def test_small_files_that_expand_to_large_models(tmp_path, case):
    content, fragment = BOMBS[case]
    (problem,) = read_errors(write(tmp_path, world(content)))
    assert (problem.code, problem.line) == ("mjcf.too_large", 4) and fragment in problem.message and problem.fix


LARGE_ARRAYS = {
    "built-in mesh": (
        '<asset><mesh name="m" builtin="supersphere" params="1e3 1 1"/></asset>',
        "300000 points of built-in meshes",
    ),
    "height fields": (
        "<asset>" + '<hfield nrow="3000" ncol="3000" size="1 1 1 1"/>' * 2 + "</asset>",
        "10000000 points",
    ),
    "activations": (
        '<actuator><general joint="j" dyntype="user" actdim="100000000"/></actuator>',
        "1000000 activations",
    ),
}


@pytest.mark.parametrize("case", LARGE_ARRAYS, ids=str)
def test_attributes_that_define_large_arrays(tmp_path, case):
    section, fragment = LARGE_ARRAYS[case]
    (problem,) = read_errors(write(tmp_path, world(BODY, section)))
    assert (problem.code, problem.line) == ("mjcf.too_large", 2) and fragment in problem.message


def test_references_to_copied_elements_are_counted(tmp_path):
    motors = "<actuator>" + '<motor joint="j"/>' * 50 + "</actuator>"
    path = write(tmp_path, world(f'<replicate count="1000">{BODY}</replicate>', after=motors))
    assert [(p.code, "copies of references" in p.message) for p in read_errors(path)] == [("mjcf.too_large", True)]
    path = write(tmp_path, world(f'<replicate count="20">{BODY}</replicate>', after=motors))
    assert load(path)[0].nu == 1000


def test_unused_sections_cost_nothing(tmp_path):
    """Each of these sections alone would take MuJoCo gigabytes or hours."""
    before = """<size nkey="100000000" nuserdata="500000000" nuser_body="500000000"/>
      <compiler><lengthrange mode="all" inttotal="1e9" timestep="1e-9"/></compiler>"""
    after = """<actuator><motor joint="j"/><muscle joint="j"/></actuator>
      <sensor><user dim="500000000"/><rangefinder camera="eye"/></sensor>
      <custom><numeric name="n" size="500" data="1"/></custom>"""
    path = write(tmp_path, world(f'{BODY}<camera name="eye" resolution="30000 30000"/>', before, after))
    model, problems = load(path)
    assert model.actuator.names == ("actuator0",)
    assert [p.code for p in problems] == ["unsupported.actuator", "unsupported.sensor"]
    text = open_document(path).text
    assert not any(word in text for word in ("<sensor", "<size", "<camera", "<lengthrange", "<custom"))


def test_an_image_that_decompresses_to_a_huge_one(tmp_path):
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 50_000, 50_000)
    (tmp_path / "field.png").write_bytes(header + b"\x08\0\0\0\0" + b"\0" * 4)
    text = world(
        '<geom type="hfield" hfield="h"/>', '<asset><hfield name="h" file="field.png" size="1 1 1 1"/></asset>'
    )
    assert [(p.code, p.line) for p in read_errors(write(tmp_path, text))] == [("mjcf.too_large", 2)]


def test_a_large_file_for_a_flexible_body(tmp_path):
    (tmp_path / "body.msh").write_bytes(b"0" * 200_000)
    path = write(tmp_path, world('<flexcomp name="f" type="gmsh" file="body.msh" dim="3"/>'))
    assert [(p.code, p.line) for p in read_errors(path)] == [("mjcf.too_large", 4)]


def test_the_total_size_of_assets_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(read_document, "MAX_ASSET_BYTES", 1500)
    (tmp_path / "a.stl").write_bytes(b"0" * 1000)
    (tmp_path / "b.stl").write_bytes(b"0" * 1000)
    meshes = '<mesh name="a" file="a.stl"/><mesh name="c" file="a.stl"/>\n<mesh name="b" file="b.stl"/>'
    path = write(tmp_path, f"<mujoco><asset>{meshes}</asset></mujoco>")
    assert [(p.code, p.line) for p in read_errors(path)] == [("file.unreadable", 2)]


def test_exponentially_many_attached_models(tmp_path):
    for k in range(12):
        models = "".join(f'<model name="{name}" file="m{k + 1}.xml"/>' for name in "ab")
        write(tmp_path, f"<mujoco><asset>{models}</asset></mujoco>", f"m{k}.xml")
    write(tmp_path, "<mujoco/>", "m12.xml")
    assert [p.code for p in read_errors(tmp_path / "m0.xml")] == ["mjcf.too_large"]


def test_models_of_the_same_name_in_different_files_are_counted_separately(tmp_path):
    """A small nested model must not hide a large model of the same name."""
    write(tmp_path, world('<body name="b"/>'), "small.xml")
    write(tmp_path, '<mujoco><asset><model name="p" file="small.xml"/></asset></mujoco>', "other.xml")
    write(tmp_path, world('<body name="b"><replicate count="900"><geom size=".1"/></replicate></body>'), "large.xml")
    assets = '<asset><model name="p" file="large.xml"/><model name="q" file="other.xml"/></asset>'
    attach = '<replicate count="900"><attach model="p" body="b" prefix="x"/></replicate>'
    assert [(p.code, p.line) for p in read_errors(write(tmp_path, world(attach, assets)))] == [("mjcf.too_large", 4)]


def test_ordinary_copies_and_cables_are_accepted(tmp_path):
    path = write(tmp_path, world(f'<replicate count="50">{BODY}</replicate>{CABLE.format(30)}'))
    spec, _ = read_mjcf(path)
    assert len(spec.bodies) == 79
