"""Models written as MJCF: MuJoCo compiles them to the same mechanism, and they are read back unchanged."""

import equinox as eqx
import mujoco
import numpy as np
import pytest

from hybridsim.core.errors import ModelError
from hybridsim.io.load import inspect_model
from hybridsim.io.mjcf.write_mjcf import write_mjcf
from hybridsim.model.builder import ModelBuilder, pose
from hybridsim.robots import BUILT_IN
from support.compare import assert_relative
from support.mujoco_twin import MujocoState
from support.random_models import random_model, random_state
from support.real_models import bullet_file, suite_file
from support.written_models import (
    assert_same_bodies,
    assert_same_dynamics,
    assert_same_joint_parameters,
    box_on_a_hinge,
    mass_matrix_and_bias,
    round_trip,
)

SUPPORTED_JOINT_FIELDS = ("armature", "stiffness", "damping", "friction", "lower", "upper", "effort_limit")


def assert_agrees_with_mujoco(model, out) -> None:
    q, qd, _ = random_state(model, seed=4)
    state = MujocoState(model, mujoco.MjModel.from_xml_path(str(out)), q, qd)
    M, bias = mass_matrix_and_bias(model, q, qd)
    assert_relative(state.mass_matrix(), M, 1e-12, "mass matrix")
    assert_relative(state.bias_torques(), bias, 1e-11, "bias torques")


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_mechanisms_survive_a_round_trip(name, tmp_path):
    model = BUILT_IN[name]()
    read, notes = round_trip(model, tmp_path / "m.xml")
    assert_agrees_with_mujoco(model, tmp_path / "m.xml")
    assert read.topology.joint_names == model.topology.joint_names
    assert_same_dynamics(model, read)
    for part in ("body", "actuator", "gravity", "home", "timestep"):
        assert eqx.tree_equal(getattr(model, part), getattr(read, part)), part
    assert read.topology.frame_names == model.topology.frame_names
    assert np.array_equal(read.frame_placement.p, model.frame_placement.p)
    shapes = {i.name: i.shape for i in model.geometry.infos}
    if name == "pusher":
        left_out = [shapes.pop(part) for part in ("outline", "bottom")]
        assert left_out == ["polygon", "points"]
    assert {i.name: i.shape for i in read.geometry.infos} == shapes
    if name == "pusher":
        assert notes == [
            "massless body 'object_carrier' is read back as 'object:lift'",
            "massless body 'tip_carrier' is read back as 'tip:tip_x'",
            "polygons are omitted, since MJCF does not support them: 'outline'",
            "contact points are omitted, since MJCF does not support them: 'bottom'",
        ]
    else:
        assert notes == []
        assert_same_bodies(model, read)
        assert_same_joint_parameters(model, read, SUPPORTED_JOINT_FIELDS)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_survive_a_round_trip(seed, tmp_path):
    model = random_model(seed, bodies=7)
    read, notes = round_trip(model, tmp_path / "m.xml")
    assert_same_bodies(model, read)
    assert_same_joint_parameters(model, read, SUPPORTED_JOINT_FIELDS)
    assert np.array_equal(read.gravity, model.gravity)
    assert_same_dynamics(model, read)
    assert_agrees_with_mujoco(model, tmp_path / "m.xml")
    assert all("names of fixed joints" in note or "order of the coordinates" in note for note in notes)


@pytest.mark.parametrize("name", ["cheetah", "hopper", "humanoid"])
def test_files_of_the_suite_survive_a_round_trip(name, tmp_path):
    model, _ = inspect_model(suite_file(name))
    read, notes = round_trip(model, tmp_path / "m.xml")
    assert notes == []
    assert_agrees_with_mujoco(model, tmp_path / "m.xml")
    assert read.topology.joint_names == model.topology.joint_names
    assert_same_bodies(model, read)
    assert_same_joint_parameters(model, read, SUPPORTED_JOINT_FIELDS)
    np.testing.assert_allclose(read.joint.rest, model.joint.rest, rtol=0, atol=1e-15)
    np.testing.assert_allclose(read.home, model.home, rtol=0, atol=1e-15)
    assert eqx.tree_equal(read.actuator, model.actuator)
    assert read.geometry.excluded_pairs == model.geometry.excluded_pairs
    assert [i.name for i in read.geometry.infos] == [i.name for i in model.geometry.infos]
    assert np.array_equal(read.geometry.size, model.geometry.size)


