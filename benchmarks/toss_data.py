"""Recorded tosses of a real cube, splits into training and test tosses, and errors of simulated motions.

The recordings are those of ContactNets (Pfrommer, Halm & Posa 2020): an acrylic cube thrown onto a table, 148 frames a
second. They are not in the repository; the environment variable HYBRIDSIM_DATA names their folder.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

PATH = Path("cube_tosses") / "tosses.npz"
TOSSES = 500


@dataclass(frozen=True)
class Round:
    """A split into training and test tosses."""

    training: tuple[int, ...]
    test: tuple[int, ...]


ROUNDS = tuple(Round(tuple(range(2 * k, TOSSES, 10)), tuple(range((2 * k + 3) % 5, TOSSES, 5))) for k in range(5))
"""Five splits into 50 training and 100 test tosses: every toss is tested once.

Medians over 100 tosses vary by some percent with the choice of tosses; those over all 500 vary less.
"""
TABLE_HEIGHT = -0.0012
"""Height of the table [m], from recorded positions of the resting cube."""


class MissingData(Exception):
    """The recordings do not exist."""


@dataclass(frozen=True)
class Tosses:
    """The recordings and the properties of the cube."""

    states: Float[np.ndarray, "rows 13"]
    """Position [m], quaternion wxyz, velocity [m/s] in the world, angular velocity [rad/s] in the cube frame."""
    first_rows: Float[np.ndarray, " n"]
    """First row of every toss, and the end of the last."""
    frame_time: float
    """Time between two frames [s]."""
    mass: float
    """[kg]"""
    inertia: float
    """About any axis through the centre [kg·m²]."""
    half_width: float
    """[m]"""

    def toss(self, number: int) -> Float[np.ndarray, "frames 13"]:
        """States of one toss, from the first frame in the air to the last at rest."""
        return self.states[self.first_rows[number] : self.first_rows[number + 1]]

    def frames(self, numbers: Sequence[int]) -> list[int]:
        """Numbers of frames of tosses."""
        return [int(self.first_rows[k + 1] - self.first_rows[k]) for k in numbers]

    def initial_states(self, numbers: Sequence[int]) -> Float[np.ndarray, "n 13"]:
        """Initial states of tosses."""
        return self.states[self.first_rows[list(numbers)]]


def data_folder() -> Path:
    """Folder of the recordings."""
    return Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data"))


def load() -> Tosses:
    """Load the recordings.

    Raises:
        MissingData: the recordings do not exist; says what to do.
    """
    path = data_folder() / PATH
    if not path.exists():
        raise MissingData(f"{path} does not exist; set HYBRIDSIM_DATA to the folder that contains {PATH}")
    with np.load(path) as file:
        properties = [float(file[key]) for key in ("dt", "mass", "inertia", "half_width")]
        return Tosses(file["states"], file["ptr"], *properties)


Motion = Float[np.ndarray, "frames 7"]
"""Position [m] and quaternion of the cube at every frame."""


@dataclass(frozen=True)
class Errors:
    """Errors of simulated tosses, each averaged over its frames."""

    position: Float[np.ndarray, " n"]
    """[mm]"""
    rotation: Float[np.ndarray, " n"]
    """Angle between the recorded and the simulated orientation [degrees]."""

    @property
    def loss(self) -> float:
        """Loss: logarithm of the product of the geometric means of both errors.

        It needs no weight between millimetres and degrees, and is robust to tosses that come to rest on another face,
        which is chaotic. Geometric means are close to medians, but smooth.
        """
        return float(np.mean(np.log(self.position)) + np.mean(np.log(self.rotation)))

    @staticmethod
    def of_all(parts: Sequence["Errors"]) -> "Errors":
        """Errors of several sets of tosses."""
        return Errors(np.concatenate([p.position for p in parts]), np.concatenate([p.rotation for p in parts]))


def errors(motions: Sequence[Motion], tosses: Tosses, numbers: Sequence[int]) -> Errors:
    """Errors of simulated motions relative to the recordings."""
    pairs = [(motion, tosses.toss(k)) for motion, k in zip(motions, numbers, strict=True)]
    position = [np.mean(distances(motion, recorded)) for motion, recorded in pairs]
    rotation = [np.mean(angles(motion, recorded)) for motion, recorded in pairs]
    return Errors(np.array(position), np.array(rotation))


def distances(motion: Motion, recorded: Float[np.ndarray, "frames 13"]) -> Float[np.ndarray, " frames"]:
    """Distances between simulated and recorded positions [mm]."""
    return 1e3 * np.linalg.norm(motion[:, :3] - recorded[:, :3], axis=1)


def angles(motion: Motion, recorded: Float[np.ndarray, "frames 13"]) -> Float[np.ndarray, " frames"]:
    """Angles between simulated and recorded orientations [degrees]."""
    p, q = (x[:, 3:7] / np.linalg.norm(x[:, 3:7], axis=1, keepdims=True) for x in (motion, recorded))
    # from both sine and cosine, as the cosine of a small angle is lost in rounding
    sign = np.where(np.sum(p * q, axis=1, keepdims=True) < 0.0, -1.0, 1.0)
    difference, total = np.linalg.norm(p - sign * q, axis=1), np.linalg.norm(p + sign * q, axis=1)
    return np.degrees(4.0 * np.arctan2(difference, total))
