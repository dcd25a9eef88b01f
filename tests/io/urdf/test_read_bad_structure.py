"""Golden tests: one URDF file with wrong references each, and exactly the problems that it must give."""

import pytest

from support.urdf_changes import (
    END,
    GOOD,
    INERTIAL,
    LINE_OF_END,
    Case,
    assert_errors,
    changed,
    collision,
    read_urdf,
    write,
)

MESHES = {
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
}

MIMICS = {
    "mimics in a circle": Case(
        [
            ('<axis xyz="0 1 0"/>\n  </joint>', '<mimic joint="shoulder"/>\n  </joint>'),
            ('velocity="5"/>', 'velocity="5"/><mimic joint="elbow"/>'),
        ],
        [("mimic.circle", 8, "'shoulder' → 'elbow' → 'shoulder'")],
    ),
    "mimic without a joint": Case(
        [('<axis xyz="0 1 0"/>\n  </joint>', "<mimic/>\n  </joint>")], [("attribute.missing", 21, "'joint'")]
    ),
}

TREES = {
    "loop without a root": Case(
        [(END, '<joint name="j3" type="fixed"><parent link="lower"/><child link="base"/></joint>' + END)],
        [("tree.loop", 3, "'base' → 'upper' → 'lower' → 'base'")],
    ),
    "two roots": Case(
        [
            (
                END,
                f'<link name="island">{INERTIAL}</link><link name="hut">{INERTIAL}</link>'
                '<joint name="j3" type="continuous"><parent link="island"/><child link="hut"/></joint>' + END,
            )
        ],
        [("tree.roots", LINE_OF_END, "link 'island', with 1 link below it, is not connected")],
    ),
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
    "nothing that moves": Case(
        [(GOOD, f'\n<robot name="cube">\n<link name="cube">{INERTIAL}</link></robot>')],
        [("tree.static", 2, "base='free' (--base free)")],
    ),
    "nothing that moves in the world": Case(
        [
            ('type="revolute"', 'type="fixed"'),
            ('type="continuous"', 'type="fixed"'),
            ('"base"', '"world"'),
            ('"base"', '"world"'),
        ],
        [("tree.static", 1, "give it a joint that moves")],
    ),
    "no links": Case([(GOOD, '<robot name="r"/>')], [("tree.empty", 1, "add a <link>")]),
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
