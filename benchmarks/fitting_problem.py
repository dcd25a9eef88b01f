"""The fit that everybody does: windows of a real double pendulum, free parameters and starts, as plain numbers.

The recordings are those of a double pendulum in a laboratory: absolute angles of both links, a thousand times a second,
with parameters that were published with them. They are not in the repository; the environment variable HYBRIDSIM_DATA
names the folder they are in. Nothing here needs a simulator.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Float

from benchmarks.toss_data import MissingData, folder

PATH = Path("lab_double_pendulum") / "segments.npz"
WINDOWS = 3
"""Of a segment: each lasts 0.888 s, and all but two samples of a segment are in one of them."""
NOISE = 1e-3
"""What residuals are divided by [rad]."""
SMOOTHED = 0.02
"""Time over which angles are smoothed for the velocity at a start [s]."""
INTEGRATOR = "RK4"


@dataclass(frozen=True)
class Free:
    """A parameter that is fitted. Everybody sees its value divided by its scale."""

    name: str
    """As hybridsim calls it."""
    start: float
    scale: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Published:
    """What the authors of the recordings found: links 0 and 1."""

    mass: tuple[float, float]
    """[kg]"""
    com: tuple[float, float]
    """Distance of the centre of mass from the link's own joint [m]."""
    length: float
    """Of link 0, from joint to joint [m]."""
    inertia: tuple[float, float]
    """About the centre of mass [kg·m²]."""
    damping: tuple[float, float]
    """Of the joints [N·m·s/rad]."""
    gravity: float
    """[m/s²]"""

    def free(self) -> list[Free]:
        """What is fitted.

        Without torques only ratios of masses can be told, so both masses and the centre of mass of link 1 along the
        link stay as they are. Dry friction is left out, because in MuJoCo it is a constraint of another kind.
        """
        far, aside, drag = (0.1, 10.0), (-0.01, 0.01), (0.0, 0.01)
        return [
            *(
                Free(f"body.inertia[link{k}].yy", self.inertia[k], self.inertia[k], *(f * self.inertia[k] for f in far))
                for k in range(2)
            ),
            Free("body.com[link0].z", -self.com[0], self.com[0], -3.0 * self.com[0], -0.1 * self.com[0]),
            Free("joint.placement[joint1].z", -self.length, self.length, -2.0 * self.length, -0.5 * self.length),
            *(Free(f"body.com[link{k}].x", 0.0, 1e-3, *aside) for k in range(2)),
            *(Free(f"joint.damping[joint{k}]", self.damping[k], 1e-4, *drag) for k in range(2)),
        ]


@dataclass(frozen=True)
class Task:
    """Which of the samples are used, and whether the starts of windows are held."""

    every: int
    """Of the samples, which are 1 ms apart; a time step goes from one used sample to the next."""
    free_starts: bool
    what: str

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return 1e-3 * self.every


TASKS = {
    "held": Task(1, False, "starts held, 1 ms"),
    "coarse": Task(2, False, "starts held, every second sample, 2 ms"),
    "free": Task(1, True, "starts free, 1 ms"),
}
"""By name; targets are judged by the first."""


@dataclass(frozen=True)
class FitProblem:
    """All that a fit is given."""

    task: Task
    published: Published
    angles: Float[np.ndarray, "segments samples 2"]
    """Absolute angles of the training segments from hanging [rad]."""
    values: Float[np.ndarray, "windows steps 2"]
    """What is compared: absolute angles after each step; with free starts from the start on instead."""
    q0: Float[np.ndarray, "windows 2"]
    """Joint angles at the start of each window: as measured, or smoothed where they are but a first guess [rad]."""
    qd0: Float[np.ndarray, "windows 2"]
    """Joint velocities there [rad/s]."""

    @property
    def steps(self) -> int:
        """Of a window."""
        return self.values.shape[1]

    @property
    def length(self) -> float:
        """Of a window [s]."""
        return self.steps * self.task.dt

    def residuals(self, joint_angles: Float[np.ndarray, "*many windows steps 2"]) -> Float[np.ndarray, "*many m"]:
        """How far simulated joint angles are off, in units of the noise."""
        absolute = np.cumsum(joint_angles, axis=-1)
        return ((absolute - self.values) / NOISE).reshape(*absolute.shape[:-3], -1)


def scaled(free: list[Free]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Start, lower and upper bounds as everybody sees them, and the scales."""
    scale = np.array([f.scale for f in free])
    start, lower, upper = (np.array([getattr(f, key) for f in free]) / scale for key in ("start", "lower", "upper"))
    return start, lower, upper, scale


@cache
def load(name: str = "held") -> FitProblem:
    """Read the recordings.

    Raises:
        MissingData: with what to do about it.
    """
    path = folder() / PATH
    if not path.exists():
        raise MissingData(f"{path} is not here; set HYBRIDSIM_DATA to the folder that has {PATH}")
    with np.load(path) as found:
        states, published = found["states"], [float(x) for x in found["published"]]
    return made(TASKS[name], states[:, :, :2] - np.pi, published)


def made(task: Task, angles: Float[np.ndarray, "segments samples 2"], numbers: list[float]) -> FitProblem:
    """The problem of all segments but every fourth, which are kept to test with."""
    m0, m1, com0, com1, length, i0, i1, k0, k1, gravity = numbers
    published = Published((m0, m1), (com0, com1), length, (i0, i1), (k0, k1), gravity)
    training = angles[[k for k in range(len(angles)) if k % 4 != 1], :: task.every]
    steps = (training.shape[1] - 1) // WINDOWS
    training = training[:, : WINDOWS * steps + 1]
    values, starts, rates = [], [], []
    for segment in training:
        for begin in range(0, WINDOWS * steps, steps):
            smooth, rate = _smoothed(segment, begin, task.dt)
            later = begin if task.free_starts else begin + 1
            values.append(segment[later : later + steps])
            starts.append(smooth if task.free_starts else segment[begin])
            rates.append(rate)
    # from absolute angles to those of the joints
    q0, qd0 = (np.diff(np.array(x), axis=1, prepend=0.0) for x in (starts, rates))
    return FitProblem(task, published, training, np.array(values), q0, qd0)


def _smoothed(segment: Float[np.ndarray, "samples 2"], at: int, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Value and rate at a sample by a cubic through those around it."""
    samples = max(9, round(SMOOTHED / dt) + 1)
    first = min(max(at - samples // 2, 0), len(segment) - samples)
    which = np.arange(first, first + samples)
    fitted = np.polynomial.polynomial.polyfit((which - at) / samples, segment[which], 3)
    return fitted[0], fitted[1] / (samples * dt)