def test_a1_from_urdf(tmp_path):
    model, _ = inspect_model(bullet_file("a1/a1.urdf"), base="free")
    read, notes = round_trip(model, tmp_path / "a1.xml")
    assert notes == []
    assert_agrees_with_mujoco(model, tmp_path / "a1.xml")
    assert_same_bodies(model, read)
    assert_same_joint_parameters(model, read, SUPPORTED_JOINT_FIELDS)


def test_the_file_is_readable(tmp_path):
    builder = box_on_a_hinge(at=(0, 0, 2), lower=-1.0, upper=0.5, damping=0.1)
    write_mjcf(builder.add_geom("box", "sphere", (0.1,), name="ball").build(), tmp_path / "m.xml")
    assert (tmp_path / "m.xml").read_text() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<!-- Written by hybridsim from the model m. SI units. -->\n"
        '<mujoco model="m">\n'
        '  <compiler angle="radian" autolimits="true" inertiafromgeom="false"/>\n'
        '  <option timestep="0.001" gravity="0 0 -9.81"/>\n'
        "  <worldbody>\n"
        '    <body name="box" pos="0 0 2">\n'
        '      <joint name="hinge" type="hinge" damping="0.1" axis="0 0 1" range="-1 0.5"/>\n'
        '      <inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>\n'
        '      <geom name="ball" type="sphere" size="0.1"/>\n'
        "    </body>\n"
        "  </worldbody>\n"
        "  <actuator>\n"
        '    <motor name="hinge" joint="hinge"/>\n'
        "  </actuator>\n"
        "</mujoco>\n"
    )


class TestJoints:
    def test_springs_and_limits_of_every_kind(self, tmp_path):
        builder = box_on_a_hinge(stiffness=3.0, rest=0.4, lower=0.0, effort_limit=7.0, friction=0.2)
        builder.add_body("b", kind="prismatic", mass=1.0, inertia=(1, 1, 1), lower=0.1, upper=0.3, effort_limit=0.0)
        builder.add_body("c", kind="spherical", mass=1.0, inertia=(1, 1, 1), stiffness=2.0, damping=0.5)
        model = builder.build()
        read, notes = round_trip(model, tmp_path / "m.xml")
        assert notes == []
        supported = tuple(field for field in SUPPORTED_JOINT_FIELDS if field != "effort_limit")
        assert_same_joint_parameters(model, read, supported)
        assert np.array_equal(read.joint.rest, model.joint.rest)
        np.testing.assert_allclose(read.joint.effort_limit, model.joint.effort_limit, rtol=0, atol=1e-200)

    def test_equal_limits_lock_the_joint(self, tmp_path):
        read, _ = round_trip(box_on_a_hinge(lower=0.5, upper=0.5).build(), tmp_path / "m.xml")
        assert read.joint.lower[0] == 0.5
        assert read.joint.upper[0] == pytest.approx(0.5, abs=1e-15)

    def test_unsupported_parameters_are_noted(self, tmp_path):
        builder = box_on_a_hinge(
            stribeck_friction=0.1, friction=0.1, friction_width=0.02, lower=0.0, limit_stiffness=5.0
        )
        rotation = np.array([0.0, 1.0, 0.0, 0.0])
        builder.add_body(
            "b", kind="spherical", mass=1.0, inertia=(1, 1, 1), stiffness=1.0, rest=rotation, effort_limit=3.0
        )
        model = builder.build()
        notes = write_mjcf(model, tmp_path / "m.xml")
        assert notes == [
            "Stribeck friction is omitted, since the format does not support it: 'hinge'",
            "friction width is omitted, since the format does not support it: 'hinge'",
            "stiffness of the limit stops is omitted, since the format does not support it: 'hinge'",
            "MJCF does not support effort limits of ball and free joints: 'b'",
            "MJCF does not support rest positions of ball joint springs: 'b'",
        ]

    def test_ball_joint_with_different_damping_per_axis(self, tmp_path):
        model = ModelBuilder("m").add_body("b", kind="spherical", mass=1.0, inertia=(1, 1, 1)).build()
        model = eqx.tree_at(lambda m: m.joint.damping, model, np.array([0.1, 0.2, 0.6]))
        read, notes = round_trip(model, tmp_path / "m.xml")
        assert notes == ["damping differs between the degrees of freedom of joints ('b'); the mean is written"]
        assert read.joint.damping == pytest.approx(0.3)

    def test_a_free_joint_with_a_placement(self, tmp_path):
        at, home = (1.0, 2.0, 3.0), (0.1, 0.2, 0.3, 0.0, 1.0, 0.0, 0.0)
        builder = ModelBuilder("m").add_body(
            "b",
            joint="root",
            kind="free",
            at=at,
            rpy=(0, 0, np.pi / 2),
            mass=1.0,
            inertia=(1, 1, 1),
            home=home,
        )
        read, notes = round_trip(builder.build(), tmp_path / "m.xml")
        assert notes == [
            "MJCF does not support placements of free joints ('root'); their coordinates are poses in the world"
        ]
        np.testing.assert_allclose(read.home[:3], [0.8, 2.1, 3.3], atol=1e-15)

    def test_damping_of_a_free_joint(self, tmp_path):
        builder = ModelBuilder("m").add_body("b", kind="free", mass=1.0, inertia=(1, 1, 1), damping=0.4)
        read, notes = round_trip(builder.build(), tmp_path / "m.xml")
        assert notes == []
        assert np.array_equal(read.joint.damping, np.full(6, 0.4))

    def test_friction_of_a_free_joint_is_noted_and_armature_is_not(self, tmp_path):
        builder = ModelBuilder("m").add_body("b", kind="free", mass=1.0, inertia=(1, 1, 1), armature=0.4)
        read, notes = round_trip(builder.build(), tmp_path / "m.xml")
        assert notes == [] and np.array_equal(read.joint.armature, np.full(6, 0.4))
        builder = ModelBuilder("m").add_body("b", kind="free", mass=1.0, inertia=(1, 1, 1), friction=0.4)
        notes = write_mjcf(builder.build(), tmp_path / "m.xml")
        assert notes == ["MuJoCo applies friction of free joints along the world axes: 'b'"]

    def test_mimic_joints_become_equalities(self, tmp_path):
        builder = box_on_a_hinge(home=0.2)
        builder.add_body("b", mass=1.0, inertia=(1, 1, 1), mimic="hinge", mimic_ratio=-2.0, mimic_offset=0.1)
        notes = write_mjcf(builder.build(), tmp_path / "m.xml")
        assert len(notes) == 1 and notes[0].startswith("mimic joints are written as <equality> ('b'); ")
        compiled = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
        assert compiled.eq_data[0, :2].tolist() == [0.1, -2.0]
        assert compiled.key_qpos[0] == pytest.approx([0.2, -0.3])


