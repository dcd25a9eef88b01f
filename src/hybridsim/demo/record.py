"""How the demonstration's recordings were made: a mechanism in MuJoCo of which its model file does not tell everything.

    python -m hybridsim.demo.record FOLDER

Two links swing and are driven at the elbow. What MuJoCo simulates has other masses than `arm.xml` says, friction that
falls off with speed (Stribeck) in both joints, drag of the air on the lower link, and encoders with noise. The
recordings in this folder are the output of this program; a test compares them.
"""

import sys
from pathlib import Path

import numpy as np

from hybridsim.io.mjcf.read_node import mujoco_module

MODEL = Path(__file__).with_name("arm.xml")
RATE, SUBSTEPS, SECONDS = 200.0, 20, 5.0
"""Samples per second, MuJoCo's steps between two of them, and the length of a run."""
NOISE = 5e-4
"""Standard deviation of the encoders [rad]."""
MASSES = {"upper": 1.12, "lower": 0.91}
"""By what the true masses and inertias differ from those of the file."""
COULOMB, BREAKAWAY, STRIBECK, WIDTH = (0.025, 0.012), (0.030, 0.016), 0.4, 0.05
"""Friction at speed and what is added at rest [N·m], of shoulder and elbow; speeds that decide between them [rad/s]."""
DAMPING = (0.004, 0.002)
"""Viscous friction [N·m·s/rad]."""
DRAG = 0.35
"""Force of the air per length and speed squared [N·s²/m³]."""
LENGTH = 0.30
"""Of the lower link [m]."""
STARTS = ((2.4, 0.6), (-1.6, 1.9), (1.1, -2.2), (2.0, -1.0), (-2.5, 0.3), (0.6, 2.4))
"""Angles from which the runs start, at rest [rad]."""


def main() -> None:
    """Make all recordings."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for k, start in enumerate(STARTS):
        table = recorded(start, seed=k)
        header = "time,shoulder,elbow,torque"
        np.savetxt(
            folder / f"run{k}.csv",
            table,
            fmt=["%.3f", "%.5f", "%.5f", "%.4f"],
            delimiter=",",
            header=header,
            comments="",
        )


def recorded(start: tuple[float, float], seed: int, seconds: float = SECONDS) -> np.ndarray:
    """One run: time, both angles with noise, and the torque that was commanded; one row per sample."""
    mujoco = mujoco_module()
    spec = mujoco.MjSpec.from_file(str(MODEL))
    spec.option.timestep = 1.0 / (RATE * SUBSTEPS)
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model = spec.compile()
    for name, factor in MASSES.items():
        body = model.body(name).id
        model.body_mass[body] *= factor
        model.body_inertia[body] *= factor
    mujoco.mj_setConst(model, mujoco.MjData(model))
    data = mujoco.MjData(model)
    data.qpos[:] = start
    rng = np.random.default_rng(seed)
    tones, phases = rng.uniform(0.4, 2.0, 3), rng.uniform(0.0, 2.0 * np.pi, 3)
    rows = []
    for k in range(round(seconds * RATE) + 1):
        t = k / RATE
        torque = 0.06 * np.sin(2.0 * np.pi * tones * t + phases).sum()
        rows.append([t, *(data.qpos + rng.normal(0.0, NOISE, 2)), round(torque, 4)])
        for _ in range(SUBSTEPS):
            data.ctrl[0] = rows[-1][-1]
            data.qfrc_applied[:] = unmodelled(model, data)
            mujoco.mj_step(model, data)
    return np.array(rows)


def unmodelled(model, data) -> np.ndarray:
    """Joint torques that the model file knows nothing of: friction, and drag of the air on the lower link."""
    mujoco = mujoco_module()
    v = data.qvel
    dry = np.array(COULOMB) + np.array(BREAKAWAY) * np.exp(-np.square(v / STRIBECK))
    torque = -dry * np.tanh(v / WIDTH) - np.array(DAMPING) * v
    body, pieces = model.body("lower").id, 6
    R = data.xmat[body].reshape(3, 3)
    for s in (np.arange(pieces) + 0.5) / pieces * LENGTH:
        point = data.xpos[body] - R[:, 2] * s
        J = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, J, None, point, body)
        speed = J @ v
        torque += J.T @ (-DRAG * LENGTH / pieces * np.linalg.norm(speed) * speed)
    return torque


if __name__ == "__main__":
    main()
