"""Convex hulls of meshes: that of a box has the contacts of the box, and few vertices approximate that of a sphere."""

from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import hybridsim
from hybridsim.contact.candidates import find_candidates
from hybridsim.contact.collision.detect import detect
from hybridsim.core.errors import ModelError
from hybridsim.io.hulls import mesh_hull, reduce_hull, with_hulls
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.geometry import Shape
from hybridsim.spatial.transform import Pose

SOLID = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}
HALF = np.array([0.1, 0.2, 0.3])


def _write(folder, mesh: trimesh.Trimesh, name: str) -> str:
    mesh.export(folder / name)
    return str(folder / name)


def _scene(kind: str, size, **more) -> hybridsim.Model:
    """One free body and things to bump into."""
    scene = ModelBuilder("scene")
    scene.add_body("body", kind="free", **SOLID)
    scene.add_geom("body", kind, size, name="thing", at=(0.05, 0.0, 0.1), rpy=(0.2, 0.0, 0.4), **more)
    scene.add_geom("world", "plane", (), name="floor")
    scene.add_geom("world", "sphere", (0.2,), name="ball", at=(0.4, 0.0, 0.3))
    scene.add_geom("world", "box", (0.5, 0.3, 0.1), name="table", at=(0.0, 0.6, 0.1))
    return scene.build()


def _volume(points: np.ndarray, faces) -> float:
    a, b, c = (points[np.array(faces)[:, k]] for k in range(3))
    return float(np.sum(a * np.cross(b, c)) / 6.0)


