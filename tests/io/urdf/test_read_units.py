"""URDF files in millimetres or grams are detected."""

import pytest
import trimesh

from support.urdf_changes import INERTIAL, LOWER_INERTIAL, add_collision_mesh, apply_changes, read_urdf, write

MESH = '<collision><geometry><mesh filename="part.stl"{scale}/></geometry></collision>'


def lower_link_changes(text: str, inertial: str = LOWER_INERTIAL) -> list[tuple[str, str]]:
    """Changes that give the last link a shape, in line 23."""
    return [('<link name="lower">', f'<link name="lower">{text}'), (LOWER_INERTIAL, inertial)]


@pytest.fixture
def folder(tmp_path):
    """A folder with a mesh of 60 mm, in millimetres."""
    (tmp_path / "part.stl").write_bytes(trimesh.creation.box(extents=(60.0, 20.0, 20.0)).export(file_type="stl"))
    return tmp_path


def test_a_small_robot_in_millimetres(tmp_path):
    path = write(tmp_path, apply_changes([('"0 0 0.5"', '"0 0 80"'), ('"0 0 0.4"', '"0 0 60"')]))
    _, (problem,) = read_urdf(path)
    assert (problem.code, problem.line) == ("units.length", 6)
    assert "up to 80 m from their parents" in problem.message and "'shoulder', 'elbow'" in problem.message


def test_a_robot_far_from_the_world_origin(tmp_path):
    text = apply_changes([('name="base"', 'name="world"'), ('link="base"', 'link="world"'), ('"0 0 0.5"', '"0 0 80"')])
    assert read_urdf(write(tmp_path, text))[1] == []


def test_a_mesh_in_millimetres(folder):
    _, (problem,) = read_urdf(write(folder, apply_changes(lower_link_changes(MESH.format(scale="")))))
    assert (problem.code, problem.line) == ("units.mesh", 23)
    assert "an extent of at least 60 m" in problem.message and 'scale="0.001 0.001 0.001"' in problem.fix
    scaled = MESH.format(scale=' scale="0.001 0.001 0.001"')
    assert read_urdf(write(folder, apply_changes(lower_link_changes(scaled))))[1] == []


def test_large_static_meshes_give_no_warning(folder):
    assert read_urdf(write(folder, apply_changes([add_collision_mesh("part.stl")])))[1] == []


def test_a_mass_computed_from_millimetres(folder):
    path = write(folder, apply_changes(lower_link_changes(MESH.format(scale=""), inertial="")))
    _, problems = read_urdf(path, inertia="from_geometry")
    assert {p.code for p in problems} == {"units.mesh", "units.mass"}
    (problem,) = [p for p in problems if p.code == "units.mass"]
    assert "mass of link 'lower' computed from its shapes is 2.4e+07 kg" in problem.message and problem.fix
    scaled = MESH.format(scale=' scale="0.001 0.001 0.001"')
    assert read_urdf(write(folder, apply_changes(lower_link_changes(scaled, ""))), inertia="from_geometry")[1] == []


@pytest.mark.parametrize("policy", ["file", "from_geometry", "error"])
def test_a_negative_mass_is_an_error_under_every_policy(tmp_path, policy):
    box = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
    inertial = INERTIAL.replace('mass value="1"', 'mass value="-2"').replace('="1"', '="0"')
    path = write(tmp_path, apply_changes(lower_link_changes(box, inertial)))
    _, (problem,) = read_urdf(path, inertia=policy)
    assert problem.code == "mass.negative" and "-2 kg" in problem.message
