"""ModelBuilder: the models it builds, and validation that reports all errors at once."""

import numpy as np
import pytest

from hybridsim.core.errors import ModelError
from hybridsim.dynamics.crba import mass_matrix
from hybridsim.model.assemble import LIMIT_STOP_FREQUENCY
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.compound_joints import plane_axes
from hybridsim.model.coordinates import zero_configuration
from hybridsim.model.joints import ElementaryJointType
from support.random_models import EVERY_KIND, WITH_MIMICS, random_model


def _arm(**second):
    arm = ModelBuilder("arm")
    arm.add_body("upper", joint="shoulder", axis=(0, 2, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    arm.add_body(
        "lower",
        parent="upper",
        joint="elbow",
        at=(0, 0, -1),
        **({"mass": 0.5, "inertia": (0.1, 0.1, 0.1)} | second),
    )
    return arm


def test_names_axes_and_default_actuators():
    model = _arm().build()
    assert model.topology.body_names == ("upper", "lower")
    assert model.topology.dof_names == ("shoulder", "elbow") == model.actuator.names
    np.testing.assert_array_equal(model.joint.axis[0], [0, 1, 0])
    assert (model.nb, model.nq, model.nv, model.nu) == (2, 2, 2, 2)
    assert model.topology.root_paths == ((0,), (0, 1))


def test_compound_joints_become_chains():
    builder = ModelBuilder("compound").declare_unactuated()
    builder.add_body("a", kind="planar", mass=1.0, inertia=(1, 1, 1))
    builder.add_body("b", parent="a", joint="u", kind="universal", axis=(1, 0, 0), mass=1.0, inertia=(1, 1, 1))
    model = builder.build()
    assert model.topology.dof_names == ("a.x", "a.y", "a.yaw", "u.1", "u.2")
    assert model.topology.body_names == ("a:a.x", "a:a.y", "a", "b:u.1", "b")
    assert model.nu == 0
    np.testing.assert_allclose(model.body.mass, [0, 0, 1, 0, 1])


@pytest.mark.parametrize("normal", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (1, 2, -3)])
def test_plane_axes_are_a_right_handed_frame(normal):
    n = np.array(normal) / np.linalg.norm(normal)
    e1, e2 = plane_axes(n)
    np.testing.assert_allclose(np.cross(e1, e2), n, atol=1e-15)
    if normal == (0, 0, 1):
        np.testing.assert_array_equal(np.stack([e1, e2]), np.eye(3)[:2])


def test_merging_fixed_bodies_preserves_mass_frames_and_shapes():
    arm = _arm()
    arm.add_body(
        "tool",
        parent="lower",
        kind="fixed",
        at=(0, 0, -1),
        rpy=(0, 0.5, 0),
        mass=0.2,
        inertia=(0.02, 0.03, 0.04),
    )
    arm.add_body("finger", parent="tool", joint="grip", at=(0.1, 0, 0), mass=0.1, inertia=(0.01, 0.01, 0.01))
    arm.add_geom("tool", "sphere", (0.05,))
    arm.add_frame("tip", "tool", at=(0, 0, -0.1))
    merged, unmerged = arm.build(), arm.build(merge=False)
    assert merged.topology.body_names == ("upper", "lower", "finger")
    assert set(merged.topology.frame_names) == {"tool", "tip"}
    assert unmerged.topology.joint_types[2] is ElementaryJointType.FIXED
    assert merged.body.mass.sum() == pytest.approx(unmerged.body.mass.sum())
    assert merged.geometry.infos[0].body == 1


def test_limit_stop_stiffness_scales_with_apparent_inertia():
    """The apparent inertia is 1/(M⁻¹)ᵢᵢ, for every joint type."""
    for model in (_arm(lower=-1.0, upper=1.0).build(), random_model(3, 6, floating=True)):
        M = mass_matrix(model, zero_configuration(model.topology))
        np.testing.assert_allclose(
            model.joint.limit_stiffness, LIMIT_STOP_FREQUENCY**2 / np.diag(np.linalg.inv(M)), rtol=1e-9
        )


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"kind": "spherical", "lower": 0.1}, "limit.kind"),
        ({"kind": "free", "stiffness": 1.0}, "stiffness.kind"),
        ({"kind": "spherical", "rest": (2.0, 0.0, 0.0, 0.0)}, "rest.quaternion"),
        ({"kind": "spherical", "rest": (0.1, 0.2, 0.3)}, "rest.quaternion"),
        ({"rest": (0.1, 0.2)}, "rest.shape"),
        ({"friction_width": 0.0}, "friction_width.invalid"),
        ({"stribeck_velocity": 0.0}, "stribeck_velocity.invalid"),
        ({"limit_stiffness": -5.0}, "limit_stiffness.invalid"),
        ({"limit_damping": np.nan}, "limit_damping.invalid"),
        ({"inertia": np.eye(3) + np.eye(3, k=1)}, "inertia.asymmetric"),
        ({"home": (1.0, 2.0)}, "home.size"),
        ({"kind": "free", "home": 1.0}, "home.size"),
        ({"kind": "free", "home": (0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0)}, "home.quaternion"),
        ({"kind": "fixed"}, "tree.static"),
    ],
)
def test_invalid_joint_settings_are_reported(parameters, code):
    with pytest.raises(ModelError) as error:
        ModelBuilder("wrong").add_body("a", **({"mass": 1.0, "inertia": (1.0, 1.0, 1.0)} | parameters)).build()
    assert code in {problem.code for problem in error.value.problems}


