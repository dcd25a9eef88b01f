"""Files of a user: the URDF of a two-link arm with wrong parameters, and recordings of the real one."""

from pathlib import Path

import numpy as np

from hybridsim.data.channel import Channel
from hybridsim.identify.experiment import Experiment
from hybridsim.io.load import load_model
from hybridsim.sim.rollout import simulate
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs
from support.small_projects import TWO_LINK_URDF

DT, STEPS, NOISE = 0.002, 750, 0.05
"""Time step [s], steps of a run, and standard deviation of the noise [deg]."""
DAMPING = 0.15
"""True damping [N·m·s/rad]; the file has a third of it."""


def write_arm(folder: Path, runs: int = 4) -> None:
    """Write `arm.urdf` and `runs/run0.csv` and so on, with columns time, q1_deg, q2_deg and tau1."""
    (folder / "arm.urdf").write_text(TWO_LINK_URDF.format(damping=0.05))
    (folder / "true.urdf").write_text(TWO_LINK_URDF.format(damping=DAMPING))
    (folder / "runs").mkdir()
    true, rng = Simulator(load_model(folder / "true.urdf"), dt=DT), np.random.default_rng(0)
    t = DT * np.arange(STEPS)
    for k in range(runs):
        torque = 2.0 * np.sin(2.0 * np.pi * (0.5 + 0.3 * k) * t)
        initial_state = true.initial_state([0.5 + 0.2 * k, -0.3])
        motion = simulate(true, initial_state, Inputs(np.stack([torque, np.zeros(STEPS)], axis=1)), steps=STEPS)
        angles = np.rad2deg(motion.q[:STEPS]) + NOISE * rng.normal(size=(STEPS, 2))
        table = np.column_stack([t, angles, torque])
        file = folder / "runs" / f"run{k}.csv"
        np.savetxt(file, table, delimiter=",", header="time,q1_deg,q2_deg,tau1", comments="", fmt="%.17g")


def small_experiment(**settings) -> Experiment:
    """Experiment with the arm in the working directory, and one of its angles as the only channel."""
    channels = [Channel("q1_deg", "joint.q[shoulder]", unit="deg", noise=0.05)]
    arguments = {"dt": DT, "channels": channels, "commands": {"shoulder": "tau1"}} | settings
    return Experiment(load_model("arm.urdf"), **arguments)
