"""Importers and dynamics on model files of real robots, against MuJoCo (MJCF) and Pinocchio (URDF)."""

import warnings
from functools import partial

import jax
import mujoco
import numpy as np
import pinocchio as pin
import pytest

from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.crba import mass_matrix
from hybridsim.dynamics.energy import gravity_energy, kinetic_energy
from hybridsim.dynamics.jacobian import frame_jacobian
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.dynamics.rnea import bias_torques
from hybridsim.model.coordinates import coupling_matrix, expand_q
from hybridsim.model.inertial import inertia_matrix
from hybridsim.model.joints import ElementaryJointType
from support.compare import assert_relative
from support.exported_models import load
from support.mujoco_twin import MujocoState
from support.random_models import random_state
from support.real_models import ACROBOT, BULLET_MJCF, SUITE, URDF, bullet_file, suite_file
from support.slow import slow


@jax.jit
def dynamics_quantities(model, q, qd, tau):
    """All compared quantities, compiled once."""
    kin = kinematics(model, q, qd)
    return {
        "mass matrix": mass_matrix(model, q),
        "bias": bias_torques(model, q, qd),
        "qdd": forward_dynamics(model, q, qd, tau),
        "R": kin.X_WB.R,
        "p": kin.X_WB.p,
        "V": kin.V_WB_B,
        "J": frame_jacobian(model, kin, model.nb - 1, np.zeros(3)),
        "potential energy": gravity_energy(model, kin),
        "kinetic energy": kinetic_energy(model, kin, qd),
    }


MJCF = {name: partial(suite_file, name) for name in SUITE}
MJCF |= {f"bullet_{name}": partial(bullet_file, f"mjcf/{name}.xml") for name in BULLET_MJCF}

# large mechanisms, or similar to others: only in the slow tests
SLOW = {"humanoid_CMU", "manipulator", "stacker", "ball_in_cup", "point_mass"}
SLOW |= {f"bullet_{name}" for name in BULLET_MJCF} - {"bullet_ant", "bullet_capsule"}
SLOW |= {"hopper", "reacher", "finger", "swimmer", "cheetah", "fish"}
SLOW |= {"a1", "aliengo", "mini_cheetah", "racecar", "r2d2", "kuka", "xarm"}


def _cases(names):
    return [slow(name) if name in SLOW else name for name in names]


@pytest.mark.parametrize("name", _cases(MJCF))
def test_mjcf_against_mujoco(name):
    path = MJCF[name]()
    model = load(path)
    spec = mujoco.MjSpec.from_file(str(path))
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT.value
    # not part of the compared functions (springs, dampers, actuators) or not modelled (fluid)
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_SPRING.value | mujoco.mjtDisableBit.mjDSBL_DAMPER.value
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION.value
    spec.option.density = spec.option.viscosity = 0.0
    q, qd, tau = random_state(model, seed=1)
    ours = dynamics_quantities(model, q, qd, tau)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # by MuJoCo, about a deprecated attribute in cheetah.xml
        state = MujocoState(model, spec.compile(), q, qd)
    assert_relative(ours["mass matrix"], state.mass_matrix(), what="mass matrix")
    assert_relative(ours["bias"], state.bias_torques(), what="bias")
    for i, body in enumerate(model.topology.body_names):
        if ":" in body:
            continue  # a body between several joints of one MJCF body
        R, p = state.pose(body)
        assert_relative(ours["R"][i], R, what=f"rotation of {body}")
        assert_relative(ours["p"][i], p, what=f"position of {body}")
        assert_relative(ours["V"][i], state.twist(body), what=f"velocity of {body}")
    assert_relative(ours["J"], state.point_jacobian(model.topology.body_names[-1]), what="Jacobian of the last body")
    potential, kinetic = state.energies()
    assert_relative(ours["potential energy"], potential, what="potential energy")
    assert_relative(ours["kinetic energy"], kinetic, what="kinetic energy")
    assert_relative(ours["qdd"], state.accelerations(tau), what="qdd")


@pytest.mark.parametrize("name", _cases(URDF))
def test_urdf_against_pinocchio(name):
    path, options = URDF[name]
    check_urdf(bullet_file(path), options)


def test_identified_acrobot_against_pinocchio():
    if not ACROBOT.exists():
        pytest.skip(f"{ACROBOT} does not exist; set HYBRIDSIM_DATA to the folder of the recordings")
    check_urdf(ACROBOT, {})


