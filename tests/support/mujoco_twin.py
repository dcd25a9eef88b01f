"""A MuJoCo model with the numbers of one of ours, and the conversion between the two conventions."""

import mujoco
import numpy as np

from hybridsim.model.joints import JointType
from hybridsim.model.model import Model

_KINDS = {
    JointType.REVOLUTE: mujoco.mjtJoint.mjJNT_HINGE,
    JointType.PRISMATIC: mujoco.mjtJoint.mjJNT_SLIDE,
    JointType.SPHERICAL: mujoco.mjtJoint.mjJNT_BALL,
    JointType.FREE: mujoco.mjtJoint.mjJNT_FREE,
}


def mujoco_twin(model: Model) -> mujoco.MjModel:
    """The same mechanism compiled by MuJoCo; massless bodies of compound joints become joints of one body."""
    topology, joint = model.topology, model.joint
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.fusestatic = False
    spec.option.gravity = np.asarray(model.gravity)
    spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT.value
    bodies = {-1: spec.worldbody}
    for i, (name, parent, kind) in enumerate(
        zip(topology.body_names, topology.parents, topology.joint_types, strict=True)
    ):
        joins = parent >= 0 and _is_massless(model, parent)
        if joins:
            body = bodies[parent]
        else:
            body = bodies[parent].add_body(pos=joint.placement.p[i], quat=_quaternion(joint.placement.R[i]))
        bodies[i] = body
        if not _is_massless(model, i):
            body.name = name
            body.explicitinertial = True
            body.mass = float(model.body.mass[i])
            body.ipos = np.asarray(model.body.com[i])
            body.fullinertia = np.asarray(model.body.inertia[i])
        if kind is not JointType.FIXED:
            start, _ = topology.tree_v_slices[i]
            new = body.add_joint(name=topology.joint_names[i], type=_KINDS[kind], armature=float(joint.armature[start]))
            if kind is not JointType.FREE:
                new.axis, new.pos = np.asarray(joint.axis[i]), np.asarray(joint.anchor[i])
    return spec.compile()


def _is_massless(model: Model, body: int) -> bool:
    return bool(model.body.mass[body] == 0.0)


def _quaternion(R) -> np.ndarray:
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.asarray(R).ravel())
    return quat


class MujocoState:
    """Our state in MuJoCo's conventions, matched by joint name: free joints are linear first, in world axes."""

    def __init__(self, model: Model, mj: mujoco.MjModel, q, qd):
        self.model, self.mj, self.data = model, mj, mujoco.MjData(mj)
        self.T = np.zeros((mj.nv, model.nv))
        self.drift = np.zeros(mj.nv)
        topology = model.topology
        rows = zip(topology.joint_names, topology.joint_types, topology.q_slices, topology.v_slices, strict=True)
        for name, kind, (q0, q1), (v0, v1) in rows:
            if kind is JointType.FIXED:
                continue
            joint = _index(mj, mujoco.mjtObj.mjOBJ_JOINT, name)
            qpos, dof = mj.jnt_qposadr[joint], mj.jnt_dofadr[joint]
            self.data.qpos[qpos : qpos + q1 - q0] = q[q0:q1]
            if kind is JointType.FREE:
                R = np.zeros(9)
                mujoco.mju_quat2Mat(R, np.asarray(q[q0 + 3 : q1], dtype=float))
                R = R.reshape(3, 3)
                self.T[dof : dof + 3, v0 + 3 : v1] = R
                self.T[dof + 3 : dof + 6, v0 : v0 + 3] = np.eye(3)
                self.drift[dof : dof + 3] = R @ np.cross(qd[v0 : v0 + 3], qd[v0 + 3 : v1])
            else:
                self.T[dof : dof + v1 - v0, v0:v1] = np.eye(v1 - v0)
        self.data.qvel[:] = self.T @ qd
        mujoco.mj_forward(mj, self.data)

    def mass_matrix(self) -> np.ndarray:
        full = np.zeros((self.mj.nv, self.mj.nv))
        mujoco.mj_fullM(self.mj, self.data, full)
        return self.T.T @ full @ self.T

    def bias_torques(self) -> np.ndarray:
        full = np.zeros((self.mj.nv, self.mj.nv))
        mujoco.mj_fullM(self.mj, self.data, full)
        return self.T.T @ (self.data.qfrc_bias + full @ self.drift)

    def accelerations(self, tau) -> np.ndarray:
        """Our qdd for our joint torques, in place of all of MuJoCo's own passive and actuator forces."""
        self.data.qfrc_applied[:] = np.linalg.solve(self.T.T, tau)
        mujoco.mj_forward(self.mj, self.data)
        return np.linalg.solve(self.T, self.data.qacc - self.drift)

    def pose(self, body: str) -> tuple[np.ndarray, np.ndarray]:
        found = self.data.body(self._body(body))
        return np.array(found.xmat).reshape(3, 3), np.array(found.xpos)

    def twist(self, body: str) -> np.ndarray:
        """Velocity of the body in its own frame, angular first."""
        out = np.zeros(6)
        mujoco.mj_objectVelocity(self.mj, self.data, mujoco.mjtObj.mjOBJ_XBODY, self._body(body), out, 1)
        return out

    def point_jacobian(self, body: str) -> np.ndarray:
        """Angular and linear velocity of the body's origin in world axes per unit of our qd."""
        linear, angular = np.zeros((3, self.mj.nv)), np.zeros((3, self.mj.nv))
        mujoco.mj_jacBody(self.mj, self.data, linear, angular, self._body(body))
        return np.concatenate([angular, linear]) @ self.T

    def _body(self, name: str) -> int:
        return _index(self.mj, mujoco.mjtObj.mjOBJ_BODY, name)

    def energies(self) -> tuple[float, float]:
        """Potential energy of gravity, bodies fixed to the world left out, and kinetic energy."""
        mujoco.mj_energyPos(self.mj, self.data)
        mujoco.mj_energyVel(self.mj, self.data)
        fixed = self.mj.body_weldid == 0
        height = -self.data.xipos[fixed] @ self.mj.opt.gravity
        return float(self.data.energy[0] - self.mj.body_mass[fixed] @ height), float(self.data.energy[1])


def _index(mj: mujoco.MjModel, kind: mujoco.mjtObj, name: str) -> int:
    """Place of a named element; one without a name in the file is called by its place, such as `joint0`."""
    found = mujoco.mj_name2id(mj, kind, name)
    return found if found >= 0 else int(name.removeprefix("joint").removeprefix("body"))
