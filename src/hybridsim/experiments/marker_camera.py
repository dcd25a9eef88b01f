"""A camera that looks at the markers of a double pendulum, calibrated by what cannot change: the lengths of the links.

Positions of markers in an image are not yet positions in the plane of motion: the plane may be seen at an angle, the
lens bends, the marker at the tip may be nearer to the camera than that at the elbow, and a marker need not sit on the
axis that it is to mark. All of this makes the links look longer or shorter as they turn. What makes them constant is
right.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

Array = np.ndarray
UNIT = 1000.0
"""Image units that are taken for one, so that all numbers are small."""
NAMES = ("stretch", "shear", "lean_x", "lean_y", "bend", "middle_x", "middle_y", "nearer", "along", "across")
USUAL = (0.02, 0.02, 0.02, 0.02, 0.02, 0.5, 0.5, 0.02, 0.02, 0.02)
"""How large the numbers of a camera usually are; without bending, for one, nothing tells where its middle is."""
NOISE = (0.35, 0.5)
"""Standard deviations of the two links' lengths, once they are right [image units]."""


class Markers(NamedTuple):
    """Marker positions of one run in an image, frame by frame."""

    elbow: Float[Array, "n 2"]
    tip: Float[Array, "n 2"]


class Camera(NamedTuple):
    """What turns images into motion in a plane."""

    origin: Float[Array, " 2"]
    """Point of the image from which all is counted."""
    numbers: Float[Array, " 10"]
    """By `NAMES`: how the image is stretched and sheared, how the plane leans, how the lens bends about which middle,
    by how much the tip's marker is nearer, and where the elbow's marker sits on its link, along and across [UNIT]."""

    def placed(self, points: Float[Array, "n 2"], *, tip: bool = False) -> Float[Array, "n 2"]:
        """Image points in the plane of motion [UNIT]."""
        k = dict(zip(NAMES, self.numbers, strict=True))
        x = (points - self.origin) / UNIT - [k["middle_x"], k["middle_y"]]
        x = x * (1.0 + k["bend"] * np.square(x).sum(axis=1, keepdims=True)) * (1.0 + k["nearer"] * tip)
        x = x + np.stack([k["stretch"] * x[:, 0] + k["shear"] * x[:, 1], np.zeros(len(x))], axis=1)
        return x / (1.0 + x @ [k["lean_x"], k["lean_y"]])[:, None]

    def links(self, seen: Markers, pivot: Float[Array, " 2"]) -> tuple[Float[Array, "n 2"], Float[Array, "n 2"]]:
        """Both links as vectors: from the pivot to the elbow's marker, and from the elbow's axis to the tip."""
        first = self.placed(seen.elbow) - pivot
        along = first / np.linalg.norm(first, axis=1, keepdims=True)
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        axis = pivot + first - self.numbers[8] * along - self.numbers[9] * across
        return first, self.placed(seen.tip, tip=True) - axis


def circle(points: Float[Array, "n 2"]) -> tuple[Float[Array, " 2"], float]:
    """Middle and radius of the circle that points lie on."""
    rows = np.column_stack([2.0 * points, np.ones(len(points))])
    x, y, rest = np.linalg.lstsq(rows, np.square(points).sum(axis=1), rcond=None)[0]
    return np.array([x, y]), float(np.sqrt(rest + x * x + y * y))


def calibrated(runs: Mapping[str, Markers], every: int = 20) -> Camera:
    """The camera for which both links keep their lengths in all runs, each with a pivot of its own."""
    some = [Markers(*(x[::every] for x in seen)) for seen in runs.values()]
    origin = np.mean([circle(seen.elbow)[0] for seen in some], axis=0)

    def errors(x: Array) -> Array:
        camera, lengths, pivots = Camera(origin, x[:10]), x[10:12], x[12:].reshape(-1, 2)
        rows = []
        for seen, pivot in zip(some, pivots, strict=True):
            links = camera.links(seen, pivot)
            # by their length: otherwise a camera that makes everything smaller would make its errors smaller, too
            rows += [(np.linalg.norm(link, axis=1) / L - 1.0) for link, L in zip(links, lengths, strict=True)]
        return np.concatenate([x[:10] / USUAL, *(row * weights[k % 2] for k, row in enumerate(rows))])

    lengths = [np.mean([circle(seen.elbow)[1] for seen in some]) / UNIT]
    lengths.append(np.mean([np.linalg.norm(seen.tip - seen.elbow, axis=1).mean() for seen in some]) / UNIT)
    weights = [UNIT * length / noise for length, noise in zip(lengths, NOISE, strict=True)]
    pivots = [(circle(seen.elbow)[0] - origin) / UNIT for seen in some]
    scale = np.concatenate([USUAL, np.full(2 + 2 * len(some), 1e-3)])
    found = least_squares(errors, np.concatenate([np.zeros(10), lengths, *pivots]), x_scale=scale)
    return Camera(origin, found.x[:10])