class TestMassless:
    def test_an_offset_between_the_joints_is_folded(self, tmp_path):
        builder = ModelBuilder("m").add_body("a", kind="prismatic", axis=(1, 0, 0), at=(0, 0, 1), rpy=(0.1, 0.2, 0))
        builder.add_body("b", parent="a", axis=(0, 1, 0), anchor=(0.1, 0, 0), at=(0.5, 0, 0), rpy=(0.3, 0, 0.4))
        inertia = (0.02, 0.03, 0.04, 0.001, 0.002, 0.003)
        builder.add_body(
            "c",
            parent="b",
            kind="spherical",
            at=(0, 0.5, 0),
            rpy=(0, 0.6, 0),
            mass=1.0,
            com=(0, 0, 0.3),
            inertia=inertia,
        )
        model = builder.build()
        read, notes = round_trip(model, tmp_path / "m.xml")
        assert notes == ["massless body 'a' is read back as 'c:a'", "massless body 'b' is read back as 'c:b'"]
        assert read.topology.body_names == ("c:a", "c:b", "c")
        assert_same_dynamics(model, read)
        assert_agrees_with_mujoco(model, tmp_path / "m.xml")

    def test_a_massless_body_that_cannot_be_folded_gets_the_smallest_mass(self, tmp_path):
        builder = ModelBuilder("m").add_body("a")
        for name in ("b", "c"):
            builder.add_body(name, parent="a", at=(1, 0, 0), axis=(1, 0, 0), mass=1.0, inertia=(1, 1, 1))
        model = builder.build()
        read, notes = round_trip(model, tmp_path / "m.xml")
        assert notes == ["massless bodies get 1e-14 kg, since MuJoCo requires a positive mass: 'a'"]
        assert_same_dynamics(model, read)

    def test_a_massless_body_with_a_frame_stays_a_body(self, tmp_path):
        builder = ModelBuilder("m").add_body("a").add_body("b", parent="a", axis=(1, 0, 0), mass=1.0, inertia=(1, 1, 1))
        read, notes = round_trip(builder.add_frame("f", "a").build(), tmp_path / "m.xml")
        assert read.topology.body_names == ("a", "b") and len(notes) == 1

    def test_point_masses_and_rods(self, tmp_path):
        builder = ModelBuilder("m").add_body("point", mass=1.0, com=(1, 0, 0))
        R = pose((0, 0, 0), (0.3, 0.4, 0.5)).R
        builder.add_body("rod", mass=1.0, com=(1, 0, 0), inertia=R @ np.diag([0.1, 0.1, 0.0]) @ R.T)
        builder.add_body("plate", mass=1.0, com=(1, 0, 0), inertia=R @ np.diag([0.1, 0.2, 0.3]) @ R.T)
        model = builder.build()
        read, notes = round_trip(model, tmp_path / "m.xml")
        assert notes and all(note.startswith("principal moments are increased by ") for note in notes)
        assert_same_dynamics(model, read)

    def test_mass_on_a_fixed_body_suffices(self, tmp_path):
        builder = ModelBuilder("m").add_body("a")
        builder.add_body("b", parent="a", joint="b_fixed", kind="fixed", at=(1, 0, 0), mass=1.0, inertia=(1, 1, 1))
        model = builder.build(merge=False)
        read, notes = round_trip(model, tmp_path / "m.xml")
        assert notes == []
        assert_same_bodies(model, read)

    def test_inconsistent_inertia_is_rejected(self, tmp_path):
        model = eqx.tree_at(
            lambda m: m.body.inertia, box_on_a_hinge().build(), np.array([[1.0, 1.0, 3.0, 0.0, 0.0, 0.0]])
        )
        with pytest.raises(ModelError, match="violate the triangle inequality I3 ≤ I1"):
            write_mjcf(model, tmp_path / "m.xml")
        assert not (tmp_path / "m.xml").exists()