def test_invalid_model_settings_are_reported():
    wrong = ModelBuilder("wrong", gravity=(0, 0, np.nan), timestep=-1.0)
    wrong.add_body("a", mass=1.0, inertia=(1, 1, 1)).add_body("b", mass=1.0, inertia=(1, 1, 1), mimic="a", home=1.0)
    wrong.add_frame("f", "a").add_frame("f", "a").add_actuator("a").add_actuator("a")
    wrong.spec.home["c"] = 1.0
    with pytest.raises(ModelError) as error:
        wrong.build()
    codes = [problem.code for problem in error.value.problems]
    assert {"gravity.nonfinite", "timestep.invalid", "home.mimic", "home.unknown"} <= set(codes)
    assert codes.count("name.duplicate") == 2


def test_home_of_compound_joints():
    builder = ModelBuilder("home")
    builder.add_body("a", kind="planar", mass=1.0, inertia=(1, 1, 1), home=(0.1, 0.2, 0.3))
    np.testing.assert_array_equal(builder.build().home, [0.1, 0.2, 0.3])


def test_all_errors_are_reported_at_once():
    broken = ModelBuilder("broken")
    broken.add_body("a", mass=-1.0, axis=(0, 0, 0), lower=1.0, upper=-1.0, damping=-0.5)
    broken.add_body("a", parent="nowhere", mass=1.0, inertia=(1, 1, 5))
    broken.add_body("c", parent="a", joint="c", kind="free", mass=1.0, inertia=(1, 1, -1))
    broken.add_body("d", parent="a", mimic="d", mass=np.nan)
    broken.add_geom("nobody", "sphere", (0.1,))
    broken.add_frame("f", "nobody")
    broken.add_actuator("nothing")
    with pytest.raises(ModelError) as error:
        broken.build()
    codes = {problem.code for problem in error.value.problems}
    assert codes >= {
        "mass.negative",
        "axis.zero",
        "limit.order",
        "damping.invalid",
        "name.duplicate",
        "tree.parent",
        "inertia.triangle",
        "inertia.indefinite",
        "joint.free_not_root",
        "mimic.self",
        "inertial.nonfinite",
        "geom.body",
        "frame.body",
        "actuator.joint",
    }
    assert all(problem.fix for problem in error.value.problems)


def test_joint_without_inertia_is_rejected():
    with pytest.raises(ModelError, match="carries no mass"):
        ModelBuilder("empty").add_body("a").build()


@pytest.mark.parametrize("inertia", [(1.0, 2.0), np.zeros((2, 2))])
def test_inertia_of_wrong_shape_is_rejected(inertia):
    with pytest.raises(ValueError, match="3 \\(diagonal\\), 6"):
        ModelBuilder("wrong").add_body("a", mass=1.0, inertia=inertia)


def test_error_for_unknown_name_lists_valid_names():
    topology = _arm().build().topology
    with pytest.raises(KeyError, match="no body named 'hand'; the model has upper, lower"):
        topology.body_index("hand")
    assert topology.joint_index("elbow") == 1


def test_random_trees_contain_the_advertised_joint_types():
    topology = random_model(**EVERY_KIND).topology
    assert {str(kind) for kind in topology.joint_types} == {"fixed", "revolute", "prismatic", "spherical", "free"}
    assert any(name.endswith(".yaw") for name in topology.joint_names), "planar"
    assert any(name.endswith(".2") for name in topology.joint_names), "universal"
    assert topology.parents.count(-1) == 3
    topology = random_model(**WITH_MIMICS).topology
    followers = {str(kind) for kind, master in zip(topology.joint_types, topology.masters, strict=True) if master >= 0}
    assert followers == {"revolute", "prismatic"}


def test_elementary_joints_of_compound_joints_are_actuated_by_name():
    from hybridsim.sim.simulator import Simulator
    from hybridsim.sim.step import step

    solid = {"mass": 1.0, "inertia": (0.1, 0.1, 0.2)}
    puck = ModelBuilder("puck", gravity=(0, 0, 0)).add_body("puck", joint="base", kind="planar", **solid)
    model = puck.add_actuator("base.yaw", name="motor").build()
    assert model.actuator.names == ("motor",)
    sim = Simulator(model, dt=0.01)
    np.testing.assert_allclose(step(sim, sim.initial_state(), [2.0]).qd, [0.0, 0.0, 0.01 * 2.0 / 0.2])
    with pytest.raises(ModelError, match=r"can be actuated: base\.x, base\.y, base\.yaw"):
        ModelBuilder("puck").add_body("puck", joint="base", kind="planar", **solid).add_actuator("base").build()
