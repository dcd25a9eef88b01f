"""Choosing the importer by the root element, errors in one exception, warnings in one warning."""

import gzip
import os
import threading
import time
import warnings

import pytest

from hybridsim.core.errors import ModelError, ModelWarning, Severity, SpecificationError
from hybridsim.io.load import inspect_model, load_model
from support.real_models import bullet_file

MJCF = """<mujoco model="swing">
  <worldbody><body name="arm"><joint name="pivot"/><geom size=".1"/>
    <body name="tip" pos="0 0 1"><geom size=".1"/></body></body></worldbody>
  {extra}
</mujoco>
"""
URDF = """<robot name="swing">
  <link name="base"/>
  <link name="arm"><inertial><mass value="1"/><inertia ixx="{ixx}" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/>
  </inertial></link>
  <joint name="pivot" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
</robot>
"""


@pytest.fixture
def mjcf(tmp_path):
    path = tmp_path / "swing.xml"
    path.write_text(MJCF.format(extra=""))
    return path


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / "swing.urdf"
    path.write_text(URDF.format(ixx=".1"))
    return path


def test_the_root_element_determines_the_format(mjcf, urdf):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a, b = load_model(mjcf), load_model(urdf)
    assert a.name == b.name == "swing"
    assert a.topology.joint_names == b.topology.joint_names == ("pivot",)
    # the file's name does not matter
    other = mjcf.rename(mjcf.with_name("swing.urdf.txt"))
    assert load_model(str(other)).nv == 1


def test_merging_can_be_switched_off(mjcf):
    assert load_model(mjcf).topology.body_names == ("arm",)
    assert load_model(mjcf, merge=False).topology.body_names == ("arm", "tip")


def test_a_free_base(urdf):
    arm = URDF[URDF.index("<inertial>") : URDF.index("</link>")].format(ixx=".1")
    urdf.write_text(urdf.read_text().replace('<link name="base"/>', f'<link name="base">{arm}</link>'))
    assert load_model(urdf, base="free").nv == 7


def test_unknown_formats_are_rejected(tmp_path):
    path = tmp_path / "model.sdf"
    path.write_text("<sdf/>")
    with pytest.raises(ModelError, match="SDF is not supported") as caught:
        load_model(path)
    assert caught.value.problems[0].code == "xml.format"
    path.write_text("<html/>")
    with pytest.raises(ModelError, match="with root element <html>"):
        load_model(path)


@pytest.mark.parametrize("text", [MJCF.format(extra=""), URDF.format(ixx=".1")], ids=["mjcf", "urdf"])
def test_a_pipe_is_read_once(tmp_path, text):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(text))
    writer.start()
    model, problems = inspect_model(pipe)
    writer.join(timeout=10.0)
    assert model is not None and problems == []


@pytest.mark.parametrize("content", [gzip.compress(b"<robot/>"), b"PK\x03\x04..."], ids=["gzip", "zip"])
def test_compressed_files_are_rejected(tmp_path, content):
    path = tmp_path / "arm.urdf.gz"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="the file is compressed\n    fix: decompress it first"):
        load_model(path)


def test_an_empty_name():
    _, (problem,) = inspect_model("")
    assert problem.code == "file.missing" and "empty" in problem.message


def test_invalid_options_are_rejected(urdf):
    with pytest.raises(SpecificationError, match="has no argument 'bse'"):
        load_model(urdf, bse="free")  # type: ignore[call-arg]
    with pytest.raises(SpecificationError, match="base of LoadOptions has the invalid value 'floating'"):
        inspect_model(urdf, base="floating")  # type: ignore[arg-type]
    model, problems = inspect_model(urdf, tolerate=["inertia.trianlge"])
    assert model is None and [p.code for p in problems] == ["option.tolerate"]


def test_many_problems_of_the_same_kind_are_counted(tmp_path):
    path = tmp_path / "loose.urdf"
    path.write_text('<robot name="r">' + "\n".join(f'<link name="link{i}"/>' for i in range(1000)) + "</robot>")
    _, problems = inspect_model(path)
    assert len(problems) == 21
    assert problems[-1].message == "and 979 more problems of the same kind"
    assert (problems[-1].code, problems[-1].line, problems[-1].fix) == (
        "tree.roots",
        22,
        "fix those listed, then check again",
    )


def test_notes_are_not_warned_about(urdf):
    limit = '<limit effort="3" velocity="5"/></joint>'
    urdf.write_text(urdf.read_text().replace("</joint>", limit))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(urdf)
    _, (note,) = inspect_model(urdf)
    assert note.severity is Severity.NOTE and "velocity limits" in note.message


def test_missing_and_unreadable_files_are_problems_not_exceptions(tmp_path):
    for path in (tmp_path / "no.xml", tmp_path):
        model, problems = inspect_model(path)
        assert model is None and len(problems) == 1 and problems[0].file == str(path)


@pytest.mark.parametrize("option", [{"base": "free"}, {"inertia": "from_geometry"}, {"packages": {"a": "b"}}])
def test_options_of_urdf_are_rejected_for_mjcf(mjcf, option):
    with pytest.raises(ModelError, match=rf"option '{next(iter(option))}' applies to URDF") as caught:
        load_model(mjcf, **option)
    assert caught.value.problems[0].fix


def test_all_warnings_in_one(mjcf):
    mjcf.write_text(
        MJCF.format(extra='<option density="1"/><equality><connect body1="arm" anchor="0 0 0"/></equality>')
    )
    with pytest.warns(ModelWarning, match="has 2 warnings") as caught:
        load_model(mjcf)
    assert len(caught) == 1 and "density" in str(caught[0].message) and "<connect>" in str(caught[0].message)
    model, problems = inspect_model(mjcf)
    assert model is not None and {p.severity for p in problems} == {Severity.WARNING}


@pytest.mark.parametrize("tolerate", [["inertia.triangle"], "inertia.triangle", "all"])
def test_tolerated_errors_become_warnings(urdf, tolerate):
    urdf.write_text(URDF.format(ixx=".9"))
    with pytest.raises(ModelError, match="I3 ≤ I1"):
        load_model(urdf)
    model, problems = inspect_model(urdf)
    assert model is None and "inertia.triangle" in {p.code for p in problems}
    with pytest.warns(ModelWarning, match="I3 ≤ I1"):
        model = load_model(urdf, tolerate=tolerate)
    assert model.body.inertia[0, 0] == 0.9


def test_tolerating_errors_does_not_help_without_a_usable_model(urdf):
    urdf.write_text(URDF.format(ixx=".1").replace('axis xyz="0 1 0"', 'axis xyz="0 0 0"'))
    with pytest.raises(ModelError, match="no direction"):
        load_model(urdf, tolerate="all")


def test_a_quadruped_is_loaded_in_half_a_second():
    """JAX compiles nothing; the time of the first call includes imports."""
    path = bullet_file("a1/a1.urdf")
    start = time.process_time()
    inspect_model(path, base="free")
    assert time.process_time() - start < 0.5
