import numpy as np
import pytest

from hybridsim.model.assemble import assemble
from hybridsim.model.geometry import Shape
from hybridsim.model.inertial import inertia_matrix, solid_box, solid_capsule
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model
from hybridsim.model.specs import JointKind, ModelSpec
from support.urdf_changes import read_urdf

INERTIAL = '<inertial><mass value="2"/><inertia ixx="0.3" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial>'


def spec_of(tmp_path, content: str, *, warnings: tuple[str, ...] = (), **options) -> ModelSpec:
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r">{content}</robot>')
    spec, problems = read_urdf(path, **options)
    assert [p.code for p in problems] == list(warnings), problems
    return spec


def two_links(joint: str = '<joint name="j" type="continuous">', inside: str = "", link: str = INERTIAL) -> str:
    ends = '<parent link="a"/><child link="b"/>'
    return f'<link name="a"/>{joint}{ends}{inside}</joint><link name="b">{link}</link>'


def model_of(spec: ModelSpec) -> Model:
    return assemble(merge_fixed_joints(spec)[0])


class TestJoints:
    @pytest.mark.parametrize(
        ("word", "kind"),
        [
            ("revolute", JointKind.REVOLUTE),
            ("continuous", JointKind.CONTINUOUS),
            ("prismatic", JointKind.PRISMATIC),
            ("fixed", JointKind.FIXED),
            ("floating", JointKind.FREE),
            ("planar", JointKind.PLANAR),
            ("spherical", JointKind.SPHERICAL),
            ("universal", JointKind.UNIVERSAL),
        ],
    )
    def test_types(self, tmp_path, word, kind):
        limit = '<limit lower="-1" upper="1"/>' if word in ("revolute", "prismatic") else ""
        # with a free base there is something to move, even if the joint does not
        base = "free" if word == "fixed" else "fixed"
        spec = spec_of(tmp_path, two_links(f'<joint name="j" type="{word}">', limit), base=base)
        assert spec.bodies[1].joint.kind is kind

    def test_parameters(self, tmp_path):
        inside = (
            '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0 3 4"/>'
            '<dynamics damping="0.5" friction="0.25"/>'
            '<limit lower="-1" upper="2" effort="30" velocity="4"/><calibration rising="0"/>'
            '<safety_controller k_velocity="1"/>'
        )
        spec = spec_of(tmp_path, two_links('<joint name="j" type="revolute">', inside))
        joint = spec.bodies[1].joint
        assert (joint.lower, joint.upper, joint.effort_limit) == (-1.0, 2.0, 30.0)
        assert (joint.damping, joint.friction) == (0.5, 0.25)
        np.testing.assert_array_equal(joint.axis, [0, 3, 4])
        np.testing.assert_array_equal(spec.bodies[1].placement.p, [1, 2, 3])
        c, s = np.cos([0.1, 0.2, 0.3]), np.sin([0.1, 0.2, 0.3])
        Rx = np.array([[1, 0, 0], [0, c[0], -s[0]], [0, s[0], c[0]]])
        Ry = np.array([[c[1], 0, s[1]], [0, 1, 0], [-s[1], 0, c[1]]])
        Rz = np.array([[c[2], -s[2], 0], [s[2], c[2], 0], [0, 0, 1]])
        np.testing.assert_allclose(spec.bodies[1].placement.R, Rz @ Ry @ Rx, rtol=0, atol=1e-15)

    def test_defaults(self, tmp_path):
        joint = spec_of(tmp_path, two_links()).bodies[1].joint
        np.testing.assert_array_equal(joint.axis, [1, 0, 0])
        assert (joint.lower, joint.upper, joint.effort_limit) == (-np.inf, np.inf, np.inf)
        assert (joint.damping, joint.friction, joint.mimic) == (0.0, 0.0, "")

    def test_one_absent_bound_is_zero(self, tmp_path):
        spec = spec_of(tmp_path, two_links('<joint name="j" type="revolute">', '<limit upper="2"/>'))
        assert (spec.bodies[1].joint.lower, spec.bodies[1].joint.upper) == (0.0, 2.0)

    def test_infinite_limits_mean_unlimited(self, tmp_path):
        inside = '<limit lower="-inf" upper="inf" effort="inf"/>'
        joint = spec_of(tmp_path, two_links('<joint name="j" type="revolute">', inside)).bodies[1].joint
        assert (joint.lower, joint.upper, joint.effort_limit) == (-np.inf, np.inf, np.inf)

    def test_mimic_is_a_reduced_coordinate(self, tmp_path):
        content = two_links() + (
            '<joint name="k" type="continuous"><parent link="b"/><child link="c"/>'
            f'<mimic joint="j" multiplier="-0.5" offset="0.1"/></joint><link name="c">{INERTIAL}</link>'
        )
        model = model_of(spec_of(tmp_path, content))
        assert (model.nv, model.nu, model.topology.tree_nv) == (1, 1, 2)
        assert model.topology.masters == (-1, 0)
        assert (model.joint.mimic_ratio[1], model.joint.mimic_offset[1]) == (-0.5, 0.1)


