"""Real URDF files: valid ones are imported as by Pinocchio, invalid ones rejected for the right reason."""

import time

import numpy as np
import pinocchio as pin
import pytest

from hybridsim.core.errors import Severity
from hybridsim.model.assemble import assemble
from hybridsim.model.inertial import inertia_matrix
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec
from support.real_models import bullet_file
from support.urdf_changes import read_urdf


def model_of(spec: ModelSpec) -> Model:
    return assemble(merge_fixed_joints(spec)[0])


@pytest.mark.parametrize(
    ("name", "nv", "mass", "options"),
    [
        ("a1/a1.urdf", 18, 12.458, {"base": "free"}),
        ("aliengo/aliengo.urdf", 18, 20.6374, {"base": "free"}),
        ("laikago/laikago_toes.urdf", 18, 25.567, {"base": "free", "inertia": "from_geometry"}),
        ("franka_panda/panda.urdf", 8, 15.06, {}),
        ("kuka_iiwa/model.urdf", 7, None, {}),
        ("kuka_iiwa/model_vr_limits.urdf", 7, None, {}),
        ("cartpole.urdf", 2, 1.1, {}),
        ("pendulum5.urdf", 5, None, {}),
        ("r2d2.urdf", 8, None, {}),
        ("racecar/racecar.urdf", 6, None, {}),
        ("humanoid/humanoid.urdf", 28, None, {}),
        ("quadruped/minitaur.urdf", 16, None, {}),
    ],
)
def test_degrees_of_freedom_and_mass(name, nv, mass, options):
    spec, problems = read_urdf(bullet_file(name), **options)
    assert not [p for p in problems if p.severity is Severity.ERROR], problems
    model = model_of(spec)
    assert model.nv == nv
    if mass is not None:
        assert float(np.sum(model.body.mass)) == pytest.approx(mass, rel=1e-4)


@pytest.mark.parametrize("name", ["a1/a1.urdf", "kuka_iiwa/model.urdf", "aliengo/aliengo.urdf", "pendulum5.urdf"])
def test_valid_files_give_no_errors(name):
    assert read_urdf(bullet_file(name))[1] == []


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("mini_cheetah/mini_cheetah.urdf", {"inertia.triangle"}),
        ("xarm/xarm6_with_gripper.urdf", {"inertia.triangle"}),
        ("xarm/xarm6_robot.urdf", {"inertia.triangle"}),
        ("cube_no_rotation.urdf", {"limit.order"}),
        ("bicycle/bike.urdf", {"number.invalid"}),
    ],
)
def test_invalid_files_are_rejected_for_the_right_reason(name, codes):
    _, problems = read_urdf(bullet_file(name))
    assert {p.code for p in problems if p.severity is Severity.ERROR} == codes


def test_a1_loads_quickly():
    path = bullet_file("a1/a1.urdf")
    times = []
    for _ in range(3):
        start = time.process_time()
        model_of(read_urdf(path, base="free")[0])
        times.append(time.process_time() - start)
    assert min(times) < 0.25


@pytest.mark.parametrize(
    "name",
    [
        "a1/a1.urdf",
        "franka_panda/panda.urdf",
        "kuka_iiwa/model.urdf",
        "racecar/racecar.urdf",
        "r2d2.urdf",
    ],
)
def test_the_same_bodies_and_joints_as_pinocchio(name):
    path = bullet_file(name)
    theirs = pin.buildModelFromUrdf(str(path))
    ours = model_of(read_urdf(path)[0])
    assert set(ours.topology.joint_names) == set(theirs.names) - {"universe"}
    for i, joint in enumerate(ours.topology.joint_names):
        k = theirs.getJointId(joint)
        inertia, placement = theirs.inertias[k], theirs.jointPlacements[k]
        np.testing.assert_allclose(ours.body.mass[i], inertia.mass, rtol=1e-12)
        np.testing.assert_allclose(ours.body.com[i], inertia.lever, atol=1e-12)
        np.testing.assert_allclose(inertia_matrix(ours.body.inertia[i]), inertia.inertia, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours.joint.placement.p[i], placement.translation, atol=1e-12)
        np.testing.assert_allclose(ours.joint.placement.R[i], placement.rotation, atol=1e-12)
        dof = ours.topology.tree_v_slices[i][0]
        at = theirs.joints[k].idx_v
        np.testing.assert_allclose(ours.joint.damping[dof], theirs.damping[at])
        np.testing.assert_allclose(ours.joint.friction[dof], theirs.upperDryFrictionLimit[at])
