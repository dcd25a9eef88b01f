"""Recorded tosses of a real cube, which of them to fit and which to test, and how far a simulated motion is off.

The recordings are those of ContactNets (Pfrommer, Halm & Posa 2020): an acrylic cube thrown onto a table, 148 frames a
second. They are not in the repository; the environment variable HYBRIDSIM_DATA names the folder they are in.
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
    """Which tosses are fitted, and which others are tested."""

    training: tuple[int, ...]
    test: tuple[int, ...]


ROUNDS = tuple(Round(tuple(range(2 * k, TOSSES, 10)), tuple(range((2 * k + 3) % 5, TOSSES, 5))) for k in range(5))
"""50 tosses to fit and 100 others to test, five times: every toss is tested once.

Medians of 100 tosses vary by some percent with the choice of the tosses; those of all 500 do not as much.
"""
TABLE_HEIGHT = -0.0012
"""Height of the table [m]: where the lying cube's recorded positions put it."""


class MissingData(Exception):
    """The recordings are not there."""


@dataclass(frozen=True)
class Tosses:
    """The recordings and what is known of the cube."""

    states: Float[np.ndarray, "rows 13"]
    """Position [m], quaternion wxyz, velocity [m/s] in the world, angular velocity [rad/s] in the cube's frame."""
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
        """How many frames tosses have."""
        return [int(self.first_rows[k + 1] - self.first_rows[k]) for k in numbers]

    def starts(self, numbers: Sequence[int]) -> Float[np.ndarray, "n 13"]:
        """First states of tosses."""
        return self.states[self.first_rows[list(numbers)]]


def folder() -> Path:
    """Where recordings are."""
    return Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data"))


def load() -> Tosses:
    """Read the recordings.

    Raises:
        MissingData: with what to do about it.
    """
    path = folder() / PATH
    if not path.exists():
        raise MissingData(f"{path} is not here; set HYBRIDSIM_DATA to the folder that has {PATH}")
    with np.load(path) as found:
        numbers = [float(found[key]) for key in ("dt", "mass", "inertia", "half_width")]
        return Tosses(found["states"], found["ptr"], *numbers)


Motion = Float[np.ndarray, "frames 7"]
"""Position [m] and quaternion of a cube at every frame."""


@dataclass(frozen=True)
class Errors:
    """How far simulated tosses are off, each averaged over its frames."""

    position: Float[np.ndarray, " n"]
    """[mm]"""
    rotation: Float[np.ndarray, " n"]
    """Angle between the recorded and the simulated orientation [degrees]."""

    @property
    def loss(self) -> float:
        """What is minimised: the logarithm of the product of both errors' geometric means.

        It needs no weight between millimetres and degrees, and a toss that comes to lie on another face, which chance
        decides, counts little more than the others. Geometric means are close to medians, but change smoothly.
        """
        return float(np.mean(np.log(self.position)) + np.mean(np.log(self.rotation)))

    @staticmethod
    def of_all(parts: Sequence["Errors"]) -> "Errors":
        """Of several sets of tosses together."""
        return Errors(np.concatenate([p.position for p in parts]), np.concatenate([p.rotation for p in parts]))


def errors(motions: Sequence[Motion], tosses: Tosses, numbers: Sequence[int]) -> Errors:
    """Compare simulated motions with what was recorded."""
    pairs = [(motion, tosses.toss(k)) for motion, k in zip(motions, numbers, strict=True)]
    position = [np.mean(distances(motion, recorded)) for motion, recorded in pairs]
    rotation = [np.mean(angles(motion, recorded)) for motion, recorded in pairs]
    return Errors(np.array(position), np.array(rotation))


def distances(motion: Motion, recorded: Float[np.ndarray, "frames 13"]) -> Float[np.ndarray, " frames"]:
    """Between simulated and recorded positions [mm]."""
    return 1e3 * np.linalg.norm(motion[:, :3] - recorded[:, :3], axis=1)


def angles(motion: Motion, recorded: Float[np.ndarray, "frames 13"]) -> Float[np.ndarray, " frames"]:
    """Between simulated and recorded orientations [degrees]."""
    p, q = (x[:, 3:7] / np.linalg.norm(x[:, 3:7], axis=1, keepdims=True) for x in (motion, recorded))
    # by the sine and not the cosine where it is small: that of a small angle is lost in rounding
    sign = np.where(np.sum(p * q, axis=1, keepdims=True) < 0.0, -1.0, 1.0)
    apart, together = np.linalg.norm(p - sign * q, axis=1), np.linalg.norm(p + sign * q, axis=1)
    return np.degrees(4.0 * np.arctan2(apart, together))