def check_urdf(path, options):
    """Compare a URDF model with Pinocchio."""
    model = load(path, **options)
    topology = model.topology
    free = ElementaryJointType.FREE in topology.joint_types
    text = path.read_text()
    if '<link name="world"' not in text:
        # our importer accepts a world link that is not declared, Pinocchio does not
        text = text.replace("</robot>", '<link name="world"/></robot>') if '"world"' in text else text
    pm = pin.buildModelFromXML(text, *((pin.JointModelFreeFlyer(),) if free else ()))
    if options.get("inertia") == "from_geometry":
        _copy_inertias(pm, model)
    data = pm.createData()
    q, qd, tau = random_state(model, seed=2)
    pq, T = _pinocchio_state(pm, model, q)
    pv = T @ qd
    ours = dynamics_quantities(model, q, qd, tau)

    M = pin.crba(pm, data, pq)
    M = np.triu(M) + np.triu(M, 1).T
    bias = T.T @ pin.nonLinearEffects(pm, data, pq, pv)
    assert_relative(ours["mass matrix"], T.T @ M @ T, what="mass matrix")
    assert_relative(ours["bias"], bias, what="bias")
    if topology.has_mimic_joints:
        # Pinocchio's ABA does not support mimic joints: solve its equations of motion in reduced coordinates
        assert_relative(ours["qdd"], np.linalg.solve(T.T @ M @ T, tau - bias), what="qdd")
    else:
        assert_relative(ours["qdd"], T.T @ pin.aba(pm, data, pq, pv, T @ tau), what="qdd")
    pin.forwardKinematics(pm, data, pq, pv)
    pin.computeJointJacobians(pm, data, pq)
    pin.updateFramePlacements(pm, data)
    for i, body in enumerate(topology.body_names):
        frame = pm.getFrameId(body)
        assert_relative(ours["R"][i], data.oMf[frame].rotation, what=f"rotation of {body}")
        assert_relative(ours["p"][i], data.oMf[frame].translation, what=f"position of {body}")
        V = pin.getFrameVelocity(pm, data, frame, pin.LOCAL)
        assert_relative(ours["V"][i], np.r_[V.angular, V.linear], what=f"velocity of {body}")
    J = pin.getFrameJacobian(pm, data, frame, pin.LOCAL_WORLD_ALIGNED).reshape(6, -1) @ T
    assert_relative(ours["J"], np.r_[J[3:], J[:3]], what="Jacobian of the last body")
    assert_relative(ours["kinetic energy"], 0.5 * pv @ M @ pv, what="kinetic energy")
    assert_relative(ours["potential energy"], pin.computePotentialEnergy(pm, data, pq), what="potential energy")


def _copy_inertias(pm, model):
    """Replace the zero inertias of the file, which Pinocchio uses, by ours, computed from the shapes."""
    for i, name in enumerate(model.topology.body_names):
        frame = pm.frames[pm.getFrameId(name)]
        inertia = pin.Inertia(
            float(model.body.mass[i]),
            np.asarray(model.body.com[i]),
            inertia_matrix(np.asarray(model.body.inertia[i])),
        )
        pm.inertias[frame.parentJoint] = inertia.se3Action(frame.placement)


def _pinocchio_state(pm, model, q):
    """Coordinates in Pinocchio's conventions, matched by joint name, and the matrix that maps our velocities to its."""
    topology = model.topology
    tree_q, G = np.asarray(expand_q(model, q)), np.asarray(coupling_matrix(model))
    pq, T = np.zeros(pm.nq), np.zeros((pm.nv, model.nv))
    for name, kind, (q0, q1), (v0, v1) in zip(
        topology.joint_names,
        topology.joint_types,
        topology.tree_q_slices,
        topology.tree_v_slices,
        strict=True,
    ):
        joint = pm.joints[pm.getJointId("root_joint" if kind is ElementaryJointType.FREE else name)]
        rows = slice(joint.idx_v, joint.idx_v + v1 - v0)
        if kind is ElementaryJointType.FREE:
            pq[joint.idx_q : joint.idx_q + 7] = tree_q[np.r_[q0 : q0 + 3, q0 + 4 : q1, q0 + 3]]
            T[rows] = G[np.r_[v0 + 3 : v0 + 6, v0 : v0 + 3]]
        else:
            # Pinocchio's coordinates of continuous joints are cosine and sine
            angle = tree_q[q0]
            pq[joint.idx_q : joint.idx_q + joint.nq] = angle if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
            T[rows] = G[v0:v1]
    return pq, T