class TestActuators:
    @pytest.mark.parametrize(
        ("tag", "parameters"),
        [
            ("motor", {"gear": 30.0, "command_range": (-1.0, 1.0)}),
            ("position", {"gain": 20.0, "bias": (0.0, -20.0, -0.5), "force_range": (-3.0, 4.0)}),
            ("position", {"gain": 20.0, "bias": (0.0, -20.0, 0.0), "gear": 2.0}),
            ("velocity", {"gain": 0.7, "bias": (0.0, 0.0, -0.7), "command_range": (-np.inf, 2.0)}),
            ("general", {"gain": 3.0, "bias": (0.1, -2.0, -0.3)}),
            ("general", {"gain": -3.0}),
        ],
    )
    def test_each_law_in_its_simplest_form(self, tag, parameters, tmp_path):
        model = box_on_a_hinge().add_actuator("hinge", name="drive", **parameters).build()
        read, notes = round_trip(model, tmp_path / "m.xml")
        assert f"<{tag} " in (tmp_path / "m.xml").read_text()
        assert eqx.tree_equal(read.actuator, model.actuator)
        assert notes == []

    def test_a_law_that_looks_like_a_damping_ratio(self, tmp_path):
        model = box_on_a_hinge().add_actuator("hinge", gain=20.0, bias=(0.0, -20.0, 0.5)).build()
        read, _ = round_trip(model, tmp_path / "m.xml")
        np.testing.assert_allclose(read.actuator.bias, model.actuator.bias, rtol=1e-15)

    def test_a_passive_model_stays_passive(self, tmp_path):
        read, _ = round_trip(box_on_a_hinge().declare_unactuated().build(), tmp_path / "m.xml")
        assert read.nu == 0


def test_invalid_values_are_rejected(tmp_path):
    model = box_on_a_hinge().build()
    with pytest.raises(ModelError, match="'damping' of <joint> 'hinge'"):
        write_mjcf(eqx.tree_at(lambda m: m.joint.damping, model, np.array([np.nan])), tmp_path / "m.xml")
    with pytest.raises(ModelError, match="orientation of joint 'hinge' is not a rotation"):
        write_mjcf(eqx.tree_at(lambda m: m.joint.placement.R, model, 2.0 * np.eye(3)[None]), tmp_path / "m.xml")
    assert list(tmp_path.iterdir()) == []


def test_very_long_chains_are_rejected(tmp_path):
    builder = ModelBuilder("m")
    for i in range(250):
        builder.add_body(f"b{i}", parent=f"b{i - 1}" if i else "world", mass=1.0, inertia=(1, 1, 1))
    with pytest.raises(ModelError, match="250 bodies deep, too deep"):
        write_mjcf(builder.build(), tmp_path / "m.xml")


def test_strange_names_survive_a_round_trip(tmp_path):
    builder = ModelBuilder('a -- "model" <1> & more')
    builder.add_body("Körper <&>", joint='"j"', mass=1.0, inertia=(1, 1, 1))
    read, _ = round_trip(builder.build(), tmp_path / "m.xml")
    assert read.topology == builder.build().topology
