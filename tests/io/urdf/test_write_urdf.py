"""Models written as URDF: other programs accept them, and they are read back as the same mechanism."""

from dataclasses import replace

import equinox as eqx
import numpy as np
import pinocchio as pin
import pytest
import trimesh

from hybridsim.core.errors import ModelError
from hybridsim.io.load import inspect_model
from hybridsim.io.urdf.write_urdf import write_urdf
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.geometry import Shape
from hybridsim.model.model import Model
from hybridsim.model.specs import GeomSpec
from hybridsim.robots import BUILT_IN
from support.compare import assert_relative
from support.random_models import random_model, random_state
from support.real_models import bullet_file, suite_file
from support.written_models import (
    assert_same_bodies,
    assert_same_dynamics,
    assert_same_joint_parameters,
    box_on_a_hinge,
    mass_matrix_and_bias,
    round_trip,
    with_equal_unsupported_fields,
)

SUPPORTED_JOINT_FIELDS = ("damping", "friction", "lower", "upper", "effort_limit")


def frame_positions(model: Model) -> dict[str, np.ndarray]:
    """Positions of all frames in the world in the zero configuration."""
    positions, joint = {-1: np.zeros(3)}, model.joint
    rotations = {-1: np.eye(3)}
    for i, parent in enumerate(model.topology.parents):
        rotations[i] = rotations[parent] @ joint.placement.R[i]
        positions[i] = positions[parent] + rotations[parent] @ joint.placement.p[i]
    named = {name: positions[i] for i, name in enumerate(model.topology.body_names)}
    for k, (name, body) in enumerate(zip(model.topology.frame_names, model.topology.frame_bodies, strict=True)):
        named[name] = positions[body] + rotations[body] @ model.frame_placement.p[k]
    return named


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_mechanisms_survive_a_round_trip(name, tmp_path):
    model = BUILT_IN[name]()
    read, _ = round_trip(model, tmp_path / "m.urdf")
    assert read.topology.joint_names == model.topology.joint_names
    assert read.topology.frame_names == model.topology.frame_names
    assert_same_bodies(model, read)
    assert_same_joint_parameters(model, read, SUPPORTED_JOINT_FIELDS)
    assert np.array_equal(read.frame_placement.p, model.frame_placement.p)
    assert_same_dynamics(*with_equal_unsupported_fields(model, read))


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_survive_a_round_trip(seed, tmp_path):
    model = random_model(seed, bodies=7)
    read, notes = round_trip(model, tmp_path / "m.urdf")
    assert_same_dynamics(*with_equal_unsupported_fields(model, read))
    assert_same_joint_parameters(model, read, SUPPORTED_JOINT_FIELDS)
    before, after = frame_positions(model), frame_positions(read)
    for name, position in before.items():
        np.testing.assert_allclose(after.get(f"{name}_frame", after[name]), position, rtol=0, atol=1e-14)
    assert any("URDF does not support gravity" in note for note in notes)


@pytest.mark.parametrize("seed", range(3))
def test_trees_that_need_no_shift_are_exactly_equal(seed, tmp_path):
    kinds = ("continuous", "prismatic", "universal", "planar", "fixed")
    model = random_model(seed, bodies=7, kinds=kinds, floating=True)
    read, notes = round_trip(model, tmp_path / "m.urdf")
    assert_same_bodies(model, read)
    assert not any("link frames are moved" in note for note in notes)


@pytest.mark.parametrize("name", ["cheetah", "hopper", "humanoid"])
def test_files_of_the_suite(name, tmp_path):
    model, _ = inspect_model(suite_file(name))
    read, notes = round_trip(model, tmp_path / "m.urdf")
    assert read.topology.joint_names == model.topology.joint_names
    assert_same_joint_parameters(model, read, SUPPORTED_JOINT_FIELDS)
    assert_same_dynamics(*with_equal_unsupported_fields(model, read))
    shapes = [info.name for info in read.geometry.infos]
    omitted = [] if name != "humanoid" else ["floor"]
    assert sorted(shapes + omitted) == sorted(info.name for info in model.geometry.infos)
    for unsupported in ("armature", "actuators", "a time step"):
        assert any(note.startswith(f"URDF does not support {unsupported}") for note in notes), unsupported


def test_a1(tmp_path):
    model, _ = inspect_model(bullet_file("a1/a1.urdf"), base="free")
    read, notes = round_trip(model, tmp_path / "a1.urdf")
    assert notes == ["the root link has no joint ('trunk'); load the file with base='free' (--base free)"]
    assert read.topology.joint_names == model.topology.joint_names
    assert set(read.topology.frame_names) == set(model.topology.frame_names)
    assert_same_bodies(model, read)
    assert_same_joint_parameters(model, read, (*SUPPORTED_JOINT_FIELDS, "limit_stiffness", "limit_damping"))
    # merged links are only frames of the written file, so shapes belong to the links that carried them
    assert [replace(info, link="") for info in read.geometry.infos] == [
        replace(info, link="") for info in model.geometry.infos
    ]
    assert np.array_equal(read.geometry.size, model.geometry.size)


