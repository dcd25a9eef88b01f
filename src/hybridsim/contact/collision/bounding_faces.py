"""Bounding boxes of shapes and points on their faces. Plain NumPy, once per simulator."""

import itertools
from collections.abc import Iterator

import numpy as np

from hybridsim.model.geometry import Geometry, Shape

_UNBOUNDED = (Shape.PLANE, Shape.HEIGHTFIELD)
"""Unbounded shapes, without a bounding box."""


def bounding_box(geometry: Geometry, shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Centre and half extents [m] of a shape's bounding box in its frame; zero extents for planes and height fields."""
    info, size = geometry.infos[shape], np.asarray(geometry.size)[shape]
    centre, half = np.zeros(3), size.copy()
    if info.shape in _UNBOUNDED:
        half = np.zeros(3)
    elif info.shape is Shape.SPHERE:
        half = np.full(3, size[0])
    elif info.shape in (Shape.CAPSULE, Shape.CYLINDER):
        half = np.array([size[0], size[0], size[1] + (size[0] if info.shape is Shape.CAPSULE else 0.0)])
    elif info.data_index >= 0:
        points = np.asarray(geometry.data[info.data_index])
        centre[: points.shape[1]] = 0.5 * (points.min(axis=0) + points.max(axis=0))
        half = size[0] * np.full(3, info.shape is Shape.POINTS) + size * np.array([0, 0, info.shape is Shape.POLYGON])
        half[: points.shape[1]] += 0.5 * np.ptp(points, axis=0)
    return centre, half


def bounding_faces(geometry: Geometry, shape: int) -> Iterator[tuple[int, np.ndarray]]:
    """Normal axis of each of the six faces, and points (n, 3) where the shape contacts a plane there, in its frame."""
    kind = geometry.infos[shape].shape
    centre, half = bounding_box(geometry, shape)
    # extents of each face along the other two axes
    lateral = np.tile(half, (3, 1))
    if kind in (Shape.SPHERE, Shape.ELLIPSOID):
        lateral[:] = 0.0
    elif kind in (Shape.CAPSULE, Shape.CYLINDER):
        lateral[:2] = 0.0, 0.0, np.asarray(geometry.size)[shape, 1]
        lateral[2] = 0.0 if kind is Shape.CAPSULE else np.sqrt(0.5) * half[0]
    for axis, sign in itertools.product(range(3), (-1.0, 1.0)):
        in_plane = [k for k in range(3) if k != axis]
        corners = sorted(set(itertools.product(*((-lateral[axis, k], lateral[axis, k]) for k in in_plane))))
        points = np.zeros((len(corners), 3))
        points[:, in_plane] = corners
        points[:, axis] = sign * half[axis]
        yield axis, centre + points
