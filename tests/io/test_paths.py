from pathlib import Path

import pytest

from hybridsim.core.errors import Problem
from hybridsim.io.paths import resolve_uri


@pytest.fixture
def package(tmp_path) -> Path:
    """A ROS package beside something that does not belong to it."""
    for name in (
        "arm/meshes/link.stl",
        "arm/urdf/arm.urdf",
        "arm/urdf/near.stl",
        "secret.stl",
        "arm_extra/x.stl",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("solid")
    return tmp_path / "arm"


def resolve(uri, model, **options) -> Path:
    path = resolve_uri(uri, model, **options)
    assert isinstance(path, Path), path
    return path


def problem_code(uri, model, **options) -> str:
    problem = resolve_uri(uri, model, **options)
    assert isinstance(problem, Problem), problem
    assert problem.fix
    return problem.code


def test_relative_paths(package):
    model = package / "urdf" / "arm.urdf"
    assert resolve("near.stl", model) == package / "urdf" / "near.stl"
    assert resolve("./near.stl", model) == package / "urdf" / "near.stl"
    assert resolve("..\\meshes\\link.stl", model) == package / "meshes" / "link.stl"
    assert resolve("../meshes/link.stl", model) == package / "meshes" / "link.stl"
    assert resolve("file://near.stl", model) == package / "urdf" / "near.stl"


def test_relative_model_file(package, monkeypatch):
    monkeypatch.chdir(package / "urdf")
    assert resolve("../meshes/link.stl", "arm.urdf") == package / "meshes" / "link.stl"
    assert resolve("package://arm/meshes/link.stl", "arm.urdf") == package / "meshes" / "link.stl"


def test_package_manifest_marks_the_root(package):
    model = package / "models" / "v2" / "arm.urdf"
    model.parent.mkdir(parents=True)
    assert problem_code("../../meshes/link.stl", model) == "mesh.outside"
    (package / "package.xml").write_text("<package/>")
    assert resolve("../../meshes/link.stl", model) == package / "meshes" / "link.stl"


def test_absolute_paths_inside_are_accepted(package):
    model, mesh = package / "urdf" / "arm.urdf", package / "meshes" / "link.stl"
    assert resolve(str(mesh), model) == mesh
    assert resolve(f"file://{mesh}", model) == mesh


def test_packages(package):
    model, mesh = package / "urdf" / "arm.urdf", package / "meshes" / "link.stl"
    assert resolve("package://arm/meshes/link.stl", model) == mesh
    assert resolve("model://arm/meshes/link.stl", model) == mesh
    assert resolve("package://meshes/link.stl", model) == mesh
    assert resolve("package://robot/link.stl", model, packages={"robot": package / "meshes"}) == mesh
    assert resolve("package://arm_extra/x.stl", model) == package.parent / "arm_extra" / "x.stl"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("../../secret.stl", "mesh.outside"),
        ("../../../../../../../../etc/passwd", "mesh.outside"),
        ("/etc/passwd", "mesh.outside"),
        ("file:///etc/passwd", "mesh.outside"),
        ("file://%2e%2e/%2e%2e/secret.stl", "mesh.outside"),
        ("package://arm/../secret.stl", "mesh.outside"),
        ("package://../secret.stl", "mesh.package"),
        ("package://nowhere/x.stl", "mesh.package"),
        ("package:///x.stl", "mesh.package"),
        ("https://example.org/x.stl", "mesh.scheme"),
        ("far.stl", "mesh.missing"),
        ("../meshes", "mesh.missing"),
        ("x" * 5000, "mesh.missing"),
        ("", "mesh.empty"),
        ("file://", "mesh.empty"),
    ],
)
def test_rejected_paths(package, uri, expected):
    assert problem_code(uri, package / "urdf" / "arm.urdf") == expected


def test_a_folder_can_be_allowed(package):
    model = package / "urdf" / "arm.urdf"
    path = resolve("../../secret.stl", model, allowed_folders=[package.parent])
    assert path == package.parent / "secret.stl"


def test_allowing_a_folder_is_suggested_for_model_files_only(package):
    model = package / "urdf" / "arm.urdf"
    problem = resolve_uri("../../secret.stl", model)
    assert isinstance(problem, Problem)
    folder = str(package.parent)
    assert problem.fix.endswith(f"or allow its folder: allowed_folders=[{folder!r}] (--allowed-folders {folder})")
    for uri in ("/etc/passwd", "../../nothing.stl"):
        problem = resolve_uri(uri, model)
        assert isinstance(problem, Problem) and problem.fix == "copy the file into the model's folder"


def test_symbolic_links_to_outside_are_rejected(package):
    model = package / "urdf" / "arm.urdf"
    (package / "meshes" / "link2.stl").symlink_to(package.parent / "secret.stl")
    (package / "meshes" / "loop.stl").symlink_to(package / "meshes" / "loop.stl")
    assert problem_code("../meshes/link2.stl", model) == "mesh.outside"
    assert problem_code("../meshes/loop.stl", model) == "mesh.missing"


def test_a_symbolic_link_to_a_model_finds_meshes_next_to_it(package, tmp_path):
    other = tmp_path / "work"
    other.mkdir()
    (other / "arm.urdf").symlink_to(package / "urdf" / "arm.urdf")
    (other / "local.stl").write_text("solid")
    assert resolve("local.stl", other / "arm.urdf") == other / "local.stl"


def test_misspelt_names_are_suggested(package):
    problem = resolve_uri("../meshes/Link.STL", package / "urdf" / "arm.urdf")
    assert isinstance(problem, Problem)
    assert "did you mean 'link.stl'?" in problem.fix