@pytest.mark.parametrize("name", ["quadruped", "pendulum", "pusher"])
def test_pinocchio_reads_the_file(name, tmp_path):
    model = BUILT_IN[name]()
    notes = write_urdf(model, tmp_path / "m.urdf")
    free = any("base='free'" in note for note in notes)
    arguments = [pin.JointModelFreeFlyer(), "root"] if free else []
    robot = pin.buildModelFromUrdf(str(tmp_path / "m.urdf"), *arguments)
    # Pinocchio gives joints without limits a cosine and a sine, so compare where all are zero
    q, qd = np.zeros(model.nq), random_state(model, seed=5)[1]
    if free:
        q[3] = 1.0
    M, _ = mass_matrix_and_bias(model, q, qd)
    theirs = pin.crba(robot, robot.createData(), pin.neutral(robot))
    theirs = np.triu(theirs) + np.triu(theirs, 1).T
    order = []
    for joint in list(robot.names)[1:]:
        start, stop = model.topology.v_slices[model.topology.joint_index(joint)]
        dofs = list(range(start, stop))
        order += dofs[3:] + dofs[:3] if len(dofs) == 6 else dofs
    assert_relative(theirs, M[np.ix_(order, order)], 1e-12, "mass matrix")


def test_the_file_is_readable(tmp_path):
    builder = box_on_a_hinge(at=(0, 0, 2), lower=-1.0, damping=0.1)
    write_urdf(builder.add_geom("box", "sphere", (0.1,), name="ball", friction=0.5).build(), tmp_path / "m.urdf")
    assert (tmp_path / "m.urdf").read_text() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<!-- Written by hybridsim from the model m. SI units. -->\n"
        '<robot name="m">\n'
        '  <link name="world"/>\n'
        '  <link name="box">\n'
        "    <inertial>\n"
        '      <origin xyz="0 0 0"/>\n'
        '      <mass value="1"/>\n'
        '      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>\n'
        "    </inertial>\n"
        '    <collision name="ball">\n'
        "      <geometry>\n"
        '        <sphere radius="0.1"/>\n'
        "      </geometry>\n"
        "      <contact>\n"
        '        <lateral_friction value="0.5"/>\n'
        "      </contact>\n"
        "    </collision>\n"
        "  </link>\n"
        '  <joint name="hinge" type="revolute">\n'
        '    <parent link="world"/>\n'
        '    <child link="box"/>\n'
        '    <origin xyz="0 0 2"/>\n'
        '    <axis xyz="0 0 1"/>\n'
        '    <limit lower="-1" upper="1e+30" effort="1e+30" velocity="1e+30"/>\n'
        '    <dynamics damping="0.1"/>\n'
        "  </joint>\n"
        "</robot>\n"
    )


def test_inconsistent_inertias_are_noted_and_negative_masses_rejected(tmp_path):
    model = box_on_a_hinge().build()
    odd = eqx.tree_at(lambda m: m.body.inertia, model, np.array([[1.0, 1.0, 3.0, 0.0, 0.0, 0.0]]))
    notes = write_urdf(odd, tmp_path / "m.urdf")
    assert len(notes) == 1 and "inertias are written unchanged ('box'); load the file with" in notes[0]
    assert notes[0].endswith("tolerate=['inertia.triangle'] (--tolerate inertia.triangle)")
    read, _ = inspect_model(tmp_path / "m.urdf", tolerate=["inertia.triangle"])
    assert np.array_equal(read.body.inertia, odd.body.inertia)
    with pytest.raises(ModelError, match="mass of body 'box' is -1 kg"):
        write_urdf(eqx.tree_at(lambda m: m.body.mass, model, -np.ones(1)), tmp_path / "n.urdf")
    assert not (tmp_path / "n.urdf").exists()


