"""Loading of valid projects: defaults, files and paths."""

import subprocess
import sys

import pytest

from hybridsim.project.schema.load import load_project
from support.small_projects import PROJECT, problems_of, write_project


def test_a_small_project_has_sensible_defaults(tmp_path):
    project = load_project(write_project(tmp_path))
    content = project.content
    assert project.name == "project" and project.out == tmp_path / "runs" / "project"
    assert project.data_files == ((tmp_path / "run.csv",),) and project.model_file is None
    assert content.model.integrator == "euler" and content.model.contact is None
    assert content.channel[0].gain == 1.0 and content.stage == () and content.run.seed == 0


def test_projects_are_compared_by_their_text(tmp_path):
    path = write_project(tmp_path)
    first, second = load_project(path), load_project(path)
    assert first == second and hash(first) == hash(second) and first.sha256 == second.sha256
    path.write_text(PROJECT + "# changed\n")
    changed = load_project(path)
    assert changed != first and changed.sha256 != first.sha256
    with pytest.raises(Exception, match="cannot assign to field"):
        first.content.model.dt = 1.0


def test_loading_requires_neither_model_nor_jax(tmp_path):
    path = write_project(tmp_path, PROJECT.replace('built_in = "pendulum"', 'file = "not_there.urdf"'))
    code = f"""
import sys
from hybridsim.project.schema.load import load_project
load_project({str(path)!r})
print('jax' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_wildcards_expand_to_sorted_unique_files(tmp_path):
    for name in ("b.csv", "a.csv", "[1].csv", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.csv").mkdir()

    def files(patterns: str) -> list[tuple[str, ...]]:
        project = load_project(write_project(tmp_path, PROJECT.replace('["run.csv"]', patterns)))
        return [tuple(path.name for path in group) for group in project.data_files]

    assert files('"*.csv"') == [("[1].csv",), ("a.csv",), ("b.csv",), ("run.csv",)]
    assert files('["b.csv", "?.csv"]') == [("b.csv",), ("a.csv",)]
    assert files('"[1].csv"') == [("[1].csv",)]
    assert files('["run.csv", ["a.csv", "b.csv"]]') == [("run.csv",), ("a.csv", "b.csv")]
    assert files(f'"{tmp_path}/[ab].csv"') == [("a.csv",), ("b.csv",)]


def test_wildcards_in_the_project_folder_are_literal(tmp_path):
    folder = tmp_path / "[ab]*"
    folder.mkdir()
    project = load_project(write_project(folder, PROJECT.replace('["run.csv"]', '"*.csv"')))
    assert project.data_files == ((folder / "run.csv",),)


def test_the_run_folder_must_be_inside_the_project_folder(tmp_path):
    text = PROJECT + '[run]\nname = "second"\nout = "deep/er"\n'
    project = load_project(write_project(tmp_path, text))
    assert project.name == "second" and project.out == tmp_path / "deep" / "er"
    (problem,) = problems_of(load_project, write_project(tmp_path, text.replace("deep/er", "/tmp/elsewhere")))
    assert problem.code == "project.outside"


def test_paths_of_the_model_are_relative_to_the_project_folder(tmp_path):
    text = PROJECT.replace(
        'built_in = "pendulum"',
        'file = "models/arm.urdf"\nbase = "free"\npackages = { arm = "arm_description" }\nallowed_folders = ["meshes"]',
    )
    project = load_project(write_project(tmp_path, text))
    assert project.model_file == tmp_path / "models" / "arm.urdf"
    assert project.load_options["packages"] == {"arm": tmp_path / "arm_description"}
    assert project.load_options["allowed_folders"] == (tmp_path / "meshes",) and project.load_options["base"] == "free"


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path):
    path = write_project(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + PROJECT.replace("\n", "\r\n").encode())
    assert load_project(path).text == PROJECT