def _support_function(points: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Support function of points, for several directions."""
    return (directions @ points.T).max(axis=1)


def _model_with_box_mesh(folder, name: str) -> hybridsim.Model:
    """The scene with a box mesh: stretched in the file, subdivided, and scaled back."""
    box = trimesh.creation.box(extents=2.0 * HALF * [2.0, 1.0, 0.5]).subdivide().subdivide()
    return with_hulls(_scene("mesh", (0.5, 1.0, 2.0), mesh_file=_write(folder, box, name)))


@pytest.mark.parametrize("name", ["box.stl", "box.obj", "box.ply", "box.OFF"])
def test_the_hull_of_a_box_has_its_vertices(tmp_path, name):
    model = _model_with_box_mesh(tmp_path, name)
    info = model.geometry.infos[0]
    assert len(model.geometry.data[info.data_index]) == 8 and len(info.faces) == 12
    assert np.allclose(np.abs(model.geometry.data[info.data_index]), HALF, atol=1e-7)
    assert _volume(model.geometry.data[info.data_index], info.faces) == pytest.approx(8.0 * HALF.prod(), rel=1e-6)


def test_the_mesh_of_a_box_collides_like_the_box(tmp_path):
    mesh, as_box = _model_with_box_mesh(tmp_path, "box.obj"), _scene("box", HALF)

    def contacts(model, names):
        candidates = find_candidates(model, only=[f"thing|{name}" for name in names])
        return jax.jit(lambda X: detect(model.geometry, X, candidates)), candidates

    names = ["floor", "ball", "table"]
    (mesh_contacts, mesh_candidates), (box_contacts, box_candidates) = contacts(mesh, names), contacts(as_box, names)
    rng = np.random.default_rng(0)
    for k in range(30):
        # near each of the three in turn
        p = np.array([[0.0, 0.0, 0.2], [0.2, 0.0, 0.3], [0.0, 0.5, 0.4]])[k % 3] + 0.05 * rng.normal(size=3)
        X_WB = Pose(Rotation.random(rng=rng).as_matrix()[None], p[None])
        ours, expected = mesh_contacts(X_WB), box_contacts(X_WB)
        for name in names:
            rows = [i for i, j in enumerate(mesh_candidates.pair_indices) if name in mesh_candidates.pairs[j].name]
            others = [i for i, j in enumerate(box_candidates.pair_indices) if name in box_candidates.pairs[j].name]
            gap, expected_gap = np.asarray(ours.gap)[rows].min(), np.asarray(expected.gap)[others].min()
            if name != "table":
                assert gap == pytest.approx(expected_gap, abs=1e-6)
            elif expected_gap < 0.0:
                # near the margin, a contact of an edge may exist in one model only
                assert gap == pytest.approx(expected_gap, abs=1e-3)


def test_vertices_are_in_the_frame_of_the_shape(tmp_path):
    box = trimesh.creation.box(extents=(0.2, 0.2, 0.2))
    box.apply_translation((1.0, 2.0, 3.0))
    points, faces = mesh_hull(_write(tmp_path, box, "box.stl"), np.array([1.0, -2.0, 0.5]), 32)
    assert np.allclose(points.mean(axis=0), [1.0, -4.0, 1.5]) and np.allclose(np.ptp(points, axis=0), [0.2, 0.4, 0.1])
    # counterclockwise from outside, though mirrored
    assert _volume(points - points.mean(axis=0), faces) == pytest.approx(0.2 * 0.4 * 0.1, rel=1e-5)


def test_the_hull_of_a_nonconvex_mesh_is_convex(tmp_path):
    ring = trimesh.creation.annulus(r_min=0.1, r_max=0.2, height=0.1, sections=12)
    points, faces = mesh_hull(_write(tmp_path, ring, "ring.obj"), np.ones(3), 64)
    assert len(points) == 24 and np.allclose(np.linalg.norm(points[:, :2], axis=1), 0.2)
    assert len(faces) == 2 * len(points) - 4


@pytest.mark.parametrize(
    "make",
    [trimesh.creation.icosphere, trimesh.creation.capsule, trimesh.creation.cone],
    ids=["sphere", "capsule", "cone"],
)
def test_more_vertices_give_a_better_approximation(make):
    mesh = make(radius=0.3, height=0.5) if make is not trimesh.creation.icosphere else make(subdivisions=3)
    vertices = np.asarray(mesh.convex_hull.vertices)
    directions = np.random.default_rng(0).normal(size=(3000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    full = _support_function(vertices, directions)
    errors = []
    for count in (4, 8, 16, 32):
        reduced = reduce_hull(vertices, count)
        assert len(reduced) == min(count, len(vertices)) and len(np.unique(reduced, axis=0)) == len(reduced)
        assert {tuple(p) for p in reduced} <= {tuple(p) for p in vertices}
        errors.append((full - _support_function(reduced, directions)).max())
    assert all(b <= a + 1e-12 for a, b in pairwise(errors)) and errors[-1] < 0.5 * errors[0]
    assert errors[-1] < 0.08 * np.ptp(vertices, axis=0).max()


def test_number_of_vertices_is_bounded(tmp_path):
    sphere = _write(tmp_path, trimesh.creation.icosphere(subdivisions=3, radius=0.2), "sphere.stl")
    for count in (4, 12, 32):
        model = with_hulls(_scene("mesh", (1, 1, 1), mesh_file=sphere), max_points=count)
        points, faces = model.geometry.data[0], model.geometry.infos[0].faces
        assert len(points) == count and len(faces) == 2 * count - 4
        assert np.allclose(np.linalg.norm(points, axis=1), 0.2, atol=1e-6) and _volume(points, faces) > 0.0
    assert points.shape == (32, 3) and _volume(points, faces) > 0.75 * 4.0 / 3.0 * np.pi * 0.2**3


def test_hulls_of_the_same_mesh_are_shared(tmp_path):
    path = _write(tmp_path, trimesh.creation.box(), "box.stl")
    model = ModelBuilder("twins")
    for k, scale in enumerate((1.0, 1.0, 2.0)):
        model.add_body(f"b{k}", kind="free", **SOLID)
        model.add_geom(f"b{k}", "mesh", (scale,) * 3, name=f"m{k}", mesh_file=path)
    model.add_geom("b0", "points", (0.0,), data=np.zeros((2, 3)))
    before = model.build()
    after = hybridsim.with_hulls(before)
    assert [info.data_index for info in after.geometry.infos] == [1, 1, 2, 0]
    assert np.allclose(2.0 * after.geometry.data[1], after.geometry.data[2])
    # the original model is unchanged, and existing hulls are preserved
    assert [info.data_index for info in before.geometry.infos] == [-1, -1, -1, 0]
    again = with_hulls(after)
    assert again.geometry.infos == after.geometry.infos and len(again.geometry.data) == 3


def test_visual_meshes_need_no_hull():
    visual = _scene("mesh", (1, 1, 1), mesh_file="nowhere.stl", group=0, mask=0)
    assert with_hulls(visual).geometry.infos[0].data_index == -1
    named = replace(visual, geometry=replace(visual.geometry, explicit_pairs=(("thing", "floor"),)))
    with pytest.raises(ModelError, match="shape 'thing' has no convex hull"):
        with_hulls(named)


def test_all_errors_are_reported_together(tmp_path):
    (tmp_path / "broken.stl").write_bytes(b"solid nothing\n")
    flat = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]])
    files = ["", str(tmp_path / "missing.stl"), str(tmp_path / "broken.stl"), str(tmp_path / "shape.step")]
    files.append(_write(tmp_path, flat, "flat.obj"))
    model = ModelBuilder("bad")
    model.add_body("body", kind="free", **SOLID)
    for k, file in enumerate(files):
        model.add_geom("body", "mesh", (1, 1, 1), name=f"m{k}", mesh_file=file)
    with pytest.raises(ModelError) as caught:
        with_hulls(model.build())
    problems = caught.value.problems
    assert [p.element for p in problems] == [f"m{k}" for k in range(5)]
    assert [p.file for p in problems] == files and {p.code for p in problems} == {"mesh.unusable"}
    for problem, words in zip(
        problems,
        ("no mesh file", "missing.stl", "broken.stl", "not in a supported mesh format", "is flat"),
        strict=True,
    ):
        assert words in problem.message


def test_a_hull_needs_four_vertices():
    with pytest.raises(ValueError, match="max_points must be at least 4, not 3"):
        with_hulls(_scene("sphere", (0.1,)), max_points=3)


def test_models_from_files(tmp_path):
    """A URDF whose link is a mesh, scaled: the hull has the contacts of the mesh."""
    _write(tmp_path, trimesh.creation.box(extents=2000.0 * HALF), "part.stl")
    (tmp_path / "part.urdf").write_text("""
<robot name="part"><link name="part">
  <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0 0 0.5"/>
    <geometry><mesh filename="part.stl" scale="0.001 0.001 0.001"/></geometry></collision>
</link></robot>""")
    model = with_hulls(hybridsim.load_model(tmp_path / "part.urdf", base="free"))
    (info,) = model.geometry.infos
    assert info.shape is Shape.MESH and np.allclose(np.abs(model.geometry.data[info.data_index]), HALF, atol=1e-6)