class TestTree:
    LINKS = "".join(f'<link name="{name}">{INERTIAL}</link>' for name in "edcba")

    @staticmethod
    def joint(parent: str, child: str, kind: str = "continuous") -> str:
        ends = f'<parent link="{parent}"/><child link="{child}"/>'
        return f'<joint name="{parent}{child}" type="{kind}">{ends}</joint>'

    def test_parents_first_and_siblings_in_file_order(self, tmp_path):
        joints = self.joint("b", "d") + self.joint("a", "c") + self.joint("a", "b") + self.joint("c", "e")
        spec = spec_of(tmp_path, self.LINKS + joints)
        assert [body.name for body in spec.bodies] == ["a", "c", "e", "b", "d"]

    def test_fixed_base(self, tmp_path):
        spec = spec_of(tmp_path, two_links())
        assert spec.bodies[0].joint.kind is JointKind.FIXED
        model = model_of(spec)
        assert model.topology.body_names == ("b",)
        assert model.topology.frame_names == ("a",)

    def test_free_base(self, tmp_path):
        spec = spec_of(tmp_path, two_links().replace("/>", f">{INERTIAL}</link>", 1), base="free")
        model = model_of(spec)
        assert model.topology.joint_names == ("root", "j")
        assert model.topology.joint_types[0] is ElementaryJointType.FREE

    def test_name_of_the_free_joint_avoids_conflicts(self, tmp_path):
        text = two_links('<joint name="root" type="continuous">').replace("/>", f">{INERTIAL}</link>", 1)
        spec = spec_of(tmp_path, text, base="free")
        assert spec.bodies[0].joint.name == "a_free"

    def test_a_link_named_world_is_the_world(self, tmp_path):
        spec = spec_of(tmp_path, two_links().replace('"a"', '"world"'))
        assert [body.name for body in spec.bodies] == ["b"]
        assert spec.bodies[0].parent == "world"

    def test_world_need_not_be_declared(self, tmp_path):
        text = two_links().replace('<link name="a"/>', "").replace('"a"', '"world"')
        assert [body.name for body in spec_of(tmp_path, text).bodies] == ["b"]

    def test_floating_joint_of_the_root_is_attached_to_the_world(self, tmp_path):
        inside = '<origin xyz="0 0 1"/>'
        spec = spec_of(tmp_path, two_links('<joint name="j" type="floating">', inside))
        model = model_of(spec)
        assert model.topology.joint_types == (ElementaryJointType.FREE,)
        np.testing.assert_array_equal(model.joint.placement.p[0], [0, 0, 1])


class TestInertials:
    def test_frame_of_the_inertial(self, tmp_path):
        link = (
            '<inertial><origin xyz="0.1 0.2 0.3" rpy="0 0 1.5707963267948966"/><mass value="2"/>'
            '<inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="0.2" iyz="0.3"/></inertial>'
        )
        inertial = spec_of(tmp_path, two_links(link=link), warnings=("units.inertia",)).bodies[1].inertial
        np.testing.assert_array_equal(inertial.com, [0.1, 0.2, 0.3])
        rotated = inertia_matrix([2, 1, 2.5, -0.1, -0.3, 0.2])
        np.testing.assert_allclose(inertial.inertia, rotated, rtol=0, atol=1e-15)

    def test_fixed_links_are_merged_with_their_inertia(self, tmp_path):
        content = two_links() + (
            '<joint name="f" type="fixed"><parent link="b"/><child link="c"/><origin xyz="0 0 1"/></joint>'
            f'<link name="c">{INERTIAL}</link>'
        )
        model = model_of(spec_of(tmp_path, content))
        assert model.body.mass[0] == 4.0
        np.testing.assert_array_equal(model.body.com[0], [0, 0, 0.5])
        np.testing.assert_allclose(model.body.inertia[0], [0.6 + 1.0, 0.4 + 1.0, 0.4, 0, 0, 0], atol=1e-15)

    def test_massless_links_may_have_children(self, tmp_path):
        content = two_links(link="") + (
            '<joint name="k" type="continuous"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/></joint>'
            f'<link name="c">{INERTIAL}</link>'
        )
        assert model_of(spec_of(tmp_path, content)).body.mass.tolist() == [0.0, 2.0]

    def test_static_link_with_a_placeholder_inertia(self, tmp_path):
        token = '<inertial><mass value="0"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
        spec = spec_of(tmp_path, two_links().replace("/>", f">{token}</link>", 1))
        assert not spec.bodies[0].inertial.inertia.any()


