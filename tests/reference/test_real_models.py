"""Imported real models against MuJoCo (MJCF) and Pinocchio (URDF): what the importer and the engine make together."""

import warnings

import jax
import mujoco
import numpy as np
import pinocchio as pin
import pytest
from support.compare import assert_relative
from support.mujoco_twin import MujocoState
from support.random_models import random_state
from support.real_models import ACROBOT, SUITE, URDF, bullet_file, suite_file

from hybridsim.core.errors import ModelWarning
from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.crba import mass_matrix
from hybridsim.dynamics.energy import gravity_energy, kinetic_energy
from hybridsim.dynamics.jacobian import frame_jacobian
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.dynamics.rnea import bias_torques
from hybridsim.io.load import load_model
from hybridsim.model.joints import JointType


def load(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_model(path, **options)


@jax.jit
def everything(model, q, qd, tau):
    """All that is compared, in one compilation."""
    kin = kinematics(model, q, qd)
    return {
        "mass matrix": mass_matrix(model, q),
        "bias": bias_torques(model, q, qd),
        "qdd": forward_dynamics(model, q, qd, tau),
        "R": kin.X_WB.R,
        "p": kin.X_WB.p,
        "V": kin.V_WB_B,
        "J": [frame_jacobian(model, kin, body, np.zeros(3)) for body in range(model.nb)],
        "potential energy": gravity_energy(model, kin),
        "kinetic energy": kinetic_energy(model, kin, qd),
    }


@pytest.mark.parametrize("name", SUITE)
def test_mjcf_against_mujoco(name):
    path = suite_file(name)
    model = load(path)
    spec = mujoco.MjSpec.from_file(str(path))
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT.value
    # what the engine adds separately (springs, dampers, actuators) or lists as not modelled (fluid)
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_SPRING.value | mujoco.mjtDisableBit.mjDSBL_DAMPER.value
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION.value
    spec.option.density = spec.option.viscosity = 0.0
    q, qd, tau = random_state(model, seed=1)
    ours = everything(model, q, qd, tau)
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
        assert_relative(ours["J"][i], state.point_jacobian(body), what=f"Jacobian of {body}")
    _, kinetic = state.energies()
    assert_relative(ours["kinetic energy"], kinetic, what="kinetic energy")
    assert_relative(ours["qdd"], state.accelerations(tau), what="qdd")


@pytest.mark.parametrize("name", URDF)
def test_urdf_against_pinocchio(name):
    path, options = URDF[name]
    check_urdf(bullet_file(path), options, from_geometry=options.get("inertia") == "from_geometry")


def test_identified_acrobot_against_pinocchio():
    if not ACROBOT.exists():
        pytest.skip(f"{ACROBOT} is not here; set HYBRIDSIM_DATA to the folder of the recordings")
    check_urdf(ACROBOT, {})


def check_urdf(path, options, from_geometry=False):
    model = load(path, **options)
    topology = model.topology
    if from_geometry:
        # Pinocchio would keep the file's zero inertias; the shapes' own are checked in the importer's tests
        pytest.skip("inertias are computed from the shapes, which Pinocchio does not do")
    free = JointType.FREE in topology.joint_types
    pm = pin.buildModelFromUrdf(str(path), *((pin.JointModelFreeFlyer(),) if free else ()))
    data = pm.createData()
    q, qd, tau = random_state(model, seed=2)
    pq, pv, order = _pinocchio_state(pm, model, q, qd)
    ours = everything(model, q, qd, tau)

    M = pin.crba(pm, data, pq)
    M = np.triu(M) + np.triu(M, 1).T
    back = np.argsort(order)
    assert_relative(ours["mass matrix"], M[np.ix_(back, back)], what="mass matrix")
    assert_relative(ours["bias"], pin.nonLinearEffects(pm, data, pq, pv)[back], what="bias")
    assert_relative(ours["qdd"], pin.aba(pm, data, pq, pv, tau[order])[back], what="qdd")
    pin.forwardKinematics(pm, data, pq, pv)
    pin.computeJointJacobians(pm, data, pq)
    pin.updateFramePlacements(pm, data)
    for i, body in enumerate(topology.body_names):
        frame = pm.getFrameId(body)
        assert_relative(ours["R"][i], data.oMf[frame].rotation, what=f"rotation of {body}")
        assert_relative(ours["p"][i], data.oMf[frame].translation, what=f"position of {body}")
        V = pin.getFrameVelocity(pm, data, frame, pin.LOCAL)
        assert_relative(ours["V"][i], np.r_[V.angular, V.linear], what=f"velocity of {body}")
        J = pin.getFrameJacobian(pm, data, frame, pin.LOCAL_WORLD_ALIGNED).reshape(6, -1)[:, back]
        assert_relative(ours["J"][i], np.r_[J[3:], J[:3]], what=f"Jacobian of {body}")
    assert_relative(ours["kinetic energy"], 0.5 * pv @ M @ pv, what="kinetic energy")
    assert_relative(ours["potential energy"], pin.computePotentialEnergy(pm, data, pq), what="potential energy")


def _pinocchio_state(pm, model, q, qd):
    """Our state in Pinocchio's conventions, matched by joint name, and the order of its velocities in ours."""
    topology = model.topology
    pq, order = np.zeros(pm.nq), np.zeros(pm.nv, dtype=int)
    for name, kind, (q0, q1), (v0, _) in zip(
        topology.joint_names, topology.joint_types, topology.q_slices, topology.v_slices, strict=True
    ):
        joint = pm.joints[pm.getJointId("root_joint" if kind is JointType.FREE else name)]
        if kind is JointType.FREE:
            pq[joint.idx_q : joint.idx_q + 7] = q[np.r_[q0 : q0 + 3, q0 + 4 : q1, q0 + 3]]
            order[joint.idx_v : joint.idx_v + 6] = np.r_[v0 + 3 : v0 + 6, v0 : v0 + 3]
        else:
            # Pinocchio gives continuous joints a cosine and a sine
            pq[joint.idx_q : joint.idx_q + joint.nq] = q[q0] if joint.nq == 1 else [np.cos(q[q0]), np.sin(q[q0])]
            order[joint.idx_v] = v0
    return pq, qd[order], order
