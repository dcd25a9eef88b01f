"""Golden tests: URDF files with invalid references or structure, and exactly the expected problems."""

import pytest

from support.urdf_changes import (
    END,
    INERTIAL,
    LINE_OF_END,
    VALID,
    UrdfCase,
    add_collision_mesh,
    apply_changes,
    assert_errors,
    read_urdf,
    write,
)

MESHES = {
    "mesh from the network": UrdfCase(
        [add_collision_mesh("http://example.org/a.stl")], [("mesh.scheme", 2, "local file")]
    ),
    "mesh without a name": UrdfCase([add_collision_mesh("")], [("attribute.missing", 2, "'filename'")]),
    "mesh with a short scale": UrdfCase(
        [('<link name="base"/>', add_collision_mesh("x.stl")[1].replace("/></g", ' scale="1 1"/></g'))],
        [("number.count", 2, "'scale'"), ("mesh.missing", 2, "x.stl")],
    ),
    "shape without geometry": UrdfCase(
        [('<link name="base"/>', '<link name="base"><collision/></link>')],
        [("geometry.missing", 2, "no shape")],
    ),
    "negative size": UrdfCase(
        [('<link name="base"/>', add_collision_mesh("")[1].replace('<mesh filename=""/>', '<box size="1 -1 1"/>'))],
        [("geom.size", 2, "sizes must be finite and nonnegative")],
    ),
}

MIMICS = {
    "cyclic mimics": UrdfCase(
        [
            ('<axis xyz="0 1 0"/>\n  </joint>', '<mimic joint="shoulder"/>\n  </joint>'),
            ('velocity="5"/>', 'velocity="5"/><mimic joint="elbow"/>'),
        ],
        [("mimic.cycle", 8, "'shoulder' → 'elbow' → 'shoulder'")],
    ),
    "mimic without a joint": UrdfCase(
        [('<axis xyz="0 1 0"/>\n  </joint>', "<mimic/>\n  </joint>")], [("attribute.missing", 21, "'joint'")]
    ),
}

TREES = {
    "loop without a root": UrdfCase(
        [(END, '<joint name="j3" type="fixed"><parent link="lower"/><child link="base"/></joint>' + END)],
        [("tree.loop", 3, "'base' → 'upper' → 'lower' → 'base'")],
    ),
    "two roots": UrdfCase(
        [
            (
                END,
                f'<link name="island">{INERTIAL}</link><link name="hut">{INERTIAL}</link>'
                '<joint name="j3" type="continuous"><parent link="island"/><child link="hut"/></joint>' + END,
            )
        ],
        [("tree.roots", LINE_OF_END, "link 'island' with 1 descendant is not connected")],
    ),
    "joint from a link to itself": UrdfCase(
        [('<parent link="upper"/>', '<parent link="lower"/>')], [("tree.loop", 17, "'lower' to itself")]
    ),
    "unknown parent": UrdfCase(
        [('<parent link="upper"/>', '<parent link="uper"/>')], [("joint.link", 18, "did you mean 'upper'?")]
    ),
    "unknown child": UrdfCase(
        [('<child link="lower"/>', '<child link="hand"/>')],
        [("joint.link", 19, "'hand'"), ("tree.roots", 23, "'lower' is not connected")],
    ),
    "joint without parent": UrdfCase([('<parent link="upper"/>', "")], [("joint.no_link", 17, "no <parent>")]),
    "joint without child name": UrdfCase(
        [('<child link="lower"/>', "<child/>")],
        [("attribute.missing", 19, "'link'"), ("tree.roots", 23, "'lower'")],
    ),
    "link without name": UrdfCase(
        [('<link name="base"/>', '<link name="base"/><link/>')],
        [("attribute.missing", 2, "'name'"), ("tree.roots", 2, "not connected")],
    ),
    "world as a child": UrdfCase(
        [('name="lower"', 'name="world"'), ('link="lower"', 'link="world"')],
        [("name.world", 23, "the name is reserved for the world")],
    ),
    "free base of a file rooted in the world": UrdfCase(
        [('name="base"', 'name="world"'), ('link="base"', 'link="world"')],
        [("base.world", 2, "base='fixed'")],
        {"base": "free"},
    ),
    "floating joint inside the tree": UrdfCase(
        [('type="continuous"', 'type="floating"')],
        [("joint.free_not_root", 17, "a free joint must be attached to the world")],
    ),
    "nothing that moves": UrdfCase(
        [(VALID, f'\n<robot name="cube">\n<link name="cube">{INERTIAL}</link></robot>')],
        [("tree.static", 2, "base='free' (--base free)")],
    ),
    "nothing that moves in the world": UrdfCase(
        [
            ('type="revolute"', 'type="fixed"'),
            ('type="continuous"', 'type="fixed"'),
            ('"base"', '"world"'),
            ('"base"', '"world"'),
        ],
        [("tree.static", 1, "add a joint that is not fixed")],
    ),
    "no links": UrdfCase([(VALID, '<robot name="r"/>')], [("tree.empty", 1, "add a <link>")]),
}


@pytest.mark.parametrize("name", MESHES)
def test_bad_meshes(tmp_path, name):
    assert_errors(tmp_path, MESHES[name])


@pytest.mark.parametrize("name", MIMICS)
def test_bad_mimics(tmp_path, name):
    assert_errors(tmp_path, MIMICS[name])


@pytest.mark.parametrize("name", TREES)
def test_bad_trees(tmp_path, name):
    assert_errors(tmp_path, TREES[name])


def test_a_symbolic_link_to_outside_is_not_followed(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.stl").write_text("solid")
    (folder / "base.stl").symlink_to(tmp_path / "secret.stl")
    path = write(folder, apply_changes([add_collision_mesh("base.stl")]))
    _, problems = read_urdf(path)
    assert [p.code for p in problems] == ["mesh.outside"]
    _, problems = read_urdf(path, allowed_folders=[tmp_path])
    assert problems == []
