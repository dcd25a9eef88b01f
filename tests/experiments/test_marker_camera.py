"""A camera is calibrated by the lengths of links alone: on made-up markers all that distorts them is found."""

import numpy as np
import pytest

from hybridsim.experiments.marker_camera import NAMES, UNIT, Camera, Markers, calibrated, circle

LENGTHS = np.array([0.59, 0.45])
OFF_AXIS = (0.0012, -0.0006)
"""Where the elbow's marker sits beside the elbow's axis, along and across [UNIT]."""


def made_up(seed: int, lean: float = 0.0, noise: float = 0.0) -> tuple[Markers, np.ndarray, np.ndarray]:
    """Markers of a pendulum that turns in all ways, seen by a camera that looks at an angle, and its true angles."""
    random = np.random.default_rng(seed)
    first, second = random.uniform(0.0, 2.0 * np.pi, (2, 8000))
    along = np.stack([np.cos(first), np.sin(first)], axis=1)
    across = np.stack([-np.sin(first), np.cos(first)], axis=1)
    axis = LENGTHS[0] * along
    elbow = axis + OFF_AXIS[0] * along + OFF_AXIS[1] * across
    tip = axis + LENGTHS[1] * np.stack([np.cos(second), np.sin(second)], axis=1)
    pivot = np.array([1.2, 1.18]) + 0.01 * random.standard_normal(2)

    def image(x):
        return UNIT * (pivot + x / (1.0 - lean * x[:, :1])) + noise * random.standard_normal(x.shape)

    return Markers(image(elbow), image(tip)), first, second


def lengths(camera: Camera, seen: Markers) -> np.ndarray:
    links = camera.links(seen, circle(camera.placed(seen.elbow))[0])
    return np.array([UNIT * np.std(np.linalg.norm(link, axis=1)) for link in links])


def test_a_circle():
    angle = np.linspace(0.0, 4.0, 30)
    middle, radius = circle(np.stack([3.0 + 2.0 * np.cos(angle), -1.0 + 2.0 * np.sin(angle)], axis=1))
    assert middle == pytest.approx([3.0, -1.0]) and radius == pytest.approx(2.0)


@pytest.mark.parametrize("lean", [0.0, 0.02])
def test_lengths_become_constant_and_angles_right(lean):
    runs = {str(k): made_up(k, lean) for k in range(3)}
    camera = calibrated({name: one[0] for name, one in runs.items()}, every=4)
    plain = Camera(camera.origin, np.zeros(len(NAMES)))
    for seen, _, second in runs.values():
        # the markers lean about their own pivot, the camera about one point for all runs: that much is left, of a unit
        assert lengths(camera, seen).max() < 0.1 and lengths(plain, seen).max() > 0.5
        link = camera.links(seen, circle(camera.placed(seen.elbow))[0])[1]
        off = np.angle(np.exp(1j * (np.arctan2(link[:, 1], link[:, 0]) - second)))
        # nothing tells how the camera is turned about its own axis
        assert np.std(off) < 2e-4


def test_noise_is_what_is_left():
    runs = {str(k): made_up(k, 0.02, noise=0.3)[0] for k in range(3)}
    camera = calibrated(runs, every=2)
    for seen in runs.values():
        assert lengths(camera, seen) == pytest.approx([0.3, 0.3 * np.sqrt(2.0)], rel=0.1)