class TestInertiaFromGeometry:
    BOX = '<collision><origin xyz="0 0 0.5"/><geometry><box size="0.2 0.4 1"/></geometry></collision>'

    def inertial(self, tmp_path, link: str, warnings: tuple[str, ...] = ()):
        spec = spec_of(tmp_path, two_links(link=link), inertia="from_geometry", warnings=warnings)
        return spec.bodies[1].inertial

    def test_mass_properties_from_the_shape(self, tmp_path):
        inertial = self.inertial(tmp_path, self.BOX)
        expected = solid_box(80.0, (0.1, 0.2, 0.5))
        assert inertial.mass == pytest.approx(80.0)
        np.testing.assert_allclose(inertial.com, [0, 0, 0.5])
        np.testing.assert_allclose(inertial.inertia, expected.inertia)

    def test_mass_from_the_file(self, tmp_path):
        inertial = self.inertial(tmp_path, self.BOX + '<inertial><mass value="40"/></inertial>')
        assert inertial.mass == 40.0
        np.testing.assert_allclose(inertial.com, [0, 0, 0.5])
        np.testing.assert_allclose(inertial.inertia, solid_box(40.0, (0.1, 0.2, 0.5)).inertia)

    def test_centre_of_mass_from_the_file(self, tmp_path):
        given = '<inertial><origin xyz="0 0 0.4"/><mass value="40"/><inertia ixx="0" iyy="0" izz="0"/></inertial>'
        np.testing.assert_array_equal(self.inertial(tmp_path, self.BOX + given).com, [0, 0, 0.4])

    def test_specified_mass_properties_are_used(self, tmp_path):
        inertial = self.inertial(tmp_path, self.BOX + INERTIAL, ("units.density",))
        assert inertial.mass == 2.0 and inertial.inertia[0, 0] == 0.3

    def test_several_shapes(self, tmp_path):
        capsule = '<collision><geometry><capsule radius="0.1" length="0.5"/></geometry></collision>'
        ball = '<collision><origin xyz="1 0 0"/><geometry><sphere radius="0.1"/></geometry></collision>'
        inertial = self.inertial(tmp_path, capsule + ball)
        m1, m2 = 1000 * np.pi * (0.01 * 0.5 + 4 / 3 * 0.001), 1000 * np.pi * 4 / 3 * 0.001
        assert inertial.mass == pytest.approx(m1 + m2)
        np.testing.assert_allclose(inertial.com, [m2 / (m1 + m2), 0, 0])
        about_y = solid_capsule(m1, 0.1, 0.25).inertia[1, 1] + 0.4 * m2 * 0.01 + m1 * m2 / (m1 + m2)
        assert inertial.inertia[1, 1] == pytest.approx(about_y)

    def test_fixed_sensor_frames_stay_massless(self, tmp_path):
        content = two_links() + (
            f'<joint name="f" type="fixed"><parent link="b"/><child link="c"/></joint><link name="c">{self.BOX}</link>'
        )
        spec = spec_of(tmp_path, content, inertia="from_geometry")
        assert spec.bodies[2].inertial.mass == 0.0

    @pytest.mark.parametrize("scale", ["1 1 1", "-1 1 1"])
    def test_closed_mesh(self, tmp_path, scale):
        trimesh = pytest.importorskip("trimesh")
        mesh = trimesh.creation.box(extents=(0.2, 0.4, 1.0))
        mesh.apply_translation([0.3, 0, 0])
        (tmp_path / "box.stl").write_bytes(mesh.export(file_type="stl"))
        link = f'<collision><geometry><mesh filename="box.stl" scale="{scale}"/></geometry></collision>'
        inertial = self.inertial(tmp_path, link)
        assert inertial.mass == pytest.approx(80.0, rel=1e-6)
        np.testing.assert_allclose(inertial.com, [0.3 * float(scale.split()[0]), 0, 0], atol=1e-7)
        np.testing.assert_allclose(inertial.inertia, solid_box(80.0, (0.1, 0.2, 0.5)).inertia, rtol=1e-5, atol=1e-5)

    def test_open_mesh_is_replaced_by_its_hull(self, tmp_path):
        trimesh = pytest.importorskip("trimesh")
        mesh = trimesh.creation.box(extents=(0.2, 0.4, 1.0))
        mesh.update_faces(np.arange(len(mesh.faces)) > 0)
        (tmp_path / "open.stl").write_bytes(mesh.export(file_type="stl"))
        link = '<collision><geometry><mesh filename="open.stl"/></geometry></collision>'
        assert self.inertial(tmp_path, link, ("mesh.open",)).mass == pytest.approx(80.0, rel=1e-6)

    def test_garbage_in_a_mesh_is_a_problem_not_a_crash(self, tmp_path):
        (tmp_path / "bad.stl").write_bytes(b"not a mesh")
        link = '<collision><geometry><mesh filename="bad.stl"/></geometry></collision>'
        path = tmp_path / "robot.urdf"
        path.write_text(f'<robot name="r">{two_links(link=link)}</robot>')
        _, problems = read_urdf(path, inertia="from_geometry")
        assert [p.code for p in problems] == ["inertial.no_geometry", "mesh.unusable"]


