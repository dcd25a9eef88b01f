"""MuJoCo twin of a model, and conversion between the conventions of both."""

import mujoco
import numpy as np

from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model

_KINDS = {
    ElementaryJointType.REVOLUTE: mujoco.mjtJoint.mjJNT_HINGE,
    ElementaryJointType.PRISMATIC: mujoco.mjtJoint.mjJNT_SLIDE,
    ElementaryJointType.SPHERICAL: mujoco.mjtJoint.mjJNT_BALL,
    ElementaryJointType.FREE: mujoco.mjtJoint.mjJNT_FREE,
}


def mujoco_twin(model: Model) -> mujoco.MjModel:
    """MuJoCo model of the same mechanism; massless bodies of compound joints become joints of one body."""
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
        is_compound = parent >= 0 and _is_massless(model, parent)
        if is_compound:
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
        if kind is not ElementaryJointType.FIXED:
            start, _ = topology.tree_v_slices[i]
            new = body.add_joint(name=topology.joint_names[i], type=_KINDS[kind], armature=float(joint.armature[start]))
            if kind is not ElementaryJointType.FREE:
                new.axis, new.pos = np.asarray(joint.axis[i]), np.asarray(joint.anchor[i])
    return spec.compile()


def _is_massless(model: Model, body: int) -> bool:
    return bool(model.body.mass[body] == 0.0)


def _quaternion(R) -> np.ndarray:
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.asarray(R).ravel())
    return quat


class MujocoState:
    """A state in MuJoCo's conventions, matched by joint name; results are converted back to ours.

    Velocities of free joints are linear first in MuJoCo, with the linear part in world axes.
    """

    def __init__(self, model: Model, mj: mujoco.MjModel, q, qd):
        self.model, self.mj, self.data = model, mj, mujoco.MjData(mj)
        self.T = np.zeros((mj.nv, model.nv))
        self.convective_acceleration = np.zeros(mj.nv)
        topology = model.topology
        rows = zip(topology.joint_names, topology.joint_types, topology.q_slices, topology.v_slices, strict=True)
        for name, kind, (q0, q1), (v0, v1) in rows:
            if kind is ElementaryJointType.FIXED:
                continue
            joint = _index(mj, mujoco.mjtObj.mjOBJ_JOINT, name)
            qpos, dof = mj.jnt_qposadr[joint], mj.jnt_dofadr[joint]
            self.data.qpos[qpos : qpos + q1 - q0] = q[q0:q1]
            if kind is ElementaryJointType.FREE:
                R = np.zeros(9)
                mujoco.mju_quat2Mat(R, np.asarray(q[q0 + 3 : q1], dtype=float))
                R = R.reshape(3, 3)
                self.T[dof : dof + 3, v0 + 3 : v1] = R
                self.T[dof + 3 : dof + 6, v0 : v0 + 3] = np.eye(3)
                self.convective_acceleration[dof : dof + 3] = R @ np.cross(qd[v0 : v0 + 3], qd[v0 + 3 : v1])
            else:
                self.T[dof : dof + v1 - v0, v0:v1] = np.eye(v1 - v0)
        self.data.qvel[:] = self.T @ qd
        mujoco.mj_forward(mj, self.data)

    def mass_matrix(self) -> np.ndarray:
        """Mass matrix in our coordinates."""
        full = np.zeros((self.mj.nv, self.mj.nv))
        mujoco.mj_fullM(self.mj, self.data, full)
        return self.T.T @ full @ self.T

    def bias_torques(self) -> np.ndarray:
        """Bias torques in our coordinates."""
        full = np.zeros((self.mj.nv, self.mj.nv))
        mujoco.mj_fullM(self.mj, self.data, full)
        return self.T.T @ (self.data.qfrc_bias + full @ self.convective_acceleration)

    def accelerations(self, tau) -> np.ndarray:
        """Accelerations qdd for joint torques `tau`, which replace the applied forces of MuJoCo."""
        self.data.qfrc_applied[:] = np.linalg.solve(self.T.T, tau)
        mujoco.mj_forward(self.mj, self.data)
        return np.linalg.solve(self.T, self.data.qacc - self.convective_acceleration)

    def pose(self, body: str) -> tuple[np.ndarray, np.ndarray]:
        """Rotation matrix and position of a body in the world."""
        data = self.data.body(self._body(body))
        return np.array(data.xmat).reshape(3, 3), np.array(data.xpos)

    def twist(self, body: str) -> np.ndarray:
        """Spatial velocity of a body in its own frame, angular first."""
        out = np.zeros(6)
        mujoco.mj_objectVelocity(self.mj, self.data, mujoco.mjtObj.mjOBJ_XBODY, self._body(body), out, 1)
        return out

    def point_jacobian(self, body: str) -> np.ndarray:
        """Jacobian of the body's angular velocity and origin velocity, in world axes, with respect to our qd."""
        linear, angular = np.zeros((3, self.mj.nv)), np.zeros((3, self.mj.nv))
        mujoco.mj_jacBody(self.mj, self.data, linear, angular, self._body(body))
        return np.concatenate([angular, linear]) @ self.T

    def _body(self, name: str) -> int:
        return _index(self.mj, mujoco.mjtObj.mjOBJ_BODY, name)

    def energies(self) -> tuple[float, float]:
        """Gravitational potential energy, excluding bodies attached to the world, and kinetic energy."""
        mujoco.mj_energyPos(self.mj, self.data)
        mujoco.mj_energyVel(self.mj, self.data)
        fixed = self.mj.body_weldid == 0
        height = -self.data.xipos[fixed] @ self.mj.opt.gravity
        return float(self.data.energy[0] - self.mj.body_mass[fixed] @ height), float(self.data.energy[1])


def _index(mj: mujoco.MjModel, kind: mujoco.mjtObj, name: str) -> int:
    """Index of an element by name; one without a name in the file is named by its index, such as `joint0`."""
    index = mujoco.mj_name2id(mj, kind, name)
    return index if index >= 0 else int(name.removeprefix("joint").removeprefix("body"))
