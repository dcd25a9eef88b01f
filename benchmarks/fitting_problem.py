"""The common problem of all programs: windows of a real double pendulum, free parameters and initial states.

The recordings are of a laboratory double pendulum: absolute angles of both links at 1 kHz, with published parameters.
They are not in the repository; the environment variable HYBRIDSIM_DATA names their folder. This module is independent
of any simulator.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Float

from benchmarks.toss_data import MissingData, data_folder

PATH = Path("lab_double_pendulum") / "segments.npz"
WINDOWS = 3
"""Windows per segment, of 0.888 s each; all but two samples of a segment are in one of them."""
NOISE = 1e-3
"""Standard deviation by which residuals are divided [rad]."""
SMOOTHING_TIME = 0.02
"""Smoothing window of the initial velocities [s]."""
INTEGRATOR = "RK4"


@dataclass(frozen=True)
class FreeParameter:
    """A free parameter. Solvers see its value divided by its scale."""

    name: str
    """Address in hybridsim."""
    initial: float
    scale: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Published:
    """Published parameters of links 0 and 1."""

    mass: tuple[float, float]
    """Masses [kg]."""
    com: tuple[float, float]
    """Distance of the centre of mass from the joint of the link [m]."""
    length: float
    """Length of link 0 between the joints [m]."""
    inertia: tuple[float, float]
    """Moment of inertia about the centre of mass [kg·m²]."""
    damping: tuple[float, float]
    """Joint damping [N·m·s/rad]."""
    gravity: float
    """Gravitational acceleration [m/s²]."""

    def free(self) -> list[FreeParameter]:
        """Free parameters.

        Without torques only ratios of masses are identifiable, so both masses and the centre of mass of link 1 along
        the link are fixed. Dry friction is omitted, as it is a constraint in MuJoCo.
        """
        ratios, offsets, dampings = (0.1, 10.0), (-0.01, 0.01), (0.0, 0.01)
        return [
            *(
                FreeParameter(
                    f"body.inertia[link{k}].yy",
                    self.inertia[k],
                    self.inertia[k],
                    *(r * self.inertia[k] for r in ratios),
                )
                for k in range(2)
            ),
            FreeParameter("body.com[link0].z", -self.com[0], self.com[0], -3.0 * self.com[0], -0.1 * self.com[0]),
            FreeParameter(
                "joint.placement[joint1].z", -self.length, self.length, -2.0 * self.length, -0.5 * self.length
            ),
            *(FreeParameter(f"body.com[link{k}].x", 0.0, 1e-3, *offsets) for k in range(2)),
            *(FreeParameter(f"joint.damping[joint{k}]", self.damping[k], 1e-4, *dampings) for k in range(2)),
        ]


@dataclass(frozen=True)
class Task:
    """Selection of the samples, and whether the initial states of windows are free."""

    every: int
    """Subsampling of the 1 ms samples, which is also the time step in ms."""
    free_initial_states: bool
    description: str

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return 1e-3 * self.every


TASKS = {
    "fixed": Task(1, False, "initial states fixed, 1 ms"),
    "coarse": Task(2, False, "initial states fixed, every second sample, 2 ms"),
    "free": Task(1, True, "initial states free, 1 ms"),
}
"""Tasks by name; targets refer to the first."""


@dataclass(frozen=True)
class PendulumProblem:
    """All data of a fit."""

    task: Task
    published: Published
    angles: Float[np.ndarray, "segments samples 2"]
    """Absolute angles of the training segments from straight down [rad]."""
    values: Float[np.ndarray, "windows steps 2"]
    """Compared measurements: absolute angles after each step; with free initial states including the initial ones."""
    q0: Float[np.ndarray, "windows 2"]
    """Initial joint angles of each window: measured, or smoothed as initial values of free states [rad]."""
    qd0: Float[np.ndarray, "windows 2"]
    """Initial joint velocities of each window [rad/s]."""

    @property
    def steps(self) -> int:
        """Steps of a window."""
        return self.values.shape[1]

    @property
    def length(self) -> float:
        """Duration of a window [s]."""
        return self.steps * self.task.dt

    def residuals(self, joint_angles: Float[np.ndarray, "*many windows steps 2"]) -> Float[np.ndarray, "*many m"]:
        """Residuals of simulated joint angles, in units of the noise."""
        absolute = np.cumsum(joint_angles, axis=-1)
        return ((absolute - self.values) / NOISE).reshape(*absolute.shape[:-3], -1)


def scaled_values(free: list[FreeParameter]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scaled initial values, lower and upper bounds, and the scales."""
    scale = np.array([f.scale for f in free])
    initial, lower, upper = (np.array([getattr(f, key) for f in free]) / scale for key in ("initial", "lower", "upper"))
    return initial, lower, upper, scale


@cache
def load(name: str = "fixed") -> PendulumProblem:
    """Load the recordings.

    Raises:
        MissingData: the recordings do not exist; says what to do.
    """
    path = data_folder() / PATH
    if not path.exists():
        raise MissingData(f"{path} does not exist; set HYBRIDSIM_DATA to the folder that contains {PATH}")
    with np.load(path) as file:
        states, published = file["states"], [float(x) for x in file["published"]]
    return build_problem(TASKS[name], states[:, :, :2] - np.pi, published)


def build_problem(
    task: Task, angles: Float[np.ndarray, "segments samples 2"], constants: list[float]
) -> PendulumProblem:
    """Build the problem of all segments but every fourth, which are held out."""
    m0, m1, com0, com1, length, i0, i1, k0, k1, gravity = constants
    published = Published((m0, m1), (com0, com1), length, (i0, i1), (k0, k1), gravity)
    training = angles[[k for k in range(len(angles)) if k % 4 != 1], :: task.every]
    steps = (training.shape[1] - 1) // WINDOWS
    training = training[:, : WINDOWS * steps + 1]
    values, starts, rates = [], [], []
    for segment in training:
        for start in range(0, WINDOWS * steps, steps):
            smooth, rate = _smooth(segment, start, task.dt)
            first = start if task.free_initial_states else start + 1
            values.append(segment[first : first + steps])
            starts.append(smooth if task.free_initial_states else segment[start])
            rates.append(rate)
    # from absolute to joint angles
    q0, qd0 = (np.diff(np.array(x), axis=1, prepend=0.0) for x in (starts, rates))
    return PendulumProblem(task, published, training, np.array(values), q0, qd0)


def _smooth(segment: Float[np.ndarray, "samples 2"], at: int, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Value and rate at a sample from a local cubic fit."""
    samples = max(9, round(SMOOTHING_TIME / dt) + 1)
    first = min(max(at - samples // 2, 0), len(segment) - samples)
    indices = np.arange(first, first + samples)
    coefficients = np.polynomial.polynomial.polyfit((indices - at) / samples, segment[indices], 3)
    return coefficients[0], coefficients[1] / (samples * dt)
