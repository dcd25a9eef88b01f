"""MJCF import of masses, shapes, contacts, options and names, and warnings about unsupported features."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.core.errors import Severity
from hybridsim.model.geometry import Shape
from support.mjcf_files import UNSUPPORTED, load, world, write


def test_inertia_values_of_the_file_are_preserved_exactly(tmp_path):
    full = "0.1 0.2 0.25 0.01 -0.02 0.03"
    path = write(
        tmp_path,
        world(
            f"""<body name="a"><joint name="j"/>
              <inertial pos=".1 .2 .3" mass="1.5" fullinertia="{full}"/></body>
            <body name="b"><joint name="k"/>
              <inertial pos="0 0 0" mass="2" diaginertia=".1 .2 .25" euler="10 20 30"/></body>
            <body name="c"><joint name="l"/><geom type="box" size=".1 .2 .3" mass="3"/></body>"""
        ),
    )
    model, _ = load(path)
    np.testing.assert_array_equal(model.body.inertia[0], [float(x) for x in full.split()])
    R = Rotation.from_euler("XYZ", [10, 20, 30], degrees=True).as_matrix()
    rotated = R @ np.diag([0.1, 0.2, 0.25]) @ R.T
    np.testing.assert_allclose(model.body.inertia[1], rotated[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]], atol=1e-15)
    np.testing.assert_allclose(model.body.inertia[2, :3], [0.13, 0.1, 0.05])


def test_mesh_placement_refers_to_the_frame_of_the_mesh_file(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.creation.box((1, 2, 3))
    mesh.apply_translation((0.5, 0.3, 0.2))
    mesh.vertices[0] += (0.3, -0.4, 0.2)
    (tmp_path / "meshes").mkdir()
    mesh.export(tmp_path / "meshes" / "part.obj")
    path = write(
        tmp_path,
        world(
            """<body name="a"><joint/>
              <geom name="g" type="mesh" mesh="part" pos=".1 .2 .3" euler="40 0 10"/></body>""",
            before="""<compiler meshdir="meshes"/><asset><mesh file="part.obj" scale="1 2 .5"/>
            <texture name="t" type="2d" file="missing.png"/><material name="m" texture="t"/></asset>""",
        ),
    )
    model, problems = load(path)
    assert not problems
    info, geometry = model.geometry.infos[0], model.geometry
    assert info.shape is Shape.MESH and Path(info.mesh_file) == (tmp_path / "meshes" / "part.obj").resolve()
    np.testing.assert_array_equal(geometry.size[0], [1, 2, 0.5])
    R = Rotation.from_euler("XYZ", [40, 0, 10], degrees=True).as_matrix()
    np.testing.assert_allclose(geometry.placement.R[0], R, atol=1e-6)
    np.testing.assert_allclose(geometry.placement.p[0], [0.1, 0.2, 0.3], atol=1e-6)
    np.testing.assert_allclose(model.body.com[0], R @ (mesh.center_mass * [1, 2, 0.5]) + [0.1, 0.2, 0.3], atol=1e-6)


def test_contact_pairs_exclusions_sites_and_keyframe(tmp_path):
    path = write(
        tmp_path,
        world(
            """<geom name="floor" type="plane" size="1 1 1"/>
            <body name="a"><joint name="j"/><geom name="ga" size=".1"/>
              <site name="tip" pos="0 0 1" euler="0 90 0"/></body>
            <body name="b"><joint name="k"/><geom name="gb" size=".1"/><site name="fix"/>
              <body name="fix" pos="0 1 0"><geom size=".1"/><site name="tool" pos="1 0 0"/></body></body>""",
            after="""<contact><pair geom1="ga" geom2="gb"/><exclude body1="a" body2="fix"/></contact>
            <keyframe><key name="other" qpos="9 9"/><key name="home" qpos="1 2"/></keyframe>""",
            before='<option gravity="0 1 -5" timestep=".004"/>',
        ),
    )
    model, problems = load(path)
    assert model.geometry.explicit_pairs == (("ga", "gb"),)
    assert model.geometry.excluded_pairs == (("a", "fix"),)
    assert [info.link for info in model.geometry.infos] == ["world", "a", "b", "fix"]
    np.testing.assert_array_equal(model.home, [1, 2])
    np.testing.assert_array_equal(model.gravity, [0, 1, -5])
    assert model.timestep == 0.004
    assert model.topology.frame_names == ("fix", "tip", "fix_site", "tool")
    np.testing.assert_array_equal(model.frame_placement.p, [[0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0]])
    assert [i.shape for i in model.geometry.infos][:2] == [Shape.PLANE, Shape.SPHERE]
    assert [(p.code, p.message) for p in problems] == [("unsupported.key", "1 keyframe is ignored: 'other'")]


def test_disabled_flags_are_applied_to_the_values(tmp_path):
    joint = '<joint name="j" damping="1" stiffness="2" frictionloss="3" range="-1 1"/>'
    content = f'<body>{joint}<geom size=".1"/></body>'
    off = ["gravity", "limit", "damper", "spring", "frictionloss", "contact", "clampctrl"]
    flags = " ".join(f'{flag}="disable"' for flag in off)
    path = write(
        tmp_path,
        world(
            content,
            before=f"<option><flag {flags}/></option>",
            after='<actuator><motor joint="j" ctrlrange="-1 1"/></actuator>',
        ),
    )
    model, problems = load(path)
    assert not problems
    joint = model.joint
    for values in (model.gravity, joint.damping, joint.stiffness, joint.friction):
        np.testing.assert_array_equal(values, 0.0)
    assert joint.upper[0] == model.actuator.command_upper[0] == np.inf
    assert model.geometry.infos[0].group == model.geometry.infos[0].mask == 0
    switched_off = world(
        content, '<option><flag actuation="disable"/></option>', '<actuator><motor joint="j"/></actuator>'
    )
    assert load(write(tmp_path, switched_off))[0].nu == 0


def test_unnamed_elements_get_stable_unique_names(tmp_path):
    path = write(
        tmp_path,
        world(
            """<body><joint/><geom size=".1"/></body>
            <body name="body1"><joint name="joint0"/><geom name="geom0" size=".1"/><site/></body>""",
            after='<actuator><motor joint="joint0"/></actuator>',
        ),
    )
    model, _ = load(path)
    assert model.topology.body_names == ("body1_", "body1")
    assert model.topology.joint_names == ("joint0_", "joint0")
    assert [info.name for info in model.geometry.infos] == ["geom0_", "geom0"]
    assert model.topology.frame_names == ("site0",)
    assert model.actuator.names == ("actuator0",)


def test_mocap_bodies_are_fixed_with_a_warning(tmp_path):
    path = write(tmp_path, world('<body name="hand" mocap="true"/><body><joint/><geom size=".1"/></body>'))
    model, problems = load(path)
    assert model.topology.frame_names == ("hand",)
    assert [(p.code, p.line) for p in problems] == [("unsupported.mocap", 4)]


def test_unsupported_features_are_listed_by_name_and_line(tmp_path):
    path = write(tmp_path, UNSUPPORTED)
    _, problems = load(path)
    assert all(p.severity is Severity.WARNING and p.file == str(path) and p.fix for p in problems)
    found = {(p.code, p.line) for p in problems}
    assert found == {
        ("unsupported.option.fluid", 2),
        ("unsupported.option.solver", 2),
        ("unsupported.flag.contact", 2),
        ("unsupported.geom.contact", 3),
        ("unsupported.geom.condim", 8),
        ("unsupported.body.gravcomp", 6),
        ("unsupported.joint.contact", 7),
        ("unsupported.joint.polynomial", 7),
        ("unsupported.joint.range", 11),
        ("unsupported.composite", 14),
        ("unsupported.connect", 18),
        ("unsupported.joint", 19),
        ("unsupported.fixed", 21),
        ("unsupported.sensor", 22),
    }
    text = "\n".join(map(str, problems))
    for fragment in ("<connect> 'loop'", "solver='CG', iterations='5'", "also on lines 8", "2 sensors"):
        assert fragment in text
    composite = next(p for p in problems if p.code == "unsupported.composite")
    assert "only partially supported" in composite.message and "without it" not in composite.fix


def test_a_site_with_the_name_of_a_fixed_body_is_renamed(tmp_path):
    path = write(
        tmp_path, world('<body name="f"/><site name="f"/><site name="f_site"/><body><joint/><geom size=".1"/></body>')
    )
    assert load(path)[0].topology.frame_names == ("f", "f_site_", "f_site")


def test_muscles_are_omitted_without_simulating_them(tmp_path):
    """MuJoCo would compute the length range of this muscle and fail."""
    body = '<body><joint name="j"/><geom size=".1" pos="1 0 0"/></body>'
    path = write(tmp_path, world(body, after='<actuator>\n<muscle name="m" joint="j"/></actuator>'))
    _, problems = load(path)
    assert [(p.code, p.line) for p in problems] == [("unsupported.actuator", 7)]
