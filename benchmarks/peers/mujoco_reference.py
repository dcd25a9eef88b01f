"""MuJoCo models of the workloads, and accelerations by MuJoCo as the measure of correctness for other peers."""

import numpy as np

from benchmarks.peers.workloads import Workload, mjcf


def model_of(w: Workload, parameters: np.ndarray):
    """A compiled model with these parameters."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(mjcf(w))
    for i, body in enumerate(w.bodies(parameters)):
        model.body_mass[i + 1], model.body_inertia[i + 1] = body.mass, body.inertia
        model.body_pos[i + 1], model.body_ipos[i + 1] = body.position, body.centre
    return model


def accelerations(w: Workload, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, parameters=None) -> np.ndarray:
    """qdd of every state (row) under the joint torques alone, without springs and dampers.

    Args:
        w: the workload.
        q: coordinates.
        qd: velocities.
        tau: joint torques.
        parameters: by default the workload's own.
    """
    import mujoco

    model = model_of(w, w.parameters if parameters is None else parameters)
    model.jnt_stiffness[:] = 0.0
    model.dof_damping[:] = 0.0
    data = mujoco.MjData(model)
    out = np.zeros_like(qd)
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[i], qd[i], tau[i]
        mujoco.mj_forward(model, data)
        out[i] = data.qacc
    return out
