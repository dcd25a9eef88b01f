"""Files referenced by an MJCF model: expanded with their line numbers, and never outside its folder."""

from pathlib import Path

import pytest

from hybridsim.io.mjcf import read_document
from hybridsim.io.mjcf.read_mjcf import read_mjcf
from support.mjcf_files import load, read_errors, world, write


def test_includes_are_expanded_with_their_line_numbers(tmp_path):
    write(
        tmp_path,
        '<include>\n<body name="b"><joint name="k" margin="1"/>\n<geom size=".1"/></body>\n</include>',
        "parts/arm.xml",
    )
    write(tmp_path, '<mujoco><include file="inner.xml"/></mujoco>', "parts/outer.xml")
    write(tmp_path, '<mujoco><option gravity="0 0 -1"/></mujoco>', "parts/inner.xml")
    path = write(
        tmp_path,
        world(
            '<body name="a"><joint name="j"/><geom size=".1"/><include file="parts/arm.xml"/></body>',
            '<include file="parts/outer.xml"/>',
        ),
    )
    model, problems = load(path)
    assert model.topology.body_names == ("a", "b") and model.gravity[2] == -1
    assert [(Path(p.file).name, p.line) for p in problems] == [("arm.xml", 2)]


def test_attached_models_have_their_own_line_numbers(tmp_path):
    write(
        tmp_path,
        '<mujoco>\n<worldbody>\n<body name="hand">\n<joint name="grip" margin="1"/>\n<geom size=".1"/></body>'
        "</worldbody></mujoco>",
        "hand.xml",
    )
    path = write(
        tmp_path,
        world(
            '<body name="a"><joint/><geom size=".1"/><attach model="h" body="hand" prefix="left_"/></body>',
            '<asset><model name="h" file="hand.xml"/></asset>',
        ),
    )
    spec, problems = read_mjcf(path)
    assert [b.name for b in spec.bodies] == ["a", "left_hand"]
    source = spec.bodies[1].joint.source
    assert (Path(source.file).name, source.line) == ("hand.xml", 4)
    assert [(p.code, Path(p.file).name, p.line) for p in problems] == [("unsupported.joint.contact", "hand.xml", 4)]


def test_a_keyframe_of_an_attached_model_is_reported_as_ignored(tmp_path):
    body = '<body name="b"><joint name="j"/><geom size=".1"/></body>'
    write(tmp_path, world(body, after='<keyframe><key name="home" qpos="1"/></keyframe>'), "part.xml")
    for prefix in ("x_", ""):
        attach = f'<attach model="p" body="b" prefix="{prefix}"/>'
        path = write(tmp_path, world(attach, '<asset><model name="p" file="part.xml"/></asset>'))
        model, problems = load(path)
        unused = [(Path(p.file).name, p.line) for p in problems if p.code == "unsupported.key"]
        assert model.home.tolist() == [0.0] and unused == [("part.xml", 6)]


def test_attached_files_that_are_not_models(tmp_path):
    write(tmp_path, "<robot/>", "robot.urdf")
    path = write(tmp_path, world("", '<asset><model name="p" file="robot.urdf"/></asset>'))
    assert [(p.code, Path(p.file).name) for p in read_errors(path)] == [("xml.format", "robot.urdf")]


def test_attached_models_count_with_all_their_elements(tmp_path):
    write(
        tmp_path,
        world('<body name="b"><replicate count="900"><geom size=".1"/></replicate></body>'),
        "part.xml",
    )
    attach = '<replicate count="900"><attach model="p" body="b" prefix="x"/></replicate>'
    path = write(tmp_path, world(attach, '<asset><model name="p" file="part.xml"/></asset>'))
    assert [(p.code, p.line) for p in read_errors(path)] == [("mjcf.too_large", 4)]
    write(tmp_path, '<mujoco><asset>\n<model name="m" file="model.xml"/></asset></mujoco>')
    assert [(p.code, p.line) for p in read_errors(path)] == [("mjcf.attach", 2)]


@pytest.mark.parametrize("kind", ["up", "absolute", "link", "include", "meshdir"])
def test_paths_outside_the_model_folder_are_rejected(tmp_path, kind):
    secret = write(tmp_path, "<mujoco/>", "elsewhere/secret.xml")
    inside = tmp_path / "robot"
    inside.mkdir()
    (inside / "link.obj").symlink_to(secret)
    asset = {
        "up": '<asset><mesh name="m" file="../elsewhere/secret.xml"/></asset>',
        "absolute": f'<asset><mesh name="m" file="{secret}"/></asset>',
        "link": '<asset><mesh name="m" file="link.obj"/></asset>',
        "include": '<include file="../elsewhere/secret.xml"/>',
        "meshdir": '<compiler meshdir="../elsewhere"/><asset><mesh name="m" file="secret.xml"/></asset>',
    }[kind]
    path = write(inside, f"<mujoco>\n{asset}\n</mujoco>")
    problems = read_errors(path)
    assert [(p.code, p.line) for p in problems] == [("mesh.outside", 2)]


def test_allowed_folders_and_missing_files(tmp_path):
    write(tmp_path, '<mujoco><option timestep=".5"/></mujoco>', "elsewhere/common.xml")
    (tmp_path / "robot").mkdir()
    text = world('<body><joint/><geom size=".1"/></body>', '<include file="../elsewhere/common.xml"/>')
    path = write(tmp_path / "robot", text)
    spec, _ = read_mjcf(path, allowed_folders=[tmp_path / "elsewhere"])
    assert spec.timestep == 0.5
    write(tmp_path / "robot", '<mujoco>\n<include file="no.xml"/>\n<include file="nope.xml"/></mujoco>')
    assert [(p.code, p.line) for p in read_errors(path)] == [("mesh.missing", 2), ("mesh.missing", 3)]
    write(tmp_path / "robot", '<mujoco><include file="a.xml"/>\n<include file="a.xml"/></mujoco>')
    write(tmp_path / "robot", "<mujoco/>", "a.xml")
    assert [(p.code, p.line) for p in read_errors(path)] == [("mjcf.include", 2)]


def test_mujoco_never_sees_a_path(tmp_path):
    """The text passed to MuJoCo refers to in-memory files only."""
    write(tmp_path, "solid x\nendsolid x", "part.stl")
    text = '<mujoco><compiler meshdir="."/><asset><mesh name="m" file="part.stl"/></asset></mujoco>'
    document = read_document.open_document(write(tmp_path, text))
    assert "meshdir" not in document.text and "part.stl" not in document.text
    assert list(document.assets) == ["asset0.stl"]
