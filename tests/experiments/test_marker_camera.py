"""Camera calibration from constant link lengths, on synthetic markers."""

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.experiments import marker_camera
from hybridsim.experiments.marker_camera import PARAMETER_NAMES, UNIT, Camera, Markers, calibrate, fit_circle

LENGTHS = np.array([0.59, 0.45])
ELBOW_OFFSET = (0.0012, -0.0006)
"""Offset of the elbow marker from the elbow axis, along and across the link [UNIT]."""


def synthetic_run(seed: int, tilt: float = 0.0, noise: float = 0.0) -> tuple[Markers, np.ndarray, np.ndarray]:
    """Markers of a pendulum at random angles, seen by a tilted camera, and the true angles."""
    random = np.random.default_rng(seed)
    first, second = random.uniform(0.0, 2.0 * np.pi, (2, 8000))
    along = np.stack([np.cos(first), np.sin(first)], axis=1)
    across = np.stack([-np.sin(first), np.cos(first)], axis=1)
    axis = LENGTHS[0] * along
    elbow = axis + ELBOW_OFFSET[0] * along + ELBOW_OFFSET[1] * across
    tip = axis + LENGTHS[1] * np.stack([np.cos(second), np.sin(second)], axis=1)
    pivot = np.array([1.2, 1.18]) + 0.01 * random.standard_normal(2)

    def image(x):
        return UNIT * (pivot + x / (1.0 - tilt * x[:, :1])) + noise * random.standard_normal(x.shape)

    return Markers(image(elbow), image(tip)), first, second


def length_std(camera: Camera, markers: Markers) -> np.ndarray:
    links = camera.links(markers, fit_circle(camera.rectify(markers.elbow))[0])
    return np.array([UNIT * np.std(np.linalg.norm(link, axis=1)) for link in links])


def test_fit_circle():
    angle = np.linspace(0.0, 4.0, 30)
    centre, radius = fit_circle(np.stack([3.0 + 2.0 * np.cos(angle), -1.0 + 2.0 * np.sin(angle)], axis=1))
    assert centre == pytest.approx([3.0, -1.0]) and radius == pytest.approx(2.0)


@pytest.mark.parametrize("tilt", [0.0, 0.02])
def test_calibrated_lengths_are_constant_and_angles_correct(tilt):
    runs = {str(k): synthetic_run(k, tilt) for k in range(3)}
    camera = calibrate({name: run[0] for name, run in runs.items()}, every=4)
    uncalibrated = Camera(camera.origin, np.zeros(len(PARAMETER_NAMES)))
    for markers, _, second in runs.values():
        # the synthetic images tilt the camera about the pivot of each run, the calibration about one point for all
        # runs; hence the remaining variation of the lengths
        assert length_std(camera, markers).max() < 0.1 and length_std(uncalibrated, markers).max() > 0.5
        link = camera.links(markers, fit_circle(camera.rectify(markers.elbow))[0])[1]
        error = np.angle(np.exp(1j * (np.arctan2(link[:, 1], link[:, 0]) - second)))
        # the rotation of the camera about its optical axis is unidentifiable
        assert np.std(error) < 2e-4


def test_residual_length_variation_is_noise():
    runs = {str(k): synthetic_run(k, 0.02, noise=0.3)[0] for k in range(3)}
    camera = calibrate(runs, every=2)
    for markers in runs.values():
        assert length_std(camera, markers) == pytest.approx([0.3, 0.3 * np.sqrt(2.0)], rel=0.1)


def test_a_calibration_that_does_not_converge_is_an_error(monkeypatch):
    runs = {str(k): synthetic_run(k, 0.02)[0] for k in range(3)}
    # one evaluation for 18 unknowns
    monkeypatch.setattr(marker_camera, "MAX_EVALUATIONS_PER_UNKNOWN", 1.0 / 18.0)
    with pytest.raises(HybridsimError, match=r"did not converge in 1 evaluations \(optimality .*maximum number of"):
        calibrate(runs, every=100)
