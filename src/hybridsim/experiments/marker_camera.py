"""Calibration of a camera that films the markers of a double pendulum, from the constant lengths of its links.

Marker positions in an image differ from those in the plane of motion: the plane may be tilted, the lens has radial
distortion, the tip marker may be closer to the camera than the elbow marker, and a marker may be offset from its joint
axis. All of these make the apparent link lengths vary with the angles; the calibration makes them constant.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from hybridsim.core.errors import HybridsimError

Array = np.ndarray
UNIT = 1000.0
"""Image units per calibration unit, so that all parameters are of order one or less."""
PARAMETER_NAMES = (
    "stretch",
    "shear",
    "tilt_x",
    "tilt_y",
    "distortion",
    "centre_x",
    "centre_y",
    "tip_scale",
    "offset_along",
    "offset_across",
)
PRIOR_STD = (0.02, 0.02, 0.02, 0.02, 0.02, 0.5, 0.5, 0.02, 0.02, 0.02)
"""Prior standard deviations of the parameters; without distortion, for example, its centre is unidentifiable."""
NOISE = (0.35, 0.5)
"""Noise of the two calibrated link lengths, standard deviation [image units]."""

MAX_EVALUATIONS_PER_UNKNOWN = 100
"""Maximum number of evaluations of the residuals, relative to the number of unknowns."""


class Markers(NamedTuple):
    """Marker positions of one run in the image, one row per frame."""

    elbow: Float[Array, "n 2"]
    tip: Float[Array, "n 2"]


class Camera(NamedTuple):
    """Map from image points to the plane of motion."""

    origin: Float[Array, " 2"]
    """Origin of calibrated coordinates in the image."""
    parameters: Float[Array, " 10"]
    """In the order of `PARAMETER_NAMES`: stretch and shear of the image, tilt of the plane, radial distortion and its
    centre, scale of the tip marker relative to the elbow marker minus one, and offset of the elbow marker along and
    across its link [UNIT]."""

    def rectify(self, points: Float[Array, "n 2"], *, tip: bool = False) -> Float[Array, "n 2"]:
        """Map image points to the plane of motion [UNIT]."""
        k = dict(zip(PARAMETER_NAMES, self.parameters, strict=True))
        x = (points - self.origin) / UNIT - [k["centre_x"], k["centre_y"]]
        x = x * (1.0 + k["distortion"] * np.square(x).sum(axis=1, keepdims=True)) * (1.0 + k["tip_scale"] * tip)
        x = x + np.stack([k["stretch"] * x[:, 0] + k["shear"] * x[:, 1], np.zeros(len(x))], axis=1)
        return x / (1.0 + x @ [k["tilt_x"], k["tilt_y"]])[:, None]

    def links(self, markers: Markers, pivot: Float[Array, " 2"]) -> tuple[Float[Array, "n 2"], Float[Array, "n 2"]]:
        """Link vectors: from the pivot to the elbow marker, and from the elbow axis to the tip marker."""
        first = self.rectify(markers.elbow) - pivot
        along = first / np.linalg.norm(first, axis=1, keepdims=True)
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        axis = pivot + first - self.parameters[8] * along - self.parameters[9] * across
        return first, self.rectify(markers.tip, tip=True) - axis


def fit_circle(points: Float[Array, "n 2"]) -> tuple[Float[Array, " 2"], float]:
    """Fit a circle to points: centre and radius."""
    rows = np.column_stack([2.0 * points, np.ones(len(points))])
    x, y, offset = np.linalg.lstsq(rows, np.square(points).sum(axis=1), rcond=None)[0]
    return np.array([x, y]), float(np.sqrt(offset + x * x + y * y))


def calibrate(runs: Mapping[str, Markers], every: int = 20) -> Camera:
    """Calibrate a camera for constant link lengths over all runs, with one pivot per run.

    Args:
        runs: markers by run name.
        every: use every n-th frame.

    Raises:
        HybridsimError: the least squares do not converge.
    """
    subsampled = [Markers(*(x[::every] for x in markers)) for markers in runs.values()]
    origin = np.mean([fit_circle(markers.elbow)[0] for markers in subsampled], axis=0)

    def residuals(x: Array) -> Array:
        camera, lengths, pivots = Camera(origin, x[:10]), x[10:12], x[12:].reshape(-1, 2)
        rows = []
        for markers, pivot in zip(subsampled, pivots, strict=True):
            links = camera.links(markers, pivot)
            # relative to the length; absolute residuals could be reduced by shrinking the image
            rows += [(np.linalg.norm(link, axis=1) / L - 1.0) for link, L in zip(links, lengths, strict=True)]
        return np.concatenate([x[:10] / PRIOR_STD, *(row * weights[k % 2] for k, row in enumerate(rows))])

    lengths = [np.mean([fit_circle(markers.elbow)[1] for markers in subsampled]) / UNIT]
    lengths.append(
        np.mean([np.linalg.norm(markers.tip - markers.elbow, axis=1).mean() for markers in subsampled]) / UNIT
    )
    weights = [UNIT * length / noise for length, noise in zip(lengths, NOISE, strict=True)]
    pivots = [(fit_circle(markers.elbow)[0] - origin) / UNIT for markers in subsampled]
    scale = np.concatenate([PRIOR_STD, np.full(2 + 2 * len(subsampled), 1e-3)])
    initial = np.concatenate([np.zeros(10), lengths, *pivots])
    solution = least_squares(residuals, initial, x_scale=scale, max_nfev=MAX_EVALUATIONS_PER_UNKNOWN * len(initial))
    if not solution.success:
        raise HybridsimError(
            f"the camera calibration did not converge in {solution.nfev} evaluations (optimality "
            f"{solution.optimality:.2g}): {solution.message}"
        )
    return Camera(origin, solution.x[:10])