class TestShapes:
    def shapes(self, tmp_path, *geometries: str, extra: str = ""):
        parts = "".join(f"<collision><geometry>{g}</geometry></collision>" for g in geometries)
        spec = spec_of(tmp_path, two_links(link=INERTIAL + parts + extra), warnings=())
        return spec.geoms

    def test_sizes(self, tmp_path):
        (tmp_path / "m.stl").write_text("solid")
        box, ball, cylinder, capsule, mesh = self.shapes(
            tmp_path,
            '<box size="0.2 0.4 0.6"/>',
            '<sphere radius="0.1"/>',
            '<cylinder radius="0.1" length="0.4"/>',
            '<capsule radius="0.1" length="0.4"/>',
            '<mesh filename="m.stl" scale="0.001 0.001 -0.001"/>',
        )
        assert [g.shape for g in (box, ball, cylinder, capsule, mesh)] == [
            Shape.BOX,
            Shape.SPHERE,
            Shape.CYLINDER,
            Shape.CAPSULE,
            Shape.MESH,
        ]
        np.testing.assert_array_equal(box.size, [0.1, 0.2, 0.3])
        np.testing.assert_array_equal(ball.size, [0.1, 0, 0])
        np.testing.assert_array_equal(cylinder.size, [0.1, 0.2, 0])
        np.testing.assert_array_equal(capsule.size, [0.1, 0.2, 0])
        np.testing.assert_array_equal(mesh.size, [0.001, 0.001, -0.001])
        assert mesh.mesh_file == str(tmp_path / "m.stl")

    def test_the_z_axis_of_a_plane_is_its_normal(self, tmp_path):
        (plane,) = self.shapes(tmp_path, '<plane normal="1 0 0"/>')
        assert plane.shape is Shape.PLANE
        np.testing.assert_allclose(np.asarray(plane.placement.R)[:, 2], [1, 0, 0], atol=1e-15)
        assert np.linalg.det(plane.placement.R) == pytest.approx(1.0)

    def test_names_are_unique(self, tmp_path):
        link = "".join(
            f'<collision{name}><geometry><sphere radius="0.14"/></geometry></collision>'
            for name in (' name="foot"', ' name="foot"', "")
        )
        spec = spec_of(tmp_path, two_links(link=INERTIAL + link))
        assert [g.name for g in spec.geoms] == ["foot", "foot_1", "b_collision2"]

    def test_friction_of_the_contact_extension(self, tmp_path):
        contact = '<contact><lateral_friction value="0.7"/></contact>'
        (ball,) = self.shapes(tmp_path, '<sphere radius="0.2"/>', extra=contact)
        assert ball.friction == 0.7

    def test_extensions_of_other_tools_give_no_warning(self, tmp_path):
        extra = (
            '<material name="m"/><transmission name="t"/><gazebo reference="b"/><drake:proximity/>'
            '<mujoco><compiler meshdir="x"/></mujoco>'
        )
        spec_of(tmp_path, two_links() + extra)