class TestAnchors:
    def test_everything_on_the_body_is_shifted(self, tmp_path):
        builder = box_on_a_hinge(at=(1, 0, 0), anchor=(0, 0, 0.5), axis=(0, 1, 0), com=(0.1, 0, 0))
        builder.add_geom("box", "box", (0.1, 0.1, 0.1), name="g", at=(0, 0, 1))
        builder.add_frame("tool", "box", at=(0, 1, 0))
        builder.add_body("next", parent="box", at=(0, 0, 2), mass=1.0, inertia=(1, 1, 1))
        read, notes = round_trip(builder.build(), tmp_path / "m.urdf")
        assert len(notes) == 1 and notes[0].endswith("the original frames become links fixed to them: 'box_frame'")
        at = frame_positions(read)
        np.testing.assert_allclose(at["box"], [1, 0, 0.5])
        np.testing.assert_allclose(at["box_frame"], [1, 0, 0])
        np.testing.assert_allclose(at["tool"], [1, 1, 0])
        np.testing.assert_allclose(at["next"], [1, 0, 2])
        np.testing.assert_allclose(read.body.com[0], [0.1, 0, -0.5])
        np.testing.assert_allclose(read.geometry.placement.p[0], [0, 0, 0.5])

    def test_the_name_of_the_frame_is_unique(self, tmp_path):
        builder = box_on_a_hinge(anchor=(0, 0, 0.5)).add_frame("box_frame", "box")
        read, _ = round_trip(builder.build(), tmp_path / "m.urdf")
        assert read.topology.frame_names == ("box_frame", "box_frame_2")


class TestRoots:
    def test_several_roots_are_attached_to_the_world(self, tmp_path):
        builder = box_on_a_hinge()
        builder.add_body("ball", joint="fly", kind="free", mass=1.0, inertia=(1, 1, 1))
        builder.add_geom("world", "plane", (), name="floor")
        model = builder.build()
        read, notes = round_trip(model, tmp_path / "m.urdf")
        assert read.topology == model.topology
        assert_same_dynamics(model, read)
        assert [info.name for info in read.geometry.infos] == ["floor"]
        assert notes == ["capsules and planes are extensions of URDF that other programs may ignore: 'floor'"]

    def test_a_free_root_has_no_joint(self, tmp_path):
        builder = ModelBuilder("m").add_body("ball", joint="fly", kind="free", mass=1.0, inertia=(1, 1, 1))
        builder.add_geom("world", "box", (1, 1, 1), name="floor").add_frame("origin", "world")
        read, notes = round_trip(builder.build(), tmp_path / "m.urdf")
        assert notes == [
            "the root link has no joint ('ball'); load the file with base='free' (--base free)",
            "the free joint is read back as 'root': 'fly'",
            "frames of the world are omitted, since the file has no world link: 'origin'",
            "shapes of the world are omitted, since the file has no world link: 'floor'",
        ]
        assert read.topology.joint_names == ("root",)

    @pytest.mark.parametrize("parameters", [{"at": (0, 0, 1)}, {"damping": 0.1}])
    def test_a_free_joint_with_parameters_is_a_floating_one(self, parameters, tmp_path):
        builder = ModelBuilder("m").add_body("b", joint="fly", kind="free", mass=1.0, inertia=(1, 1, 1), **parameters)
        model = builder.build()
        read, notes = round_trip(model, tmp_path / "m.urdf")
        assert notes == [] and read.topology == model.topology
        assert eqx.tree_equal(read.joint.placement, model.joint.placement)
        assert np.array_equal(read.joint.damping, model.joint.damping)

    def test_a_body_fixed_to_the_world(self, tmp_path):
        builder = ModelBuilder("m").add_body(
            "base", joint="bolt", kind="fixed", at=(1, 2, 3), mass=1.0, inertia=(1, 1, 1)
        )
        builder.add_body("arm", parent="base", mass=1.0, inertia=(1, 1, 1))
        model = builder.build(merge=False)
        read, notes = round_trip(model, tmp_path / "m.urdf")
        assert notes == [] and read.topology == model.topology
        assert_same_bodies(model, read)


