"""Generate the recordings of the demo: a MuJoCo simulation with effects that the model file lacks.

    python -m hybridsim.demo.record FOLDER

Two links swing, driven at the elbow. The simulated arm differs from `arm.xml` in its masses and has Stribeck friction
in both joints, air drag on the lower link, and encoder noise. The recordings in this folder are the output of this
program; a test compares them.
"""

import sys
from pathlib import Path

import numpy as np

from hybridsim.io.mjcf.read_node import mujoco_module

MODEL = Path(__file__).with_name("arm.xml")
RATE, SUBSTEPS, DURATION = 200.0, 20, 5.0
"""Sampling rate [Hz], MuJoCo steps per sample, and duration of a run [s]."""
NOISE = 5e-4
"""Standard deviation of the encoder noise [rad]."""
MASS_FACTORS = {"upper": 1.12, "lower": 0.91}
"""Ratios of the true masses and inertias to those of the file."""
COULOMB_FRICTION, STRIBECK_FRICTION = (0.025, 0.012), (0.030, 0.016)
"""Coulomb friction of shoulder and elbow, and Stribeck friction, which is added to it [N·m]."""
STRIBECK_VELOCITY, FRICTION_WIDTH = 0.4, 0.05
"""Stribeck velocity and regularization velocity [rad/s]."""
DAMPING = (0.004, 0.002)
"""Viscous damping of shoulder and elbow [N·m·s/rad]."""
DRAG = 0.35
"""Drag force per length and squared speed [N·s²/m³]."""
LENGTH = 0.30
"""Length of the lower link [m]."""
INITIAL_ANGLES = ((2.4, 0.6), (-1.6, 1.9), (1.1, -2.2), (2.0, -1.0), (-2.5, 0.3), (0.6, 2.4))
"""Initial joint angles of the runs, which begin at rest [rad]."""


def main() -> None:
    """Generate all recordings."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for k, angles in enumerate(INITIAL_ANGLES):
        table = record(angles, seed=k)
        header = "time,shoulder,elbow,torque"
        np.savetxt(
            folder / f"run{k}.csv",
            table,
            fmt=["%.3f", "%.5f", "%.5f", "%.4f"],
            delimiter=",",
            header=header,
            comments="",
        )


def record(angles: tuple[float, float], seed: int, duration: float = DURATION) -> np.ndarray:
    """Record a run: time, both angles with noise, and the commanded torque, one row per sample."""
    mujoco = mujoco_module()
    spec = mujoco.MjSpec.from_file(str(MODEL))
    spec.option.timestep = 1.0 / (RATE * SUBSTEPS)
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model = spec.compile()
    for name, factor in MASS_FACTORS.items():
        body = model.body(name).id
        model.body_mass[body] *= factor
        model.body_inertia[body] *= factor
    mujoco.mj_setConst(model, mujoco.MjData(model))
    data = mujoco.MjData(model)
    data.qpos[:] = angles
    rng = np.random.default_rng(seed)
    frequencies, phases = rng.uniform(0.4, 2.0, 3), rng.uniform(0.0, 2.0 * np.pi, 3)
    rows = []
    for k in range(round(duration * RATE) + 1):
        t = k / RATE
        torque = 0.06 * np.sin(2.0 * np.pi * frequencies * t + phases).sum()
        rows.append([t, *(data.qpos + rng.normal(0.0, NOISE, 2)), round(torque, 4)])
        for _ in range(SUBSTEPS):
            data.ctrl[0] = rows[-1][-1]
            data.qfrc_applied[:] = unmodelled_torques(model, data)
            mujoco.mj_step(model, data)
    return np.array(rows)


def unmodelled_torques(model, data) -> np.ndarray:
    """Joint torques that the model file lacks: friction, and air drag on the lower link."""
    mujoco = mujoco_module()
    v = data.qvel
    dry = np.array(COULOMB_FRICTION) + np.array(STRIBECK_FRICTION) * np.exp(-np.square(v / STRIBECK_VELOCITY))
    torque = -dry * np.tanh(v / FRICTION_WIDTH) - np.array(DAMPING) * v
    body, segments = model.body("lower").id, 6
    R = data.xmat[body].reshape(3, 3)
    for s in (np.arange(segments) + 0.5) / segments * LENGTH:
        point = data.xpos[body] - R[:, 2] * s
        J = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, J, None, point, body)
        velocity = J @ v
        torque += J.T @ (-DRAG * LENGTH / segments * np.linalg.norm(velocity) * velocity)
    return torque


if __name__ == "__main__":
    main()
