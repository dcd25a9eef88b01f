"""Convex polygons in the plane: what two have in common, corners and areas."""

import numpy as np
from scipy.spatial import ConvexHull, QhullError


def rectangle(half, yaw: float = 0.0, at=(0.0, 0.0)) -> np.ndarray:
    """Corners of a rectangle, counterclockwise."""
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]) * np.asarray(half)
    c, s = np.cos(yaw), np.sin(yaw)
    return corners @ np.array([[c, s], [-s, c]]) + np.asarray(at)


def clipped(polygon: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Corners of what two convex polygons have in common, counterclockwise; cut along one edge after the other."""
    for a, b in zip(window, np.roll(window, -1, axis=0), strict=True):
        outward = np.array([b[1] - a[1], a[0] - b[0]])
        outside = (polygon - a) @ outward
        kept = []
        for k in range(len(polygon)):
            p, q, dp, dq = polygon[k - 1], polygon[k], outside[k - 1], outside[k]
            if (dp > 0.0) != (dq > 0.0):
                kept.append(p + dp / (dp - dq) * (q - p))
            if dq <= 0.0:
                kept.append(q)
        polygon = np.array(kept).reshape(-1, 2)
    return corners_of(polygon)


def corners_of(points: np.ndarray) -> np.ndarray:
    """Corners of the convex hull of some points; none if it has no area."""
    if len(points) < 3:
        return np.zeros((0, 2))
    try:
        hull = points[ConvexHull(points).vertices]
    except QhullError:
        return np.zeros((0, 2))
    apart = [p for k, p in enumerate(hull) if np.linalg.norm(p - hull[k - 1]) > 1e-8]
    bends = [p for k, p in enumerate(apart) if abs(_cross(p - apart[k - 1], apart[(k + 1) % len(apart)] - p)) > 1e-10]
    return np.array(bends).reshape(-1, 2)


def area(corners: np.ndarray) -> float:
    if len(corners) < 3:
        return 0.0
    x, y = (corners - corners[0]).T
    return float(0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def _cross(a: np.ndarray, b: np.ndarray) -> float:
    return float(a[0] * b[1] - a[1] * b[0])