class TestJoints:
    def test_limits_of_every_kind(self, tmp_path):
        builder = box_on_a_hinge(lower=0.0, effort_limit=7.0, friction=0.2)
        for name, limits in {"b": {}, "c": {"upper": 0.3}, "d": {"lower": -0.1, "upper": 0.1}}.items():
            builder.add_body(name, kind="prismatic", mass=1.0, inertia=(1, 1, 1), **limits)
        builder.add_body("e", kind="continuous", mass=1.0, inertia=(1, 1, 1), effort_limit=2.0)
        model = builder.build()
        read, notes = round_trip(model, tmp_path / "m.urdf")
        assert notes == []
        assert_same_joint_parameters(model, read, SUPPORTED_JOINT_FIELDS)
        pin.buildModelFromUrdf(str(tmp_path / "m.urdf"))

    def test_mimic_joints(self, tmp_path):
        builder = box_on_a_hinge()
        builder.add_body("b", mass=1.0, inertia=(1, 1, 1), mimic="hinge", mimic_ratio=-2.0, mimic_offset=0.1)
        model = builder.build()
        read, notes = round_trip(model, tmp_path / "m.urdf")
        assert notes == [] and read.topology == model.topology
        assert np.array_equal(read.joint.mimic_ratio, model.joint.mimic_ratio)
        assert np.array_equal(read.joint.mimic_offset, model.joint.mimic_offset)

    @pytest.mark.parametrize("offset", [0.0, 1e-13, 1e-9, 1e-6])
    def test_orientations_are_accurate_near_gimbal_lock(self, offset, tmp_path):
        model = box_on_a_hinge(rpy=(0.7, np.pi / 2 - offset, -0.4)).build()
        read, _ = round_trip(model, tmp_path / "m.urdf")
        np.testing.assert_allclose(read.joint.placement.R, model.joint.placement.R, rtol=0, atol=2e-15)

    def test_unsupported_parameters_are_noted(self, tmp_path):
        builder = box_on_a_hinge(armature=0.1, stiffness=2.0, rest=0.5, home=0.3)
        builder.add_body("ball", kind="spherical", mass=1.0, inertia=(1, 1, 1))
        builder.add_geom("box", "ellipsoid", (0.1, 0.1, 0.2), name="egg").add_geom(
            "box", "capsule", (0.1, 0.2), name="pill"
        )
        builder.add_geom("ball", "sphere", (0.1,), name="marble").add_frame("ball", "box")
        builder.spec.geoms[2].mask = 0
        builder.spec.excluded_pairs, builder.spec.explicit_pairs = [("box", "ball")], [("pill", "marble")]
        builder.spec.pair_friction = {("pill", "marble"): 0.2}
        builder.spec.gravity, builder.spec.timestep = np.array([0.0, 0.0, -1.62]), 0.005
        builder.add_actuator("hinge", name="servo", gain=2.0)
        read, notes = round_trip(builder.build(), tmp_path / "m.urdf")
        assert notes == [
            "URDF does not support armature: 'hinge'",
            "URDF does not support joint springs: 'hinge'",
            "spherical joints are an extension of URDF that other programs may reject: 'ball'",
            "URDF does not support actuators ('servo'); every independent joint with one degree of freedom is read "
            "back with a torque actuator",
            "ellipsoids are omitted, since URDF does not support them: 'egg'",
            "URDF does not support collision groups: 'marble'",
            "URDF does not support excluded collision pairs: 'box and ball'",
            "URDF does not support explicit collision pairs: 'pill and marble'",
            "URDF does not support friction of pairs of shapes: 'pill and marble'",
            "URDF does not support gravity; that of the model is 0 0 -1.62 m/s²",
            "URDF does not support a time step; that of the model is 0.005 s",
            "URDF does not support a home configuration; that of the model is not zero for joints: 'hinge'",
            "frames are renamed because their names are already in use: 'ball → ball_2'",
            "capsules and planes are extensions of URDF that other programs may ignore: 'pill'",
        ]
        assert [info.name for info in read.geometry.infos] == ["pill", "marble"]


class TestShapes:
    def test_sizes_poses_and_friction(self, tmp_path):
        builder = box_on_a_hinge()
        for shape, size in {
            "box": (0.1, 0.2, 0.3),
            "sphere": (0.1,),
            "cylinder": (0.1, 0.2),
            "capsule": (0.1, 0.2),
        }.items():
            builder.add_geom("box", shape, size, name=shape, at=(1, 2, 3), rpy=(0.1, 0.2, 0.3), friction=0.7)
        model = builder.build()
        read, _ = round_trip(model, tmp_path / "m.urdf")
        assert read.geometry.infos == model.geometry.infos
        for field in ("size", "friction"):
            assert np.array_equal(getattr(read.geometry, field), getattr(model.geometry, field))
        assert np.array_equal(read.geometry.placement.p, model.geometry.placement.p)
        np.testing.assert_allclose(read.geometry.placement.R, model.geometry.placement.R, rtol=0, atol=1e-15)

    def test_meshes_are_named_relative_to_the_file(self, tmp_path):
        (tmp_path / "meshes").mkdir()
        stl = tmp_path / "meshes" / "part.stl"
        trimesh.creation.box((0.1, 0.2, 0.3)).export(stl)
        builder = box_on_a_hinge()
        builder.spec.geoms.append(GeomSpec("a", "box", Shape.MESH, np.full(3, 0.5), mesh_file=str(stl)))
        builder.spec.geoms.append(GeomSpec("b", "box", Shape.MESH, np.ones(3), mesh_file=str(tmp_path / "gone.stl")))
        read, notes = round_trip(builder.build(), tmp_path / "m.urdf")
        assert 'filename="meshes/part.stl"' in (tmp_path / "m.urdf").read_text()
        assert [info.mesh_file for info in read.geometry.infos] == [str(stl.resolve())]
        assert np.array_equal(read.geometry.size[0], np.full(3, 0.5))
        assert notes == ["shapes are omitted because their mesh file does not exist: 'b'"]
