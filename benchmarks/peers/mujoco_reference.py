"""MuJoCo models of the workloads, and MuJoCo's accelerations as the reference for all peers."""

import numpy as np

from benchmarks.measure import check
from benchmarks.workloads import Workload, mjcf


def model_of(w: Workload, parameters: np.ndarray, solver: str = ""):
    """A compiled model with these parameters; `solver` are options of MuJoCo's contact solver."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(mjcf(w, solver=solver))
    for i, body in enumerate(w.bodies(parameters)):
        model.body_mass[i + 1], model.body_inertia[i + 1] = body.mass, body.inertia
        model.body_pos[i + 1], model.body_ipos[i + 1] = body.position, body.centre
        for k, shape in enumerate(body.shapes):
            model.geom(f"{body.name}_shape{k}").pos[:] = shape.position
    return model


def accelerations(w: Workload, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, parameters=None) -> np.ndarray:
    """qdd of every state (row) under joint torques, without springs and dampers.

    Args:
        w: the workload.
        q: coordinates.
        qd: velocities.
        tau: joint torques.
        parameters: by default the nominal ones.
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


def check_gradient(w: Workload, states, g: np.ndarray, gradients: list[np.ndarray]) -> None:
    """Compare gradients of g · qdd with finite differences of MuJoCo's accelerations along a random direction."""
    point, rng, h = (*states, w.parameters), np.random.default_rng(3), 1e-5
    # masses and moments must remain positive: parameters change by a fraction of their values
    direction = [rng.normal(size=a.shape) * (np.abs(a) if a is w.parameters else 1.0) for a in point]
    ends = [
        np.sum(g * accelerations(w, *(a + sign * h * d for a, d in zip(point, direction, strict=True))))
        for sign in (1.0, -1.0)
    ]
    slope = sum(np.sum(a * d) for a, d in zip(gradients, direction, strict=True))
    check("gradients", slope, (ends[0] - ends[1]) / (2 * h), 1e-4 if w.nv > 100 else 1e-5)
