"""Lower bound on the extent of a mesh, for any file content."""

import numpy as np
import pytest
import trimesh

from hybridsim.io.mesh_extent import MAX_READ_BYTES, extent_lower_bound

BOX = trimesh.creation.box(extents=(100.0, 40.0, 20.0))


@pytest.mark.parametrize(("name", "kind"), [("a.stl", "stl"), ("a.STL", "stl_ascii"), ("a.obj", "obj")])
def test_sizes(tmp_path, name, kind):
    content = BOX.export(file_type=kind)
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert extent_lower_bound(tmp_path / name, np.ones(3)) == pytest.approx(100.0)
    assert extent_lower_bound(tmp_path / name, np.array([1e-3, -1e-3, 2e-3])) == pytest.approx(0.1)


def test_only_the_beginning_of_a_large_mesh_is_read(tmp_path):
    sphere = trimesh.creation.icosphere(subdivisions=5, radius=50.0)
    content = sphere.export(file_type="stl")
    assert len(content) > 2 * MAX_READ_BYTES
    (tmp_path / "a.stl").write_bytes(content)
    assert 20.0 < extent_lower_bound(tmp_path / "a.stl", np.ones(3)) <= 100.0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.stl", b""),
        ("a.stl", b"\xff" * 200),
        ("a.stl", b"solid x\nvertex 1 2 three\n"),
        ("a.obj", b"v 1 2\nv nan inf 1\n"),
        ("a.dae", b"<COLLADA/>"),
    ],
)
def test_files_without_vertices_have_zero_extent(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert extent_lower_bound(tmp_path / name, np.ones(3)) == 0.0


def test_a_missing_mesh_has_zero_extent(tmp_path):
    assert extent_lower_bound(tmp_path / "no.stl", np.ones(3)) == 0.0
