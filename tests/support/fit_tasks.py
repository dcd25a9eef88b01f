"""A small fit that runs within seconds: a swinging arm of one link, recorded with noise."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hybridsim.data.channel import Channel
from hybridsim.data.run import Run
from hybridsim.identify.experiment import Experiment
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from hybridsim.identify.task import Task, make_task
from hybridsim.io.load import load_model
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from support.arm_files import one_link_urdf

DT, STEPS, NOISE = 0.005, 300, 0.005
MASS, DAMPING = 1.8, 0.15
"""True mass [kg] and damping [N·m·s/rad]; the model file has 1.5 kg and no damping."""

ARM_PROJECT = """
[model]
file = "arm.urdf"
dt = 0.005

[data]
files = ["swing_*.csv"]

[[channel]]
name = "angle"
measures = "joint.q[shoulder]"
column = "angle"
noise = 0.005

[[free]]
name = "joint.damping[*]"
bounds = [0.0, 2.0]

[[free]]
name = "body.mass[upper]"
bounds = [0.5, 5.0]

[[stage]]
window = 0.25

[[stage]]
window = 0.75
"""


def swing(initial_angle: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times [s] and measured angles [rad] of the arm, released from rest."""
    inertia, weight = 0.02 + MASS * 0.25**2, MASS * 9.81 * 0.25
    q, qd, angles = initial_angle, 0.0, []
    for _ in range(STEPS):
        angles.append(q)
        qd += DT * (-weight * np.sin(q) - DAMPING * qd) / inertia
        q += DT * qd
    noise = NOISE * np.random.default_rng(seed).normal(size=STEPS)
    return DT * np.arange(STEPS), np.array(angles) + noise


def write_arm_project(folder: Path, text: str = ARM_PROJECT, runs: int = 4) -> Path:
    """Write project, model and data to a folder; returns the project file."""
    (folder / "arm.urdf").write_text(one_link_urdf())
    for k in range(runs):
        t, angle = swing(0.5 + 0.2 * k, seed=k)
        np.savetxt(
            folder / f"swing_{k}.csv", np.column_stack([t, angle]), delimiter=",", header="time,angle", comments=""
        )
    file = folder / "arm.toml"
    file.write_text(text)
    return file


def arm_task(
    folder: Path, *, stages: tuple[Stage, ...] | None = None, held_out: int = 1, max_damping: float = 2.0
) -> Task:
    """The same project, built in Python."""
    file = write_arm_project(folder)
    channel = Channel("angle", "joint.q[shoulder]", name="angle", noise=NOISE)
    experiment, runs = Experiment(load_model(folder / "arm.urdf"), dt=DT, channels=[channel]), []
    for k in range(4):
        t, angle = swing(0.5 + 0.2 * k, seed=k)
        runs.append(Run.from_arrays(f"swing_{k}", t, {"angle": angle}))
    free = [Free("joint.damping[*]", bounds=(0.0, max_damping)), Free("body.mass[upper]", bounds=(0.5, 5.0))]
    stages = stages or (Stage(window=0.25), Stage(window=0.75))
    split, problems = (runs[: 4 - held_out], runs[4 - held_out :]), []
    task = make_task(experiment, experiment.assembly, free, split, stages, problems, name="arm")
    assert task is not None and not problems, problems
    return replace(task, project_text=ARM_PROJECT, project_file=file)


def arm_setup(folder: Path) -> Setup:
    """Simulator of the arm with its sensor."""
    sim = Simulator(load_model(folder / "arm.urdf"), dt=DT)
    return Setup(sim, Sensors.from_addresses(sim, {"angle": "joint.q[shoulder]"}))


def solver_without_tolerances(max_steps: int) -> LevenbergMarquardt:
    """A solver that does not converge before the maximum number of steps."""
    return LevenbergMarquardt(
        max_steps=max_steps, cost_tolerance=0.0, step_tolerance=0.0, gradient_tolerance=0.0, initial_damping=1e6
    )


class StopAfter:
    """Stop callback that requests a stop after a number of steps."""

    def __init__(self, steps: int):
        self.steps_left = steps

    def __call__(self) -> bool:
        self.steps_left -= 1
        return self.steps_left < 0
