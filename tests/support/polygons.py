"""Convex polygons in the plane: intersection, corners and area."""

import numpy as np
from scipy.spatial import ConvexHull, QhullError


def rectangle(half, yaw: float = 0.0, at=(0.0, 0.0)) -> np.ndarray:
    """Corners of a rectangle, counterclockwise."""
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]) * np.asarray(half)
    c, s = np.cos(yaw), np.sin(yaw)
    return corners @ np.array([[c, s], [-s, c]]) + np.asarray(at)


def clip(polygon: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Clip a convex polygon by another one (Sutherland–Hodgman); corners are counterclockwise."""
    for a, b in zip(window, np.roll(window, -1, axis=0), strict=True):
        outward = np.array([b[1] - a[1], a[0] - b[0]])
        outside = (polygon - a) @ outward
        corners = []
        for k in range(len(polygon)):
            p, q, dp, dq = polygon[k - 1], polygon[k], outside[k - 1], outside[k]
            if (dp > 0.0) != (dq > 0.0):
                corners.append(p + dp / (dp - dq) * (q - p))
            if dq <= 0.0:
                corners.append(q)
        polygon = np.array(corners).reshape(-1, 2)
    return hull_corners(polygon)


def hull_corners(points: np.ndarray) -> np.ndarray:
    """Corners of the convex hull of points; none if its area is zero."""
    if len(points) < 3:
        return np.zeros((0, 2))
    try:
        hull = points[ConvexHull(points).vertices]
    except QhullError:
        return np.zeros((0, 2))
    distinct = [p for k, p in enumerate(hull) if np.linalg.norm(p - hull[k - 1]) > 1e-8]
    sides = [(p - distinct[k - 1], distinct[(k + 1) % len(distinct)] - p) for k, p in enumerate(distinct)]
    corners = [p for p, (before, after) in zip(distinct, sides, strict=True) if abs(_cross(before, after)) > 1e-10]
    return np.array(corners).reshape(-1, 2)


def area(corners: np.ndarray) -> float:
    """Area of a polygon, positive if counterclockwise."""
    if len(corners) < 3:
        return 0.0
    x, y = (corners - corners[0]).T
    return float(0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def _cross(a: np.ndarray, b: np.ndarray) -> float:
    return float(a[0] * b[1] - a[1] * b[0])
