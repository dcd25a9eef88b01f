"""Shapes and contacts of models written as MJCF."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh

from hybridsim.io.load import inspect_model
from hybridsim.io.mjcf.write_mjcf import write_mjcf
from hybridsim.model.geometry import Shape
from hybridsim.model.specs import GeomSpec
from support.written_models import box_on_a_hinge, round_trip

SCENE = """<mujoco model="m"><worldbody>{floor}
  <body name="stand"><geom name="post" size=".1"/></body>
  <body name="arm"><joint name="j"/><geom name="upper" size=".1"/>
    <body name="tool"><geom name="tip" size=".1"/></body></body>
  <body name="ball"><joint name="k"/><geom name="round" size=".1"/></body>
</worldbody><contact>{excluded}</contact></mujoco>"""


@pytest.mark.parametrize(
    ("excluded", "is_written"),
    [
        ([("tool", "ball")], False),  # the arm, which carries the tool, may hit the ball
        ([("arm", "ball")], False),
        ([("tool", "ball"), ("arm", "ball")], True),
        ([("stand", "ball")], False),  # the floor may be hit
        ([("arm", "tool")], None),  # one body does not collide with itself
    ],
)
def test_exclusions_of_merged_links_are_written_if_they_apply_to_the_whole_body(tmp_path, excluded, is_written):
    pairs = "".join(f'<exclude body1="{a}" body2="{b}"/>' for a, b in excluded)
    (tmp_path / "in.xml").write_text(SCENE.format(floor='<geom name="f" size="1"/>', excluded=pairs))
    model, _ = inspect_model(tmp_path / "in.xml")
    assert set(model.geometry.excluded_pairs) == set(excluded)
    notes = write_mjcf(model, tmp_path / "out.xml")
    read, _ = inspect_model(tmp_path / "out.xml")
    assert read.geometry.excluded_pairs == ((("arm", "ball"),) if is_written else ())
    listed = ", ".join(repr(f"{a} and {b}") for a, b in excluded)
    note = f"excluded pairs that apply to some shapes of a body only are omitted: {listed}"
    assert notes == ([note] if is_written is False else [])


def test_exclusion_of_a_body_fixed_to_the_world(tmp_path):
    text = SCENE.format(floor="", excluded='<exclude body1="stand" body2="ball"/>')
    (tmp_path / "in.xml").write_text(text)
    model, _ = inspect_model(tmp_path / "in.xml")
    assert write_mjcf(model, tmp_path / "out.xml") == []
    assert '<exclude body1="world" body2="ball"/>' in (tmp_path / "out.xml").read_text()


def test_groups_pairs_and_friction(tmp_path):
    builder = box_on_a_hinge().add_body("b", mass=1.0, inertia=(1, 1, 1))
    builder.add_geom("box", "ellipsoid", (0.1, 0.2, 0.3), name="g", at=(1, 0, 0), rpy=(0.1, 0.2, 0.3), friction=0.3)
    builder.add_geom("b", "capsule", (0.1, 0.2), name="h")
    builder.add_geom("world", "plane", (), name="floor")
    builder.spec.geoms[0].group, builder.spec.geoms[0].mask = 4, 2
    builder.spec.excluded_pairs = [("box", "b")]
    builder.spec.explicit_pairs = [("g", "h")]
    builder.add_frame("origin", "world", at=(1, 2, 3))
    model = builder.build()
    read, notes = round_trip(model, tmp_path / "m.xml")
    assert notes == ["pairs without friction get that of their shapes, which MuJoCo would ignore: 'g and h'"]
    assert read.geometry.friction_pairs == (("g", "h"),) and read.geometry.pair_friction == 0.3
    order = [[i.name for i in read.geometry.infos].index(i.name) for i in model.geometry.infos]
    assert [read.geometry.infos[k] for k in order] == [
        replace(i, is_friction_specified=True) for i in model.geometry.infos
    ]
    assert np.array_equal(read.geometry.friction[order], model.geometry.friction)
    assert np.array_equal(read.geometry.size[order][:2], model.geometry.size[:2])
    np.testing.assert_allclose(read.geometry.placement.R[order], model.geometry.placement.R, atol=1e-15)
    assert read.geometry.excluded_pairs == (("box", "b"),)
    assert read.geometry.explicit_pairs == (("g", "h"),)
    assert read.topology.frame_names == ("origin",)


def test_unspecified_friction_is_noted_where_mujoco_uses_more(tmp_path):
    for friction, count in ((0.3, 1), (1.2, 0)):
        builder = box_on_a_hinge().add_geom("box", "sphere", (0.1,), name="ball", friction=friction)
        _, notes = round_trip(builder.add_geom("world", "plane", (), name="floor").build(), tmp_path / "m.xml")
        note = "unspecified friction of shapes is 1 in MuJoCo, which uses the maximum of two shapes: 'floor'"
        assert notes == [note][:count]


def test_shapes_that_mujoco_rejects_are_omitted(tmp_path):
    builder = box_on_a_hinge().add_geom("box", "plane", (), name="floor").add_geom("box", "box", (1, 1, 0), name="flat")
    builder.spec.explicit_pairs = [("floor", "flat")]
    read, notes = round_trip(builder.build(), tmp_path / "m.xml")
    assert read.geometry.infos == ()
    assert notes == [
        "planes on moving bodies are omitted, since MuJoCo does not support them: 'floor'",
        "shapes without extent are omitted: 'flat'",
        "pairs with an omitted shape are omitted: 'floor and flat'",
    ]


def test_duplicate_shape_names_are_made_unique(tmp_path):
    builder = box_on_a_hinge()
    for _ in range(2):
        builder.add_geom("box", "sphere", (0.1,), name="g")
    read, notes = round_trip(builder.build(), tmp_path / "m.xml")
    assert [info.name for info in read.geometry.infos] == ["g", "g_2"]
    assert notes == ["shapes are renamed because their names are already in use: 'g → g_2'"]


def test_meshes_are_named_relative_to_the_file(tmp_path):
    (tmp_path / "meshes").mkdir()
    stl = tmp_path / "meshes" / "part.stl"
    trimesh.creation.box((0.1, 0.2, 0.3)).export(stl)
    builder = box_on_a_hinge()
    half = np.full(3, 0.5)
    for name, size in (("a", np.ones(3)), ("b", half), ("c", half)):
        builder.spec.geoms.append(GeomSpec(name, "box", Shape.MESH, size, mesh_file=str(stl)))
    builder.spec.geoms.append(GeomSpec("d", "box", Shape.MESH, half, mesh_file=str(tmp_path / "part.dae")))
    builder.spec.geoms.append(GeomSpec("e", "box", Shape.MESH, half, mesh_file=str(tmp_path / "gone.stl")))
    read, notes = round_trip(builder.build(), tmp_path / "m.xml")
    assert (tmp_path / "m.xml").read_text().count('file="meshes/part.stl"') == 2
    assert [info.mesh_file for info in read.geometry.infos] == [str(stl.resolve())] * 3
    assert np.array_equal(read.geometry.size, [np.ones(3), half, half])
    np.testing.assert_allclose(read.geometry.placement.p, 0.0, atol=1e-15)
    assert notes == [
        "meshes are omitted, since MuJoCo supports only .stl, .obj, .msh: 'd'",
        "shapes are omitted because their mesh file does not exist: 'e'",
    ]


def test_meshes_elsewhere_are_noted(tmp_path):
    stl = tmp_path / "part.stl"
    trimesh.creation.box((0.1, 0.2, 0.3)).export(stl)
    (tmp_path / "out").mkdir()
    builder = box_on_a_hinge()
    builder.spec.geoms.append(GeomSpec("a", "box", Shape.MESH, np.ones(3), mesh_file=str(stl)))
    notes = write_mjcf(builder.build(), tmp_path / "out" / "m.xml")
    assert len(notes) == 1 and notes[0].startswith("meshes are outside the folder of the written file ('part.stl'); ")
    assert inspect_model(tmp_path / "out" / "m.xml")[0] is None
    assert inspect_model(tmp_path / "out" / "m.xml", allowed_folders=[tmp_path])[0] is not None
